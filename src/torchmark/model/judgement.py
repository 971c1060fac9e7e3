"""What is said of a case after comparing two of its measurements, and the evidence that it is said on.

Every number is of one run of the statement, head against base. Ratios are natural logarithms: 0.01 is 1 % more.
"""

from __future__ import annotations

import dataclasses
import enum

from torchmark.model.caveats import ComparisonCaveat
from torchmark.model.outcome import Failure
from torchmark.model.plan import Case

# A change as large as half of the interval is found every other time. With 80 % it is found if it is larger by the 0.8
# quantile of t, 0.92 for six layouts, which is a quarter of the 4.0 that the interval's half is at a look.
VISIBLE = 1.25


class Verdict(enum.Enum):
    """What became of a case."""

    FASTER = "faster"
    SLOWER = "slower"
    SAME = "same"
    """Equivalence was shown; absence of evidence is UNDECIDED."""
    UNDECIDED = "undecided"
    FAILED = "failed"
    """It could not be measured, on one side at least."""


class Cause(enum.Enum):
    """How the kinds of evidence agree: instructions and allocations on one side, time on the other."""

    UNCHANGED = "unchanged"
    """The same instructions, the same time: the strongest statement there is."""
    CONFIRMED = "confirmed"
    """Both changed, and in the same direction."""
    BELOW_RESOLUTION = "below_resolution"
    """Other instructions, but the clock cannot tell."""
    NOT_INSTRUCTIONS = "not_instructions"
    """The same instructions take another time, on fresh layouts of memory too: caches, branches, data."""
    LAYOUT = "layout"
    """The same instructions, and a time that depends on where things lie in memory."""
    TRADE_OFF = "trade_off"
    """More instructions in less time, or fewer in more."""
    TIME_ALONE = "time_alone"
    """There are no counts."""
    COUNT_ALONE = "count_alone"
    """There are no times."""
    OPEN = "open"
    """Nothing is shown either way."""


class Side(enum.Enum):
    """Which of the two."""

    BASE = "base"
    HEAD = "head"


@dataclasses.dataclass(frozen=True)
class LayoutVisits:
    """What the visits of one layout of memory showed, in their order: log-ratios of head against base."""

    log_ratios: tuple[float, ...]
    centre: float
    """What stands for all of them."""
    fresh: bool = False
    """Whether the layout was added once the first ones had been looked at, to see a change again or to decide."""
    base_s: tuple[float, ...] = ()
    """Seconds of a run in each visit, where the machine is fast; nothing if they were not kept."""
    head_s: tuple[float, ...] = ()


@dataclasses.dataclass(frozen=True)
class TimeEvidence:
    """What the clock says: `log_ratio` with an interval of this confidence."""

    verdict: Verdict
    """What it would say alone."""
    log_ratio: float
    low: float
    high: float
    confidence: float
    base_s: float
    """Median seconds of a run; of times in turns, only to translate the ratio into seconds."""
    head_s: float
    floor: float
    """A smaller log-ratio is not called a change."""
    equivalence: float
    """An interval within plus and minus this is called the same."""
    p_value: float | None = None
    """Two-sided, of no change at all, at the last look."""
    layouts: int = 0
    """In how many layouts of memory both sides ran in turns; 0 if they did not run in turns."""
    sweeps: int = 0
    """How often each layout was visited."""
    layout_sd: float | None = None
    """How far layouts are apart, beyond what visits of one layout are."""
    fork_sd: float | None = None
    """How far visits of one layout are apart."""
    confirmed: bool | None = None
    """Whether a change was seen again on fresh layouts; None if that was not tried."""
    seconds: float = 0.0
    needed_s: float | None = None
    """How much longer it might take to decide, where it is not decided and more time would help."""
    visits: tuple[LayoutVisits, ...] = ()
    """What the interval was made from, layout by layout; nothing if both sides did not run in turns."""

    @property
    def smallest_visible(self) -> float:
        """The log-ratio that would be found four times in five, from the width of the interval."""
        return VISIBLE * (self.high - self.low) / 2

    def list_times(self, side: Side) -> list[float]:
        """Seconds of a run on one side, one for each visit."""
        return [time for one in self.visits for time in (one.base_s if side is Side.BASE else one.head_s)]


@dataclasses.dataclass(frozen=True)
class Spread:
    """A count: the median over layouts of memory, and the least and the greatest of them."""

    value: float
    low: float
    high: float


@dataclasses.dataclass(frozen=True)
class CountEvidence:
    """What counting says. Allocations are calls into the malloc family, and of torch's own allocator."""

    base: Spread
    head: Spread
    base_allocations: float
    head_allocations: float
    base_tensor_allocations: float
    head_tensor_allocations: float
    steady_delta: float | None = None
    """How many instructions more there are where addresses do not matter; None where that is not known."""

    @property
    def delta(self) -> float:
        return self.head.value - self.base.value

    @property
    def ratio(self) -> float:
        """What part of base's that is; 0 where there were none."""
        return self.delta / self.base.value if self.base.value else 0.0


@dataclasses.dataclass(frozen=True)
class FunctionChange:
    """One function's instructions on both sides, and the stage of a call that it belongs to."""

    function: str
    stage: str
    base: float
    head: float

    @property
    def delta(self) -> float:
        return self.head - self.base


@dataclasses.dataclass(frozen=True)
class StageChange:
    """The instructions of all functions of a stage."""

    stage: str
    base: float
    head: float

    @property
    def delta(self) -> float:
        return self.head - self.base


@dataclasses.dataclass(frozen=True)
class Explanation:
    """Where a difference in instructions comes from. Functions, and stages, add up to all of both sides."""

    functions: tuple[FunctionChange, ...]
    """Those that differ most first; all of them, also those that are alike."""
    stages: tuple[StageChange, ...]
    """In the order in which a call passes through them."""


@dataclasses.dataclass(frozen=True)
class SideFailure:
    """What failed on one side."""

    side: Side
    failure: Failure


@dataclasses.dataclass(frozen=True)
class CaseJudgement:
    """What is said of one case, and why."""

    case: Case
    verdict: Verdict
    cause: Cause
    time: TimeEvidence | None = None
    count: CountEvidence | None = None
    explanation: Explanation | None = None
    caveats: tuple[ComparisonCaveat, ...] = ()
    failures: tuple[SideFailure, ...] = ()
    base_case: Case | None = None
    """What it is held against, where that is another statement."""
