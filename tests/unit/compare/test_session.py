"""A comparison on the command line: where it is timed, and what is left of it when it ends."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from pathlib import Path

import pytest

from tests.places import FakePlace, paired_case, steady
from tests.sample_runs import EAGER
from torchmark.api.runs import ComparisonRecorder
from torchmark.compare.comparison import ComparedPair, Comparison, Evidence
from torchmark.compare.experiment import Note, Timing
from torchmark.compare.joint_timing import time_and_close
from torchmark.compare.session import SilentObserver, ThisMachine, run_comparison
from torchmark.errors import SetupError
from torchmark.model.bout import PairedCase
from torchmark.model.case import Case, TimerArgs
from torchmark.model.judgement import Verdict
from torchmark.model.plan import Metric, Target
from torchmark.runner.backend import StopRequest
from torchmark.store.runs import open_store

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
