"""Bounds of probabilities."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.sampling import Z
from torchmark.stats import intervals
from torchmark.stats.intervals import PairedRatio, benjamini_hochberg, binomial_bounds, compare_paired, contrast_means


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


P_VALUES = st.lists(st.floats(0, 1), max_size=30)


@pytest.mark.parametrize(
    ("p_values", "accepted"),
    [
        # Ranks are held to 0.01, 0.02, 0.03, 0.04 and 0.05.
        ([0.001, 0.015, 0.039, 0.2, 0.9], [True, True, False, False, False]),
        # The first passes by the last: 0.04 is more than 0.02 and than 0.03, and no more than 0.04.
        ([0.04, 0.009, 0.04, 0.04, 0.06], [True, True, True, True, False]),
        ([0.05, 0.05, 0.05, 0.05, 0.05], [True] * 5),
        ([0.051, 0.05, 0.05, 0.05, 0.05], [False] * 5),
        ([0.05], [True]),
        ([0.0501], [False]),
        ([0.03, 0.03], [True, True]),
        ([1.0, 0.0], [False, True]),
        ([], []),
    ],
)
def test_the_largest_that_passes_takes_all_below_it_along(p_values: list[float], accepted: list[bool]) -> None:
    assert benjamini_hochberg(p_values, rate=0.05) == tuple(accepted)


@given(P_VALUES, st.floats(0, 1))
def test_what_is_accepted_is_below_the_rate_and_below_all_that_is_not(p_values: list[float], rate: float) -> None:
    accepted = benjamini_hochberg(p_values, rate)
    assert len(accepted) == len(p_values)
    inside = [p for p, yes in zip(p_values, accepted, strict=True) if yes]
    outside = [p for p, yes in zip(p_values, accepted, strict=True) if not yes]
    assert all(p <= rate for p in inside)
    assert max(inside, default=0) < min(outside, default=2)


@given(P_VALUES, st.floats(0, 1))
def test_as_many_are_accepted_as_bonferroni_would_accept_or_more(p_values: list[float], rate: float) -> None:
    accepted = benjamini_hochberg(p_values, rate)
    assert all(yes for p, yes in zip(p_values, accepted, strict=True) if p <= rate / len(p_values))


@given(P_VALUES)
def test_the_order_does_not_matter(p_values: list[float]) -> None:
    expected = dict(zip(p_values, benjamini_hochberg(p_values, 0.1), strict=True))
    turned = p_values[::-1]
    assert dict(zip(turned, benjamini_hochberg(turned, 0.1), strict=True)) == expected


def test_on_average_as_many_of_those_accepted_are_false_as_the_rate_says() -> None:
    # Fourteen of twenty are false, with p values that are anything alike. The share of false ones among those accepted
    # has an expectation of 14/20 of the rate, however small the other six are.
    rng, rate, false, suites = np.random.default_rng(5), 0.2, 14, 4000
    shares = []
    for true_p, false_p in zip(rng.beta(0.1, 5, (suites, 6)), rng.uniform(size=(suites, false)), strict=True):
        accepted = benjamini_hochberg([*true_p, *false_p], rate)
        shares.append(sum(accepted[6:]) / max(1, sum(accepted)))
    error = Z * np.std(shares) / np.sqrt(suites)
    assert np.mean(shares) == pytest.approx(rate * false / 20, abs=error)
    assert error < 0.02


TIMES = st.floats(min_value=1e-9, max_value=1e3, allow_nan=False)
PAIRS = st.lists(st.tuples(TIMES, TIMES), min_size=1, max_size=40)


def powers(*exponents: int) -> list[float]:
    """Times of which logarithms are easy."""
    return [math.exp(exponent) for exponent in exponents]


def test_the_median_and_its_interval_by_hand() -> None:
    # Of nine, 96.1 % lie between the second and the eighth: ratios of -3, -1, 0, 1, 2, 3, 4, 7, 9.
    found = compare_paired(powers(0, 1, 2, 3, 4, 0, 0, 0, 0), powers(4, 2, 4, 10, 4, -3, 3, 9, -1))
    assert found.log_ratio == pytest.approx(2)
    assert found.low == pytest.approx(-1)
    assert found.high == pytest.approx(7)
    assert found.confidence == 1 - 2 * (1 + 9) / 512


def test_rounds_are_compared_with_themselves() -> None:
    # Each round takes another time for both, and in each the other takes twice as long.
    base = [1.0, 8.0, 2.0, 16.0, 4.0, 32.0]
    found = compare_paired(base, [2 * t for t in base])
    assert found == pytest.approx((math.log(2), math.log(2), math.log(2), 1 - 2 / 64))


def test_one_pair_and_two_have_a_median_and_no_interval() -> None:
    assert compare_paired([1.0], [1.0]) == PairedRatio(0.0, None, None, 0.0)
    assert compare_paired(powers(0, 0), powers(1, 4)) == pytest.approx((2.5, None, None, 0.0))


def test_an_interval_of_95_percent_takes_six_pairs() -> None:
    assert compare_paired([1.0] * 5, [2.0] * 5).low is None
    assert compare_paired([1.0] * 6, [2.0] * 6).low == math.log(2)
    assert compare_paired([1.0] * 2, [2.0] * 2, confidence=0.5).low == math.log(2)


def test_ties_make_an_interval_without_width() -> None:
    assert compare_paired([3.0] * 8, [3.0] * 8) == (0.0, 0.0, 0.0, 1 - 2 / 256)


@pytest.mark.parametrize(("base", "other"), [([], []), ([1.0], []), ([1.0], [1.0, 2.0])])
def test_what_is_not_pairs_is_refused(base: list[float], other: list[float]) -> None:
    with pytest.raises(ValueError, match="airs"):
        compare_paired(base, other)


@given(PAIRS)
def test_the_other_way_round_it_is_the_negative(pairs: list[tuple[float, float]]) -> None:
    base, other = zip(*pairs, strict=True)
    there, back = compare_paired(base, other), compare_paired(other, base)
    assert back.log_ratio == pytest.approx(-there.log_ratio, abs=1e-12)
    assert back.confidence == there.confidence
    if there.low is not None:
        assert there.high is not None
        assert (back.low, back.high) == (-there.high, -there.low)
        assert there.low <= there.log_ratio <= there.high


@given(PAIRS, st.floats(1e-3, 1e3))
def test_scaling_one_side_adds_the_logarithm_of_the_factor(pairs: list[tuple[float, float]], factor: float) -> None:
    base, other = zip(*pairs, strict=True)
    plain, scaled = compare_paired(base, other), compare_paired(base, [factor * t for t in other])
    assert scaled.log_ratio == pytest.approx(plain.log_ratio + math.log(factor), abs=1e-12)
    if plain.low is not None:
        assert scaled.low == pytest.approx(plain.low + math.log(factor), abs=1e-12)


FREEDOM = st.integers(1, 60)


def test_one_degree_of_freedom_is_cauchys_distribution() -> None:
    # P(T <= t) = 1/2 + arctan(t) / pi, so that 3/4 lie below tan(pi/4) = 1.
    assert intervals.quantile(0.75, 1) == pytest.approx(1)
    assert intervals.quantile(0.9, 1) == pytest.approx(math.tan(0.4 * math.pi))
    assert intervals.one_sided_p(1, 1) == pytest.approx(0.25)
    assert intervals.two_sided_p(-1, 1) == pytest.approx(0.5)


def test_two_degrees_of_freedom_have_a_formula_too() -> None:
    # P(T <= t) = 1/2 + t / (2 sqrt(2 + t²)), at t = sqrt(2) 1/2 + 1/(2 sqrt(2)).
    assert intervals.one_sided_p(math.sqrt(2), 2) == pytest.approx(0.5 - 1 / math.sqrt(8))
    # Solved for t with a = 2p - 1: t = a sqrt(2 / (1 - a²)).
    assert intervals.quantile(0.975, 2) == pytest.approx(0.95 * math.sqrt(2 / (1 - 0.95**2)))


@pytest.mark.parametrize(("p", "df", "expected"), [(0.975, 5, 2.5706), (0.995, 5, 4.0321), (0.95, 10, 1.8125)])
def test_quantiles_are_those_of_printed_tables(p: float, df: int, expected: float) -> None:
    assert intervals.quantile(p, df) == pytest.approx(expected, abs=5e-5)


def test_nothing_lies_beyond_infinity() -> None:
    assert intervals.two_sided_p(math.inf, 3) == 0
    assert intervals.two_sided_p(-math.inf, 3) == 0
    assert intervals.one_sided_p(-math.inf, 3) == 1
    assert intervals.two_sided_p(0, 3) == 1


@given(st.floats(0.001, 0.999), FREEDOM)
def test_a_quantile_has_its_tail(p: float, df: int) -> None:
    assert intervals.one_sided_p(intervals.quantile(p, df), df) == pytest.approx(1 - p, abs=1e-9)


@given(st.floats(-50, 50), FREEDOM)
def test_both_tails_together_are_everything(t: float, df: int) -> None:
    assert intervals.one_sided_p(t, df) + intervals.one_sided_p(-t, df) == pytest.approx(1)
    assert intervals.two_sided_p(t, df) == intervals.two_sided_p(-t, df)


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
