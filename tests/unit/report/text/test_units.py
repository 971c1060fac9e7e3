from __future__ import annotations

import dataclasses
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.made_judgements import make_time
from torchmark.report.text.units import (
    decimals_for,
    explain_level,
    find_bound,
    find_seconds,
    format_allocation_delta,
    format_change,
    format_change_cell,
    format_delta,
    format_interval,
    format_interval_cell,
    format_level,
    format_magnitude_cell,
    format_seconds,
    format_seconds_change,
    format_share,
    format_time,
    select_unit,
    to_share,
    trim_sigfig,
    unit_to_english,
)


@pytest.mark.parametrize(
    ("share", "text"),
    [
        (0.0, "0%"),
        (1e-9, "0%"),
        (-0.0004, "-0.04%"),
        (0.0193, "+1.9%"),
        (0.41, "+41%"),
        (-0.41, "-41%"),
        (9.0, "+900%"),
        (-math.inf, "-∞"),
        (math.nan, "?"),
    ],
)
def test_a_change_has_a_sign_unless_it_is_nothing(share: float, text: str) -> None:
    assert format_change_cell(share) == text
    assert format_change(share) == text.replace("%", " %")


def test_the_bound_is_the_farther_end_of_the_interval() -> None:
    assert find_bound(make_time(0.0, 0.02)) == pytest.approx(math.expm1(0.02))
    assert find_bound(make_time(math.expm1(-0.5), 0.01)) == pytest.approx(-math.expm1(-0.51))


def test_seconds_are_a_share_of_those_of_base() -> None:
    assert find_seconds(make_time(0.02, base_s=1e-6)) == pytest.approx(2e-8)
    assert [format_seconds_change(seconds) for seconds in (2e-8, -2e-8, 0.0, -1.234e-3, -math.inf)] == [
        "+20 ns",
        "-20 ns",
        "0 ns",
        "-1.2 ms",
        "-∞",
    ]
    assert [format_seconds(seconds) for seconds in (-29.3e-9, 9.96e-7, 1.26e-4, 3e-10, 72.0)] == [
        "29 ns",
        "1 us",
        "130 us",
        "0.3 ns",
        "72 s",
    ]


def test_counts_are_whole_unless_they_are_few() -> None:
    assert [format_delta(number) for number in (3712.4, 12.4, -9.4, 0.04, math.inf)] == [
        "+3,712",
        "+12",
        "-9.4",
        "0",
        "+∞",
    ]
    assert [format_allocation_delta(number) for number in (-1.0, 0.5, -0.25, 0.0)] == ["-1", "+0.50", "-0.25", "0"]


@given(st.floats(-50, 50))
def test_a_log_ratio_and_its_share_are_the_same_ratio(log_ratio: float) -> None:
    assert 1 + to_share(log_ratio) == pytest.approx(math.exp(log_ratio))


def test_a_share_without_a_number_is_endless() -> None:
    assert to_share(1e6) == math.inf


def test_what_is_enormous_is_told_by_its_power_of_ten() -> None:
    assert [format_magnitude_cell(share) for share in (-0.0193, 2.5e9, math.inf)] == ["1.9%", "2e+11%", "∞"]


@given(st.floats())
def test_no_number_is_too_large_for_a_column(number: float) -> None:
    for show in (format_magnitude_cell, format_change_cell, format_share, format_change):
        assert len(show(number)) <= 9


@pytest.mark.parametrize(
    ("low", "change", "high", "column", "sentence"),
    [
        (0.015, 0.02, 0.025, "±0.5%", "+1.5 % to +2.5 %"),
        (-0.046, -0.021, -0.008, "-4.6% to -0.8%", "-4.6 % to -0.8 %"),
        (0.0154, 0.0204, 0.0254, "±0.5%", "+1.5 % to +2.5 %"),
        (0.0146, 0.0204, 0.0262, "+1.5% to +2.6%", "+1.5 % to +2.6 %"),
    ],
)
def test_a_row_and_a_sentence_give_the_same_ends(
    low: float, change: float, high: float, column: str, sentence: str
) -> None:
    time = dataclasses.replace(make_time(0.0), low=math.log1p(low), log_ratio=math.log1p(change), high=math.log1p(high))
    assert (format_interval_cell(time), format_interval(time)) == (column, sentence)


def test_no_interval_is_shown_as_none() -> None:
    time = dataclasses.replace(make_time(0.02), low=-math.inf, high=math.inf, confidence=0.0)
    assert (format_interval_cell(time), explain_level(time)) == ("", "")
    assert format_interval(time) == "no interval: too few samples"


@pytest.mark.parametrize(
    ("confidence", "level", "reason"),
    [
        (0.99, "99 %", ""),
        (0.9875, "98.8 %", ""),
        (0.933422, "93 %", "it takes the 95 % interval of each side, and both have to hold"),
        (0.5, "50 %", "there are too few samples for 95 %"),
    ],
)
def test_a_level_is_round_and_says_why_it_is_not_95_per_cent(confidence: float, level: str, reason: str) -> None:
    time = dataclasses.replace(make_time(0.02), confidence=confidence, layouts=0)
    assert (format_level(time.confidence), explain_level(time)) == (level, reason)


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
