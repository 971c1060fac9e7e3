"""Reasons to doubt or refuse a result or a comparison, as numbers and names; `report` puts them into words."""

from __future__ import annotations

import dataclasses
from typing import ClassVar, Union


@dataclasses.dataclass(frozen=True)
class FewSamples:
    """So few samples that no interval of the median can be given."""

    kind: ClassVar[str] = "few_samples"
    samples: int
    wanted: int


@dataclasses.dataclass(frozen=True)
class Variation:
    """The middle half of the samples is spread widely."""

    kind: ClassVar[str] = "variation"
    iqr_share: float


@dataclasses.dataclass(frozen=True)
class Drift:
    """The samples rise or fall with time; `change` is the relative change from the first to the last third."""

    kind: ClassVar[str] = "drift"
    change: float


@dataclasses.dataclass(frozen=True)
class TwoModes:
    """The samples fall into two groups; `slow_share` of them are in the slow one."""

    kind: ClassVar[str] = "two_modes"
    fast_s: float
    slow_s: float
    slow_share: float


@dataclasses.dataclass(frozen=True)
class HighOverhead:
    """Reading the clock and starting the loop is a visible share of each block."""

    kind: ClassVar[str] = "high_overhead"
    share: float


@dataclasses.dataclass(frozen=True)
class OptimisedAway:
    """The compiler left nothing of the statement: what was measured is an empty loop."""

    kind: ClassVar[str] = "optimised_away"


@dataclasses.dataclass(frozen=True)
class UnstableCount:
    """The count depends on the layout of memory more than a well-behaved statement's does."""

    kind: ClassVar[str] = "unstable_count"
    spread: float


@dataclasses.dataclass(frozen=True)
class SeveralThreads:
    """Threads share their work as they happen to be scheduled, so that a count does not repeat exactly."""

    kind: ClassVar[str] = "several_threads"
    threads: int


@dataclasses.dataclass(frozen=True)
class OtherInstructionSet:
    """torch chose other kernels under Valgrind than it does outside."""

    kind: ClassVar[str] = "other_instruction_set"
    native: str
    counted: str


@dataclasses.dataclass(frozen=True)
class OtherPlaces:
    """Rounds from places of another kind, of which nothing is in the result: what they measured is not the same.

    `metric` is what was measured there, `wall` or `count`; `of` is how many rounds there are in all. `what` has some of
    `torch`, `torch_commit`, `torch_build`, `capability`, `valgrind`, `hash_seed`, `cpu`.
    """

    kind: ClassVar[str] = "other_places"
    metric: str
    rounds: int
    of: int
    what: tuple[str, ...]
    """All in which they differ from those that the result is of."""
    nodes: tuple[str, ...] = ()
    """Names of those that they come from; none for the run's own machine."""


Caveat = Union[
    OptimisedAway,
    FewSamples,
    Variation,
    Drift,
    TwoModes,
    HighOverhead,
    UnstableCount,
    SeveralThreads,
    OtherInstructionSet,
    OtherPlaces,
]


@dataclasses.dataclass(frozen=True)
class LayoutSensitive:
    """The statement's time moves with the layout of memory: standard deviation of the log-ratio over layouts."""

    kind: ClassVar[str] = "layout_sensitive"
    layout_sd: float


@dataclasses.dataclass(frozen=True)
class FewLayouts:
    """Too few layouts of memory for an interval that can be relied on."""

    kind: ClassVar[str] = "few_layouts"
    layouts: int
    wanted: int


@dataclasses.dataclass(frozen=True)
class Unmatched:
    """The two sides could not be laid out alike in memory, so that the interval is wider; `reason` says why.

    Reasons are `libraries`, for other native libraries, and `personality`, for a system that does not allow it.
    """

    kind: ClassVar[str] = "unmatched"
    reason: str
    libraries: tuple[str, ...] = ()
    """Names of some that differ."""


@dataclasses.dataclass(frozen=True)
class SlowSpells:
    """The machine was slow for a part of the time; the ratio holds, absolute times do not."""

    kind: ClassVar[str] = "slow_spells"
    share: float
    factor: float


@dataclasses.dataclass(frozen=True)
class WildPairs:
    """Many pairs of blocks differ far more than usual."""

    kind: ClassVar[str] = "wild_pairs"
    share: float


@dataclasses.dataclass(frozen=True)
class PageFaults:
    """Many blocks were disturbed by the first use of pages."""

    kind: ClassVar[str] = "page_faults"
    share: float


@dataclasses.dataclass(frozen=True)
class Interrupted:
    """Many blocks were interrupted by other programs."""

    kind: ClassVar[str] = "interrupted"
    share: float


@dataclasses.dataclass(frozen=True)
class TooShort:
    """A run takes so little time that the loop around it is a large part of what was timed."""

    kind: ClassVar[str] = "too_short"
    seconds: float


@dataclasses.dataclass(frozen=True)
class TooLong:
    """A run takes so long that disturbances of the machine are not cancelled by taking turns."""

    kind: ClassVar[str] = "too_long"
    seconds: float


@dataclasses.dataclass(frozen=True)
class ManyThreads:
    """Several threads: neither times nor counts repeat as those of one do."""

    kind: ClassVar[str] = "many_threads"
    threads: int


@dataclasses.dataclass(frozen=True)
class NotInTurns:
    """Both sides were timed one after the other, whatever the machine did meanwhile."""

    kind: ClassVar[str] = "not_in_turns"


@dataclasses.dataclass(frozen=True)
class FewRounds:
    """Too few processes timed it on one side to know how far processes are apart."""

    kind: ClassVar[str] = "few_rounds"
    rounds: int
    wanted: int


@dataclasses.dataclass(frozen=True)
class LeftOut:
    """Of one side, rounds that were measured in places of another kind have no part in the comparison.

    `metric` is what was measured there, `wall` or `count`; `of` is how many rounds that side has in all.
    """

    kind: ClassVar[str] = "left_out"
    side: str
    metric: str
    rounds: int
    of: int


@dataclasses.dataclass(frozen=True)
class NotTimed:
    """It was only counted. The reason is `compiles`, for what every process would have to compile anew."""

    kind: ClassVar[str] = "not_timed"
    reason: str


@dataclasses.dataclass(frozen=True)
class Incomparable:
    """Something differs that changes results by itself, and the comparison was made nevertheless.

    `what` is one of `cpu`, `capability`, `hash_seed`, `definition`, `layouts`, `valgrind`, `variables`.
    """

    kind: ClassVar[str] = "incomparable"
    what: str
    base: str
    head: str


ComparisonCaveat = Union[
    Incomparable,
    NotTimed,
    Unmatched,
    FewLayouts,
    LayoutSensitive,
    NotInTurns,
    FewRounds,
    LeftOut,
    ManyThreads,
    TooShort,
    TooLong,
    SlowSpells,
    WildPairs,
    PageFaults,
    Interrupted,
]
