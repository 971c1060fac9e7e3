"""This machine as a site: what it makes of entries, and in which order it has what it needs. Nothing is started."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.compiled_cases import make_case as make_compiled
from tests.sample_runs import EAGER
from torchmark.compare import timing_sites
from torchmark.compare.comparison import ComparedPair, Comparison
from torchmark.compare.confirm import Timing
from torchmark.compare.timing_sites import LocalSite, TimingSite
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


def open_site(*entries: ComparedPair, stop: StopRequest | None = None, heard: list[str] | None = None) -> LocalSite:
    comparison = Comparison(entries, BASE, HEAD)

    def note(what: str, done: int, of: int) -> None:
        if heard is not None:
            heard.append(what)

    return LocalSite(comparison, [0], os.environ, stop=stop, note=note)


def test_python_becomes_a_paired_case_and_what_compiles_is_not_timed() -> None:
    plain, compiled = ComparedPair(PLAIN, PLAIN), ComparedPair(COMPILED, COMPILED)
    site: TimingSite = open_site(plain, compiled)
    prepared = site.prepare([plain, compiled])
    paired_case = prepared[plain]
    assert isinstance(paired_case, PairedCase)
    assert (paired_case.base.stmt, paired_case.head.setup, paired_case.base.threads) == ("x + y", "x = y = 1", 2)
    assert prepared[compiled] == Timing(None, (NotTimed("compiles"),))
    site.close()


def test_only_the_entries_that_are_given_are_prepared() -> None:
    plain, other = ComparedPair(PLAIN, PLAIN), ComparedPair(PLAIN, COMPILED)
    site = open_site(plain, other)
    assert list(site.prepare([other])) == [other]
    assert list(site.prepare([plain])) == [plain]
    site.close()


def test_what_a_side_lacks_is_a_failure_of_that_side(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("TORCHMARK_CACHE", str(tmp_path))
    # The head runs plain Python here, which takes nothing.
    native = ComparedPair(NATIVE, PLAIN)
    site = open_site(native)
    timing = site.prepare([native])[native]
    assert isinstance(timing, Timing)
    assert [(one.side, one.failure.kind) for one in timing.failures] == [(Side.BASE, FailureKind.MISSING)]
    site.close()


class FakeMachineLock:
    """A machine that another run leaves after so many questions."""

    log: list[str]
    questions = 0

    def claim(self) -> bool:
        self.log.append("claim")
        FakeMachineLock.questions -= 1
        return FakeMachineLock.questions < 0

    def leave(self) -> None:
        self.log.append("leave")

    def close(self) -> None:
        self.log.append("close")


@pytest.fixture
def log(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    FakeMachineLock.log = []
    monkeypatch.setattr(timing_sites, "MachineLock", FakeMachineLock)
    monkeypatch.setattr(timing_sites, "WAITING_S", 0.0)
    return FakeMachineLock.log


def test_the_machine_is_claimed_when_the_place_is_asked_for_and_left_at_the_end(log: list[str]) -> None:
    plain = ComparedPair(PLAIN, PLAIN)
    heard: list[str] = []
    site = open_site(plain, heard=heard)
    site.prepare([plain])
    assert log == []
    FakeMachineLock.questions = 2
    place = site.place
    assert isinstance(place, PairedWorkers)
    assert log == ["claim"] * 3
    assert heard == ["waiting"] * 2
    assert site.place is place
    site.close()
    site.close()
    assert log == ["claim"] * 3 + ["leave", "close"]


def test_nobody_waits_for_the_machine_once_stopping_is_requested(log: list[str]) -> None:
    FakeMachineLock.questions = 1_000_000
    stop = StopRequest()
    stop.request()
    site = open_site(ComparedPair(PLAIN, PLAIN), stop=stop)
    assert site.place.layouts == ()
    site.close()
    assert log == ["claim", "leave", "close"]
