from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from torchmark.stats import distribution

STEADY = [1.0, 1.02, 0.99, 1.01, 0.98, 1.0, 1.03, 0.97, 1.01, 1.0, 0.99, 1.02]


def test_rank_correlation_by_hand() -> None:
    # d² for ranks 1 0 2 against 0 1 2: 1 + 1 + 0; rho = 1 - 6 * 2 / (3 * 8)
    assert distribution.rank_correlation([2.0, 1.0, 3.0]) == pytest.approx(0.5)


def test_tied_values_share_their_mean_rank() -> None:
    # ranks 0.5 0.5 2: covariance 0.5 + 1 = 1.5; sqrt(1.5 * 2)
    assert distribution.rank_correlation([1.0, 1.0, 5.0]) == pytest.approx(1.5 / 3**0.5)


@pytest.mark.parametrize("values", [[], [1.0], [2.0, 2.0, 2.0]])
def test_rank_correlation_of_what_does_not_vary_is_zero(values: list[float]) -> None:
    assert distribution.rank_correlation(values) == 0.0


@given(st.lists(st.floats(0, 1), min_size=2, max_size=40))
def test_rank_correlation_changes_sign_when_time_runs_backwards(values: list[float]) -> None:
    assert distribution.rank_correlation(values) == pytest.approx(
        -distribution.rank_correlation(values[::-1]), abs=1e-12
    )


def test_a_steady_rise_is_a_drift() -> None:
    trend = distribution.find_trend([1.0 + i / 20 for i in range(12)])
    assert trend is not None
    # medians of the first and last four: 1.075 and 1.475
    assert trend.change == pytest.approx(1.475 / 1.075 - 1)
    assert trend.correlation == pytest.approx(1.0)


@pytest.mark.parametrize(
    "values",
    [
        STEADY,
        [1.0 + i / 1000 for i in range(30)],  # certain, but too small to matter
        [1.0 + i / 20 for i in range(11)],  # too few
        [1.0, 2.0] * 10,
        [0.0] * 20,
    ],
)
def test_what_is_no_drift_is_not_called_one(values: list[float]) -> None:
    assert distribution.find_trend(values) is None


def test_two_groups_are_found_with_their_shares() -> None:
    modes = distribution.find_modes([1.0, 1.01, 0.99] * 5 + [2.0, 1.98, 2.02, 2.0, 2.0])
    assert modes is not None
    assert modes.fast == pytest.approx(1.0)
    assert modes.slow == pytest.approx(2.0)
    assert modes.slow_share == 0.25


@pytest.mark.parametrize(
    "values",
    [
        STEADY * 2,
        [1.0] * 30,
        [1.0, 2.0] * 9,  # too few
        [1.0] * 28 + [9.0, 9.1],  # outliers, not a mode
        [1.0, 1.02] * 15,  # two groups, too close to matter
    ],
)
def test_what_has_one_mode_is_not_said_to_have_two(values: list[float]) -> None:
    assert distribution.find_modes(values) is None


@pytest.mark.parametrize("draw", ["gauss(10, 1)", "expovariate(1)", "random()"])
@pytest.mark.parametrize("n", [20, 60])
def test_series_with_one_mode_raise_an_alarm_once_in_a_hundred_at_most(draw: str, n: int) -> None:
    rng = random.Random(7)
    method, _, arguments = draw.rstrip(")").partition("(")
    parameters = [float(a) for a in arguments.split(",") if a]
    series = [[getattr(rng, method)(*parameters) for _ in range(n)] for _ in range(500)]
    assert sum(distribution.find_modes(values) is not None for values in series) <= 5


def test_outliers_keep_their_order() -> None:
    # quartiles 1.5 and 4.5, fences at -3 and 9
    assert distribution.find_outliers([9.1, 1.0, 2.0, 3.0, 4.0, 5.0, -3.1]) == [9.1, -3.1]
    assert distribution.find_outliers([9.0, 1.0, 2.0, 3.0, 4.0, 5.0, -3.0]) == []


@pytest.mark.parametrize("values", [[1.0], [1.0, 2.0], [3.0, 3.0, 3.0]])
def test_few_or_equal_values_have_no_outliers(values: list[float]) -> None:
    assert distribution.find_outliers(values) == []


def test_histogram_by_hand() -> None:
    bins = distribution.histogram([0.0, 0.5, 1.0, 2.0, 3.0, 3.0, 3.0, 3.0, 3.0])
    assert bins == [(0.0, 1.0, 2), (1.0, 2.0, 1), (2.0, 3.0, 6)]


def test_equal_values_make_a_single_bar() -> None:
    assert distribution.histogram([2.0, 2.0]) == [(2.0, 2.0, 2)]


@given(st.lists(st.floats(1e-9, 1e3), min_size=1, max_size=200))
def test_a_histogram_counts_every_value_once(values: list[float]) -> None:
    bins = distribution.histogram(values)
    assert sum(b.samples for b in bins) == len(values)
    assert len(bins) <= 24
