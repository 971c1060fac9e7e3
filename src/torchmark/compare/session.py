"""Carries out a comparison for the command line: keeps counts as they come, shows how far it is, loses nothing."""

from __future__ import annotations

import contextlib
import dataclasses
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeAlias

from torchmark.analysis.estimate import Estimator
from torchmark.api.runs import RunRequest, describe_run
from torchmark.cli.options import open_to_write
from torchmark.compare.comparison import Comparison, Evidence, count_sides, judge_entry, leave_out_failed, try_sides
from torchmark.compare.confirm import Note
from torchmark.compare.timing_sites import LocalSite, TimingSite, count_here, time_sides
from torchmark.model.judgement import CaseJudgement
from torchmark.model.outcome import Begun, Event
from torchmark.model.plan import Metric
from torchmark.report.progress import Advance, PairedAdvance, make_progress
from torchmark.runner.backend import Backend, StopRequest, Terminated, interrupts_stop
from torchmark.store.runs import Recorder

INTERRUPTED = 130
# What shells add to the number of the signal that ended a program.
SIGNALLED = 128
# What runs of comparisons are called.
RUN_NAME = "ab"

OpenVenues: TypeAlias = Callable[[Comparison, Sequence[int], StopRequest, Note], Sequence[TimingSite]]
"""Has venues to time a comparison in; they hear of stopping, and tell how far they are. Cores are of this machine."""


OpenBackend: TypeAlias = Callable[[Comparison, Sequence[int], contextlib.ExitStack], Backend]
"""Has a back end to count a comparison with, which is open; it may have to be closed with the stack."""


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
    wish: RunRequest | None,
    store_path: Path,
    *,
    quiet: bool,
    name: str = RUN_NAME,
    open_venues: OpenVenues = open_here,
    open_backend: OpenBackend = count_here,
) -> ComparisonResult:
    """Count, time, judge. With a `wish`, counts are kept in the store, in a run of this name.

    A statement that fails when it is run once, on this machine, is neither counted nor timed. An interrupt leaves what
    is known by then.
    """
    found, stop, rest = ComparisonResult(), StopRequest(), comparison
    with interrupts_stop(stop):
        try:
            if open_venues is open_here:
                rest = try_sides(rest, found.evidence)
            if Metric.COUNT in rest.metrics and rest.entries:
                with contextlib.ExitStack() as stack:
                    backend = open_backend(rest, cores, stack)
                    _count(rest, backend, wish, store_path, name, found, stop, quiet=quiet)
                rest = leave_out_failed(rest, found.evidence)
            if Metric.WALL in rest.metrics and rest.entries and not stop.requested:
                _time(rest, cores, open_venues, found, stop, quiet=quiet)
        except Terminated as ended:
            found.exit_code = SIGNALLED + ended.number
        except KeyboardInterrupt:
            found.exit_code = INTERRUPTED
    if stop.requested:
        found.exit_code = found.exit_code or INTERRUPTED
    found.judgements = tuple(judge_entry(comparison, entry, found.evidence) for entry in comparison.entries)
    return found


def _count(
    comparison: Comparison,
    backend: Backend,
    wish: RunRequest | None,
    store_path: Path,
    name: str,
    found: ComparisonResult,
    stop: StopRequest,
    *,
    quiet: bool,
) -> None:
    plan, orders = comparison.plan, comparison.orders
    estimator = Estimator(orders, plan.sampling, {}, backend.slots)
    with contextlib.ExitStack() as stack:
        recorder = None
        if wish is not None:
            store = stack.enter_context(open_to_write(store_path))
            info = describe_run(wish, plan, name, store.path)
            recorder = stack.enter_context(store.begin(plan, info))
            found.run, found.run_id = info.name, info.id
        advance = Advance(len(orders), estimator, 0, 0, time.monotonic)
        progress = stack.enter_context(make_progress(sys.stderr, quiet, advance))

        def observe(event: Event) -> None:
            _keep(recorder, event)
            progress.take(event)

        count_sides(comparison, backend, found.evidence, stop, observe)
        if recorder is not None:
            recorder.finish()


def _keep(recorder: Recorder | None, event: Event) -> None:
    if recorder is not None and not isinstance(event, Begun):
        recorder.append(event)


def _time(
    comparison: Comparison,
    cores: Sequence[int],
    open_venues: OpenVenues,
    found: ComparisonResult,
    stop: StopRequest,
    *,
    quiet: bool,
) -> None:
    advance = PairedAdvance(len(comparison.entries), time.monotonic)
    with make_progress(sys.stderr, quiet, advance) as progress, contextlib.ExitStack() as stack:

        def note(what: str, done: int, of: int) -> None:
            progress.take((what, done, of))

        venues = open_venues(comparison, cores, stop, note)
        for venue in venues:
            stack.callback(venue.close)
        for _ in stack.enter_context(contextlib.closing(time_sides(comparison, venues, found.evidence, stop, note))):
            pass
