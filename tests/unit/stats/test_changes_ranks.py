from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from torchmark.stats.changes import EXACT_SIDE, count_against, exact_tail, find_p_value, normal_tail
from torchmark.stats.distribution import rank

VALUES = st.lists(st.floats(-1e3, 1e3), max_size=30)


def split_chances(values: Sequence[float]) -> list[tuple[float, bool]]:
    """For each split of the values in two, how probable it is by chance, and whether the sides are apart."""
    n, sums = len(values), list(itertools.accumulate(rank(values)))
    against = [math.ceil(count_against(k, n - k, sums[k - 1])) for k in range(1, n)]
    return [(find_p_value(k, n - k, pairs), pairs == 0) for k, pairs in enumerate(against, start=1)]


def test_no_values_one_and_ties() -> None:
    assert rank([]) == []
    assert rank([2.0]) == [1.0]
    assert rank([2.0, 2.0, 2.0]) == [2.0, 2.0, 2.0]
    assert split_chances([3.0] * 4)[1] == (1.0, False)


def test_the_chance_of_a_split_by_hand() -> None:
    # Of the 20 ways to choose three of six, one has the lowest three, and one has 1, 2 and 4: 2 * 2 / 20.
    assert split_chances([1.0, 2.0, 4.0, 3.0, 5.0, 6.0])[2] == (0.2, False)
    assert split_chances([6.0, 5.0, 4.0, 1.0, 2.0, 3.0])[2] == (0.1, True)


@pytest.mark.parametrize(("small", "large"), [(1, 1), (2, 3), (3, 3), (3, 5), (4, 4)])
def test_chances_are_counted_exactly(small: int, large: int) -> None:
    ways = list(itertools.combinations(range(small + large), small))
    against = [sum(place - i for i, place in enumerate(way)) for way in ways]
    for most in range(small * large + 1):
        expected = sum(one <= most for one in against) / len(ways)
        assert exact_tail(small, large, most) == pytest.approx(expected)


def test_what_is_not_counted_errs_on_the_safe_side() -> None:
    side = EXACT_SIDE + 1
    for large in (10, 40, 150):
        for against in range(0, side * large // 4, 5):
            exact = exact_tail(side, large, against)
            if exact < 0.001:
                assert exact <= normal_tail(side, large, against)


@given(VALUES)
def test_ranks_add_up_and_follow_values(values: list[float]) -> None:
    ranks, n = rank(values), len(values)
    assert sum(ranks) == n * (n + 1) / 2
    for (a, one), (b, other) in itertools.combinations(zip(values, ranks, strict=True), 2):
        assert (a < b, a == b) == (one < other, one == other)


@given(st.lists(st.integers(-1000, 1000), max_size=20))
def test_only_the_order_matters_and_no_direction(values: list[int]) -> None:
    there = split_chances(values)
    assert split_chances([-(v**3) for v in values]) == there
    assert split_chances(values[::-1]) == there[::-1]
    assert all(0 < p_value <= 1 for p_value, _ in there)
