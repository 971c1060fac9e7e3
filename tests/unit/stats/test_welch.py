from __future__ import annotations

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from torchmark.stats.intervals import contrast_means

SAMPLES = st.lists(st.floats(-10, 10), min_size=2, max_size=8)


def test_a_difference_worked_by_hand() -> None:
    # Means 2 and 6; variances 1 and 4; errors 1/3 and 4/3, so df = (5/3)² / ((1/3)²/2 + (4/3)²/2) = 50/17.
    found = contrast_means([1.0, 2.0, 3.0], [4.0, 6.0, 8.0], 0.95)
    assert found.estimate == 4.0
    assert found.df == pytest.approx(50 / 17)
    # Student's 0.975 quantile is 3.182 at 3 degrees of freedom and 4.303 at 2.
    half = (found.high - found.low) / 2
    assert 3.182 * math.sqrt(5 / 3) < half < 4.303 * math.sqrt(5 / 3)
    assert found.low == pytest.approx(4.0 - half)


def test_what_does_not_vary_is_certain() -> None:
    assert contrast_means([2.0, 2.0], [2.0, 2.0, 2.0], 0.99) == (0.0, 0.0, 0.0, 3.0, 1.0)
    assert contrast_means([2.0, 2.0], [3.0, 3.0], 0.99) == (1.0, 1.0, 1.0, 2.0, 0.0)


def test_one_side_that_does_not_vary_leaves_the_freedom_of_the_other() -> None:
    assert contrast_means([1.0, 1.0, 1.0], [0.0, 1.0, 2.0], 0.9).df == pytest.approx(2.0)


@given(SAMPLES, SAMPLES)
def test_exchanging_the_sides_mirrors_the_interval(first: list[float], second: list[float]) -> None:
    one, other = contrast_means(first, second, 0.95), contrast_means(second, first, 0.95)
    assert one.low <= one.estimate <= one.high
    assert one.low == pytest.approx(-other.high, abs=1e-9)
    assert one.p_value == pytest.approx(other.p_value, abs=1e-9)


@given(SAMPLES, SAMPLES)
def test_more_confidence_is_a_wider_interval_and_p_agrees_with_it(first: list[float], second: list[float]) -> None:
    narrow, wide = contrast_means(first, second, 0.9), contrast_means(first, second, 0.99)
    assert wide.low <= narrow.low <= narrow.high <= wide.high
    if narrow.p_value < 0.0999:
        assert narrow.low > 0 or narrow.high < 0
    if narrow.p_value > 0.1001:
        assert narrow.low <= 0 <= narrow.high


def test_intervals_of_three_and_four_normal_values_hold_as_often_as_they_say() -> None:
    draw = random.Random(5)
    held = 0
    for _ in range(4000):
        first = [draw.gauss(0, 1) for _ in range(3)]
        second = [draw.gauss(0.5, 2) for _ in range(4)]
        found = contrast_means(first, second, 0.95)
        held += found.low <= 0.5 <= found.high
    # Four standard errors: 4 * sqrt(0.95 * 0.05 / 4000) = 0.014.
    assert held / 4000 == pytest.approx(0.95, abs=0.014)
