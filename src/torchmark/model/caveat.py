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


Caveat = Union[FewSamples, Variation, Drift, TwoModes, HighOverhead]
