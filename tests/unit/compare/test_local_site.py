"""This machine as a site: what it makes of entries, and in which order it has what it needs. Nothing is started."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.compiled_cases import make_case as make_compiled
from tests.sample_runs import EAGER
from torchmark.compare import session
from torchmark.compare.comparison import ComparedPair, Comparison
from torchmark.compare.experiment import Timing
from torchmark.compare.joint_timing import TimingSite
from torchmark.compare.session import LocalSite
from torchmark.model.bout import PairedCase
from torchmark.model.case import Case, TimerArgs
from torchmark.model.comparison import NotTimed
from torchmark.model.judgement import Side
from torchmark.model.outcome import FailureKind
from torchmark.model.plan import Target
from torchmark.model.task import Language
from torchmark.runner.backend import StopRequest
from torchmark.runner.paired_workers import PairedWorkers

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
