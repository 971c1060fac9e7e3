"""Statements compared over many inputs: on how many of them which is faster, and by how much."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Sequence

from torchmark.model.inputs import FuzzedInput
from torchmark.model.task import Times
from torchmark.stats import distribution
from torchmark.stats.intervals import PairedRatio, compare_paired

# What is not worth speaking of, and may be an accident of where things lie in memory.
NOTABLE = math.log(1.03)
# Where there are too few rounds for an interval, the effect is taken to be this uncertain.
UNKNOWN_NOISE = 0.1


@dataclasses.dataclass(frozen=True)
class InputRatio:
    """One input: medians of both sides in seconds, and their ratio round by round."""

    input: FuzzedInput
    base_s: float
    other_s: float
    ratio: PairedRatio

    @property
    def noise(self) -> float:
        """Half of the ratio's interval, as a logarithm."""
        low, high = self.ratio.low, self.ratio.high
        return UNKNOWN_NOISE if low is None or high is None else (high - low) / 2


@dataclasses.dataclass(frozen=True)
class InputComparison:
    """What a statement takes compared with another, on every input, the smallest ratio first.

    Without another it is compared with a nanosecond for each element of the largest tensor.
    """

    stmt: str
    base: str | None
    entries: tuple[InputRatio, ...]

    @property
    def effects(self) -> list[float]:
        """Logarithms of ratios."""
        return [entry.ratio.log_ratio for entry in self.entries]

    def quantile(self, q: float) -> float:
        """Of ratios."""
        return math.exp(distribution.quantile(self.effects, q))

    def count_notable(self) -> tuple[int, int]:
        """On how many inputs it is faster, and on how many slower, by so much that it is worth speaking of, surely."""
        faster = sum(e.ratio.log_ratio < -NOTABLE and _is_below(e.ratio.high, 0.0) for e in self.entries)
        slower = sum(e.ratio.log_ratio > NOTABLE and _is_below(0.0, e.ratio.low) for e in self.entries)
        return faster, slower


def compare_on_inputs(
    stmts: Sequence[str], results: Iterable[tuple[FuzzedInput, Sequence[Times]]]
) -> list[InputComparison]:
    """The first statement against each of the others, or alone against its number of elements."""
    measured = [(one, [side.per_run for side in times]) for one, times in results]
    if len(stmts) == 1:
        entries = [
            _compare(one, (one.elements * 1e-9,) * len(times), times) for one, (times,) in measured if one.elements
        ]
        return [InputComparison(stmts[0], None, _sort(entries))]
    return [
        InputComparison(stmt, stmts[0], _sort([_compare(one, times[0], times[position]) for one, times in measured]))
        for position, stmt in enumerate(stmts[1:], 1)
    ]


def _compare(one: FuzzedInput, base: Sequence[float], other: Sequence[float]) -> InputRatio:
    base_s, other_s = (distribution.quantile(sorted(times), 0.5) for times in (base, other))
    return InputRatio(one, base_s, other_s, compare_paired(base, other))


def _sort(entries: list[InputRatio]) -> tuple[InputRatio, ...]:
    return tuple(sorted(entries, key=lambda entry: entry.ratio.log_ratio))


def _is_below(low: float | None, high: float | None) -> bool:
    return low is not None and high is not None and low < high
