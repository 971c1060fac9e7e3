"""Where pairs are timed, and how the pairs of a comparison are assigned to such sites and reassigned if one is lost."""

from __future__ import annotations

import contextlib
import functools
import os
import random
import time
from collections import Counter
from collections.abc import Callable, Generator, Hashable, Iterable, Mapping, Sequence
from typing import Protocol, TypeVar

from torchmark.compare.comparison import ComparedPair, Comparison, Evidence
from torchmark.compare.confirm import LostCase, Note, SiteCases, Timing, confirm_jointly, ignore_progress
from torchmark.compare.experiment import PairSite, SequentialComparison, Settings
from torchmark.model.bout import BlockPlan, PairedCase, PairedSide, RunTime, Visit
from torchmark.model.case import Case
from torchmark.model.comparison import NotTimed
from torchmark.model.judgement import Side, SideFailure
from torchmark.model.outcome import Failure, FailureKind
from torchmark.model.task import Language
from torchmark.runner.backend import Backend, StopRequest
from torchmark.runner.folders import MachineLock
from torchmark.runner.lab import Lab
from torchmark.runner.local import LocalBackend
from torchmark.runner.paired_workers import Aliases, Failures, PairedWorkers, WorkerSide
from torchmark.runner.prepare import Models, make_parts
from torchmark.runner.spec import Match

WAITING_S = 0.25


class TimingSite(Protocol):
    """A machine that is to be had for timing. No two sites are on the same one, for they are used at once.

    All but `close` is asked for in one thread at a time, and raises PlaceLost once the machine is gone.
    """

    def prepare(self, entries: Sequence[ComparedPair]) -> Mapping[ComparedPair, PairedCase | Timing]:
        """What is timed of each, or what is known of it if it cannot be. Asked for again if more entries come."""

    @property
    def place(self) -> PairSite:
        """Where pairs are timed, always the same. Asked for once there are some: then the machine is for them alone."""

    def close(self) -> None:
        """End all that was started, at once. Can be said more than once."""


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
    machine_lock = MachineLock()
    stack.callback(machine_lock.close)
    while not machine_lock.claim() and not stop.requested:
        note("waiting", 0, 0)
        time.sleep(WAITING_S)
    stack.callback(machine_lock.leave)


# Who has seen so many machines go down may be what takes them down, as one that needs more memory than they have; two
# losses in a row also happen by chance, where machines are taken away again at any time.
MOST_ASSIGNMENTS = 3

T = TypeVar("T")


def time_sides(
    comparison: Comparison,
    sites: Sequence[TimingSite],
    evidence: Evidence,
    stop: StopRequest,
    note: Note = ignore_progress,
) -> Generator[ComparedPair, None, None]:
    """Time all cases in turns; gives each as soon as there is no more to find out.

    Whoever has opened the sites closes them, after this has ended or was closed.
    """
    assert sites
    assignment = _Assignment(sites, comparison.settings, stop)
    with contextlib.closing(
        confirm_jointly(assignment.assign(comparison.entries), assignment.reassign, note)
    ) as decided:
        for entry, result in decided:
            assert isinstance(entry, ComparedPair)
            evidence.timed[entry] = assignment.explain(entry, result) if isinstance(result, LostCase) else result
            yield entry


class _Assignment:
    """Knows which sites there still are, and how often each entry was assigned."""

    def __init__(self, sites: Sequence[TimingSite], settings: Settings, stop: StopRequest) -> None:
        self._stop = stop
        self._sites = [
            (site, SequentialComparison(_LazySite(site), settings, stop=stop, seed=number))
            for number, site in enumerate(sites)
        ]
        self._assigned: Counter[ComparedPair] = Counter()

    def assign(self, entries: Sequence[ComparedPair]) -> list[SiteCases]:
        """Evenly, to the sites that are left; without those that were assigned too often."""
        sites = [(site, experiment) for site, experiment in self._sites if not experiment.is_lost]
        if not sites:
            return []
        assignable = [entry for entry in entries if self._assigned[entry] < MOST_ASSIGNMENTS]
        self._assigned.update(assignable)
        return [
            SiteCases(experiment, share, functools.partial(site.prepare, share))
            for (site, experiment), share in zip(sites, assign_evenly(assignable, len(sites)), strict=True)
            if share
        ]

    def reassign(self, lost: Mapping[Hashable, LostCase]) -> list[SiteCases]:
        """Once stopping is requested, nothing."""
        return [] if self._stop.requested else self.assign([entry for entry in lost if isinstance(entry, ComparedPair)])

    def explain(self, entry: ComparedPair, lost: LostCase) -> Timing:
        """What is told of an entry that is not assigned again."""
        if self._stop.requested:
            return Timing(None)
        what = (
            f"The machine was lost on which it was timed, {MOST_ASSIGNMENTS} times in a row. It may take more memory "
            "than they have: compare it by itself to see."
            if self._assigned[entry] >= MOST_ASSIGNMENTS
            else "The machine was lost on which it was timed, and there is no other left."
        )
        failure = Failure(FailureKind.WORKER_DIED, f"{what} The last time: {lost.reason}")
        return Timing(None, failures=tuple(SideFailure(side, failure) for side in Side))


def assign_evenly(entries: Sequence[T], shares: int) -> list[list[T]]:
    """Shares that differ by one at most, each in the order of the entries.

    At random, the same each time: entries that lie side by side are alike, and so may be every second or fourth one, as
    where Python and C++ alternate.

    >>> [sorted(share) == share for share in assign_evenly(range(7), 3)]
    [True, True, True]
    """
    shuffled = random.Random(0).sample(range(len(entries)), len(entries))
    return [[entries[number] for number in sorted(shuffled[share::shares])] for share in range(shares)]


class _LazySite:
    """A site whose place is asked for only when something is to be done there."""

    def __init__(self, site: TimingSite) -> None:
        self._site = site

    @property
    def layouts(self) -> tuple[int, ...]:
        return self._site.place.layouts

    @property
    def match(self) -> Match:
        return self._site.place.match

    def start(self, layouts: Iterable[int], note: Callable[[int], None] = lambda _: None) -> None:
        self._site.place.start(layouts, note)

    def gauge(self, paired_case: PairedCase) -> RunTime | Failures:
        return self._site.place.gauge(paired_case)

    def visit(self, layout: int, paired_case: PairedCase, pace: BlockPlan) -> Visit | Failures:
        return self._site.place.visit(layout, paired_case, pace)
