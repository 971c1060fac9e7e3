from __future__ import annotations

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from torchmark.analysis.conditions import choose_threshold, count_digits


@pytest.mark.parametrize(
    ("lo", "hi", "threshold"),
    [
        (1000, 1100, 1024),
        (1024, 1100, 1024),
        (1000, 1024, 1000),
        (1000, 1025, 1024),
        (900, 2100, 1024),  # the middle is 1375; 2048 is further
        (3, 5000, 128),  # the middle is 122
        (1100, 1300, 1200),
        (1100, 1111, 1100),
        (1101, 1109, 1105),
        (1101, 1102, 1101),
        (95, 127, 100),
        (1, 2, 1),
        (2, 3, 2),
        (0, 7, 0),
        (-5, 5, 0),
        (-5, 0, -5),
        (-1300, -1100, -1200),
        (-1, 0, -1),
    ],
)
def test_integers_are_parted_at_a_power_of_two_or_a_round_number(lo: int, hi: int, threshold: int) -> None:
    chosen = choose_threshold(lo, hi)
    assert chosen == threshold
    assert isinstance(chosen, int)


@pytest.mark.parametrize(
    ("lo", "hi", "threshold"),
    [
        (0.043, 0.071, 0.06),
        (0.0501, 0.0507, 0.0504),
        (0.001, 0.9, 0.03),
        (0.9, 1.2, 1.0),
        (3.1, 5.7, 4.0),
        (0.05, 0.0500000001, 0.05),
        (5e-324, 1e-320, 5e-324),
    ],
)
def test_floats_are_parted_at_a_short_decimal(lo: float, hi: float, threshold: float) -> None:
    assert choose_threshold(lo, hi) == threshold


@given(st.integers(-(10**12), 10**12), st.integers(1, 10**9))
def test_a_threshold_parts_any_two_integers(lo: int, width: int) -> None:
    threshold = choose_threshold(lo, lo + width)
    assert isinstance(threshold, int)
    assert lo <= threshold < lo + width


@given(st.floats(allow_nan=False, allow_infinity=False), st.floats(allow_nan=False, allow_infinity=False))
def test_a_threshold_parts_any_two_floats(one: float, another: float) -> None:
    assume(one != another)
    lo, hi = sorted((one, another))
    assert lo <= choose_threshold(lo, hi) < hi


def test_no_number_in_a_gap_is_rounder() -> None:
    for lo in range(1, 300):
        for hi in range(lo + 1, 300, 7):
            assert count_digits(choose_threshold(lo, hi)) == min(count_digits(t) for t in range(lo, hi))


def test_digits_are_those_that_a_reader_sees() -> None:
    assert [count_digits(value) for value in (0, 1, 1024, 1000, 0.05, 0.125, 1.5e-7, 1023)] == [0, 0, 0, 1, 1, 3, 2, 4]
