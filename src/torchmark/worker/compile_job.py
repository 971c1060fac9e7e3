"""What a worker for `torch.compile` has besides: a back end of our own, a warm compiler, timing of first calls."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from typing import Any

import torch

from torchmark.measure.clock import choose_clock
from torchmark.measure.dynamo import Watch
from torchmark.measure.snippet import SnippetTimer
from torchmark.measure.steps import Steps
from torchmark.model.job import CompileJob, Job
from torchmark.model.outcome import FailureKind, FirstCall
from torchmark.worker.protocol import REPLAY, Failed

# What has to be loaded before the first call is timed.
PARTS = ("torch._dynamo", "torch._inductor.compile_fx")
# After the first call; the middle one is what a later call takes.
LATER_CALLS = 3

# A module with layers that have something to find out or to load, for inference and for training. With a number that is
# in nobody's model: what is compiled here must not be found by a job.
WARM_UP_SETUP = """
class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(5, 5)
        self.norm = torch.nn.BatchNorm1d(5)
    def forward(self, x, w):
        return torch.relu(self.norm(self.linear(x) @ w * 0.7310585786300049)).sum()
x, w, model = torch.ones(5, 5), torch.ones(5, 5, requires_grad=True), Model()
compiled_model = torch.compile(model)
with torch.no_grad():
    compiled_model(x, w)
"""
WARM_UP_TRAINING = "y = compiled_model(x, w)\ny.backward()"
# With a gradient in sight, compiling alone runs the backward pass.
WARM_UP_INFERENCE = "with torch.no_grad():\n    y = compiled_model(x, w)"


def explain_absence(job: Job) -> Failed | None:
    """Why a job that needs `torch.compile` cannot be done here."""
    telling = (getattr(job, name, False) for name in ("watch_compiler", "uses_compiler"))
    if hasattr(torch, "compile") or not (isinstance(job, CompileJob) or any(telling)):
        return None
    text = f"torch {torch.__version__} has no torch.compile, which came with torch 2.0. Name a Python with a newer one."
    return Failed(FailureKind.RAISED.value, text, None)


def load_compiler() -> bool:
    """Import the compiler and add our back end to it. False where there is none, or none that works."""
    if not hasattr(torch, "compile"):
        return False
    try:
        dynamo, _ = map(importlib.import_module, PARTS)
        dynamo.register_backend(name=REPLAY)(replay)
    except Exception:
        # A job that needs it will say more.
        return False
    return True


def replay(graph: Callable[..., Sequence[Any]], inputs: Sequence[Any]) -> Callable[..., Sequence[Any]]:
    """A back end whose code runs once and gives the same result ever after: what remains is the way in and out."""
    results: Sequence[Any] | None = None

    def run(*args: Any) -> Sequence[Any]:
        nonlocal results
        if results is None:
            results = graph(*args)
        return results

    return run


def time_first_call(job: CompileJob, namespace: dict[str, Any]) -> FirstCall:
    """Carry the job out. Only the first execution is looked at by the compiler, so that a process has one."""
    mode = "" if job.mode is None else f", mode={job.mode!r}"
    setup = f"{job.setup}\ncompiled_model = torch.compile(model, backend={job.backend!r}{mode})"
    return SnippetTimer(job.stmt, setup, choose_clock(), namespace).follow(_first_call())


def _first_call() -> Steps[FirstCall]:
    # No run at all: the setup is done after this.
    yield 0
    watch = Watch()
    first = yield 1
    added, breaks = watch.added(), watch.breaks()
    later = []
    for _ in range(LATER_CALLS):
        later.append((yield 1))
    return FirstCall(
        first_s=first,
        steady_s=sorted(later)[LATER_CALLS // 2],
        graphs=added.graphs,
        graph_breaks=added.graph_breaks,
        abandoned=added.abandoned,
        cache_hits=added.cache_hits,
        cache_misses=added.cache_misses,
        breaks=breaks,
    )
