from __future__ import annotations

import itertools
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from torchmark.report.plots.svg import Span, find_limits, find_ticks, mark_ticks, scale_times, widen

NUMBERS = st.floats(-1e99, 1e99)


def test_values_are_where_they_belong() -> None:
    span = Span(-1.0, 1.0, 10.0, 110.0)
    assert [span.at(value) for value in (-1.0, 0.0, 0.5, 1.0)] == [10.0, 60.0, 85.0, 110.0]
    assert (span.at(-9.0), span.at(math.inf)) == (10.0, 110.0)
    assert (span.has(1.0), span.has(1.1)) == (True, False)


def test_what_is_far_off_is_left_out_unless_it_is_a_mode_of_its_own() -> None:
    most = [1.0 + i / 100 for i in range(45)]
    # The middle half reaches from 1.12 to 1.34, so that the fences are about 0.3 and 2.
    assert find_limits([[*most, 9.0, 9.1]]) == (1.0, 1.44)
    assert find_limits([[*most, *[9.0] * 5]]) == (1.0, 9.0)
    assert find_limits([[*most, *[9.0] * 5]], rare=0.5) == (1.0, 1.44)
    assert find_limits([most, [3.0]]) == (1.0, 3.0)


@pytest.mark.parametrize(
    ("groups", "expected"), [([], None), ([[]], None), ([[2.0]], (2, 2)), ([[1.0, 1.0, 5.0]], (1, 5))]
)
def test_few_and_equal_values_have_limits(groups: list[list[float]], expected: tuple[float, float] | None) -> None:
    assert find_limits(groups) == expected


@given(NUMBERS, NUMBERS)
def test_an_axis_has_a_length(one: float, other: float) -> None:
    low, high = widen(*sorted((one, other)))
    assert low < high
    assert low <= min(one, other)
    assert high >= max(one, other)
    assert math.isfinite(Span(low, high, 0.0, 100.0).at(one))


def test_marks_tell_their_unit_once() -> None:
    span = Span(1.0e-6, 1.2e-6, 0.0, 300.0)
    scale = scale_times(span.low, span.high)
    marks = mark_ticks(span, scale.length_s, scale.unit)
    assert [text for _, text in marks] == ["1.00", "1.05", "1.10", "1.15", "1.20 us"]
    signed = mark_ticks(Span(-0.02, 0.02, 0.0, 400.0), 0.01, "%", signed=True)
    assert [text for _, text in signed] == ["−2", "−1", "0", "+1", "+2 %"]


FINITE = st.floats(allow_nan=False, allow_infinity=False)


@pytest.mark.parametrize(
    ("low", "high", "most", "expected"),
    [
        # Steps of 1 would be eleven marks, of 2 six, of 5 three.
        (0, 10, 11, tuple(range(11))),
        (0, 10, 6, (0, 2, 4, 6, 8, 10)),
        (0, 10, 5, (0, 5, 10)),
        (0, 10, 2, (0, 10)),
        # From 3 on, the first multiple of 20 is 20.
        (3, 97, 5, (20, 40, 60, 80)),
        (-0.013, 0.021, 4, (-0.01, 0.0, 0.01, 0.02)),
        (1.02e-6, 1.13e-6, 6, (1.02e-6, 1.04e-6, 1.06e-6, 1.08e-6, 1.1e-6, 1.12e-6)),
        (-3, -1, 3, (-3, -2, -1)),
        (7, 7, 5, (7,)),
        (0, 0, 5, (0,)),
    ],
)
def test_marks_are_at_round_numbers(low: float, high: float, most: int, expected: tuple[float, ...]) -> None:
    assert find_ticks(low, high, most).values == expected


@pytest.mark.parametrize(
    ("low", "high", "most", "expected"),
    [
        (0, 1, 6, ["0.0", "0.2", "0.4", "0.6", "0.8", "1.0"]),
        (0, 1000, 3, ["0", "500", "1,000"]),
        (4990, 5010, 3, ["4,990", "5,000", "5,010"]),
        (0.01, 0.02, 3, ["0.010", "0.015", "0.020"]),
        (0, 4e12, 3, ["0", "2e+12", "4e+12"]),
        (0, 4e-12, 3, ["0", "2e-12", "4e-12"]),
    ],
)
def test_texts_have_the_decimals_that_they_need(low: float, high: float, most: int, expected: list[str]) -> None:
    ticks = find_ticks(low, high, most)
    assert [ticks.show(value) for value in ticks.values] == expected


@given(FINITE, FINITE, st.integers(2, 12))
def test_marks_are_within_the_limits_ascending_and_never_too_many(one: float, other: float, most: int) -> None:
    low, high = sorted((one, other))
    ticks = find_ticks(low, high, most)
    assert len(ticks.values) <= most
    # A hair outside is allowed, for what is there but for rounding.
    hair = 1e-8 * ticks.step if math.isfinite(ticks.step) else 0.0
    assert all(low - hair <= value <= high + hair for value in ticks.values)
    assert all(a < b for a, b in itertools.pairwise(ticks.values))
    assert all(len(ticks.show(value)) <= 18 for value in ticks.values)


@given(st.floats(-1e9, 1e9), st.floats(1e-3, 1e9), st.integers(3, 12))
def test_there_are_marks_on_every_axis_of_some_length(low: float, length: float, most: int) -> None:
    assert len(find_ticks(low, low + length, most).values) >= 1
