"""Has statements compared in turns until each is decided: who is visited next, when to look, when to stop.

A change is called one only after fresh layouts of memory, which had no part in finding it, have shown it again.
"""

from __future__ import annotations

import dataclasses
import random
import time
from collections.abc import Callable, Generator, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Protocol

from torchmark.analysis.sequential import (
    CONFIRM_RATE,
    Look,
    Rule,
    confirmation_p,
    floor_for,
    look,
    predict_visits,
    settle,
    to_evidence,
)
from torchmark.analysis.visits import Reduced, choose_pace, doubt_visits, find_far_off, reduce_visit
from torchmark.model.bout import Bout, Gauge, Pace, Visit
from torchmark.model.comparison import ComparisonCaveat, FewLayouts, LayoutSensitive, Unmatched
from torchmark.model.judgement import LayoutVisits, SideFailure, TimeEvidence, Verdict
from torchmark.runner.arena import Failures
from torchmark.runner.backend import Stop
from torchmark.runner.layouts import Match
from torchmark.stats.layered import ENOUGH_FOR_MEDIAN, Layered, find_centre, more_visits_help
from torchmark.stats.multiple import benjamini_hochberg
from torchmark.stats.order import quantile

# Six layouts that match give an interval of plus and minus 4 ns where a run takes 1 us; with fewer than four the
# t distribution's tails eat up what is gained.
LAYOUTS = 6
FEWEST_LAYOUTS = 4
# From here on it is worth saying that time depends on the layout.
NOTABLE_LAYOUT_SD = 0.01
# Equal code takes up to 1 % more or less time in another file, by where that happens to lie in real memory. Layouts do
# not show this, for all of them have it; so it takes twice that where native libraries are not the same files.
UNMATCHED_FLOOR = 0.02
# What may be spent besides so much for each case: starting fresh layouts takes this long.
STARTING_S = 30.0
CASE_S = 3.0

# A change is looked for in so many visits of each fresh layout at the least, and once more in as many: visits are off
# now and then, and what is there shall not be lost by that.
CONFIRMING = 2
CONFIRMATIONS = 2

CHANGED = (Verdict.SLOWER, Verdict.FASTER)


class Place(Protocol):
    """Where bouts take place; `runner.arena.Arena` is the real one."""

    @property
    def layouts(self) -> tuple[int, ...]:
        """Numbers of the layouts that there are."""

    @property
    def match(self) -> Match:
        """Whether both sides are laid out alike."""

    def start(self, layouts: Iterable[int], note: Callable[[int], None] = ...) -> None:
        """Have more of them."""

    def gauge(self, bout: Bout) -> Gauge | Failures:
        """How long a run takes on each side."""

    def visit(self, layout: int, bout: Bout, pace: Pace) -> Visit | Failures:
        """Both sides in turns."""


@dataclasses.dataclass(frozen=True)
class Settings:
    """How sure to be, and how long to try."""

    alpha: float = Rule.alpha
    equivalence: float = Rule.equivalence
    layouts: int = LAYOUTS
    budget_s: float | None = None
    """For all cases together; by default `CASE_S` for each, and `STARTING_S`."""
    self_test_sd: float | None = None
    """How far comparisons of a build with itself spread on this machine, if that is known."""


DEFAULTS = Settings()


@dataclasses.dataclass(frozen=True)
class Timing:
    """What the clock says of one bout."""

    evidence: TimeEvidence | None
    caveats: tuple[ComparisonCaveat, ...] = ()
    failures: tuple[SideFailure, ...] = ()


class _Contest:
    """One bout, as far as it has come."""

    def __init__(self, key: Hashable, bout: Bout) -> None:
        self.key = key
        self.bout = bout
        self.pace = Pace(1, 1, 1)
        self.rule = Rule()
        self.visits: dict[int, list[Reduced]] = {}
        self.look = Look(Verdict.UNDECIDED)
        self.seen: tuple[LayoutVisits, ...] = ()
        """The visits that the look is made from."""
        self.found: Layered | None = None
        """What the first layouts showed, where that was a change."""
        self.failures: Failures = ()
        self.confirmed: bool | None = None
        self.seconds = 0.0

    @property
    def is_open(self) -> bool:
        return not self.failures and self.look.verdict is Verdict.UNDECIDED

    def ratios(self, layouts: Sequence[int]) -> list[list[float]]:
        return [[visit.log_ratio for visit in self.visits.get(layout, ())] for layout in layouts]

    def keep(self, look: Look, first: Sequence[int], fresh: Sequence[int] = ()) -> None:
        """A look, and which visits it has seen: all that there are of these layouts."""
        self.look = look
        self.seen = tuple(
            _gather(self.visits[layout], fresh=is_fresh)
            for layouts, is_fresh in ((first, False), (fresh, True))
            for layout in layouts
            if layout in self.visits
        )

    def count_visits(self, layouts: Sequence[int]) -> int:
        return min((len(self.visits.get(layout, ())) for layout in layouts), default=0)


