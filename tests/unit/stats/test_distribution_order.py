from __future__ import annotations

import math
import statistics

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from torchmark.stats import distribution

TIMES = st.floats(min_value=1e-9, max_value=1e3, allow_nan=False)
SAMPLES = st.lists(TIMES, min_size=1, max_size=60)


@pytest.mark.parametrize(
    ("values", "q", "expected"),
    [
        ([7.0], 0.0, 7.0),
        ([7.0], 0.5, 7.0),
        ([1.0, 3.0], 0.5, 2.0),
        ([1.0, 3.0], 0.25, 1.5),
        ([1.0, 2.0, 4.0, 8.0], 0.5, 3.0),
        ([1.0, 2.0, 4.0, 8.0], 0.75, 5.0),  # position 2.25: 4 + 0.25 * 4
        ([2.0, 2.0, 2.0], 0.9, 2.0),
        ([1.0, 2.0, 3.0], 1.0, 3.0),
    ],
)
def test_quantile_interpolates_at_position_q_times_n_minus_one(values: list[float], q: float, expected: float) -> None:
    assert distribution.quantile(values, q) == expected


@given(SAMPLES, st.floats(0, 1))
def test_quantile_agrees_with_numpy(values: list[float], q: float) -> None:
    assert distribution.quantile(sorted(values), q) == pytest.approx(float(np.quantile(values, q)), rel=1e-15)


@given(SAMPLES, st.floats(0, 1))
def test_quantile_lies_between_the_extremes(values: list[float], q: float) -> None:
    assert min(values) <= distribution.quantile(sorted(values), q) <= max(values)


def test_mean_does_not_lose_small_terms() -> None:
    assert distribution.mean([1e16, 1.0, -1e16, 1.0]) == 0.5


def test_standard_deviations_by_hand() -> None:
    # mean 4, squared distances 9, 1, 4, 4, 0 = 18
    values = [1.0, 3.0, 6.0, 6.0, 4.0]
    assert distribution.population_std(values) == pytest.approx(math.sqrt(18 / 5))
    assert distribution.sample_std(values) == pytest.approx(math.sqrt(18 / 4))


def test_a_single_value_has_no_sample_standard_deviation() -> None:
    assert distribution.sample_std([3.0]) is None
    assert distribution.sample_std([3.0, 3.0]) == 0.0


@given(st.lists(TIMES, min_size=2, max_size=60))
def test_sample_std_agrees_with_the_standard_library(values: list[float]) -> None:
    assert distribution.sample_std(values) == pytest.approx(statistics.stdev(values), rel=1e-9, abs=1e-15)


@pytest.mark.parametrize(
    ("n", "low", "high", "confidence"),
    [
        (6, 0, 5, 1 - 2 / 64),
        (8, 0, 7, 1 - 2 / 256),
        (9, 1, 7, 1 - 2 * (1 + 9) / 512),  # one of the two tails: C(9,0) + C(9,1)
        (10, 1, 8, 1 - 2 * (1 + 10) / 1024),
    ],
)
def test_ranks_of_the_median_by_hand(n: int, low: int, high: int, confidence: float) -> None:
    assert distribution.median_ranks(n) == (low, high, confidence)


@pytest.mark.parametrize("n", [0, 1, 2, 5])
def test_too_few_samples_give_no_interval(n: int) -> None:
    assert distribution.median_ranks(n) is None


def test_two_samples_give_the_interval_that_they_can() -> None:
    assert distribution.median_ranks(2, 0.5) == (0, 1, 0.5)


@given(st.integers(0, 400), st.floats(0.5, 0.999))
def test_the_interval_covers_at_least_what_was_asked_and_no_narrower_one_does(n: int, confidence: float) -> None:
    ranks = distribution.median_ranks(n, confidence)
    if ranks is None:
        assert n == 0 or 1 - 2 / 2**n < confidence
        return
    assert ranks.confidence >= confidence
    narrower_tail = sum(math.comb(n, k) for k in range(ranks.low + 2)) / 2**n
    assert 1 - 2 * narrower_tail < confidence


@pytest.mark.parametrize("n", [1001, 1500, 4001])
def test_the_normal_approximation_is_within_one_rank_of_the_exact_one(n: int) -> None:
    near, exact = distribution.median_ranks(n), distribution._exact_median_ranks(n, 0.95)
    assert near is not None
    assert exact is not None
    assert abs(near.low - exact.low) <= 1
    assert near.confidence == pytest.approx(0.95, abs=0.01)


@pytest.mark.parametrize(
    ("totals", "expected"),
    [([5], 0), ([5, 3], 1), ([3, 5], 0), ([30, 10, 20], 2), ([1, 4, 2, 3], 2), ([7, 7, 7], 1)],
)
def test_the_middle_is_the_median_or_the_lower_of_two(totals: list[int], expected: int) -> None:
    assert distribution.middle(totals) == expected


@given(st.lists(st.integers(0, 1000), min_size=1, max_size=9))
def test_as_many_lie_below_the_middle_as_above(totals: list[int]) -> None:
    chosen = totals[distribution.middle(totals)]
    assert sum(t < chosen for t in totals) <= len(totals) / 2
    assert sum(t > chosen for t in totals) <= len(totals) / 2
