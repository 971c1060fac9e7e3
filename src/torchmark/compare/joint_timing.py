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
from typing import Any, NamedTuple, TypeAlias, TypeVar

from torchmark.compare.comparison import ComparedPair, Comparison, Evidence
from torchmark.compare.experiment import (
    CONFIRMATIONS,
    CaseReport,
    LostCase,
    Note,
    PairTimer,
    SequentialComparison,
    Settings,
    Timing,
    accept_changes,
    ignore_progress,
)
from torchmark.compare.session import ComparisonPlace, prepare_entries, runs_together
from torchmark.errors import PlaceLost
from torchmark.model.job import PairedCase
from torchmark.model.judgement import Side, SideFailure
from torchmark.model.outcome import Failure, FailureKind
from torchmark.model.plan import Metric
from torchmark.processes import StopRequest
from torchmark.runner.backend import Backend
from torchmark.runner.cluster.backend import ClusterBackend
from torchmark.runner.cluster.protocol import PreparePairs

# Visits take some 25 ms. What takes longer than this is ended by whoever closes the place where it runs.
PARTING_S = 1.0

T = TypeVar("T")

Stage: TypeAlias = Callable[[Note], Iterator[T]]


def run_concurrently(stages: Sequence[Stage[T]], note: Note, leave: Callable[[], None]) -> Generator[T, None, None]:
    """All that the stages give. `note` hears, in the caller's thread, how far they are together.

    The first error of a stage is raised at once. Where some still run when this ends, by an error or because it is
    closed, `leave` is called, which has to have them end soon; they are then waited for, but not for long.
    """
    if len(stages) == 1:
        yield from stages[0](note)
        return
    sums = JointProgress(note)
    heard: queue.SimpleQueue[Callable[[], Iterable[T] | None]] = queue.SimpleQueue()
    """What there is to do in the caller's thread. It gives what a stage gave."""
    running = set(range(len(stages)))

    def end(number: int, error: BaseException | None) -> None:
        running.discard(number)
        sums.end(number)
        if error is not None:
            raise error

    def run(number: int, stage: Stage[T]) -> None:
        failed = None
        try:
            for one in stage(lambda *reported: heard.put(lambda: sums.add(number, *reported))):
                heard.put(functools.partial(tuple, [one]))
        except BaseException as error:
            failed = error
        heard.put(lambda: end(number, failed))

    threads = [threading.Thread(target=run, args=numbered, daemon=True) for numbered in enumerate(stages)]
    try:
        for thread in threads:
            thread.start()
        while running:
            yield from heard.get()() or ()
    finally:
        if running:
            leave()
            ended_at = time.monotonic() + PARTING_S
            for thread in threads:
                if thread.ident is not None:
                    thread.join(max(0.0, ended_at - time.monotonic()))


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
        if number not in self._at or self._at[number][0] != what:
            self._complete(number)
            self._at[number] = what, self._taken[number, what]
            self._taken[number, what] += 1
        self._steps.setdefault(self._at[number], {})[number] = done, of
        self._tell()

    def end(self, number: int) -> None:
        if self._complete(number) and self._at:
            self._tell()

    def _complete(self, number: int) -> bool:
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


class SiteCases(NamedTuple):
    """What is to be decided in one place."""

    experiment: SequentialComparison
    keys: Sequence[Hashable]
    prepare: Callable[[], Mapping[Any, PairedCase | Timing]]
    """Makes a pair of each, or tells what is known of it without one. Called where the experiment works."""


