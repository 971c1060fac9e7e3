from __future__ import annotations

import contextlib
from collections.abc import Generator, Iterator, Sequence
from pathlib import Path

import pytest

from tests.compiled_cases import make_case as make_compiled
from tests.places import FakePlace, steady
from tests.sample_runs import EAGER
from torchmark.api.runs import ComparisonRecorder
from torchmark.compare import session
from torchmark.compare.comparison import ComparedPair, Comparison, Evidence
from torchmark.compare.experiment import Note, Timing, ignore_progress
from torchmark.compare.joint_timing import time_sides
from torchmark.compare.session import HERE, ComparisonPlace, Observer, claim_machine, prepare_entries, run_comparison
from torchmark.errors import SetupError
from torchmark.model.caveats import NotTimed
from torchmark.model.job import PairedCase
from torchmark.model.judgement import Side, Verdict
from torchmark.model.outcome import FailureKind
from torchmark.model.plan import Case, Metric, Target, TimerArgs
from torchmark.model.task import Language
from torchmark.processes import StopRequest
from torchmark.runner.paired_workers import Failures, PairedWorkers
from torchmark.store.runs import open_store

BASE, HEAD = Target("base", "/no/such/python"), Target("head")
PLAIN = Case(("plain",), EAGER, TimerArgs("x + y", "x = y = 1", num_threads=2))
NATIVE = Case(("native",), EAGER, TimerArgs("int x = 1;", "", language=Language.CPP))
COMPILED = make_compiled("eager")


@pytest.fixture
def workers() -> Iterator[PairedWorkers]:
    made = PairedWorkers(BASE, HEAD, [0])
    yield made
    made.close()


def test_python_becomes_a_pair_and_what_compiles_is_not_timed(workers: PairedWorkers) -> None:
    plain, compiled = ComparedPair(PLAIN, PLAIN), ComparedPair(COMPILED, COMPILED)
    prepared = prepare_entries([plain, compiled], workers)
    paired = prepared[plain]
    assert isinstance(paired, PairedCase)
    assert (paired.base.stmt, paired.head.setup, paired.base.threads) == ("x + y", "x = y = 1", 2)
    assert prepared[compiled] == Timing(None, (NotTimed("compiles"),))


def test_only_the_entries_that_are_given_are_prepared(workers: PairedWorkers) -> None:
    plain, other = ComparedPair(PLAIN, PLAIN), ComparedPair(PLAIN, COMPILED)
    assert list(prepare_entries([other], workers)) == [other]
    assert list(prepare_entries([plain], workers)) == [plain]


def test_what_a_side_lacks_is_a_failure_of_that_side(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("TORCHMARK_CACHE", str(tmp_path))
    # The head runs plain Python here, which takes nothing.
    native = ComparedPair(NATIVE, PLAIN)
    with contextlib.closing(PairedWorkers(BASE, HEAD, [0])) as workers:
        timing = prepare_entries([native], workers)[native]
    assert isinstance(timing, Timing)
    assert [(one.side, one.failure.kind) for one in timing.failures] == [(Side.BASE, FailureKind.MISSING)]


class FakeTurns:
    """A machine that another run leaves after so many questions."""

    log: list[str]
    questions = 0

    def claim(self) -> bool:
        self.log.append("claim")
        FakeTurns.questions -= 1
        return FakeTurns.questions < 0

    def leave(self) -> None:
        self.log.append("leave")

    def close(self) -> None:
        self.log.append("close")


@pytest.fixture
def log(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    FakeTurns.log = []
    monkeypatch.setattr(session, "MachineLock", FakeTurns)
    monkeypatch.setattr(session, "WAITING_S", 0.0)
    return FakeTurns.log


def test_the_machine_is_claimed_until_the_stack_is_left(log: list[str]) -> None:
    heard: list[str] = []
    FakeTurns.questions = 2
    with contextlib.ExitStack() as stack:
        claim_machine(stack, StopRequest(), lambda what, done, of: heard.append(what))
        assert log == ["claim"] * 3
        assert heard == ["waiting"] * 2
    assert log == ["claim"] * 3 + ["leave", "close"]


def test_nobody_waits_for_the_machine_once_stopping_is_requested(log: list[str]) -> None:
    FakeTurns.questions = 1_000_000
    stop = StopRequest()
    stop.request()
    with contextlib.ExitStack() as stack:
        claim_machine(stack, stop, ignore_progress)
    assert log == ["claim", "leave", "close"]


def test_the_machine_is_not_claimed_before_there_is_something_to_time(
    log: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    FakeTurns.questions = 0
    made: list[FakePlace] = []

    def make_place(*_: object, **__: object) -> FakePlace:
        made.append(FakePlace(EFFECTS))
        return made[-1]

    monkeypatch.setattr(session, "PairedWorkers", make_place)
    compiled = Comparison((ComparedPair(COMPILED, COMPILED),), BASE, HEAD)
    for comparison, claims in ((compiled, []), (COMPARISON, ["claim", "leave", "close"])):
        evidence = Evidence()
        told = list(HERE.time(comparison, [0], evidence, StopRequest(), ignore_progress))
        assert sorted(map(str, told)) == sorted(map(str, comparison.entries))
        assert log == claims
        assert made[-1].is_closed


EFFECTS = {"slow": steady("slow", 0.03), "calm": steady("calm"), "other": steady("other")}
ENTRIES = tuple(ComparedPair(case, case) for case in (Case((name,), EAGER, TimerArgs(name)) for name in EFFECTS))
COMPARISON = Comparison(ENTRIES, Target("base", "/a"), Target("head", "/b"), metrics=(Metric.WALL,))


class FakeCluster(ComparisonPlace):
    """Several places where nothing runs."""

    def __init__(self, nodes: Sequence[FakePlace]) -> None:
        self._nodes = nodes

    def try_sides(self, comparison: Comparison, evidence: Evidence) -> Comparison:
        return comparison

    def time(
        self, comparison: Comparison, cores: Sequence[int], evidence: Evidence, stop: StopRequest, note: Note
    ) -> Generator[ComparedPair, None, None]:
        assert comparison is COMPARISON
        assert not stop.requested
        note("waiting", 0, 0)
        yield from time_sides(comparison, self._nodes, evidence, stop, note)


def test_a_comparison_is_timed_in_the_sites_that_are_opened_for_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    nodes = [FakePlace(EFFECTS), FakePlace(EFFECTS)]

    recorder = ComparisonRecorder(None, lambda: open_store(tmp_path / "x.db"))
    found = run_comparison(COMPARISON, [3], recorder, FakeCluster(nodes))
    assert [one.verdict for one in found.judgements] == [Verdict.SLOWER, Verdict.SAME, Verdict.SAME]
    assert all(node.is_closed and node.log for node in nodes)
    assert found.exit_code == 0
    assert "timed in turns" in capsys.readouterr().err


def test_sites_are_closed_also_if_timing_fails() -> None:
    class Lacking(FakePlace):
        def prepare(self, pairs: Sequence[tuple[Case, Case]]) -> Sequence[PairedCase | Failures]:
            raise SetupError("No python3.", missing="python", advice="Name another.")

    nodes = [FakePlace(EFFECTS), Lacking(EFFECTS)]
    with pytest.raises(SetupError):
        run_comparison(COMPARISON, [], Observer(), FakeCluster(nodes))
    assert all(node.is_closed for node in nodes)
