"""Cases that use `torch.compile`, in workers: one that times and, with another beside it, one that counts."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.compiled_cases import SETUP, make_case
from torchmark.model.costs import Counts
from torchmark.model.job import Place
from torchmark.model.outcome import CompileCosts, Failure, FailureKind
from torchmark.report.text.run_table import describe_compile_costs
from torchmark.runner.compile_cases import CompileCounter, CompileTimer
from torchmark.runner.spec import other_worker, own_worker

HERE = Place("/")
RUN_TIME_S = 0.02
# Inductor compiles nothing but graphs: no program that finds out what the processor can do, and no headers ahead.
LITTLE = {"TORCHINDUCTOR_VEC_ISA_OK": "1", "TORCHINDUCTOR_CPP_CACHE_PRECOMPILE_HEADERS": "0"}

# The guard of a number fails after two hundred runs, long after all warming up.
RECOMPILED = """
calls, scale = 0, 2
def model(x):
    return x * scale
x = torch.ones(4)
"""
COUNT_UP = "calls += 1; scale = 2 + calls // 200"
# A graph break that appears as late.
BROKEN = """
import types
state = types.SimpleNamespace(calls=0, late=False)
def model(x):
    y = x.sin()
    if state.late:
        torch._dynamo.graph_break()
    return y.cos()
x = torch.ones(4)
"""
COUNT_UP_STATE = "state.calls += 1; state.late = state.calls > 200"


@pytest.fixture(scope="module")
def timer() -> Iterator[CompileTimer]:
    timer = CompileTimer(own_worker({**os.environ, **LITTLE}, counting=False))
    yield timer
    timer.abandon()


@pytest.fixture(scope="module")
def counter() -> Iterator[CompileCounter]:
    counter = CompileCounter(own_worker(os.environ))
    yield counter
    counter.abandon()


def test_inductor_compiles_with_an_empty_cache_and_then_finds_it_filled(timer: CompileTimer) -> None:
    # One graph of the forward pass; then one more of the backward pass, where the first was compiled already.
    for case, graphs in (
        (make_case("inductor", SETUP.replace(", requires_grad=True", "")), 1),
        (make_case("inductor", after="y.backward()"), 2),
    ):
        costs = timer.measure(case, HERE, run_time_s=RUN_TIME_S)
        assert isinstance(costs, CompileCosts), costs
        assert (costs.cold.cache_misses, costs.cold.cache_hits) == (graphs, 0)
        assert (costs.warm.cache_misses, costs.warm.cache_hits) == (0, graphs)
        assert (costs.graphs, costs.graph_breaks) == (1, 0)
        assert "compile, from cache" in describe_compile_costs(costs)


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_other_back_ends_are_measured_too(timer: CompileTimer, backend: str) -> None:
    costs = timer.measure(make_case(backend), HERE, run_time_s=RUN_TIME_S)
    assert isinstance(costs, CompileCosts), costs
    assert (costs.graphs, costs.warm.cache_hits, costs.cold.abandoned) == (1, 0, 0)
    assert min(*costs.steady.raw_times, *costs.call.raw_times) > 0


def test_guards_and_call_do_without_the_work(timer: CompileTimer) -> None:
    # The work is counted where it is done, outside of the graph's reach.
    setup = """
calls = []
@torch.library.custom_op("torchmark_test::work", mutates_args=())
def work(x: torch.Tensor) -> torch.Tensor:
    calls.append(1)
    assert len(calls) == 1, "it ran again"
    return x.clone()
work.register_fake(torch.empty_like)
def model(x):
    return work(x)
x = torch.ones(4)
compiled_model = torch.compile(model, backend="torchmark_replay")
"""
    case = make_case("torchmark_replay", setup, "y = compiled_model(x)")
    costs = timer.measure(case, HERE, run_time_s=RUN_TIME_S)
    assert isinstance(costs, CompileCosts), costs


def test_graph_breaks_before_the_measurement_are_told_and_no_failure(timer: CompileTimer) -> None:
    setup = "def model(x):\n    torch._dynamo.graph_break()\n    return x + 1\nx = torch.ones(4)"
    costs = timer.measure(make_case("eager", setup, "y = compiled_model(x)"), HERE, run_time_s=RUN_TIME_S)
    assert isinstance(costs, CompileCosts), costs
    assert costs.graph_breaks == 1
    (text,) = costs.cold.breaks
    assert text.endswith("(<setup>, line 2)")


def test_a_recompile_while_it_is_timed_is_a_failure_that_names_the_guard(timer: CompileTimer) -> None:
    outcome = timer.measure(make_case("eager", RECOMPILED, "y = compiled_model(x)", COUNT_UP), HERE)
    assert isinstance(outcome, Failure)
    assert outcome.kind == FailureKind.RECOMPILED
    assert "model (<setup>, line 3) was compiled again, for a guard failed: scale == 2" in outcome.message


def test_a_model_that_is_given_up_while_it_warms_up_is_a_failure(timer: CompileTimer) -> None:
    setup = """
import torch._dynamo
torch._dynamo.config.recompile_limit = 2
x, n = torch.ones(4), []
def model(x, n):
    return x + len(n)
