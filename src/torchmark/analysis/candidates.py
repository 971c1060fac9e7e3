"""Every condition that features allow, and for which inputs each of them holds."""

from __future__ import annotations

import dataclasses
import functools
import itertools
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array  # type: ignore[import-untyped]

from torchmark.analysis.thresholds import choose_threshold, count_digits
from torchmark.model.rule import Condition, Feature, Relation, Value

Mask = NDArray[np.bool_]
Floats = NDArray[np.floating[Any]]

# Up to so many different numbers, each is worth a condition of its own, such as "dim is 2".
FEW_VALUES = 6
# A search keeps the best condition of each stretch of a feature's thresholds: neighbours are nearly the same condition.
STRETCHES = 4

_READABLE = {Relation.IS: 0, Relation.ABOVE: 1, Relation.AT_MOST: 1, Relation.IS_NOT: 2}


@dataclasses.dataclass(frozen=True)
class Column:
    """A feature as an array: strings as they are, other values as floats, and nan where there is none."""

    name: str
    values: NDArray[np.object_] | NDArray[np.float64]
    present: Mask
    is_text: bool
    is_truth: bool
    is_whole: bool

    def meets(self, condition: Condition) -> Mask:
        """For which inputs a condition on this feature holds."""
        if condition.relation is Relation.IS:
            return np.asarray(self.values == condition.value, dtype=bool)
        if condition.relation is Relation.IS_NOT:
            return np.asarray(self.values != condition.value, dtype=bool) & self.present
        # Only numbers are compared with a threshold.
        assert not isinstance(condition.value, str)
        if condition.relation is Relation.ABOVE:
            return np.asarray(self.values > condition.value, dtype=bool)
        return np.asarray(self.values <= condition.value, dtype=bool)

    def distinct(self, among: Mask) -> list[Value]:
        """The different values of some inputs in ascending order, of the type that they came in."""
        values = sorted(set(self.values[among & self.present].tolist()))
        if self.is_text:
            return values
        finite = [value for value in values if np.isfinite(value)]
        if self.is_truth:
            return [bool(value) for value in finite]
        return [int(value) for value in finite] if self.is_whole else finite

    def take(self, inputs: NDArray[np.intp]) -> Column:
        """The same of some of the inputs."""
        return dataclasses.replace(self, values=self.values[inputs], present=self.present[inputs])


def make_column(feature: Feature) -> Column:
    """A feature as an array."""
    known = [value for value in feature.values if value is not None]
    is_text = any(isinstance(value, str) for value in known)
    present = np.array([value is not None for value in feature.values], dtype=bool)
    if is_text:
        values: NDArray[np.object_] | NDArray[np.float64] = np.array(
            [None if value is None else str(value) for value in feature.values], dtype=object
        )
    else:
        values = np.array([np.nan if value is None else float(value) for value in feature.values], dtype=float)
    is_truth = all(isinstance(value, bool) for value in known)
    is_whole = all(isinstance(value, int) for value in known)
    return Column(feature.name, values, present, is_text, is_truth, is_whole)


@dataclasses.dataclass(frozen=True)
class Candidate:
    """A condition, and what decides which of two equally good ones is stated."""

    condition: Condition
    position: int
    """That of its feature in the list."""
    is_number: bool
    effort: int
    """To read it: digits of a threshold, and how it compares."""
    stretch: tuple[int, Relation, int]
    """Conditions that are much alike share one."""


@dataclasses.dataclass(frozen=True)
class Pool:
    """Conditions, those that share a stretch side by side, and the inputs they hold for (conditions × inputs)."""

    candidates: tuple[Candidate, ...]
    holds: Mask
    present: Mask
    """Which inputs have a value (features × inputs)."""

    @functools.cached_property
    def positions(self) -> list[int]:
        """The feature that each condition is on."""
        return [candidate.position for candidate in self.candidates]

    @functools.cached_property
    def _changes(self) -> Any:
        # Neighbours in a feature's thresholds differ in an input or two, so nearly all of this is zero.
        return csr_array(np.diff(self.holds.astype(np.int8), axis=0, prepend=np.int8(0)).astype(float))

    def add_up(self, weights: Floats) -> Floats:
        """For each row of weights, one an input, their sums over the inputs that each condition holds for.

        A product of matrices would do the same in more time, and in threads that wait for each other on a busy machine.
        """
        sums: Floats = np.cumsum(self._changes @ weights.T, axis=0).T
        return sums

    @functools.cached_property
    def stretches(self) -> list[tuple[int, int]]:
        """Where each stretch begins and ends."""
        names = [candidate.stretch for candidate in self.candidates]
        starts = [i for i, name in enumerate(names) if i == 0 or name != names[i - 1]]
        return list(zip(starts, [*starts[1:], len(names)], strict=True))


def make_pool(columns: Sequence[Column]) -> Pool:
    """All conditions that hold for some of the inputs and not for others; of those that hold for the same, one."""
    seen: dict[bytes, tuple[Candidate, Mask]] = {}
    everything = [pair for position, column in enumerate(columns) for pair in _candidates(column, position)]
    for candidate, mask in sorted(everything, key=lambda pair: order_to_read(pair[0])):
        if mask.any() and not mask.all():
            seen.setdefault(mask.tobytes(), (candidate, mask))
    kept = sorted(seen.values(), key=lambda pair: _order_to_add_up(pair[0]))
    inputs = len(columns[0].values) if columns else 0
    holds = np.array([mask for _, mask in kept], dtype=bool).reshape(len(kept), inputs)
    present = np.array([column.present for column in columns], dtype=bool).reshape(len(columns), inputs)
    return Pool(tuple(candidate for candidate, _ in kept), holds, present)


def _order_to_add_up(candidate: Candidate) -> tuple[int, str, int, Any]:
    position, relation, stretch = candidate.stretch
    return position, relation.value, stretch, candidate.condition.value


def order_to_read(candidate: Candidate) -> tuple[bool, int, int]:
    """What sorts candidates: those that read best first."""
    return candidate.is_number, candidate.position, candidate.effort


def _candidates(column: Column, position: int) -> Iterator[tuple[Candidate, Mask]]:
    for relation, value, stretch in _comparisons(column):
        condition = Condition(column.name, relation, value)
        is_number = not (column.is_text or column.is_truth)
        effort = _READABLE[relation]
        if relation in (Relation.ABOVE, Relation.AT_MOST) and not isinstance(value, str):
            effort += count_digits(value)
        yield Candidate(condition, position, is_number, effort, (position, relation, stretch)), column.meets(condition)


def _comparisons(column: Column) -> Iterator[tuple[Relation, Value, int]]:
    values = column.distinct(column.present)
    if column.is_text or column.is_truth or len(values) <= FEW_VALUES:
        for index, value in enumerate(values):
            yield Relation.IS, value, index
            if not column.is_truth:
                yield Relation.IS_NOT, value, index
    if not (column.is_text or column.is_truth):
        gaps = list(itertools.pairwise(values))
        for index, (lo, hi) in enumerate(gaps):
            assert not isinstance(lo, str)
            assert not isinstance(hi, str)
            threshold = choose_threshold(lo, hi)
            yield Relation.ABOVE, threshold, index * STRETCHES // len(gaps)
            yield Relation.AT_MOST, threshold, index * STRETCHES // len(gaps)
