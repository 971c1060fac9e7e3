"""Thresholds of a conjunction that is known otherwise: where they may lie, and where they lie best."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Sequence

import numpy as np

from torchmark.analysis.candidates import Column, Floats, Mask
from torchmark.analysis.thresholds import choose_threshold, count_digits
from torchmark.model.rule import Condition, Relation


def find_inside(conditions: Sequence[Condition], columns: Sequence[Column]) -> Mask:
    """The inputs for which all conditions hold."""
    by_name = {column.name: column for column in columns}
    inside = np.ones(len(columns[0].values) if columns else 0, dtype=bool)
    for condition in conditions:
        inside &= by_name[condition.feature].meets(condition)
    return inside


def widen_gaps(conditions: tuple[Condition, ...], columns: Sequence[Column]) -> tuple[Condition, ...]:
    """The same with each threshold chosen from all that make no difference, given the other conditions.

    Of inputs that are not contiguous, there may be none between k0 = 900 and 1300, though there are others.
    """
    for condition in conditions:
        gap = _find_gap(condition, conditions, columns)
        if gap is not None:
            conditions = _replace(conditions, condition, choose_threshold(*gap))
    return conditions


def sharpen(
    conditions: tuple[Condition, ...], columns: Sequence[Column], more: Sequence[Column], effects: Floats
) -> tuple[Condition, ...]:
    """The same with thresholds put where `more` inputs, with these effects, split best: within the gaps of the first.

    What holds for the inputs that conditions were made from does not change. A threshold stays as round as it is: where
    it is a power of two, an input that speaks for an odd number is an outlier more often than not.
    """
    for condition in conditions:
        gap = _find_gap(condition, conditions, columns)
        if gap is None:
            continue
        others = find_inside([c for c in conditions if c != condition], more)
        column = next(column for column in more if column.name == condition.feature)
        lo, hi = gap
        between = [v for v in column.distinct(others) if not isinstance(v, str) and lo < v < hi]
        thresholds = [choose_threshold(*pair) for pair in itertools.pairwise([lo, *between, hi])]
        roundest = min(count_digits(threshold) for threshold in thresholds)
        thresholds = [threshold for threshold in thresholds if count_digits(threshold) == roundest]
        options = [_replace(conditions, condition, threshold) for threshold in thresholds]
        errors = [_error(effects, find_inside(option, more)) for option in options]
        conditions = options[int(np.argmin(errors))]
    return conditions


def _error(effects: Floats, inside: Mask) -> float:
    """How far effects lie from the mean of their side, by their squares."""
    return sum(float(((side - side.mean()) ** 2).sum()) for side in (effects[inside], effects[~inside]) if len(side))


def _find_gap(
    condition: Condition, conditions: Sequence[Condition], columns: Sequence[Column]
) -> tuple[float, float] | None:
    """The values next to a threshold, of inputs that meet the other conditions."""
    if condition.relation not in (Relation.ABOVE, Relation.AT_MOST):
        return None
    others = find_inside([c for c in conditions if c != condition], columns)
    column = next(column for column in columns if column.name == condition.feature)
    meets = column.meets(condition)
    sides = column.distinct(others & meets), column.distinct(others & ~meets)
    below, above = sides if condition.relation is Relation.AT_MOST else sides[::-1]
    if not below or not above:
        return None
    lo, hi = below[-1], above[0]
    assert not isinstance(lo, str)
    assert not isinstance(hi, str)
    return lo, hi


def _replace(conditions: tuple[Condition, ...], old: Condition, threshold: float) -> tuple[Condition, ...]:
    new = dataclasses.replace(old, value=threshold)
    return tuple(new if condition == old else condition for condition in conditions)