"""
    case = make_case("eager", setup, "y = compiled_model(x, n)", "n.append(0)")
    outcome = timer.measure(case, HERE, run_time_s=RUN_TIME_S)
    assert isinstance(outcome, Failure)
    assert outcome.kind == FailureKind.RECOMPILED
    assert "compile it again too often" in outcome.message


def test_a_graph_break_that_appears_while_it_is_timed_is_a_failure(timer: CompileTimer) -> None:
    outcome = timer.measure(make_case("eager", BROKEN, "y = compiled_model(x)", COUNT_UP_STATE), HERE)
    assert isinstance(outcome, Failure)
    assert outcome.kind == FailureKind.RECOMPILED
    assert "graph break: Call to `torch._dynamo.graph_break()` (<setup>, line 7)" in outcome.message


def test_a_back_end_that_refuses_is_told_in_its_own_words(timer: CompileTimer) -> None:
    setup = """
@torch._dynamo.register_backend
def stubborn(graph, inputs):
    raise RuntimeError("I would rather not")
def model(x):
    return x + 1
x = torch.ones(4)
"""
    outcome = timer.measure(make_case("stubborn", setup, "y = compiled_model(x)"), HERE)
    assert isinstance(outcome, Failure)
    assert outcome.kind == FailureKind.RAISED
    assert "I would rather not" in outcome.message
    unknown = timer.measure(make_case("nonesuch"), HERE)
    assert isinstance(unknown, Failure)
    assert "Invalid backend: 'nonesuch'" in unknown.message


def test_a_model_of_which_nothing_is_compiled_is_a_failure_that_says_why(timer: CompileTimer) -> None:
    setup = "model, x = torch.nn.LSTM(4, 2), torch.ones(1, 1, 4)"
    outcome = timer.measure(make_case("eager", setup, "y = compiled_model(x)"), HERE)
    assert isinstance(outcome, Failure)
    assert outcome.kind == FailureKind.NOT_COMPILED
    assert "left it to the interpreter: Attempted to wrap RNN, GRU, or LSTM" in outcome.message


def test_a_torch_without_a_compiler_is_told() -> None:
    timer = CompileTimer(other_worker("/usr/bin/python3", os.environ, {}, counting=False))
    try:
        outcome = timer.measure(make_case("inductor"), HERE)
    finally:
        timer.abandon()
    assert isinstance(outcome, Failure)
    assert "has no torch.compile, which came with torch 2.0." in outcome.message


def test_counts_of_inductors_code_repeat_to_the_instruction(counter: CompileCounter) -> None:
    case = make_case("inductor")
    first, second = (counter.count(case, HERE, number=20, layouts=(1, 2)) for _ in range(2))
    assert isinstance(first, Counts), first
    assert isinstance(second, Counts), second
    assert [p.total() for p in first.layouts] == [p.total() for p in second.layouts]
    assert first.layouts[0].total() > 20 * 10_000
    # What was counted is the code that Inductor made, which lies in the folder that it was given.
    assert any("/graphs/" in function.binary for function in first.layouts[0].exclusive)


def test_kernels_are_counted_for_a_processor_that_valgrind_knows(counter: CompileCounter) -> None:
    environment = counter.worker.environment
    assert environment.cpu_capability != "AVX512"
    assert "TORCHINDUCTOR_CACHE_DIR" not in dict(environment.variables)


def test_a_recompile_while_it_is_counted_is_a_failure_in_every_layout(counter: CompileCounter) -> None:
    # Not yet in the warm-up, so that it is a fork which finds out.
    case = make_case("eager", RECOMPILED, "y = compiled_model(x)", COUNT_UP)
    outcome = counter.count(case, HERE, number=150, layouts=(1, 2))
    assert isinstance(outcome, Failure)
    assert outcome.kind == FailureKind.RECOMPILED
    assert "guard failed: scale == 2" in outcome.message


def test_nothing_is_left_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    counter = CompileCounter(own_worker(os.environ))
    assert list(tmp_path.iterdir())
    counter.abandon()
    assert not list(tmp_path.iterdir())


# A zygote that compiles gets ready, as one of a torch with CUDA. Says how many graphs it compiled, and how often it
# differentiated anything: the first backward pass starts a thread for each accelerator, and then nothing can be forked.
GET_READY = """
import torch
torch.version.cuda = "13.0"
runs = []
for name in ("grad", "backward"):
    def note(*args, real=getattr(torch.autograd, name), **kwargs):
        runs.append(1)
        return real(*args, **kwargs)
    setattr(torch.autograd, name, note)
from torchmark.worker.zygote import prepare
prepare(None, compiling=True)
from torch._dynamo.utils import counters
print(counters["stats"]["unique_graphs"] > 0, len(runs))
"""


def test_where_there_may_be_accelerators_no_zygote_starts_their_threads(tmp_path: Path) -> None:
    own = {**LITTLE, "TORCHINDUCTOR_COMPILE_THREADS": "1", "TORCHINDUCTOR_CACHE_DIR": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", GET_READY], env={**os.environ, **own}, capture_output=True, text=True, check=False
    )
    assert done.stdout == "True 0\n", done.stderr
