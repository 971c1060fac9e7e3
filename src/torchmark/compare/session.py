"""A comparison from its beginning to its judgements: counts, then times in turns, on this machine or elsewhere."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import os
import time
from collections.abc import Callable, Generator, Hashable, Mapping, Sequence
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
from torchmark.compare.experiment import Note, PairSite, SequentialComparison, Timing, ignore_progress
from torchmark.errors import ExitCode
from torchmark.files import MachineLock
from torchmark.model.caveats import NotTimed
from torchmark.model.job import PairedCase, PairedSide
from torchmark.model.judgement import CaseJudgement, Side, SideFailure
from torchmark.model.outcome import Event, Failure
from torchmark.model.plan import Case, Metric
from torchmark.model.run import RunInfo
from torchmark.model.task import Language
from torchmark.processes import StopRequest, Terminated, interrupts_stop
from torchmark.runner.backend import Backend
from torchmark.runner.lab import Lab
from torchmark.runner.local import LocalBackend
from torchmark.runner.paired_workers import Aliases, PairedWorkers, WorkerSide
from torchmark.runner.prepare import Models, make_parts

WAITING_S = 0.25


class LocalSite:
    """This machine."""

    def __init__(
        self,
        comparison: Comparison,
        cores: Sequence[int],
        environ: Mapping[str, str] = os.environ,
        *,
        stop: StopRequest | None = None,
        note: Note = ignore_progress,
    ) -> None:
        """`note` hears of waiting for other runs of torchmark, which ends once `stop` is requested."""
        self._comparison = comparison
        self._cores = cores
        self._environ = environ
        self._stop = stop or StopRequest()
        self._note = note
        self._stack = contextlib.ExitStack()

    def prepare(self, entries: Sequence[ComparedPair]) -> dict[ComparedPair, PairedCase | Timing]:
        """TorchScript is made and C++ compiled where that is needed, for both sides."""
        parts = [
            self._make_parts(side, [entry.base if side is Side.BASE else entry.head for entry in entries])
            for side in Side
        ]
        return {entry: _prepare(entry, *parts) for entry in entries}

    @functools.cached_property
    def place(self) -> PairSite:
        """Workers in several layouts of memory; none is started before that is asked for."""
        workers = self._open_workers()
        self._stack.callback(workers.close)
        claim_machine(self._stack, self._stop, self._note)
        return workers

    def close(self) -> None:
        """End all workers, and leave the machine to others."""
        self._stack.close()

    def _make_parts(self, side: Side, cases: Sequence[Case]) -> dict[Case, PairedSide | Failure]:
        comparison = self._comparison
        lab = Lab(comparison.base if side is Side.BASE else comparison.head, self._environ)
        self._stack.callback(lab.abandon)
        plain = list(dict.fromkeys(case for case in cases if case.parts is None))
        return make_parts(plain, lab, self._models, self._environ, comparison.timeout_s)

    @functools.cached_property
    def _models(self) -> Models:
        return self._stack.enter_context(Models(self._environ))

    def _open_workers(self) -> PairedWorkers:
        comparison = self._comparison
        return PairedWorkers(
            WorkerSide(comparison.base.python),
            WorkerSide(comparison.head.python),
            self._cores,
            self._environ,
            together=runs_together(comparison),
            timeout_s=comparison.timeout_s,
        )


def count_here(comparison: Comparison, cores: Sequence[int], stack: contextlib.ExitStack) -> Backend:
    """This machine, to count with. The length of a path moves counts: both sides have names of one length."""
    aliases = stack.enter_context(contextlib.closing(Aliases()))
    names = aliases.give_targets(comparison.plan.targets, os.environ)
    backend = LocalBackend(cores, make_lab=lambda target, environ: Lab(target, environ, names.get(target)))
    stack.enter_context(contextlib.closing(backend))
    backend.open(comparison.plan)
    return backend


def runs_together(comparison: Comparison) -> bool:
    """Whether both sides run in one process: that takes half of the workers, and is a little sharper.

    Two statements of Python can do so.
    """
    here = comparison.base == comparison.head
    python = all(entry.head.args.language == Language.PYTHON for entry in comparison.entries)
    return here and python and all(entry.is_of_two for entry in comparison.entries)


def _prepare(
    entry: ComparedPair, bases: Mapping[Case, PairedSide | Failure], heads: Mapping[Case, PairedSide | Failure]
) -> PairedCase | Timing:
    if entry.base.parts is not None or entry.head.parts is not None:
        return Timing(None, (NotTimed("compiles"),))
    base, head = bases[entry.base], heads[entry.head]
    if isinstance(base, PairedSide) and isinstance(head, PairedSide):
        return PairedCase(base, head)
    sides = zip(Side, (base, head), strict=True)
    return Timing(None, failures=tuple(SideFailure(side, one) for side, one in sides if isinstance(one, Failure)))


def claim_machine(stack: contextlib.ExitStack, stop: StopRequest, note: Note) -> None:
    """Have the machine for this alone, as far as other runs of torchmark go, until the stack is left."""
    turns = MachineLock()
    stack.callback(turns.close)
    while not turns.claim() and not stop.requested:
        note("waiting", 0, 0)
        time.sleep(WAITING_S)
    stack.callback(turns.leave)


def time_here(
    comparison: Comparison, site: LocalSite, evidence: Evidence, stop: StopRequest, note: Note = ignore_progress
) -> Generator[ComparedPair, None, None]:
    """Time all cases in turns; gives each as soon as there is no more to find out. The caller closes the site."""
    pairs: dict[Hashable, PairedCase] = {}
    for entry, prepared in site.prepare(comparison.entries).items():
        if isinstance(prepared, PairedCase):
            pairs[entry] = prepared
        else:
            evidence.timed[entry] = prepared
            yield entry
    if not pairs:
        return
    experiment = SequentialComparison(site.place, comparison.settings, stop=stop)
    for key, timing in experiment.decide(pairs, note):
        assert isinstance(key, ComparedPair)
        evidence.timed[key] = timing
        yield key


class ComparisonPlace(Protocol):
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
    comparison: Comparison, cores: Sequence[int], observer: Observer, place: ComparisonPlace = HERE
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
            found.exit_code = ExitCode.SIGNALLED + ended.number
        except KeyboardInterrupt:
            found.exit_code = ExitCode.INTERRUPTED
    if observer.kept is not None:
        found.run, found.run_id = observer.kept.name, observer.kept.id
    if stop.requested:
        found.exit_code = found.exit_code or ExitCode.INTERRUPTED
    found.judgements = tuple(judge_pair(comparison, entry, found.evidence) for entry in comparison.entries)
    return found


def _find_out(
    comparison: Comparison,
    cores: Sequence[int],
    observer: Observer,
    place: ComparisonPlace,
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