def confirm_jointly(
    shares: Sequence[SiteCases],
    assign_again: Callable[[Mapping[Hashable, LostCase]], Sequence[SiteCases]] = lambda lost: (),
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
            pursuits = [functools.partial(_pursue, share, attempt) for share in stage]
            with contextlib.closing(run_concurrently(pursuits, note, functools.partial(_leave, stage))) as reports:
                for key, reported in reports:
                    if isinstance(reported, LostCase):
                        lost[key] = reported
                    else:
                        yield key, reported
            stage = assign_again(lost) if lost else ()
            taken = {key for share in stage for key in share.keys}
            yield from ((key, one) for key, one in lost.items() if key not in taken)
        accepted = iter(accept_changes([p for experiment in experiments for p in experiment.p_values]))
        for experiment in experiments:
            experiment.settle([next(accepted) for _ in experiment.p_values])
    for experiment in experiments:
        yield from experiment.conclude()


def _leave(stage: Sequence[SiteCases]) -> None:
    for share in stage:
        share.experiment.leave()


def _pursue(share: SiteCases, attempt: int, note: Note) -> Iterator[CaseReport]:
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


# Who has seen so many machines go down may be what takes them down, as one that needs more memory than they have; two
# losses in a row also happen by chance, where machines are taken away again at any time.
MOST_TRIES = 3


def time_sides(
    comparison: Comparison, timers: Sequence[PairTimer], evidence: Evidence, stop: StopRequest, note: Note
) -> Generator[ComparedPair, None, None]:
    """Time all cases in turns; gives each as soon as there is no more to find out. The timers are closed at the end."""
    assert timers
    assignment = _Assignment(timers, comparison.settings, stop)
    with contextlib.ExitStack() as stack:
        for timer in timers:
            stack.callback(timer.close)
        decided = confirm_jointly(assignment.assign(comparison.entries), assignment.assign_again, note)
        for entry, reported in stack.enter_context(contextlib.closing(decided)):
            assert isinstance(entry, ComparedPair)
            evidence.timed[entry] = assignment.explain(entry, reported) if isinstance(reported, LostCase) else reported
            yield entry


class _Assignment:
    """Knows which timers there still are, and how often each entry was assigned."""

    def __init__(self, timers: Sequence[PairTimer], settings: Settings, stop: StopRequest) -> None:
        self._stop = stop
        self._experiments = {
            SequentialComparison(timer, settings, stop=stop, seed=number): timer for number, timer in enumerate(timers)
        }
        self._assigned: Counter[ComparedPair] = Counter()

    def assign(self, entries: Sequence[ComparedPair]) -> list[SiteCases]:
        """Evenly, to the timers that are left; without those that were assigned too often."""
        left = [experiment for experiment in self._experiments if not experiment.is_lost]
        if not left:
            return []
        possible = [entry for entry in entries if self._assigned[entry] < MOST_TRIES]
        self._assigned.update(possible)
        return [
            SiteCases(experiment, share, functools.partial(prepare_entries, share, self._experiments[experiment]))
            for experiment, share in zip(left, assign_evenly(possible, len(left)), strict=True)
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


class ClusterComparison(ComparisonPlace):
    """Counts and times a comparison on a cluster, which is connected to once for both."""

    def __init__(self, backend: ClusterBackend) -> None:
        self._backend = backend
        self._is_open = False

    def try_sides(self, comparison: Comparison, evidence: Evidence) -> Comparison:
        """Nothing is tried: nodes find out what fails."""
        return comparison

    def open_backend(self, comparison: Comparison, cores: Sequence[int], stack: contextlib.ExitStack) -> Backend:
        self._open(comparison)
        return self._backend

    def time(
        self, comparison: Comparison, cores: Sequence[int], evidence: Evidence, stop: StopRequest, note: Note
    ) -> Generator[ComparedPair, None, None]:
        self._open(comparison)
        together, timeout_s = runs_together(comparison), comparison.timeout_s
        request = PreparePairs((), comparison.base, comparison.head, together=together, timeout_s=timeout_s)
        yield from time_sides(comparison, self._backend.open_remote_pairs(request), evidence, stop, note)

    def close(self) -> None:
        self._backend.close()

    def _open(self, comparison: Comparison) -> None:
        if not self._is_open:
            plan, metric = comparison.plan, Metric.COUNT if Metric.COUNT in comparison.metrics else Metric.WALL
            sampling = dataclasses.replace(plan.sampling, metrics=(metric,))
            self._backend.open(dataclasses.replace(plan, sampling=sampling))
            self._is_open = True
