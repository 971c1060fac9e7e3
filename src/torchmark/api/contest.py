"""One bout as far as it has come, and what is told of it in the end."""

from __future__ import annotations

import dataclasses
from collections.abc import Hashable, Sequence

from torchmark.analysis.sequential import Look, Rule, predict_visits, to_evidence
from torchmark.analysis.visits import Reduced, doubt_visits
from torchmark.model.bout import Bout, Pace
from torchmark.model.comparison import ComparisonCaveat
from torchmark.model.judgement import LayoutVisits, SideFailure, TimeEvidence, Verdict
from torchmark.runner.arena import Failures
from torchmark.stats.layered import Layered, find_centre, more_visits_help
from torchmark.stats.order import quantile

CHANGED = (Verdict.SLOWER, Verdict.FASTER)


@dataclasses.dataclass(frozen=True)
class Timing:
    """What the clock says of one bout."""

    evidence: TimeEvidence | None
    caveats: tuple[ComparisonCaveat, ...] = ()
    failures: tuple[SideFailure, ...] = ()


@dataclasses.dataclass(frozen=True)
class Lost:
    """A bout that was not decided, because the place where it was held is gone; `reason` is a sentence."""

    reason: str


class Contest:
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
        caveats = (*doubts, *doubt_visits(reduced, self.bout.base.threads))
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
    return LayoutVisits(ratios, find_centre(ratios), fresh, base_s, head_s)
