from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from torchmark.report.text.units import decimals_for, format_time, select_unit, trim_sigfig, unit_to_english


@pytest.mark.parametrize(
    ("t", "unit", "scale"),
    [
        (1.0, "s", 1.0),
        (3600.0, "s", 1.0),
        (0.99, "ms", 1e-3),
        (1e-3, "ms", 1e-3),
        (1e-6, "us", 1e-6),
        (999.9e-9, "ns", 1e-9),
        (1e-9, "ns", 1e-9),
        (3e-10, "ns", 1e-9),
        (0.0, "ns", 1e-9),
        (-2e-3, "ms", 1e-3),
        (math.inf, "s", 1.0),
        (1e-6 * (1 - 1e-16 * 4), "us", 1e-6),  # a microsecond that division left a hair short
        (1e-6 * (1 - 1e-6), "ns", 1e-9),
    ],
)
def test_select_unit(t: float, unit: str, scale: float) -> None:
    assert select_unit(t) == (unit, scale)


@pytest.mark.parametrize(
    ("unit", "english"), [("ns", "nanosecond"), ("us", "microsecond"), ("ms", "millisecond"), ("s", "second")]
)
def test_english_units(unit: str, english: str) -> None:
    assert unit_to_english(unit) == english


def test_an_unknown_unit_is_a_key_error() -> None:
    with pytest.raises(KeyError):
        unit_to_english("h")


@pytest.mark.parametrize(
    ("x", "n", "expected"),
    [
        (3.14159, 2, 3.1),
        (123456789.0, 9, 123456789.0),
        (4174.4, 2, 4200.0),
        (7.55, 1, 8.0),
        (-0.001234, 2, -0.0012),
        (100.0, 1, 100.0),
        (0.0, 3, 0.0),
        (250.00000000000003, 1, 200.0),  # halfway but for a hair: to even
        (250.001, 1, 300.0),
        (999.9999999999999, 2, 1000.0),
    ],
)
def test_trim_sigfig(x: float, n: int, expected: float) -> None:
    assert trim_sigfig(x, n) == expected


def test_a_broken_number_of_figures_is_refused() -> None:
    with pytest.raises(AssertionError, match="Number of significant figures must be an integer"):
        trim_sigfig(1.0, 1.5)  # type: ignore[arg-type]


@given(st.floats(1e-12, 1e12), st.integers(1, 8))
def test_trimming_moves_a_number_by_at_most_half_of_its_last_figure(x: float, n: int) -> None:
    step = 10.0 ** (math.ceil(math.log10(x)) - n)
    assert abs(trim_sigfig(x, n) - x) <= step / 2 * (1 + 1e-3)


@pytest.mark.parametrize(
    ("t", "text"),
    [
        (0.0, "0.00 ns"),
        (3e-10, "0.30 ns"),
        (998e-9, "998 ns"),
        (1.9e-6, "1.90 us"),
        (12.34e-3, "12.3 ms"),
        (4321.0, "4321 s"),
        (-2e-3, "-2.00 ms"),
    ],
)
def test_a_time_on_its_own_has_three_figures(t: float, text: str) -> None:
    assert format_time(t) == text


@pytest.mark.parametrize(("value", "decimals"), [(0.0, 2), (1.0, 2), (0.1, 2), (0.05, 3), (0.0042, 4), (math.inf, 2)])
def test_small_numbers_get_enough_decimals_to_show_two_figures(value: float, decimals: int) -> None:
    assert decimals_for(value) == decimals
