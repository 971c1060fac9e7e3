"""Reasons to doubt a result, as values. They carry numbers only; `report` puts them into words."""

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
]
