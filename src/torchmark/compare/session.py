"""A comparison from its beginning to its judgements: counts, then times in turns; an observer hears how it goes."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Sequence
from typing import Protocol, TypeAlias

from torchmark.compare.comparison import Comparison, Evidence, count_sides, judge_entry, leave_out_failed, try_sides
from torchmark.compare.confirm import Note, ignore_progress
from torchmark.compare.timing_sites import LocalSite, TimingSite, count_here, time_sides
from torchmark.model.judgement import CaseJudgement
from torchmark.model.outcome import Event
from torchmark.model.plan import Metric
from torchmark.model.run import RunInfo
from torchmark.runner.backend import Backend, StopRequest, Terminated, interrupts_stop

INTERRUPTED = 130
# What shells add to the number of the signal that ended a program.
SIGNALLED = 128

OpenSites: TypeAlias = Callable[[Comparison, Sequence[int], StopRequest, Note], Sequence[TimingSite]]
"""Opens sites to time a comparison at; they hear of stopping and report progress. Cores are of this machine."""


OpenBackend: TypeAlias = Callable[[Comparison, Sequence[int], contextlib.ExitStack], Backend]
"""Opens a back end to count a comparison with; the stack closes what it needs."""


class Observer(Protocol):
    """Shows how far a comparison is, and keeps its counts if they are to be kept."""

    @property
    def kept(self) -> RunInfo | None:
        """The run that counts were kept in."""

    def counting(
        self, comparison: Comparison, backend: Backend
    ) -> contextlib.AbstractContextManager[Callable[[Event], None]]:
        """Entered for as long as is counted; takes every event."""

    def timing(self, comparison: Comparison) -> contextlib.AbstractContextManager[Note]:
        """Entered for as long as is timed; takes how far that is."""


class SilentObserver:
    """Shows and keeps nothing."""

    kept: RunInfo | None = None

    def counting(
        self, comparison: Comparison, backend: Backend
    ) -> contextlib.AbstractContextManager[Callable[[Event], None]]:
        """Take events, and forget them."""
        return contextlib.nullcontext(lambda event: None)

    def timing(self, comparison: Comparison) -> contextlib.AbstractContextManager[Note]:
        """Say nothing."""
        return contextlib.nullcontext(ignore_progress)


def open_here(comparison: Comparison, cores: Sequence[int], stop: StopRequest, note: Note) -> Sequence[TimingSite]:
    """This machine alone."""
    return [LocalSite(comparison, cores, stop=stop, note=note)]


@dataclasses.dataclass
class ComparisonResult:
    """What came of a comparison so far."""

    evidence: Evidence = dataclasses.field(default_factory=Evidence)
    judgements: tuple[CaseJudgement, ...] = ()
    run: str | None = None
    """The name of the run that counts were kept in."""
    run_id: str | None = None
    exit_code: int = 0
    """Other than 0 if it was stopped before its end."""


def run_comparison(
    comparison: Comparison,
    cores: Sequence[int],
    observer: Observer,
    *,
    open_sites: OpenSites = open_here,
    open_backend: OpenBackend = count_here,
) -> ComparisonResult:
    """Count, time, judge.

    A statement that fails when it is run once, on this machine, is neither counted nor timed. An interrupt leaves what
    is known by then.
    """
    found, stop, rest = ComparisonResult(), StopRequest(), comparison
    with interrupts_stop(stop):
        try:
            if open_sites is open_here:
                rest = try_sides(rest, found.evidence)
            if Metric.COUNT in rest.metrics and rest.entries:
                with contextlib.ExitStack() as stack:
                    backend = open_backend(rest, cores, stack)
                    observe = stack.enter_context(observer.counting(rest, backend))
                    count_sides(rest, backend, found.evidence, stop, observe)
                rest = leave_out_failed(rest, found.evidence)
            if Metric.WALL in rest.metrics and rest.entries and not stop.requested:
                _time(rest, cores, open_sites, found, stop, observer)
        except Terminated as ended:
            found.exit_code = SIGNALLED + ended.number
        except KeyboardInterrupt:
            found.exit_code = INTERRUPTED
    if observer.kept is not None:
        found.run, found.run_id = observer.kept.name, observer.kept.id
    if stop.requested:
        found.exit_code = found.exit_code or INTERRUPTED
    found.judgements = tuple(judge_entry(comparison, entry, found.evidence) for entry in comparison.entries)
    return found


def _time(
    comparison: Comparison,
    cores: Sequence[int],
    open_sites: OpenSites,
    found: ComparisonResult,
    stop: StopRequest,
    observer: Observer,
) -> None:
    with observer.timing(comparison) as note, contextlib.ExitStack() as stack:
        sites = open_sites(comparison, cores, stop, note)
        for site in sites:
            stack.callback(site.close)
        for _ in stack.enter_context(contextlib.closing(time_sides(comparison, sites, found.evidence, stop, note))):
            pass
