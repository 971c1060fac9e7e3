from __future__ import annotations

import dataclasses
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.made_judgements import make_time
from torchmark.report.text.units import (
    explain_level,
    find_bound,
    find_seconds,
    show_allocation_delta,
    show_change,
    show_delta,
    show_interval,
    show_magnitude,
    show_seconds,
    to_share,
    word_change,
    word_interval,
    word_level,
    word_seconds,
    word_share,
)


@pytest.mark.parametrize(
    ("share", "text"),
    [
        (0.0, "0%"),
        (1e-9, "0%"),
        (-0.0004, "-0.04%"),
        (0.0193, "+1.9%"),
        (0.41, "+41%"),
        (9.0, "+900%"),
        (-math.inf, "-∞"),
        (math.nan, "?"),
    ],
)
def test_a_change_has_a_sign_unless_it_is_nothing(share: float, text: str) -> None:
    assert show_change(share) == text
    assert word_change(share) == text.replace("%", " %")


def test_the_bound_is_the_farther_end_of_the_interval() -> None:
    assert find_bound(make_time(0.0, 0.02)) == pytest.approx(math.expm1(0.02))
    assert find_bound(make_time(math.expm1(-0.5), 0.01)) == pytest.approx(-math.expm1(-0.51))


def test_seconds_are_a_share_of_those_of_base() -> None:
    assert find_seconds(make_time(0.02, base_s=1e-6)) == pytest.approx(2e-8)
    assert [show_seconds(seconds) for seconds in (2e-8, -2e-8, 0.0, -math.inf)] == ["+20 ns", "-20 ns", "0 ns", "-∞"]
    assert [word_seconds(seconds) for seconds in (9.96e-7, 1.26e-4, 3e-10, 72.0)] == [
        "1 us",
        "130 us",
        "0.3 ns",
        "72 s",
    ]


def test_counts_are_whole_unless_they_are_few() -> None:
    assert [show_delta(number) for number in (12.4, -9.4, 0.04, math.inf)] == ["+12", "-9.4", "0", "+∞"]
    assert [show_allocation_delta(number) for number in (-1.0, 0.5, 0.0)] == ["-1", "+0.50", "0"]


@given(st.floats(-50, 50))
def test_a_log_ratio_and_its_share_are_the_same_ratio(log_ratio: float) -> None:
    assert 1 + to_share(log_ratio) == pytest.approx(math.exp(log_ratio))


@given(st.floats())
def test_no_number_is_too_large_for_a_column(number: float) -> None:
    for show in (show_magnitude, show_change, word_share, word_change):
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
    assert (show_interval(time), word_interval(time)) == (column, sentence)


def test_no_interval_is_shown_as_none() -> None:
    time = dataclasses.replace(make_time(0.02), low=-math.inf, high=math.inf, confidence=0.0)
    assert (show_interval(time), explain_level(time)) == ("", "")
    assert word_interval(time) == "no interval: too few samples"


@pytest.mark.parametrize(
    ("confidence", "level", "reason"),
    [
        (0.99, "99 %", ""),
        (0.933422, "93 %", "it takes the 95 % interval of each side, and both have to hold"),
        (0.5, "50 %", "there are too few samples for 95 %"),
    ],
)
def test_a_level_is_round_and_says_why_it_is_not_95_per_cent(confidence: float, level: str, reason: str) -> None:
    time = dataclasses.replace(make_time(0.02), confidence=confidence, layouts=0)
    assert (word_level(time.confidence), explain_level(time)) == (level, reason)
