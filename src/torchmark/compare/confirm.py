"""Cases timed at several sites together: run in threads, and a change is called by one rule over all of them."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import queue
import threading
import time
from collections import Counter
from collections.abc import Callable, Generator, Hashable, Iterator, Mapping, Sequence
from typing import Any, Generic, NamedTuple, Protocol, TypeAlias, TypeVar

from torchmark.analysis.verdict.sequential import CONFIRM_RATE, Look, StoppingRule, predict_visits, to_evidence
from torchmark.analysis.verdict.visits import Reduced, doubt_visits
from torchmark.errors import PlaceLost
from torchmark.model.bout import BlockPlan, PairedCase
from torchmark.model.comparison import ComparisonCaveat
from torchmark.model.judgement import LayoutVisits, SideFailure, TimeEvidence, Verdict
from torchmark.runner.paired_workers import Failures
from torchmark.stats.intervals import benjamini_hochberg
from torchmark.stats.layered import Layered, find_centre, more_visits_help
from torchmark.stats.order import quantile

# Visits take some 25 ms. What takes longer than this is ended by whoever closes the place where it runs.
PARTING_S = 1.0

T = TypeVar("T")

Note: TypeAlias = Callable[[str, int, int], None]
"""Hears what is being done, how much of it is done, and of how much."""

SiteStage: TypeAlias = Callable[[Note], Iterator[T]]


def ignore_progress(what: str, done: int, of: int) -> None:
    """For whoever need not hear how far things are."""


@dataclasses.dataclass(frozen=True)
class _Given(Generic[T]):
    what: T


class _Noted(NamedTuple):
    number: int
    progress: tuple[str, int, int]


class _Ended(NamedTuple):
    number: int
    error: BaseException | None = None


def run_concurrently(stages: Sequence[SiteStage[T]], note: Note, leave: Callable[[], None]) -> Generator[T, None, None]:
    """All that the stages give. `note` hears, in the caller's thread, how far they are together.

    The first error of a stage is raised at once. Where some still run when this ends, by an error or because it is
    closed, `leave` is called, which has to have them end soon; they are then waited for, but not for long.
    """
    if len(stages) == 1:
        yield from stages[0](note)
        return
    messages: queue.SimpleQueue[_Given[T] | _Noted | _Ended] = queue.SimpleQueue()
    sums = JointProgress(note)
    threads = [
        threading.Thread(target=_run, args=(number, stage, messages), daemon=True)
        for number, stage in enumerate(stages)
    ]
    running = 0
    try:
        for thread in threads:
            running += 1
            thread.start()
        while running:
            message = messages.get()
            if isinstance(message, _Given):
                yield message.what
            elif isinstance(message, _Noted):
                sums.add(message.number, *message.progress)
            else:
                running -= 1
                sums.end(message.number)
                if message.error is not None:
                    raise message.error
    finally:
        if running:
            leave()
            _wait_for(threads)


def _run(number: int, stage: SiteStage[T], messages: queue.SimpleQueue[_Given[T] | _Noted | _Ended]) -> None:
    try:
        for one in stage(lambda *progress: messages.put(_Noted(number, progress))):
            messages.put(_Given(one))
    except BaseException as error:
        messages.put(_Ended(number, error))
    else:
        messages.put(_Ended(number))


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
        self._report()

    def end(self, number: int) -> None:
        """One of them is done with everything."""
        if self._complete(number) and self._at:
            self._report()

    def _complete(self, number: int) -> bool:
        """Leave the step that it is at, if there is one."""
        step = self._at.pop(number, None)
        if step is None:
            return False
        _, of = self._steps[step][number]
        self._steps[step][number] = of, of
        return True

    def _report(self) -> None:
        last = next(step for step in self._steps if step in self._at.values())
        done, of = (sum(numbers) for numbers in zip(*self._steps[last].values(), strict=True))
        self._note(last[0], done, of)


CHANGED = (Verdict.SLOWER, Verdict.FASTER)


@dataclasses.dataclass(frozen=True)
class Timing:
    """What the clock says of one case."""

    evidence: TimeEvidence | None
    caveats: tuple[ComparisonCaveat, ...] = ()
    failures: tuple[SideFailure, ...] = ()


@dataclasses.dataclass(frozen=True)
class LostCase:
    """A case that was not decided, because the place where it was timed is gone; `reason` is a sentence."""

    reason: str


class CaseState:
    """What is known of one case so far."""

    def __init__(self, key: Hashable, paired_case: PairedCase) -> None:
        self.key = key
        self.paired_case = paired_case
        self.pace = BlockPlan(1, 1, 1)
        self.rule = StoppingRule()
        self.visits: dict[int, list[Reduced]] = {}
        self.look = Look(Verdict.UNDECIDED)
        self.seen: tuple[LayoutVisits, ...] = ()
        """The visits that the look is made from."""
        self.found: Layered | None = None
        """What the first layouts showed, where that was a change."""
        self.failures: Failures = ()
        self.confirmed: bool | None = None
        self.seconds = 0.0
        self.is_settled = False
        """Whether no more is to be found out."""

    @property
    def is_open(self) -> bool:
        """Whether looking again may decide it."""
        return not self.failures and self.look.verdict is Verdict.UNDECIDED

    @property
    def is_limited_by_layouts(self) -> bool:
        """Whether it is open, and visits of the same layouts will not decide it."""
        return self.is_open and self.look.layered is not None and not more_visits_help(self.look.layered)

    def ratios(self, layouts: Sequence[int]) -> list[list[float]]:
        """For each of these layouts the log-ratios of its visits."""
        return [[visit.log_ratio for visit in self.visits.get(layout, ())] for layout in layouts]

    def count_visits(self, layouts: Sequence[int]) -> int:
        """How often each of these layouts was visited at the least."""
        return min((len(self.visits.get(layout, ())) for layout in layouts), default=0)

    def keep(self, look: Look, first: Sequence[int], fresh: Sequence[int] = ()) -> None:
        """A look, and which visits it has seen: all that there are of these layouts."""
        self.look = look
        self.seen = tuple(
            _gather(self.visits[layout], fresh=is_fresh)
            for layouts, is_fresh in ((first, False), (fresh, True))
            for layout in layouts
            if layout in self.visits
        )

    def unsay(self) -> None:
        """A change is none before it has been seen by layouts that did not help to find it."""
        self.look = dataclasses.replace(self.look, verdict=Verdict.UNDECIDED)

    def conclude(self, doubts: Sequence[ComparisonCaveat]) -> Timing:
        """What is told of it; `doubts` are those of its layouts."""
        if self.failures:
            return Timing(None, failures=self.failures)
        reduced = [visit for visits in self.visits.values() for visit in visits]
        caveats = (*doubts, *doubt_visits(reduced, self.paired_case.base.threads))
        if not reduced:
            return Timing(None, caveats)
        evidence = to_evidence(
            self.look,
            self.rule,
            base_s=quantile(sorted(visit.base_s for visit in reduced), 0.5),
            head_s=quantile(sorted(visit.head_s for visit in reduced), 0.5),
            seconds=self.seconds,
            confirmed=self.confirmed,
            needed_s=self._predict_s(len(reduced)),
            visits=self.seen,
        )
        return Timing(evidence, caveats)

    def _predict_s(self, done: int) -> float | None:
        """How much longer it might take to decide; None where it is decided, or visits of these layouts will not do."""
        layered = self.look.layered
        if self.look.verdict is not Verdict.UNDECIDED or layered is None or self.confirmed is False:
            return None
        needed = predict_visits(self.look, self.rule)
        if needed is None:
            return None
        return max(0, needed - layered.visits) * layered.layouts * self.seconds / done


def _gather(visits: Sequence[Reduced], *, fresh: bool) -> LayoutVisits:
    """The visits of one layout."""
    ratios = tuple(visit.log_ratio for visit in visits)
    base_s, head_s = (tuple(times) for times in zip(*((visit.base_s, visit.head_s) for visit in visits), strict=True))
    return LayoutVisits(log_ratios=ratios, centre=find_centre(ratios), fresh=fresh, base_s=base_s, head_s=head_s)


# A change is looked for on fresh layouts, and once more in more visits: visits are off now and then, and what is there
# shall not be lost by that. Both share the rate of false discoveries.
CONFIRMATIONS = 2

CaseReport: TypeAlias = tuple[Hashable, Timing | LostCase]


class SiteExperiment(Protocol):
    """Times cases in one place, as `compare.experiment.SequentialComparison` does. Only `pursue` uses the place."""

    @property
    def is_busy(self) -> bool:
        """Whether there is more to pursue, after the changes that it has seen were settled."""

    @property
    def p_values(self) -> tuple[float, ...]:
        """Of the changes that were looked for on fresh layouts, and are not settled."""

    def pursue(
        self, paired_cases: Mapping[Hashable, PairedCase], attempt: int, note: Note
    ) -> Iterator[tuple[Hashable, Timing]]:
        """Look at these, and look for all changes on fresh layouts. Gives what is final by then, as soon as it is.

        PlaceLost is raised if there is no such place any more.
        """

    def settle(self, accepted: Sequence[bool]) -> None:
        """Which of the changes that p values were given of may be called so."""

    def conclude(self) -> Iterator[tuple[Hashable, Timing]]:
        """All that was not told yet."""

    def give_up(self, lost: LostCase) -> Iterator[CaseReport]:
        """The same where the place is lost: only what is final is known, and nothing is left to pursue or to settle."""

    def leave(self) -> None:
        """Begin nothing more, for nobody waits for it. Said from another thread."""


class SiteCases(NamedTuple):
    """What is to be decided in one place."""

    experiment: SiteExperiment
    keys: Sequence[Hashable]
    prepare: Callable[[], Mapping[Any, PairedCase | Timing]]
    """Makes what is timed of each, or tells what is known of it without. Called in the experiment's thread."""


