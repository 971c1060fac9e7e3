from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from torchmark.report.plots.axes import Span, find_limits, mark_ticks, scale_times, widen

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
