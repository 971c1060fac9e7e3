"""A comparison from its beginning to its judgements: counts, then times in turns; an observer hears how it goes."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Generator, Sequence
from typing import Protocol

from torchmark.compare.comparison import (
    ComparedPair,
    Comparison,
    Evidence,
    count_sides,
    judge_entry,
    leave_out_failed,
    try_sides,
)
from torchmark.compare.experiment import Note, ignore_progress
from torchmark.compare.local_site import LocalSite, count_here, time_here
from torchmark.model.judgement import CaseJudgement
from torchmark.model.outcome import Event
from torchmark.model.plan import Metric
from torchmark.model.run import RunInfo
from torchmark.runner.backend import Backend, StopRequest, Terminated, interrupts_stop

INTERRUPTED = 130
# What shells add to the number of the signal that ended a program.
SIGNALLED = 128


class Place(Protocol):
    """Where a comparison is carried out."""

    def try_sides(self, comparison: Comparison, evidence: Evidence) -> Comparison:
        """Run statements once, if that is cheap; gives the comparison without those that fail, which are noted."""

    def open_backend(self, comparison: Comparison, cores: Sequence[int], stack: contextlib.ExitStack) -> Backend:
        """Open what counts; the stack closes what it needs."""

    def time(
        self, comparison: Comparison, cores: Sequence[int], evidence: Evidence, stop: StopRequest, note: Note
    ) -> Generator[ComparedPair, None, None]:
        """Time all cases, and give each as soon as there is no more to find out. Cores are of this machine."""


class ThisMachine:
    """The machine that this runs on, alone."""

    def try_sides(self, comparison: Comparison, evidence: Evidence) -> Comparison:
        """In a process of its own for each side."""
        return try_sides(comparison, evidence)

    def open_backend(self, comparison: Comparison, cores: Sequence[int], stack: contextlib.ExitStack) -> Backend:
        """With the same names for both interpreters."""
        return count_here(comparison, cores, stack)

    def time(
        self, comparison: Comparison, cores: Sequence[int], evidence: Evidence, stop: StopRequest, note: Note
    ) -> Generator[ComparedPair, None, None]:
        """With workers in several layouts of memory."""
        with contextlib.closing(LocalSite(comparison, cores, stop=stop, note=note)) as site:
            yield from time_here(comparison, site, evidence, stop, note)


HERE = ThisMachine()


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
    comparison: Comparison, cores: Sequence[int], observer: Observer, place: Place = HERE
) -> ComparisonResult:
    """Count, time, judge.

    A statement that fails when it is run once, on this machine, is neither counted nor timed. An interrupt leaves what
    is known by then.
    """
    found, stop = ComparisonResult(), StopRequest()
    with interrupts_stop(stop):
        try:
            _find_out(comparison, cores, observer, place, found.evidence, stop)
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


def _find_out(
    comparison: Comparison,
    cores: Sequence[int],
    observer: Observer,
    place: Place,
    evidence: Evidence,
    stop: StopRequest,
) -> None:
    rest = place.try_sides(comparison, evidence)
    if Metric.COUNT in rest.metrics and rest.entries:
        with contextlib.ExitStack() as stack:
            backend = place.open_backend(rest, cores, stack)
            observe = stack.enter_context(observer.counting(rest, backend))
            count_sides(rest, backend, evidence, stop, observe)
        rest = leave_out_failed(rest, evidence)
    if Metric.WALL in rest.metrics and rest.entries and not stop.requested:
        with (
            observer.timing(rest) as note,
            contextlib.closing(place.time(rest, cores, evidence, stop, note)) as decided,
        ):
            for _ in decided:
                pass
