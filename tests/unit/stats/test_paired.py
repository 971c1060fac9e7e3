from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from torchmark.stats.intervals import PairedRatio, compare_paired

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
