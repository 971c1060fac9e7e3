"""Reasons to doubt a comparison, or to refuse it. They carry numbers and names only; `report` puts them into words."""

from __future__ import annotations

import dataclasses
from typing import ClassVar, Union


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
