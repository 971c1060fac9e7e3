"""Reasons to doubt a result, as values. They carry numbers and names only; `report` puts them into words."""

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
