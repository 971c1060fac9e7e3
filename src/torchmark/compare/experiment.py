"""Has statements compared in turns in one place: who is visited next, when to look, when to stop.

A change is called one only after fresh layouts of memory, which had no part in finding it, have shown it again.
"""

from __future__ import annotations

import dataclasses
import random
import time
from collections.abc import Callable, Generator, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Protocol, TypeAlias

from torchmark.analysis.verdict.sequential import (
    CONFIRM_RATE,
    Look,
    StoppingRule,
    confirmation_p,
    floor_for,
    look,
    predict_visits,
    settle,
)
from torchmark.analysis.verdict.visits import Reduced, choose_pace, doubt_visits, find_far_off, reduce_visit
from torchmark.model.caveats import ComparisonCaveat, FewLayouts, LayoutSensitive, Unmatched
from torchmark.model.job import BlockPlan, PairedCase, RunTime, Visit
from torchmark.model.judgement import LayoutVisits, SideFailure, TimeEvidence, Verdict
from torchmark.model.plan import Case
from torchmark.processes import StopRequest
from torchmark.runner.paired_workers import Failures
from torchmark.runner.spec import Match
from torchmark.stats.distribution import quantile
from torchmark.stats.intervals import benjamini_hochberg
from torchmark.stats.layered import ENOUGH_FOR_MEDIAN, Layered, find_centre, more_visits_help

Note: TypeAlias = Callable[[str, int, int], None]
"""Hears what is being done, how much of it is done, and of how much."""

# Six layouts that match give an interval of plus and minus 4 ns where a run takes 1 us; with fewer than four the
# t distribution's tails eat up what is gained.
LAYOUTS = 6
FEWEST_LAYOUTS = 4
# From here on it is worth saying that time depends on the layout.
NOTABLE_LAYOUT_SD = 0.01
# Equal code takes up to 1 % more or less time in another file, by where that happens to lie in real memory. Layouts do
# not show this, for all of them have it; so it takes twice that where native libraries are not the same files.
UNMATCHED_FLOOR = 0.02
# How long turns may take if no budget is given. Starting layouts is not limited: on a slow machine it takes longer than
# the turns.
TURNS_S = 30.0
CASE_S = 3.0

# A change is looked for in so many visits of each fresh layout at the least, and in as many more with each attempt.
CONFIRMING = 2


def ignore_progress(what: str, done: int, of: int) -> None:
    """For whoever need not hear how far things are."""


CHANGED = (Verdict.SLOWER, Verdict.FASTER)


@dataclasses.dataclass(frozen=True)
class Timing:
    """What the clock says of one pair."""

    evidence: TimeEvidence | None
    caveats: tuple[ComparisonCaveat, ...] = ()
    failures: tuple[SideFailure, ...] = ()


@dataclasses.dataclass(frozen=True)
class LostCase:
    """A pair that was not decided, because the place where it was held is gone; `reason` is a sentence."""

    reason: str


