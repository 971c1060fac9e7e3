"""A comparison from its beginning to its judgements: counts, then times in turns, on this machine or elsewhere."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import time
from collections.abc import Callable, Generator, Hashable, Iterator, Sequence
from typing import Protocol

from torchmark.compare.comparison import (
    ComparedPair,
    Comparison,
    Evidence,
    count_sides,
    judge_pair,
    leave_out_failed,
    try_sides,
)
from torchmark.compare.experiment import Note, PairTimer, SequentialComparison, Timing, ignore_progress
from torchmark.errors import ExitCode
from torchmark.files import MachineLock
from torchmark.model.caveats import NotTimed
from torchmark.model.job import PairedCase
from torchmark.model.judgement import CaseJudgement
from torchmark.model.outcome import Event
from torchmark.model.plan import Metric
from torchmark.model.run import RunInfo
from torchmark.model.task import Language
from torchmark.processes import StopRequest, Terminated, interrupts_stop
from torchmark.runner.backend import Backend
from torchmark.runner.lab import Lab
from torchmark.runner.local import LocalBackend
from torchmark.runner.paired_workers import Aliases, PairedWorkers

WAITING_S = 0.25


def runs_together(comparison: Comparison) -> bool:
    """Whether both sides run in one process: that takes half of the workers, and is a little sharper.

    Two statements of Python can do so.
    """
    return comparison.base == comparison.head and all(
        entry.is_of_two and entry.head.args.language == Language.PYTHON for entry in comparison.entries
    )


def prepare_entries(entries: Sequence[ComparedPair], timer: PairTimer) -> dict[ComparedPair, PairedCase | Timing]:
    """A pair of each, or what is known of it where none can be timed."""
    plain = [entry for entry in entries if entry.base.parts is None and entry.head.parts is None]
    pairs = timer.prepare([(entry.base, entry.head) for entry in plain]) if plain else ()
    found: dict[ComparedPair, PairedCase | Timing] = dict.fromkeys(entries, Timing(None, (NotTimed("compiles"),)))
    for entry, pair in zip(plain, pairs, strict=True):
        found[entry] = pair if isinstance(pair, PairedCase) else Timing(None, failures=pair)
    return found


def claim_machine(stack: contextlib.ExitStack, stop: StopRequest, note: Note) -> None:
    """Have the machine for this alone, as far as other runs of torchmark go, until the stack is left."""
    turns = MachineLock()
    stack.callback(turns.close)
    while not turns.claim() and not stop.requested:
        note("waiting", 0, 0)
        time.sleep(WAITING_S)
    stack.callback(turns.leave)


class ComparisonPlace:
    """Where a comparison is carried out: on this machine, unless a subclass says where else."""

    def try_sides(self, comparison: Comparison, evidence: Evidence) -> Comparison:
        """Run statements once, if that is cheap; gives the comparison without those that fail, which are noted."""
        return try_sides(comparison, evidence)

    def open_backend(self, comparison: Comparison, cores: Sequence[int], stack: contextlib.ExitStack) -> Backend:
        """Open what counts; the stack closes what it needs."""
        # The length of a path moves counts: both interpreters have names of one length.
        aliases = stack.enter_context(contextlib.closing(Aliases()))
        names = aliases.give_targets(comparison.plan.targets, os.environ)
        backend = LocalBackend(cores, make_lab=lambda target, environ: Lab(target, environ, names.get(target)))
        stack.enter_context(contextlib.closing(backend))
        backend.open(comparison.plan)
        return backend

    def time(
        self, comparison: Comparison, cores: Sequence[int], evidence: Evidence, stop: StopRequest, note: Note
    ) -> Generator[ComparedPair, None, None]:
        """Time all cases, and give each as soon as there is no more to find out. Cores are of this machine."""
        together, timeout_s = runs_together(comparison), comparison.timeout_s
        workers = PairedWorkers(comparison.base, comparison.head, cores, together=together, timeout_s=timeout_s)
        with contextlib.ExitStack() as stack:
            stack.callback(workers.close)
            pairs: dict[Hashable, PairedCase] = {}
            for entry, one in prepare_entries(comparison.entries, workers).items():
                if isinstance(one, Timing):
                    evidence.timed[entry] = one
                    yield entry
                else:
                    pairs[entry] = one
            if not pairs:
                return
            claim_machine(stack, stop, note)
            for key, timing in SequentialComparison(workers, comparison.settings, stop=stop).decide(pairs, note):
                assert isinstance(key, ComparedPair)
                evidence.timed[key] = timing
                yield key


HERE = ComparisonPlace()


class Observer:
    """Hears how far a comparison is. By itself it shows and keeps nothing."""

    kept: RunInfo | None = None
    """The run that counts were kept in."""

    def counting(
        self, comparison: Comparison, backend: Backend
    ) -> contextlib.AbstractContextManager[Callable[[Event], None]]:
        """Entered for as long as is counted; takes every event."""
        return contextlib.nullcontext(lambda event: None)

    def timing(self, comparison: Comparison) -> contextlib.AbstractContextManager[Note]:
        """Entered for as long as is timed; takes how far that is."""
        return contextlib.nullcontext(ignore_progress)


class Stoppable(Protocol):
    """What may be stopped before its end; its exit code is other than 0 then."""

    exit_code: int


@contextlib.contextmanager
def catching_interrupts(found: Stoppable) -> Iterator[StopRequest]:
    """An interrupt requests to stop, the next one ends the block; what is known by then stays."""
    stop = StopRequest()
    with interrupts_stop(stop):
        try:
            yield stop
        except Terminated as ended:
            found.exit_code = ExitCode.SIGNALLED + ended.number
        except KeyboardInterrupt:
            found.exit_code = ExitCode.INTERRUPTED
    if stop.requested:
        found.exit_code = found.exit_code or ExitCode.INTERRUPTED


@dataclasses.dataclass
class ComparisonResult:
    """What came of a comparison so far."""

    evidence: Evidence = dataclasses.field(default_factory=Evidence)
    judgements: tuple[CaseJudgement, ...] = ()
    run: str | None = None
    """The name of the run that counts were kept in."""
    run_id: str | None = None
    exit_code: int = 0


def run_comparison(
    comparison: Comparison, cores: Sequence[int], observer: Observer, place: ComparisonPlace = HERE
) -> ComparisonResult:
    """Count, time, judge. An interrupt leaves what is known by then."""
    found = ComparisonResult()
    with catching_interrupts(found) as stop:
        for _ in find_out(comparison, found.evidence, cores, observer, place, stop):
            pass
    if observer.kept is not None:
        found.run, found.run_id = observer.kept.name, observer.kept.id
    found.judgements = tuple(judge_pair(comparison, entry, found.evidence) for entry in comparison.entries)
    return found


def find_out(
    comparison: Comparison,
    evidence: Evidence,
    cores: Sequence[int],
    observer: Observer,
    place: ComparisonPlace,
    stop: StopRequest,
) -> Generator[ComparedPair, None, None]:
    """Count and time; gives each entry as soon as there is no more to find out.

    A statement that fails when it is run once, on this machine, is neither counted nor timed.
    """
    rest = place.try_sides(comparison, evidence)
    if Metric.COUNT in rest.metrics and rest.entries:
        with contextlib.ExitStack() as stack:
            backend = place.open_backend(rest, cores, stack)
            count_sides(rest, backend, evidence, stop, stack.enter_context(observer.counting(rest, backend)))
        rest = leave_out_failed(rest, evidence)
    timed = set(rest.entries) if Metric.WALL in rest.metrics and not stop.requested else set()
    yield from (entry for entry in comparison.entries if entry not in timed)
    if timed:
        with (
            observer.timing(rest) as note,
            contextlib.closing(place.time(rest, cores, evidence, stop, note)) as decided,
        ):
            yield from decided
