"""Bounds of probabilities."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from torchmark.stats.intervals import binomial_bounds


def test_bounds_of_none_and_of_all_are_worked_by_hand() -> None:
    # None in n has probability (1 - p)^n: that is 2.5 % for p = 1 - 0.025^(1/n).
    assert binomial_bounds(0, 40, 0.95) == pytest.approx((0.0, 1 - 0.025 ** (1 / 40)))
    assert binomial_bounds(40, 40, 0.95) == pytest.approx((0.025 ** (1 / 40), 1.0))


def test_one_trial_says_little() -> None:
    assert binomial_bounds(1, 1, 0.9) == pytest.approx((0.05, 1.0))
    assert binomial_bounds(0, 0, 0.9) == (0.0, 1.0)


@given(st.integers(1, 60).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_each_bound_leaves_exactly_its_tail(counts: tuple[int, int]) -> None:
    successes, trials = counts
    low, high = binomial_bounds(successes, trials, 0.95)
    assert low <= successes / trials <= high

    def at_least(k: int, p: float) -> float:
        return sum(math.comb(trials, i) * p**i * (1 - p) ** (trials - i) for i in range(k, trials + 1))

    if successes:
        assert at_least(successes, low) == pytest.approx(0.025, rel=1e-6)
    if successes < trials:
        assert 1 - at_least(successes + 1, high) == pytest.approx(0.025, rel=1e-6)
