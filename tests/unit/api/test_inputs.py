from __future__ import annotations

import itertools
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from torchmark.api import inputs
from torchmark.api.inputs import make_fuzzer, outline_all
from torchmark.api.statements import load_inputs
from torchmark.errors import UsageError
from torchmark.model.inputs import FuzzedInput
from torchmark.model.job import Place, RaceJob
from torchmark.model.outcome import Failure, FailureKind
from torchmark.runner.worker import Worker

MINE = """
from torchmark import *
n = FuzzedParameter("n", 2, 9, "uniform")
def make(seed=0, constraint=lambda n: True):
    return Fuzzer([n], [FuzzedTensor("x", ("n",))], constraints=[constraint], seed=seed)
fixed = make()
failing = make(constraint=lambda n: n / 0)
def broken():
    return 1 + "a"
def leave():
    exit(3)
"""


@pytest.fixture
def mine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setattr("sys.path", ["/"])
    (tmp_path / "mine.py").write_text(MINE)
    return f"{tmp_path}/mine.py"


@pytest.mark.parametrize(("name", "options"), [("make", {"seed": 3}), ("make", {}), ("fixed", {})])
def test_a_fuzzer_or_a_function_that_makes_one_can_be_named(mine: str, name: str, options: dict[str, Any]) -> None:
    fuzzer = make_fuzzer(f"{mine}:{name}", options)
    assert [one.index for one in outline_all([(None, fuzzer)], [4, 2])] == [4, 2]


@pytest.mark.parametrize(
    ("name", "options", "words"),
    [
        ("make", {"preset": "small"}, r"does not take these options \(preset\)"),
        ("fixed", {"seed": 3}, "is a fuzzer as it is: seed cannot be chosen"),
        ("broken", {}, r"makes no fuzzer: TypeError: unsupported .* \(mine.py, line 9\)"),
        ("leave", {}, r"makes no fuzzer: SystemExit: 3"),
        ("", {}, "is not FILE.py:NAME or MODULE:NAME"),
    ],
)
def test_what_makes_no_fuzzer_is_told_with_the_reason(
    mine: str, name: str, options: dict[str, Any], words: str
) -> None:
    with pytest.raises(UsageError, match=words):
        make_fuzzer(f"{mine}:{name}", options)


def test_a_module_that_is_not_there_is_told_without_places_inside_python() -> None:
    with pytest.raises(UsageError, match=r"No module named 'nowhere_at_all'\.$"):
        make_fuzzer("nowhere_at_all:f", {})


def test_a_constraint_that_fails_is_told_with_its_line(mine: str) -> None:
    failing = make_fuzzer(f"{mine}:failing", {})
    with pytest.raises(UsageError, match=r"Input 5 cannot be made: ZeroDivisionError: .* \(mine.py, line 7\)"):
        next(outline_all([(None, failing)], [5]))


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


def test_the_module_for_inputs_is_loaded_as_it_is() -> None:
    assert load_inputs() is inputs