def reassign_none(lost: Mapping[Hashable, LostCase]) -> Sequence[SiteCases]:
    """What is lost stays lost."""
    return ()


def confirm_jointly(
    sites: Sequence[SiteCases],
    reassign: Callable[[Mapping[Hashable, LostCase]], Sequence[SiteCases]] = reassign_none,
    note: Note = ignore_progress,
) -> Generator[CaseReport, None, None]:
    """What the clock says of each, as soon as that is final; each is told once.

    A single experiment works in the caller's thread, several have one each. `reassign` hears what was lost with its
    place, and says where to time it instead; what it leaves out is reported as lost.
    """
    experiments: dict[SiteExperiment, None] = {}
    for attempt in range(CONFIRMATIONS):
        busy = [SiteCases(experiment, (), dict) for experiment in experiments if experiment.is_busy]
        stage = busy if attempt else sites
        while stage:
            experiments |= dict.fromkeys(site.experiment for site in stage)
            lost: dict[Hashable, LostCase] = {}
            with contextlib.closing(_run_stage(stage, attempt, note)) as reports:
                for key, result in reports:
                    if isinstance(result, LostCase):
                        lost[key] = result
                    else:
                        yield key, result
            stage = reassign(lost) if lost else ()
            taken = {key for site in stage for key in site.keys}
            yield from ((key, one) for key, one in lost.items() if key not in taken)
        _settle(tuple(experiments))
    for experiment in experiments:
        yield from experiment.conclude()


