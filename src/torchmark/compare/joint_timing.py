"""A comparison timed at several sites at once, such as the nodes of a cluster.

Only commands with a cluster load it: a comparison on this machine needs none of it.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import queue
import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Generator, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Generic, NamedTuple, Protocol, TypeAlias, TypeVar

from torchmark.compare.comparison import ComparedPair, Comparison, Evidence
from torchmark.compare.experiment import (
    CONFIRMATIONS,
    CaseReport,
    LostCase,
    Note,
    PairSite,
    SequentialComparison,
    Settings,
    Timing,
    accept_changes,
    ignore_progress,
)
from torchmark.compare.session import runs_together
from torchmark.errors import PlaceLost
from torchmark.model.caveats import NotTimed
from torchmark.model.job import BlockPlan, PairedCase, RunTime, Visit
from torchmark.model.judgement import Side, SideFailure
from torchmark.model.outcome import Failure, FailureKind
from torchmark.model.plan import Metric
from torchmark.processes import StopRequest
from torchmark.runner.backend import Backend
from torchmark.runner.cluster.backend import ClusterBackend
from torchmark.runner.cluster.remote_pairs import RemotePairs
from torchmark.runner.paired_workers import Failures
from torchmark.runner.spec import Match

# Visits take some 25 ms. What takes longer than this is ended by whoever closes the place where it runs.
PARTING_S = 1.0

T = TypeVar("T")

Stage: TypeAlias = Callable[[Note], Iterator[T]]


@dataclasses.dataclass(frozen=True)
class _Given(Generic[T]):
    what: T


class _Noted(NamedTuple):
    number: int
    reported: tuple[str, int, int]


class _Ended(NamedTuple):
    number: int
    error: BaseException | None = None


def run_concurrently(stages: Sequence[Stage[T]], note: Note, leave: Callable[[], None]) -> Generator[T, None, None]:
    """All that the stages give. `note` hears, in the caller's thread, how far they are together.

    The first error of a stage is raised at once. Where some still run when this ends, by an error or because it is
    closed, `leave` is called, which has to have them end soon; they are then waited for, but not for long.
    """
    if len(stages) == 1:
        yield from stages[0](note)
        return
    heard: queue.SimpleQueue[_Given[T] | _Noted | _Ended] = queue.SimpleQueue()
    sums = JointProgress(note)
    threads = [
        threading.Thread(target=_run, args=(number, stage, heard), daemon=True) for number, stage in enumerate(stages)
    ]
    running = 0
    try:
        for thread in threads:
            running += 1
            thread.start()
        while running:
            message = heard.get()
            if isinstance(message, _Given):
                yield message.what
            elif isinstance(message, _Noted):
                sums.add(message.number, *message.reported)
            else:
                running -= 1
                sums.end(message.number)
                if message.error is not None:
                    raise message.error
    finally:
        if running:
            leave()
            _wait_for(threads)


def _run(number: int, stage: Stage[T], heard: queue.SimpleQueue[_Given[T] | _Noted | _Ended]) -> None:
    try:
        for one in stage(lambda *reported: heard.put(_Noted(number, reported))):
            heard.put(_Given(one))
    except BaseException as error:
        heard.put(_Ended(number, error))
    else:
        heard.put(_Ended(number))


def _wait_for(threads: Sequence[threading.Thread]) -> None:
    end = time.monotonic() + PARTING_S
    for thread in threads:
        if thread.ident is not None:
            thread.join(max(0.0, end - time.monotonic()))


class JointProgress:
    """How far several are together: at the step where the last of them is, with those that are beyond it.

    >>> sums = JointProgress(print)
    >>> sums.add(0, "look 1", 5, 10)
    look 1 5 10
    >>> sums.add(1, "look 1", 2, 10)
    look 1 7 20
    >>> sums.add(0, "look 2", 0, 3)
    look 1 12 20
    >>> sums.end(1)
    look 2 0 3
    """

    def __init__(self, note: Note) -> None:
        self._note = note
        self._steps: dict[tuple[str, int], dict[int, tuple[int, int]]] = {}
        """Steps in the order in which they were heard of; one that is taken again is another one."""
        self._at: dict[int, tuple[str, int]] = {}
        self._taken: Counter[tuple[int, str]] = Counter()

    def add(self, number: int, what: str, done: int, of: int) -> None:
        """One of them has come so far."""
        if number not in self._at or self._at[number][0] != what:
            self._complete(number)
            self._at[number] = what, self._taken[number, what]
            self._taken[number, what] += 1
        self._steps.setdefault(self._at[number], {})[number] = done, of
        self._tell()

    def end(self, number: int) -> None:
        """One of them is done with everything."""
        if self._complete(number) and self._at:
            self._tell()

    def _complete(self, number: int) -> bool:
        """Leave the step that it is at, if there is one."""
        step = self._at.pop(number, None)
        if step is None:
            return False
        _, of = self._steps[step][number]
        self._steps[step][number] = of, of
        return True

    def _tell(self) -> None:
        last = next(step for step in self._steps if step in self._at.values())
        done, of = (sum(numbers) for numbers in zip(*self._steps[last].values(), strict=True))
        self._note(last[0], done, of)


class TimingSite(Protocol):
    """A machine that is to be had for timing. No two sites are on the same one, for they are used at once.

    All but `close` is asked for in one thread at a time, and raises PlaceLost once the machine is gone.
    """

    def prepare(self, entries: Sequence[ComparedPair]) -> Mapping[ComparedPair, PairedCase | Timing]:
        """A pair of each, or what is known of it where none can be timed. Asked for again if more entries come."""

    @property
    def place(self) -> PairSite:
        """Where pairs are timed, always the same. Asked for once there are some: then the machine is for them alone."""

    def close(self) -> None:
        """End all that was started, at once. Can be said more than once."""


class SiteCases(NamedTuple):
    """What is to be decided in one place."""

    experiment: SequentialComparison
    keys: Sequence[Hashable]
    prepare: Callable[[], Mapping[Any, PairedCase | Timing]]
    """Makes a pair of each, or tells what is known of it without one. Called where the experiment works."""


def assign_no_more(lost: Mapping[Hashable, LostCase]) -> Sequence[SiteCases]:
    """What is lost stays lost."""
    return ()


def confirm_jointly(
    shares: Sequence[SiteCases],
    assign_again: Callable[[Mapping[Hashable, LostCase]], Sequence[SiteCases]] = assign_no_more,
    note: Note = ignore_progress,
) -> Generator[CaseReport, None, None]:
    """What the clock says of each, as soon as that is final; each is reported once.

    A single experiment works in the caller's thread, several have one each. `assign_again` hears what was lost with its
    place, and says where to time it instead; what it leaves out is reported as lost.
    """
    experiments: dict[SequentialComparison, None] = {}
    for attempt in range(CONFIRMATIONS):
        busy = [SiteCases(experiment, (), dict) for experiment in experiments if experiment.is_busy]
        stage = busy if attempt else shares
        while stage:
            experiments |= dict.fromkeys(share.experiment for share in stage)
            lost: dict[Hashable, LostCase] = {}
            with contextlib.closing(_carry_out(stage, attempt, note)) as carried_out:
                for key, reported in carried_out:
                    if isinstance(reported, LostCase):
                        lost[key] = reported
                    else:
                        yield key, reported
            stage = assign_again(lost) if lost else ()
            taken = {key for share in stage for key in share.keys}
            yield from ((key, one) for key, one in lost.items() if key not in taken)
        _settle(tuple(experiments))
    for experiment in experiments:
        yield from experiment.conclude()


def _carry_out(stage: Sequence[SiteCases], attempt: int, note: Note) -> Generator[CaseReport, None, None]:
    """One stage, in all places at once."""

    def leave() -> None:
        for share in stage:
            share.experiment.leave()

    return run_concurrently([functools.partial(_pursue, share, attempt) for share in stage], note, leave)


def _pursue(share: SiteCases, attempt: int, note: Note) -> Iterator[CaseReport]:
    """One stage in one place."""
    prepared: Mapping[Hashable, PairedCase | Timing] = {}
    try:
        prepared = share.prepare()
        yield from ((key, one) for key, one in prepared.items() if isinstance(one, Timing))
        pairs = {key: one for key, one in prepared.items() if isinstance(one, PairedCase)}
        yield from share.experiment.pursue(pairs, attempt, note)
    except PlaceLost as error:
        lost = LostCase(str(error))
        yield from share.experiment.give_up(lost)
        yield from ((key, lost) for key in share.keys if key not in prepared)


def _settle(experiments: Sequence[SequentialComparison]) -> None:
    """Which changes that were seen again are believed, of all together."""
    accepted = iter(accept_changes([p for experiment in experiments for p in experiment.p_values]))
    for experiment in experiments:
        experiment.settle([next(accepted) for _ in experiment.p_values])


# Who has seen so many machines go down may be what takes them down, as one that needs more memory than they have; two
# losses in a row also happen by chance, where machines are taken away again at any time.
MOST_TRIES = 3


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
        confirm_jointly(assignment.assign(comparison.entries), assignment.assign_again, note)
    ) as decided:
        for entry, reported in decided:
            assert isinstance(entry, ComparedPair)
            evidence.timed[entry] = assignment.explain(entry, reported) if isinstance(reported, LostCase) else reported
            yield entry


def time_and_close(
    comparison: Comparison,
    sites: Sequence[TimingSite],
    evidence: Evidence,
    stop: StopRequest,
    note: Note = ignore_progress,
) -> Generator[ComparedPair, None, None]:
    """The same, and close the sites, however it ends."""
    with contextlib.ExitStack() as stack:
        for site in sites:
            stack.callback(site.close)
        yield from stack.enter_context(contextlib.closing(time_sides(comparison, sites, evidence, stop, note)))


class _Assignment:
    """Knows which sites there still are, and how often each entry was assigned."""

    def __init__(self, sites: Sequence[TimingSite], settings: Settings, stop: StopRequest) -> None:
        self._stop = stop
        self._experiments = [
            (site, SequentialComparison(_LazySite(site), settings, stop=stop, seed=number))
            for number, site in enumerate(sites)
        ]
        self._assigned: Counter[ComparedPair] = Counter()

    def assign(self, entries: Sequence[ComparedPair]) -> list[SiteCases]:
        """Evenly, to the sites that are left; without those that were assigned too often."""
        left = [(site, experiment) for site, experiment in self._experiments if not experiment.is_lost]
        if not left:
            return []
        possible = [entry for entry in entries if self._assigned[entry] < MOST_TRIES]
        self._assigned.update(possible)
        return [
            SiteCases(experiment, share, functools.partial(site.prepare, share))
            for (site, experiment), share in zip(left, assign_evenly(possible, len(left)), strict=True)
            if share
        ]

    def assign_again(self, lost: Mapping[Hashable, LostCase]) -> list[SiteCases]:
        """Once stopping is requested, nothing."""
        return [] if self._stop.requested else self.assign([entry for entry in lost if isinstance(entry, ComparedPair)])

    def explain(self, entry: ComparedPair, lost: LostCase) -> Timing:
        """What is reported of an entry that is not assigned again."""
        if self._stop.requested:
            return Timing(None)
        what = (
            f"The machine was lost on which it was timed, {MOST_TRIES} times in a row. It may take more memory than "
            "they have: compare it by itself to see."
            if self._assigned[entry] >= MOST_TRIES
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
    """The place of a site, which is asked for only when something is to be done there."""

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

    def gauge(self, pair: PairedCase) -> RunTime | Failures:
        return self._site.place.gauge(pair)

    def visit(self, layout: int, pair: PairedCase, pace: BlockPlan) -> Visit | Failures:
        return self._site.place.visit(layout, pair, pace)


class RemoteSite:
    """One node, which is for this comparison alone."""

    def __init__(self, comparison: Comparison, node: RemotePairs) -> None:
        self._comparison = comparison
        self._node = node

    def prepare(self, entries: Sequence[ComparedPair]) -> dict[ComparedPair, PairedCase | Timing]:
        """C++ comes compiled, if another node of its kind was faster."""
        comparison = self._comparison
        found: dict[ComparedPair, PairedCase | Timing] = {
            entry: Timing(None, (NotTimed("compiles"),))
            for entry in entries
            if entry.base.parts is not None or entry.head.parts is not None
        }
        plain = [entry for entry in entries if entry not in found]
        pairs = self._node.prepare(
            [(entry.base, entry.head) for entry in plain],
            comparison.base,
            comparison.head,
            together=runs_together(comparison),
            timeout_s=comparison.timeout_s,
        )
        for entry, pair in zip(plain, pairs, strict=True):
            found[entry] = pair if isinstance(pair, PairedCase) else Timing(None, failures=pair)
        return found

    @property
    def place(self) -> PairSite:
        """The node."""
        return self._node

    def close(self) -> None:
        """Let go of the node."""
        self._node.close()


class ClusterComparison:
    """Counts and times a comparison on a cluster, which is connected to once for both."""

    def __init__(self, backend: ClusterBackend) -> None:
        self._backend = backend
        self._is_open = False

    def try_sides(self, comparison: Comparison, evidence: Evidence) -> Comparison:
        """Nothing is tried: nodes find out what fails."""
        return comparison

    def open_backend(self, comparison: Comparison, cores: Sequence[int], stack: contextlib.ExitStack) -> Backend:
        """To count with."""
        self._open(comparison)
        return self._backend

    def time(
        self, comparison: Comparison, cores: Sequence[int], evidence: Evidence, stop: StopRequest, note: Note
    ) -> Generator[ComparedPair, None, None]:
        """On every node that can measure."""
        self._open(comparison)
        sites = [RemoteSite(comparison, node) for node in self._backend.open_remote_pairs()]
        yield from time_and_close(comparison, sites, evidence, stop, note)

    def close(self) -> None:
        """Leave the cluster."""
        self._backend.close()

    def _open(self, comparison: Comparison) -> None:
        if not self._is_open:
            counted = Metric.COUNT in comparison.metrics
            sampling = dataclasses.replace(
                comparison.plan.sampling, metrics=(Metric.COUNT if counted else Metric.WALL,)
            )
            self._backend.open(dataclasses.replace(comparison.plan, sampling=sampling))
            self._is_open = True
