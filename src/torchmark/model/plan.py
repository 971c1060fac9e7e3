"""What is to be measured, in the order in which results are listed; and the machines that took part."""

from __future__ import annotations

import dataclasses
import enum

from torchmark.model.case import Case
from torchmark.model.job import DEFAULT_LAYOUTS


@dataclasses.dataclass(frozen=True)
class Node:
    """One machine by the name that its cluster has for it, and what its times depend on."""

    name: str
    cpu_model: str | None = None
    """None where the machine does not tell."""


@dataclasses.dataclass(frozen=True)
class NodeKind:
    """Nodes whose results may be taken together, and what tells them from the others of a run."""

    traits: tuple[tuple[str, str | None], ...]
    """Such as `("capability", "AVX2")`; the words are those of `OtherPlaces`."""
    nodes: tuple[Node, ...]


# How many memory layouts the cases of a suite are counted in unless somebody says otherwise. Enough for a median and a
# spread, and fewer than for a single statement: each adds more than half of what the first takes.
SUITE_LAYOUTS = 3


class Metric(enum.Enum):
    """What is measured of a case."""

    WALL = "wall"
    """Seconds by the clock."""
    COUNT = "count"
    """Instructions."""


@dataclasses.dataclass(frozen=True)
class Target:
    """An interpreter with its torch, under the name that results are told apart by. None is the program's own."""

    name: str = ""
    python: str | None = None


@dataclasses.dataclass(frozen=True)
class Sampling:
    """How each case is measured, the same for all of a run."""

    metrics: tuple[Metric, ...] = (Metric.WALL, Metric.COUNT)
    min_run_time_s: float = 0.2
    layouts: tuple[int, ...] = DEFAULT_LAYOUTS
    """Seeds of the memory layouts that counts are taken in."""
    repeat: int = 1
    """How often all of it is done."""
    timeout_s: float = 600.0
    """For each process that is started."""
    number: int | None = None
    """How many runs make a block, and how many blocks are timed, where that is fixed; `min_run_time_s` is then not
    heeded. Both are there, or neither."""
    blocks: int | None = None


@dataclasses.dataclass(frozen=True)
class Order:
    """One result that is wanted. `round` numbers the repetitions from 0."""

    case: Case
    target: Target
    metric: Metric
    round: int = 0


@dataclasses.dataclass(frozen=True)
class Plan:
    """All that is wanted."""

    cases: tuple[Case, ...]
    targets: tuple[Target, ...] = (Target(),)
    sampling: Sampling = Sampling()

    @property
    def orders(self) -> tuple[Order, ...]:
        """Round by round, case by case, so that targets are compared under the same conditions."""
        return tuple(
            Order(case, target, metric, number)
            for number in range(self.sampling.repeat)
            for case in self.cases
            for metric in self.sampling.metrics
            for target in self.targets
        )
