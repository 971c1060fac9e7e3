from __future__ import annotations

import os
from collections.abc import Generator, Mapping, Sequence
from pathlib import Path

import pytest

from tests.compiled_cases import make_case as make_compiled
from tests.places import FakePlace, paired_case, steady
from tests.sample_runs import EAGER
from torchmark.api.runs import ComparisonRecorder
from torchmark.compare import session
from torchmark.compare.comparison import ComparedPair, Comparison, Evidence
from torchmark.compare.experiment import Note, Timing
from torchmark.compare.joint_timing import TimingSite, time_and_close
from torchmark.compare.session import LocalSite, SilentObserver, ThisMachine, run_comparison
from torchmark.errors import SetupError
from torchmark.model.caveats import NotTimed
from torchmark.model.job import PairedCase
from torchmark.model.judgement import Side, Verdict
from torchmark.model.outcome import FailureKind
from torchmark.model.plan import Case, Metric, Target, TimerArgs
from torchmark.model.task import Language
from torchmark.processes import StopRequest
from torchmark.runner.paired_workers import PairedWorkers
from torchmark.store.runs import open_store

BASE, HEAD = Target("base", "/no/such/python"), Target("head")
PLAIN = Case(("plain",), EAGER, TimerArgs("x + y", "x = y = 1", num_threads=2))
NATIVE = Case(("native",), EAGER, TimerArgs("int x = 1;", "", language=Language.CPP))
COMPILED = make_compiled("eager")


def open_venue(*entries: ComparedPair, stop: StopRequest | None = None, heard: list[str] | None = None) -> LocalSite:
    comparison = Comparison(entries, BASE, HEAD)

    def note(what: str, done: int, of: int) -> None:
        if heard is not None:
            heard.append(what)

    return LocalSite(comparison, [0], os.environ, stop=stop, note=note)


def test_python_becomes_a_bout_and_what_compiles_is_not_timed() -> None:
    plain, compiled = ComparedPair(PLAIN, PLAIN), ComparedPair(COMPILED, COMPILED)
    site: TimingSite = open_venue(plain, compiled)
    prepared = site.prepare([plain, compiled])
    paired = prepared[plain]
    assert isinstance(paired, PairedCase)
    assert (paired.base.stmt, paired.head.setup, paired.base.threads) == ("x + y", "x = y = 1", 2)
    assert prepared[compiled] == Timing(None, (NotTimed("compiles"),))
    site.close()


def test_only_the_entries_that_are_given_are_prepared() -> None:
    plain, other = ComparedPair(PLAIN, PLAIN), ComparedPair(PLAIN, COMPILED)
    site = open_venue(plain, other)
    assert list(site.prepare([other])) == [other]
    assert list(site.prepare([plain])) == [plain]
    site.close()


def test_what_a_side_lacks_is_a_failure_of_that_side(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("TORCHMARK_CACHE", str(tmp_path))
    # The head runs plain Python here, which takes nothing.
    native = ComparedPair(NATIVE, PLAIN)
    site = open_venue(native)
    timing = site.prepare([native])[native]
    assert isinstance(timing, Timing)
    assert [(one.side, one.failure.kind) for one in timing.failures] == [(Side.BASE, FailureKind.MISSING)]
    site.close()


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


def test_the_machine_is_claimed_when_the_place_is_asked_for_and_left_at_the_end(log: list[str]) -> None:
    plain = ComparedPair(PLAIN, PLAIN)
    heard: list[str] = []
    site = open_venue(plain, heard=heard)
    site.prepare([plain])
    assert log == []
    FakeTurns.questions = 2
    place = site.place
    assert isinstance(place, PairedWorkers)
    assert log == ["claim"] * 3
    assert heard == ["waiting"] * 2
    assert site.place is place
    site.close()
    site.close()
    assert log == ["claim"] * 3 + ["leave", "close"]


def test_nobody_waits_for_the_machine_once_stopping_is_requested(log: list[str]) -> None:
    FakeTurns.questions = 1_000_000
    stop = StopRequest()
    stop.request()
    site = open_venue(ComparedPair(PLAIN, PLAIN), stop=stop)
    assert site.place.layouts == ()
    site.close()
    assert log == ["claim", "leave", "close"]


EFFECTS = {"slow": steady("slow", 0.03), "calm": steady("calm"), "other": steady("other")}
ENTRIES = tuple(ComparedPair(case, case) for case in (Case((name,), EAGER, TimerArgs(name)) for name in EFFECTS))
COMPARISON = Comparison(ENTRIES, Target("base", "/a"), Target("head", "/b"), metrics=(Metric.WALL,))


class FakeSite:
    """A site with a place where nothing runs."""

    def __init__(self) -> None:
        self.place = FakePlace(EFFECTS)
        self.is_closed = False

    def prepare(self, entries: Sequence[ComparedPair]) -> Mapping[ComparedPair, PairedCase | Timing]:
        assert not self.is_closed
        return {entry: paired_case(entry.head.args.stmt) for entry in entries}

    def close(self) -> None:
        self.is_closed = True


class FakeCluster(ThisMachine):
    """A place with several sites."""

    def __init__(self, sites: Sequence[FakeSite]) -> None:
        self._sites = sites

    def try_sides(self, comparison: Comparison, evidence: Evidence) -> Comparison:
        return comparison

    def time(
        self, comparison: Comparison, cores: Sequence[int], evidence: Evidence, stop: StopRequest, note: Note
    ) -> Generator[ComparedPair, None, None]:
        assert comparison is COMPARISON
        assert not stop.requested
        note("waiting", 0, 0)
        yield from time_and_close(comparison, self._sites, evidence, stop, note)


def test_a_comparison_is_timed_in_the_sites_that_are_opened_for_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sites = [FakeSite(), FakeSite()]

    recorder = ComparisonRecorder(None, lambda: open_store(tmp_path / "x.db"))
    found = run_comparison(COMPARISON, [3], recorder, FakeCluster(sites))
    assert [one.verdict for one in found.judgements] == [Verdict.SLOWER, Verdict.SAME, Verdict.SAME]
    assert all(site.is_closed and site.place.log for site in sites)
    assert found.exit_code == 0
    assert "timed in turns" in capsys.readouterr().err


def test_sites_are_closed_also_if_timing_fails() -> None:
    class Lacking(FakeSite):
        def prepare(self, entries: Sequence[ComparedPair]) -> Mapping[ComparedPair, PairedCase | Timing]:
            raise SetupError("No python3.", missing="python", advice="Name another.")

    sites = [FakeSite(), Lacking()]
    with pytest.raises(SetupError):
        run_comparison(COMPARISON, [], SilentObserver(), FakeCluster(sites))
    assert all(site.is_closed for site in sites)
