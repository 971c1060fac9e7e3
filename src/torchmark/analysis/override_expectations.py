"""What is expected of overrides, held against what was measured. Whatever comes out of it is a finding, not a failure.

The expectations are those that came with `__torch_function__`: nothing for Tensors, less than a microsecond for
subclasses of Tensor, a couple of microseconds for Tensor-likes; all of minimum times.
"""

from __future__ import annotations

import dataclasses
import enum
import itertools
from collections.abc import Sequence

from torchmark.analysis.overrides import CLASSIC, GIVEN, PLAIN, SUBCLASS, TENSOR_LIKE, OverrideRow
from torchmark.analysis.stages import OVERRIDES

# Instructions for finding out that there is nothing to override. A hundred take 10 to 30 ns; effects of about 100 ns
# are what one looks for.
NEGLIGIBLE_INSTRUCTIONS = 100.0
# "Sub-microsecond for subclasses" is what was asked of the design.
SUBCLASS_LIMIT_S = 1e-6
# "A couple of microseconds" was written of 2.1; so it is what rounds to two.
TENSOR_LIKE_LIMIT_S = 2.5e-6


class Expectation(enum.Enum):
    """What is expected."""

    PLAIN_IS_CHEAPEST = "plain_is_cheapest"
    """No call takes fewer instructions with other operands than with plain Tensors."""
    NOTHING_FOR_PLAIN = "nothing_for_plain"
    """Plain Tensors do not pay for overrides that they do not have."""
    SMALL_FOR_SUBCLASSES = "small_for_subclasses"
    COUPLE_FOR_TENSOR_LIKES = "couple_for_tensor_likes"
    ORDER = "order"
    """Subclasses pay less than Tensor-likes, and one that overrides more than one that is empty."""


@dataclasses.dataclass(frozen=True)
class Extreme:
    """A number, and the call that it is of."""

    row: OverrideRow
    value: float


@dataclasses.dataclass(frozen=True)
class OverrideFinding:
    """Whether an expectation is met: in how many of all calls, and what the smallest and the largest number is.

    Numbers are instructions for PLAIN_IS_CHEAPEST and NOTHING_FOR_PLAIN, and else seconds.
    """

    expectation: Expectation
    met: int
    of: int
    least: Extreme
    most: Extreme
    limit: float
    order: tuple[Extreme, ...] = ()
    """For ORDER, all of them from the least to the most."""

    @property
    def is_met(self) -> bool:
        """In all of them."""
        return self.met == self.of


def hold_to_expectations(rows: Sequence[OverrideRow]) -> tuple[OverrideFinding, ...]:
    """What can be said of each, where anything was measured that it is about."""
    counted = [
        Extreme(row, row.overhead.instructions)
        for row in rows
        if row.overhead is not None
        and row.overhead.instructions is not None
        and not _is_plain_within(row)
        and not row.has(GIVEN)
    ]
    for_nothing = [Extreme(row, row.stages[OVERRIDES]) for row in rows if row.has(PLAIN) and row.stages]
    found = [
        _hold(Expectation.PLAIN_IS_CHEAPEST, counted, 0.0, above=True),
        _hold(Expectation.NOTHING_FOR_PLAIN, for_nothing, NEGLIGIBLE_INSTRUCTIONS),
        _hold(Expectation.SMALL_FOR_SUBCLASSES, _list_times(rows, SUBCLASS), SUBCLASS_LIMIT_S),
        _hold(Expectation.COUPLE_FOR_TENSOR_LIKES, _list_times(rows, TENSOR_LIKE), TENSOR_LIKE_LIMIT_S),
        _hold_order([row for row in rows if row.has(CLASSIC)]),
    ]
    return tuple(finding for finding in found if finding is not None)


def _is_plain_within(row: OverrideRow) -> bool:
    """Whether operands are plain Tensors after all, with something around the call."""
    assert row.overhead is not None, "the caller has seen to that"
    return row.case.label[1:] == row.overhead.plain.label[1:]


def _list_times(rows: Sequence[OverrideRow], tag: str) -> list[Extreme]:
    return [
        Extreme(row, row.overhead.seconds)
        for row in rows
        if row.has(tag) and row.overhead is not None and row.overhead.seconds is not None
    ]


def _hold(
    expectation: Expectation, numbers: Sequence[Extreme], limit: float, *, above: bool = False
) -> OverrideFinding | None:
    if not numbers:
        return None
    met = sum(one.value >= limit if above else one.value < limit for one in numbers)
    ordered = sorted(numbers, key=lambda one: one.value)
    return OverrideFinding(expectation, met, len(numbers), ordered[0], ordered[-1], limit)


def _hold_order(rows: Sequence[OverrideRow]) -> OverrideFinding | None:
    """Of the calls that have always been measured, each pair of neighbours in the order that is expected."""
    plain = [Extreme(row, 0.0) for row in rows if row.has(PLAIN)]
    expected = [*plain, *_list_times(rows, SUBCLASS), *_list_times(rows, TENSOR_LIKE)]
    if len(expected) < 2:
        return None
    met = sum(one.value <= other.value for one, other in itertools.pairwise(expected))
    ordered = sorted(expected, key=lambda one: one.value)
    return OverrideFinding(Expectation.ORDER, met, len(expected) - 1, ordered[0], ordered[-1], 0.0, tuple(ordered))
