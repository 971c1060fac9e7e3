"""Reasons to doubt or refuse a result or a comparison, as numbers and names; `report` puts them into words."""

from __future__ import annotations

import dataclasses
from typing import Union

from torchmark.model.plain import Tagged


@dataclasses.dataclass(frozen=True)
class FewSamples(Tagged):
    """So few samples that no interval of the median can be given."""

    samples: int
    wanted: int


@dataclasses.dataclass(frozen=True)
class Variation(Tagged):
    """The middle half of the samples is spread widely."""

    iqr_share: float


@dataclasses.dataclass(frozen=True)
class Drift(Tagged):
    """The samples rise or fall with time; `change` is the relative change from the first to the last third."""

    change: float


@dataclasses.dataclass(frozen=True)
class TwoModes(Tagged):
    """The samples fall into two groups; `slow_share` of them are in the slow one."""

    fast_s: float
    slow_s: float
    slow_share: float


@dataclasses.dataclass(frozen=True)
class HighOverhead(Tagged):
    """Reading the clock and starting the loop is a visible share of each block."""

    share: float


@dataclasses.dataclass(frozen=True)
class OptimisedAway(Tagged):
    """The compiler left nothing of the statement: what was measured is an empty loop."""


@dataclasses.dataclass(frozen=True)
class UnstableCount(Tagged):
    """The count depends on the layout of memory more than a well-behaved statement's does."""

    spread: float


@dataclasses.dataclass(frozen=True)
class SeveralThreads(Tagged):
    """Threads share their work as they happen to be scheduled, so that a count does not repeat exactly."""

    threads: int


@dataclasses.dataclass(frozen=True)
class OtherInstructionSet(Tagged):
    """torch chose other kernels under Valgrind than it does outside."""

    native: str
    counted: str


@dataclasses.dataclass(frozen=True)
class OtherPlaces(Tagged):
    """Rounds from places of another kind, of which nothing is in the result: what they measured is not the same.

    `metric` is what was measured there, `wall` or `count`; `of` is how many rounds there are in all. `what` has some of
    `torch`, `torch_commit`, `torch_build`, `capability`, `valgrind`, `hash_seed`, `cpu`.
    """

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
class LayoutSensitive(Tagged):
    """The statement's time moves with the layout of memory: standard deviation of the log-ratio over layouts."""

    layout_sd: float


@dataclasses.dataclass(frozen=True)
class FewLayouts(Tagged):
    """Too few layouts of memory for an interval that can be relied on."""

    layouts: int
    wanted: int


@dataclasses.dataclass(frozen=True)
class Unmatched(Tagged):
    """The two sides could not be laid out alike in memory, so that the interval is wider; `reason` says why.

    Reasons are `libraries`, for other native libraries, and `personality`, for a system that does not allow it.
    """

    reason: str
    libraries: tuple[str, ...] = ()
    """Names of some that differ."""


@dataclasses.dataclass(frozen=True)
class SlowSpells(Tagged):
    """The machine was slow for a part of the time; the ratio holds, absolute times do not."""

    share: float
    factor: float


@dataclasses.dataclass(frozen=True)
class WildPairs(Tagged):
    """Many pairs of blocks differ far more than usual."""

    share: float


@dataclasses.dataclass(frozen=True)
class PageFaults(Tagged):
    """Many blocks were disturbed by the first use of pages."""

    share: float


@dataclasses.dataclass(frozen=True)
class Interrupted(Tagged):
    """Many blocks were interrupted by other programs."""

    share: float


@dataclasses.dataclass(frozen=True)
class TooShort(Tagged):
    """A run takes so little time that the loop around it is a large part of what was timed."""

    seconds: float


@dataclasses.dataclass(frozen=True)
class TooLong(Tagged):
    """A run takes so long that disturbances of the machine are not cancelled by taking turns."""

    seconds: float


@dataclasses.dataclass(frozen=True)
class ManyThreads(Tagged):
    """Several threads: neither times nor counts repeat as those of one do."""

    threads: int


@dataclasses.dataclass(frozen=True)
class NotInTurns(Tagged):
    """Both sides were timed one after the other, whatever the machine did meanwhile."""


@dataclasses.dataclass(frozen=True)
class FewRounds(Tagged):
    """Too few processes timed it on one side to know how far processes are apart."""

    rounds: int
    wanted: int


@dataclasses.dataclass(frozen=True)
class LeftOut(Tagged):
    """Of one side, rounds that were measured in places of another kind have no part in the comparison.

    `metric` is what was measured there, `wall` or `count`; `of` is how many rounds that side has in all.
    """

    side: str
    metric: str
    rounds: int
    of: int


@dataclasses.dataclass(frozen=True)
class NotTimed(Tagged):
    """It was only counted. The reason is `compiles`, for what every process would have to compile anew."""

    reason: str


@dataclasses.dataclass(frozen=True)
class Incomparable(Tagged):
    """Something differs that changes results by itself, and the comparison was made nevertheless.

    `what` is one of `cpu`, `capability`, `hash_seed`, `definition`, `layouts`, `valgrind`, `variables`.
    """

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