def _run_stage(stage: Sequence[SiteCases], attempt: int, note: Note) -> Generator[CaseReport, None, None]:
    """One stage, in all places at once."""

    def leave() -> None:
        for site in stage:
            site.experiment.leave()

    return run_concurrently([functools.partial(_pursue, site, attempt) for site in stage], note, leave)


def _pursue(site: SiteCases, attempt: int, note: Note) -> Iterator[CaseReport]:
    """One stage in one place."""
    prepared: Mapping[Hashable, PairedCase | Timing] = {}
    try:
        prepared = site.prepare()
        yield from ((key, one) for key, one in prepared.items() if isinstance(one, Timing))
        paired_cases = {key: one for key, one in prepared.items() if isinstance(one, PairedCase)}
        yield from site.experiment.pursue(paired_cases, attempt, note)
    except PlaceLost as error:
        lost = LostCase(str(error))
        yield from site.experiment.give_up(lost)
        yield from ((key, lost) for key in site.keys if key not in prepared)


def _settle(experiments: Sequence[SiteExperiment]) -> None:
    """Which changes that were seen again are believed, of all together."""
    p_values = [p for experiment in experiments for p in experiment.p_values]
    accepted = iter(benjamini_hochberg(p_values, CONFIRM_RATE / CONFIRMATIONS))
    for experiment in experiments:
        experiment.settle([next(accepted) for _ in experiment.p_values])
