"""Counting in every CPython that this machine has, with a stub torch, so that only the interpreter differs."""

from __future__ import annotations

import dataclasses
import os
import sys
from pathlib import Path

import pytest

from tests.stub_python import find_pythons, make_stub_python
from torchmark.errors import SetupError
from torchmark.model.costs import Counts, Trace
from torchmark.model.job import CountJob, Place, TimeJob
from torchmark.model.outcome import Failure, FailureKind
from torchmark.runner.spec import other_worker
from torchmark.runner.worker import Reply, Worker, count, trace

JOB = CountJob("y = f(3)", "def f(n):\n    return f(n - 1) + 1 if n else 0", Place("/"), number=20, layouts=(1,))
TIMED = TimeJob("y = 1", "pass", Place("/"), number=2)

# The last words and the end of a child that has not come far enough to have streams of its own.
DIES_IN_FORK = """
import os

def die():
    os.write(2, b"the last words\\n")
    os.abort()

os.register_at_fork(after_in_child=die)
"""


@pytest.fixture(scope="module", params=list(find_pythons().values()), ids=list(find_pythons()))
def python(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> str:
    """One of them, with the stub torch."""
    return make_stub_python(tmp_path_factory.mktemp("stub") / "python", request.param)


def take_counts(worker: Worker) -> list[int]:
    outcome = count(worker, JOB)
    assert isinstance(outcome, Counts), outcome
    assert outcome.baseline is not None
    return [*(layout.total() for layout in outcome.layouts), outcome.baseline.total()]


def test_counts_repeat_to_the_instruction(python: str) -> None:
    taken = []
    for repeats in (2, 1):
        worker = Worker(other_worker(python, os.environ, {}))
        try:
            taken += [take_counts(worker) for _ in range(repeats)]
        finally:
            worker.close()
    assert taken[0][0] > taken[0][-1] > 0
    assert taken == [taken[0]] * 3


def test_python_functions_are_seen(python: str) -> None:
    worker = Worker(dataclasses.replace(other_worker(python, os.environ, {}), stacks=True))
    try:
        found = trace(worker, JOB)
        assert isinstance(found, Trace), found
        # From 3.11 on with the function that it is defined in.
        assert "f" in {name.rpartition(".")[2] for name, _, _ in found.functions}
    finally:
        worker.close()


def test_a_wall_time_is_measured(python: str) -> None:
    worker = Worker(other_worker(python, os.environ, {}, counting=False))
    try:
        assert isinstance(worker.run(TIMED), Reply)
    finally:
        worker.close()


def test_this_machine_has_the_python_that_runs_the_tests() -> None:
    assert ".".join(map(str, sys.version_info[:2])) in {version.rpartition(".")[0] for version in find_pythons()}


@pytest.mark.parametrize("counting", [True, False])
def test_a_child_that_dies_before_it_has_streams_still_says_why(tmp_path: Path, counting: bool) -> None:
    worker = Worker(
        other_worker(make_stub_python(tmp_path / "python", more=DIES_IN_FORK), os.environ, {}, counting=counting)
    )
    try:
        failure = worker.run(JOB if counting else TIMED)
        assert isinstance(failure, Failure)
        assert failure.kind is FailureKind.CRASHED
        assert "SIGABRT" in failure.message
        assert failure.stderr.count("the last words") == 1
        # What one child wrote is not held against the next.
        again = worker.run(JOB if counting else TIMED)
        assert isinstance(again, Failure)
        assert again.stderr.count("the last words") == 1
    finally:
        worker.close()


@pytest.mark.parametrize(
    ("pretence", "reason"),
    [('sys.abiflags = "t"', "free-threaded"), ('sys.implementation.name = "pypy"', "It is pypy")],
)
def test_an_interpreter_that_cannot_count_is_refused_with_a_reason(tmp_path: Path, pretence: str, reason: str) -> None:
    python = make_stub_python(tmp_path / "python")
    (site,) = tmp_path.glob("python/lib/python3.*/site-packages")
    # Not in sitecustomize.py: Debian's Python has its own, which comes first on the path.
    (site / "pretence.pth").write_text(f"import sys; {pretence}\n")
    with pytest.raises(SetupError, match=reason):
        Worker(other_worker(python, os.environ, {})).start()
