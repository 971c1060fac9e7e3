"""Gets a zygote ready, so that a child finds everything warm and the heap in the same state every time."""

from __future__ import annotations

import gc
import io
import os
import sys
import tempfile

import torch

from torchmark.measure.snippet import SnippetTimer
from torchmark.model.job import CountJob, Job, Place, TimeJob
from torchmark.wire.frames import pack
from torchmark.wire.messages import Counted, Failed, Message, encode
from torchmark.worker.child import do_job
from torchmark.worker.compiling import WARM_UP_INFERENCE, WARM_UP_SETUP, WARM_UP_TRAINING, load_compiler
from torchmark.worker.marks import Marks
from torchmark.worker.process import release_free_memory

# What many statements use. Under Valgrind, code that ran here is translated already in every child.
_OPERATORS = """
y = x * w; y = x + 1; y = x - w; y = x / 2; y = x @ x; y = x.sum(); y = x.view(16); y = x[0]; y = x.t()
y = torch.relu(x); y = torch.empty(4); y = torch.zeros(4); y = torch.ones(4); y = torch.cat([x, x]); y = x.clone()
x += 1; y = x.mean().item(); y = linear(x)
"""
# Starts a thread for every accelerator, and a process with threads cannot be forked: only where torch knows of none.
_BACKWARD = "(x * w).sum().backward()"
_SETUP = "x = torch.ones(4, 4); w = torch.ones(4, 4, requires_grad=True); linear = torch.nn.Linear(4, 4)"
_ROUNDS = 16

# Loading TorchScript and letting it settle, with a gradient and without, runs much the same code for every model.
_SCRIPT = """
class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(4, 4)
    def forward(self, x, w):
        return torch.relu(self.linear(x) * w + x)
torch.jit.save(torch.jit.script(Model()), file)
"""
_LOAD = """
x = torch.ones(4, 4); w = torch.ones(4, 4, requires_grad=True); model = torch.jit.load(file)
for _ in range(3):
    with torch.no_grad():
        model(x, w)
"""


def prepare(marks: Marks | None, *, compiling: bool = False, scripting: bool = False) -> None:
    """Run what jobs will run, then leave no garbage to anyone."""
    torch.set_num_threads(1)
    if compiling:
        # Callgrind does not look on before a job has compiled and warmed up its statement: tracing Python and loading
        # graphs takes a second without it, and minutes with it.
        _rehearse(None)
        if load_compiler():
            _rehearse_compiling()
    else:
        # Making TorchScript is no part of a job, and takes several times as long once Callgrind looks on.
        model = _script() if scripting else None
        # With all callers of everything, looking on costs memory and minutes: then only once a statement is warm.
        looked_at = marks if marks is not None and marks.calls is None else None
        if looked_at is not None:
            looked_at.start()
        _rehearse(looked_at)
        if model is not None:
            _rehearse_loading(model)
    # Objects that live now are never looked at again: a collection in a child would copy every page of them.
    gc.collect()
    gc.freeze()
    gc.disable()
    release_free_memory()


def clear(marks: Marks, scratch: str) -> None:
    """Throw away what was collected so far, which every child would otherwise write once more."""
    marks.forget()
    for name in os.listdir(scratch):
        os.unlink(os.path.join(scratch, name))


def _rehearse(marks: Marks | None) -> None:
    stmt = f"{_OPERATORS}{_BACKWARD}" if _is_for_cpu_only() else _OPERATORS
    if marks is None:
        SnippetTimer(stmt, _SETUP, globals={"torch": torch}).timeit(_ROUNDS)
        return
    # The way a child does it, so that its own code is translated too.
    for seed in (1, 0):
        job = CountJob(stmt, _SETUP, Place("/"), number=_ROUNDS, layouts=(seed,))
        answer = _do(job, marks)
        assert isinstance(answer, Counted), answer
    pack(encode(answer))


def _script() -> io.BytesIO | None:
    """A model as TorchScript, to be loaded; None where there is none, of which a job that needs it will say more."""
    file = io.BytesIO()
    try:
        SnippetTimer("pass", _SCRIPT, globals={"torch": torch, "file": file}).timeit(1)
    except Exception as error:
        print(error, file=sys.stderr)
        return None
    file.seek(0)
    return file


def _rehearse_loading(file: io.BytesIO) -> None:
    stmt = "model(x, w).sum().backward()" if _is_for_cpu_only() else "model(x, w)"
    SnippetTimer(stmt, _LOAD, globals={"torch": torch, "file": file}).timeit(_ROUNDS)


def _rehearse_compiling() -> None:
    """Compile something, then find it in the cache: both ways have modules to load, and things to find out once.

    Should that fail, a job that needs it will say why.
    """
    stmt = WARM_UP_TRAINING if _is_for_cpu_only() else WARM_UP_INFERENCE
    for _ in range(2):
        answer = _do(TimeJob(stmt, WARM_UP_SETUP, Place("/"), number=_ROUNDS, watch_compiler=True), None)
        if isinstance(answer, Failed):
            print(answer.message, file=sys.stderr)


def _do(job: Job, marks: Marks | None) -> Message:
    with tempfile.TemporaryFile() as file:
        file.write(pack(encode(job)))
        return do_job(file, marks)


def _is_for_cpu_only() -> bool:
    """By how torch was built: asking for devices would wake them up."""
    build = torch.__config__.show()
    return torch.version.cuda is None and torch.version.hip is None and "USE_XPU=ON" not in build