class Referee:
    """Compares bouts in one place."""

    def __init__(
        self,
        place: Place,
        settings: Settings = DEFAULTS,
        *,
        stop: Stop | None = None,
        note: Callable[[str, int, int], None] = lambda what, done, of: None,
        now: Callable[[], float] = time.monotonic,
        seed: int = 0,
    ) -> None:
        """`note` hears what is being done, how much of it is done, and of how much. `now` is a clock in seconds."""
        self._place = place
        self._settings = settings
        self._stop = stop or Stop()
        self._note = note
        self._now = now
        self._chance = random.Random(seed)
        self._end = 0.0

    def decide(self, bouts: Mapping[Hashable, Bout]) -> Generator[tuple[Hashable, Timing], None, None]:
        """What the clock says of each, as soon as that is final. Once stopping is requested, what is known so far."""
        contests = [_Contest(key, bout) for key, bout in bouts.items()]
        budget_s = self._settings.budget_s
        self._end = self._now() + (STARTING_S + CASE_S * len(contests) if budget_s is None else budget_s)
        first = self._first_layouts()
        for contest in contests:
            self._gauge(contest)
        told = set()
        for contest in self._screen(contests, first):
            told.add(contest)
            yield contest.key, self._conclude(contest)
        changed = [contest for contest in contests if contest.look.verdict in CHANGED]
        limited = [contest for contest in contests if contest.is_open and _is_limited_by_layouts(contest.look)]
        if changed or limited:
            self._look_elsewhere(changed, limited, first)
        for contest in contests:
            if contest not in told:
                yield contest.key, self._conclude(contest)

    # --- the first layouts ---------------------------------------------------------------------------

    def _first_layouts(self) -> tuple[int, ...]:
        missing = range(len(self._place.layouts), self._settings.layouts)
        self._start(missing)
        return self._place.layouts[: self._settings.layouts]

    def _start(self, layouts: Sequence[int]) -> None:
        if layouts:
            self._place.start(layouts, lambda done: self._note("layouts", done, 2 * len(layouts)))

    def _gauge(self, contest: _Contest) -> None:
        gauged = self._place.gauge(contest.bout)
        if not isinstance(gauged, Gauge):
            contest.failures = gauged
            return
        contest.pace = choose_pace(max(gauged.base_s, gauged.head_s))
        floor = floor_for(gauged.base_s, self._settings.self_test_sd)
        if not self._place.match.alike:
            floor = max(floor, UNMATCHED_FLOOR)
        # What is too small to be called a change is the same.
        equivalence = max(self._settings.equivalence, floor)
        contest.rule = Rule(self._settings.alpha, floor=floor, equivalence=equivalence)

    def _screen(self, contests: Sequence[_Contest], layouts: Sequence[int]) -> Iterator[_Contest]:
        """Look at all, then again at those that are not decided. Gives those of which no more is to be found out."""
        yield from (contest for contest in contests if contest.failures)
        for number, visits in enumerate(Rule.looks):
            pending = [contest for contest in contests if contest.is_open]
            for done, contest in enumerate(pending):
                if self._is_over():
                    return
                self._note(f"look {number + 1}", done, len(pending))
                self._sweep(contest, layouts, visits)
                if contest.failures:
                    yield contest
                elif contest.count_visits(layouts) >= visits:
                    contest.keep(look(contest.ratios(layouts), contest.rule), layouts)
                    if contest.look.verdict is Verdict.SAME:
                        yield contest

    def _sweep(self, contest: _Contest, layouts: Sequence[int], visits: int) -> None:
        """Visit all layouts, in an order that is drawn anew each time, until each was visited so often.

        A layout whose visit is far off is visited again, until a single one cannot speak for it.
        """
        began = self._now()
        while contest.count_visits(layouts) < visits and not contest.failures and not self._is_over():
            self._visit(contest, self._chance.sample(layouts, len(layouts)))
            newest = {layout: contest.visits[layout][-1].log_ratio for layout in layouts if layout in contest.visits}
            for layout in find_far_off(newest):
                missing = ENOUGH_FOR_MEDIAN - len(contest.visits[layout])
                self._visit(contest, [layout] * missing)
        contest.seconds += self._now() - began

    def _visit(self, contest: _Contest, layouts: Sequence[int]) -> None:
        """One after the other, until one fails or the time is over."""
        for layout in layouts:
            if contest.failures or self._is_over():
                return
            outcome = self._place.visit(layout, contest.bout, contest.pace)
            if isinstance(outcome, Visit):
                contest.visits.setdefault(layout, []).append(reduce_visit(outcome))
            else:
                contest.failures = outcome

    # --- fresh layouts -------------------------------------------------------------------------------

    def _look_elsewhere(self, changed: Sequence[_Contest], limited: Sequence[_Contest], first: tuple[int, ...]) -> None:
        """Whether changes are seen again, and what more layouts tell of cases that they limit."""
        for contest in changed:
            # Not before that has been shown.
            contest.found = contest.look.layered
            contest.look = dataclasses.replace(contest.look, verdict=Verdict.UNDECIDED)
        fresh = self._fresh_layouts(len(first))
        if not fresh:
            return
        pending = list(changed)
        for attempt in range(CONFIRMATIONS):
            pending = self._confirm(pending, first, fresh, attempt)
        for done, contest in enumerate(limited):
            self._note("more layouts", done, len(limited))
            visits = contest.count_visits(first)
            self._sweep(contest, fresh, visits)
            if contest.count_visits(fresh) >= visits and not contest.failures:
                self._look_at_all(contest, first, fresh)

    def _confirm(
        self, changed: Sequence[_Contest], first: Sequence[int], fresh: Sequence[int], attempt: int
    ) -> list[_Contest]:
        """Look for changes on fresh layouts; those that are not seen there, which another attempt may show."""
        shown: list[tuple[_Contest, float]] = []
        for done, contest in enumerate(changed):
            assert contest.found is not None
            visits = max(CONFIRMING, contest.count_visits(first) - 1) + attempt * CONFIRMING
            self._note("confirming", done, len(changed))
            self._sweep(contest, fresh, visits)
            if contest.count_visits(fresh) >= visits and not contest.failures:
                shown.append((contest, confirmation_p(contest.ratios(fresh), contest.found.estimate)))
        accepted = benjamini_hochberg([p for _, p in shown], CONFIRM_RATE / CONFIRMATIONS)
        for (contest, _), is_accepted in zip(shown, accepted, strict=True):
            seen = settle(contest.ratios(first), contest.ratios(fresh), is_accepted, contest.rule)
            contest.keep(seen, first, fresh)
            contest.confirmed = contest.look.verdict in CHANGED
        return [contest for contest, _ in shown if not contest.confirmed]

    def _look_at_all(self, contest: _Contest, first: Sequence[int], fresh: Sequence[int]) -> None:
        """A change that only all layouts together show has been seen by none that did not help to find it."""
        contest.keep(look(contest.ratios((*first, *fresh)), contest.rule), first, fresh)
        if contest.look.verdict in CHANGED:
            contest.look = dataclasses.replace(contest.look, verdict=Verdict.UNDECIDED)
            contest.confirmed = False

    def _fresh_layouts(self, number: int) -> tuple[int, ...]:
        """As many as there were at first; none if there is no time for them."""
        if self._is_over():
            return ()
        missing = range(len(self._place.layouts), 2 * number)
        self._start(missing)
        return self._place.layouts[number : 2 * number]

    # --- the end -------------------------------------------------------------------------------------

    def _is_over(self) -> bool:
        return self._stop.requested or self._now() > self._end

    def _conclude(self, contest: _Contest) -> Timing:
        if contest.failures:
            return Timing(None, failures=contest.failures)
        reduced = [visit for visits in contest.visits.values() for visit in visits]
        caveats = (*self._doubt_layouts(contest), *doubt_visits(reduced, contest.bout.base.threads))
        if not reduced:
            return Timing(None, caveats)
        evidence = to_evidence(
            contest.look,
            contest.rule,
            base_s=quantile(sorted(visit.base_s for visit in reduced), 0.5),
            head_s=quantile(sorted(visit.head_s for visit in reduced), 0.5),
            seconds=contest.seconds,
            confirmed=contest.confirmed,
            needed_s=_predict_s(contest, len(reduced)),
            visits=contest.seen,
        )
        return Timing(evidence, caveats)

    def _doubt_layouts(self, contest: _Contest) -> tuple[ComparisonCaveat, ...]:
        found: list[ComparisonCaveat] = []
        match, layered = self._place.match, contest.look.layered
        if not match.alike:
            found.append(Unmatched("personality" if match.refused else "libraries", match.libraries))
        if self._settings.layouts < FEWEST_LAYOUTS:
            found.append(FewLayouts(self._settings.layouts, FEWEST_LAYOUTS))
        if layered is not None and (layered.layout_sd or 0.0) > NOTABLE_LAYOUT_SD:
            found.append(LayoutSensitive(layered.layout_sd or 0.0))
        return tuple(found)


def _gather(visits: Sequence[Reduced], *, fresh: bool) -> LayoutVisits:
    """The visits of one layout."""
    ratios = tuple(visit.log_ratio for visit in visits)
    base_s, head_s = (tuple(times) for times in zip(*((visit.base_s, visit.head_s) for visit in visits), strict=True))
    return LayoutVisits(ratios, find_centre(ratios), fresh, base_s, head_s)


def _is_limited_by_layouts(seen: Look) -> bool:
    return seen.layered is not None and not more_visits_help(seen.layered)


def _predict_s(contest: _Contest, done: int) -> float | None:
    """How much longer it might take to decide; None where it is decided, or visits of the same layouts will not do."""
    layered = contest.look.layered
    if contest.look.verdict is not Verdict.UNDECIDED or layered is None or contest.confirmed is False:
        return None
    needed = predict_visits(contest.look, contest.rule)
    if needed is None:
        return None
    return max(0, needed - layered.visits) * layered.layouts * contest.seconds / done
