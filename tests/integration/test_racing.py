"""Statements timed in turns by a real worker, on variables that they share."""

from __future__ import annotations

import pickle
from pathlib import Path

from torchmark.model.job import Given, Place, RaceJob
from torchmark.model.outcome import Failure, FailureKind
from torchmark.runner.spec import visible_path
from torchmark.runner.worker import Worker, race


def job_for(folder: Path, *stmts: str, setup: str = "pass", givens: tuple[Given, ...] = ()) -> RaceJob:
    place = Place(str(folder), tuple(visible_path()))
    return RaceJob(stmts, setup, place, min_run_time_s=0.0001, max_run_time_s=0.1, givens=givens)


def test_statements_are_timed_in_rounds_on_what_one_setup_made(timing_worker: Worker, tmp_path: Path) -> None:
    payload = pickle.dumps([2, 3])
    setup = "open('setups', 'a').write('x')\nx = torch.ones(*shape)"
    stmts = ("y = x + 1", "x += 1", "assert x.shape == (2, 3)")
    job = job_for(tmp_path, *stmts, setup=setup, givens=(Given("shape", "pickle", len(payload)),))
    raced = race(timing_worker, job, payload)
    assert not isinstance(raced, Failure), raced
    assert len(raced) == 3
    assert len({len(times.raw_times) for times in raced}) == 1
    assert all(times.number_per_run >= 1 and min(times.raw_times) > 0 for times in raced)
    assert (tmp_path / "setups").read_text() == "x"


def test_a_statement_that_raises_is_told_and_the_next_job_succeeds(timing_worker: Worker, tmp_path: Path) -> None:
    job = job_for(tmp_path, "f(1)", "y = 0\nf(y)", setup="def f(v):\n    return 1 / v")
    failure = race(timing_worker, job)
    assert isinstance(failure, Failure)
    assert failure.kind is FailureKind.RAISED
    assert failure.message == "ZeroDivisionError: division by zero"
    assert failure.traceback is not None
    assert '  File "<stmt 2>", line 2, in <module>\n    f(y)\n  File "<setup>", line 2, in f\n' in failure.traceback
    was_up = timing_worker.is_up
    assert not isinstance(race(timing_worker, job_for(tmp_path, "pass")), Failure)
    assert was_up


def test_a_setup_that_fails_is_told_with_its_own_line(timing_worker: Worker, tmp_path: Path) -> None:
    failure = race(timing_worker, job_for(tmp_path, "pass", setup="a = 1\nmissing"))
    assert isinstance(failure, Failure)
    assert failure.traceback is not None
    assert '  File "<setup>", line 2, in <module>\n    missing\n' in failure.traceback
