"""Inputs one after the other, with a worker and turns that are made up."""

from __future__ import annotations

import itertools
from types import SimpleNamespace

import pytest

from torchmark.api import inputs
from torchmark.model.inputs import FuzzedInput
from torchmark.model.job import Place, RaceJob
from torchmark.model.outcome import Failure, FailureKind
from torchmark.runner.worker import Worker


def test_that_another_run_is_waited_for_is_told_once(monkeypatch: pytest.MonkeyPatch) -> None:
    claims = itertools.cycle([False, False, True])
    turns = SimpleNamespace(claim=lambda: next(claims), leave=lambda: None, close=lambda: None)
    worker = SimpleNamespace(pin=lambda cores: None, close=lambda: None, environment=None)
    jobs: list[RaceJob] = []

    def race(worker: Worker, job: RaceJob, timeout_s: float) -> Failure:
        jobs.append(job)
        return Failure(FailureKind.RAISED, "no")

    monkeypatch.setattr(inputs, "MachineLock", lambda: turns)
    monkeypatch.setattr(inputs, "Worker", lambda spec: worker)
    monkeypatch.setattr(inputs, "race", race)
    monkeypatch.setattr(inputs, "LOOKING_INTERVAL_S", 0)
    told: list[str] = []
    few = [FuzzedInput(i, {}, {}, f"x = {i}") for i in range(3)]
    job = RaceJob(("x",), "y = x", Place("/"))
    results = list(inputs.race_on(few, job, None, 1.0, lambda: told.append("waiting")))
    assert [result.index for result in results] == [0, 1, 2]
    assert told == ["waiting"]
    assert [(job.making, job.setup) for job in jobs] == [("x = 0", "y = x"), ("x = 1", "y = x"), ("x = 2", "y = x")]