class CaseState:
    """One pair, as far as it has come."""

    def __init__(self, key: Hashable, pair: PairedCase) -> None:
        self.key = key
        self.pair = pair
        self.pace = BlockPlan(1, 1, 1)
        self.rule = StoppingRule()
        self.visits: dict[int, list[Reduced]] = {}
        self.look = Look(Verdict.UNDECIDED)
        self.seen: tuple[LayoutVisits, ...] = ()
        self.found: Layered | None = None
        """What the first layouts showed, where that was a change."""
        self.failures: Failures = ()
        self.confirmed: bool | None = None
        self.seconds = 0.0
        self.is_settled = False

    @property
    def is_open(self) -> bool:
        """Whether looking again may decide it."""
        return not self.failures and self.look.verdict is Verdict.UNDECIDED

    def ratios(self, layouts: Sequence[int]) -> list[list[float]]:
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

    def retract(self) -> None:
        """A change is none before it has been seen by layouts that did not help to find it."""
        self.look = dataclasses.replace(self.look, verdict=Verdict.UNDECIDED)

    def conclude(self, doubts: Sequence[ComparisonCaveat]) -> Timing:
        """What is told of it; `doubts` are those of its layouts."""
        if self.failures:
            return Timing(None, failures=self.failures)
        reduced = [visit for visits in self.visits.values() for visit in visits]
        caveats = (*doubts, *doubt_visits(reduced, self.pair.base.threads))
        found = self.look.layered
        # Too few layouts have no interval.
        if found is None:
            return Timing(None, caveats)
        evidence = TimeEvidence(
            verdict=self.look.verdict,
            log_ratio=found.estimate,
            low=found.low,
            high=found.high,
            confidence=1 - self.rule.alpha,
            base_s=quantile(sorted(visit.base_s for visit in reduced), 0.5),
            head_s=quantile(sorted(visit.head_s for visit in reduced), 0.5),
            floor=self.rule.floor,
            equivalence=self.rule.equivalence,
            p_value=found.p_value,
            layouts=found.layouts,
            sweeps=found.visits,
            layout_sd=found.layout_sd,
            fork_sd=found.visit_sd,
            confirmed=self.confirmed,
            seconds=self.seconds,
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
        return None if needed is None else max(0, needed - layered.visits) * layered.layouts * self.seconds / done


def _gather(visits: Sequence[Reduced], *, fresh: bool) -> LayoutVisits:
    ratios = tuple(visit.log_ratio for visit in visits)
    base_s, head_s = (tuple(times) for times in zip(*((visit.base_s, visit.head_s) for visit in visits), strict=True))
    return LayoutVisits(log_ratios=ratios, centre=find_centre(ratios), fresh=fresh, base_s=base_s, head_s=head_s)


# A change is looked for on fresh layouts, and once more in more visits: visits are off now and then, and what is there
# shall not be lost by that. Both share the rate of false discoveries.
CONFIRMATIONS = 2

CaseReport: TypeAlias = tuple[Hashable, Timing | LostCase]


def accept_changes(p_values: Sequence[float]) -> tuple[bool, ...]:
    """Which changes that were seen again are believed, of all together."""
    return benjamini_hochberg(p_values, CONFIRM_RATE / CONFIRMATIONS)


class PairTimer(Protocol):
    """What times pairs in one place: `PairedWorkers` here, `RemotePairs` on a node.

    All but `close` raise PlaceLost once that place is gone.
    """

    @property
    def layouts(self) -> tuple[int, ...]:
        """Numbers of the layouts of memory that there are."""

    @property
    def match(self) -> Match:
        """Whether both sides are laid out alike, in all layouts."""

    def prepare(self, pairs: Sequence[tuple[Case, Case]]) -> Sequence[PairedCase | Failures]:
        """What both sides of each pair run, TorchScript made and C++ compiled; or how the sides fail that fail."""

    def start(self, layouts: Iterable[int], note: Callable[[int], None] = ...) -> None:
        """Have more layouts. `note` hears how many sides of them are up."""

    def gauge(self, pair: PairedCase, /) -> RunTime | Failures:
        """How long a run takes on each side."""

    def visit(self, layout: int, pair: PairedCase, /, pace: BlockPlan) -> Visit | Failures:
        """Both sides in turns."""

    def close(self) -> None:
        """End all that was started, at once. Can be said more than once."""


@dataclasses.dataclass(frozen=True)
class Settings:
    """How sure to be, and how long to try."""

    alpha: float = StoppingRule.alpha
    equivalence: float = StoppingRule.equivalence
    layouts: int = LAYOUTS
    budget_s: float | None = None
    """For all cases together, including starting layouts; by default `TURNS_S` plus `CASE_S` per case, without it."""
    self_test_sd: float | None = None
    """How far comparisons of a build with itself spread on this machine, if that is known."""


DEFAULTS = Settings()


class SequentialComparison:
    """Compares pairs in one place: by itself, or with those of other places in `confirm_jointly`."""

    def __init__(
        self,
        timer: PairTimer,
        settings: Settings = DEFAULTS,
        *,
        stop: StopRequest | None = None,
        now: Callable[[], float] = time.monotonic,
        seed: int = 0,
    ) -> None:
        """`now` is a clock in seconds."""
        self._timer = timer
        self._settings = settings
        self._stop = stop or StopRequest()
        self._left = StopRequest()
        self._now = now
        self._chance = random.Random(seed)
        self._end: float | None = None
        self._paused: float | None = None
        self._first: tuple[int, ...] = ()
        self._fresh: tuple[int, ...] = ()
        self._states: list[CaseState] = []
        self._sought: list[CaseState] = []
        self._shown: list[tuple[CaseState, float]] = []
        self._limited: list[CaseState] = []
        self.is_lost = False

    def decide(
        self, pairs: Mapping[Hashable, PairedCase], note: Note = ignore_progress
    ) -> Generator[tuple[Hashable, Timing], None, None]:
        """What the clock says of each, as soon as that is final. Once stopping is requested, what is known so far."""
        self._clear()
        for attempt in range(CONFIRMATIONS):
            if attempt == 0 or self.is_busy:
                yield from self.pursue({} if attempt else pairs, attempt, note)
                self.settle(accept_changes(self.p_values))
        yield from self.conclude()

    # --- stages --------------------------------------------------------------------------------------

    @property
    def is_busy(self) -> bool:
        return bool(self._sought or self._limited)

    @property
    def p_values(self) -> tuple[float, ...]:
        """Of the changes that were looked for on fresh layouts, and are not settled."""
        return tuple(p for _, p in self._shown)

    def pursue(
        self, pairs: Mapping[Hashable, PairedCase], attempt: int, note: Note
    ) -> Iterator[tuple[Hashable, Timing]]:
        """Look at these, and look for all changes on fresh layouts. Gives what is final by then, as soon as it is.

        In the last attempt more layouts are tried where they are what limits an answer.
        """
        states = [CaseState(key, pair) for key, pair in pairs.items()]
        self._states += states
        if self._left.requested:
            return
        if states:
            missing = range(len(self._timer.layouts), self._settings.layouts)
            # Not before: to have the place may take waiting for whoever else wants it.
            self._allow_time(len(states))
            self._start(missing, note)
            self._first = self._timer.layouts[: self._settings.layouts]
            for state in states:
                if not self._left.requested:
                    self._gauge(state)
            for state in self._screen(states, note):
                self._states.remove(state)
                yield state.key, state.conclude(self._doubt_layouts(state))
            self._sort(states)
        else:
            self._allow_time(0)
        self._seek(attempt, note)
        if attempt == CONFIRMATIONS - 1:
            self._widen(note)
        self._paused = self._now()

    def settle(self, accepted: Sequence[bool]) -> None:
        """Which of the changes that p values were given of may be called so; another attempt may show the others."""
        shown, self._shown = self._shown, []
        for (state, _), is_accepted in zip(shown, accepted, strict=True):
            seen = settle(state.ratios(self._first), state.ratios(self._fresh), is_accepted, state.rule)
            state.keep(seen, self._first, self._fresh)
            state.confirmed = state.is_settled = state.look.verdict in CHANGED
        self._sought += [state for state, _ in shown if not state.confirmed]

    def conclude(self) -> Iterator[tuple[Hashable, Timing]]:
        states = self._clear()
        yield from ((state.key, state.conclude(self._doubt_layouts(state))) for state in states)

    def give_up(self, lost: LostCase) -> Iterator[CaseReport]:
        """The same where the place is lost: of what is not final nothing is known."""
        self.is_lost = True
        for state in self._clear():
            yield state.key, state.conclude(self._doubt_layouts(state)) if state.is_settled or state.failures else lost

    def leave(self) -> None:
        """Begin nothing more, for nobody waits for it. Said from another thread."""
        self._left.request()

    def _clear(self) -> list[CaseState]:
        states = self._states
        self._states, self._sought, self._shown, self._limited = [], [], [], []
        self._end = self._paused = None
        return states

    # --- the first layouts ---------------------------------------------------------------------------

    def _allow_time(self, cases: int) -> None:
        """For so many more cases. What was spent on waiting for other places takes nothing from it."""
        now, budget_s = self._now(), self._settings.budget_s
        if self._end is None:
            self._end = now + (TURNS_S + CASE_S * cases if budget_s is None else budget_s)
        elif budget_s is None and self._paused is not None:
            self._end += now - self._paused
            if cases:
                self._end = max(self._end, now) + CASE_S * cases

    def _start(self, layouts: Sequence[int], note: Note) -> None:
        if layouts:
            began = self._now()
            self._timer.start(layouts, lambda done: note("layouts", done, 2 * len(layouts)))
            if self._settings.budget_s is None and self._end is not None:
                self._end += self._now() - began

    def _gauge(self, state: CaseState) -> None:
        gauged = self._timer.gauge(state.pair)
        if not isinstance(gauged, RunTime):
            state.failures = gauged
            return
        state.pace = choose_pace(max(gauged.base_s, gauged.head_s))
        floor = floor_for(gauged.base_s, self._settings.self_test_sd)
        if not self._timer.match.alike:
            floor = max(floor, UNMATCHED_FLOOR)
        # What is too small to be called a change is the same.
        equivalence = max(self._settings.equivalence, floor)
        state.rule = StoppingRule(self._settings.alpha, floor=floor, equivalence=equivalence)

    def _screen(self, states: Sequence[CaseState], note: Note) -> Iterator[CaseState]:
        """Look at all, then again at those that are not decided. Gives those of which no more is to be found out."""
        yield from (state for state in states if state.failures)
        for number, visits in enumerate(StoppingRule.looks):
            pending = [state for state in states if state.is_open]
            for done, state in enumerate(pending):
                if self._is_over():
                    return
                note(f"look {number + 1}", done, len(pending))
                if self._sweep(state, self._first, visits):
                    state.keep(look(state.ratios(self._first), state.rule), self._first)
                if state.failures or state.look.verdict is Verdict.SAME:
                    yield state

    def _sort(self, states: Sequence[CaseState]) -> None:
        """What is to be looked for on fresh layouts, what more of them may decide, and what stays as it is."""
        for state in states:
            if state.look.verdict in CHANGED:
                state.found = state.look.layered
                state.retract()
                self._sought.append(state)
            elif state.is_open and state.look.layered is not None and not more_visits_help(state.look.layered):
                self._limited.append(state)
            else:
                state.is_settled = True

    def _sweep(self, state: CaseState, layouts: Sequence[int], visits: int) -> bool:
        """Visit all layouts, in an order that is drawn anew each time, until each was visited so often; say if it was.

        A layout whose visit is far off is visited again, until a single one cannot speak for it.
        """
        began = self._now()
        while state.count_visits(layouts) < visits and not state.failures and not self._is_over():
            self._visit(state, self._chance.sample(layouts, len(layouts)))
            newest = {layout: state.visits[layout][-1].log_ratio for layout in layouts if layout in state.visits}
            for layout in find_far_off(newest):
                self._visit(state, [layout] * (ENOUGH_FOR_MEDIAN - len(state.visits[layout])))
        state.seconds += self._now() - began
        return state.count_visits(layouts) >= visits and not state.failures

    def _visit(self, state: CaseState, layouts: Sequence[int]) -> None:
        """One after the other, until one fails or the time is over."""
        for layout in layouts:
            if state.failures or self._is_over():
                return
            outcome = self._timer.visit(layout, state.pair, state.pace)
            if isinstance(outcome, Visit):
                state.visits.setdefault(layout, []).append(reduce_visit(outcome))
            else:
                state.failures = outcome

    # --- fresh layouts -------------------------------------------------------------------------------

    def _seek(self, attempt: int, note: Note) -> None:
        """Look for changes on fresh layouts. Those for which there is no time stay undecided."""
        sought, self._sought = self._sought, []
        if not sought or not self._have_fresh_layouts(note):
            return
        for done, state in enumerate(sought):
            assert state.found is not None
            visits = max(CONFIRMING, state.count_visits(self._first) - 1) + attempt * CONFIRMING
            note("confirming", done, len(sought))
            if self._sweep(state, self._fresh, visits):
                self._shown.append((state, confirmation_p(state.ratios(self._fresh), state.found.estimate)))

    def _widen(self, note: Note) -> None:
        """What more layouts tell of cases that they limit."""
        limited, self._limited = self._limited, []
        if not limited or not self._have_fresh_layouts(note):
            return
        for done, state in enumerate(limited):
            note("more layouts", done, len(limited))
            if self._sweep(state, self._fresh, state.count_visits(self._first)):
                first, fresh = self._first, self._fresh
                state.keep(look(state.ratios((*first, *fresh)), state.rule), first, fresh)
                if state.look.verdict in CHANGED:
                    # What only all layouts together show has been seen by none that did not help to find it.
                    state.retract()
                    state.confirmed = False
            state.is_settled = True

    def _have_fresh_layouts(self, note: Note) -> bool:
        """As many as there were at first; none if there is no time for them."""
        if not self._fresh and not self._is_over():
            number = len(self._first)
            self._start(range(len(self._timer.layouts), 2 * number), note)
            self._fresh = self._timer.layouts[number : 2 * number]
        return bool(self._fresh)

    def _is_over(self) -> bool:
        is_left = self._stop.requested or self._left.requested
        return is_left or (self._end is not None and self._now() > self._end)

    def _doubt_layouts(self, state: CaseState) -> tuple[ComparisonCaveat, ...]:
        found: list[ComparisonCaveat] = []
        match, layered = self._timer.match, state.look.layered
        if not match.alike:
            found.append(Unmatched("personality" if match.refused else "libraries", match.libraries))
        # Those that the interval is of: fresh ones may have been added.
        layouts = self._settings.layouts if layered is None else layered.layouts
        if layouts < FEWEST_LAYOUTS:
            found.append(FewLayouts(layouts, FEWEST_LAYOUTS))
        if layered is not None and (layered.layout_sd or 0.0) > NOTABLE_LAYOUT_SD:
            found.append(LayoutSensitive(layered.layout_sd or 0.0))
        return tuple(found)
