"""Large data in little room, and nothing of it lost that can be seen."""

from __future__ import annotations

import itertools
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.made_summaries import make_case
from torchmark.report.html.report_rows import MOST_SAMPLES, Texts, identify_row, pack_samples, shorten_number


@given(st.lists(st.floats(1e-9, 1e3), min_size=1, max_size=200))
def test_samples_come_back_within_a_ten_thousandth_of_the_median(samples: list[float]) -> None:
    packed = pack_samples(samples)
    assert packed is not None
    number, step, *steps = packed
    assert number == len(samples)
    values = [total * step for total in itertools.accumulate(steps)]
    assert values == sorted(values)
    assert len(values) == min(number, MOST_SAMPLES)
    if len(values) == number:
        median = sorted(samples)[len(samples) // 2]
        assert values == pytest.approx(sorted(samples), abs=median * 1e-4 * 10)


@pytest.mark.parametrize("samples", [(), (0.0,), (math.nan,), (math.inf,), (-1.0,)])
def test_where_there_is_nothing_to_draw_there_is_nothing(samples: tuple[float, ...]) -> None:
    assert pack_samples(samples) is None


def test_the_same_text_has_the_same_number() -> None:
    texts = Texts()
    assert [texts.number(text) for text in ("a", "b", "a")] == [0, 1, 0]
    assert texts.entries == ["a", "b"]


def test_a_case_is_known_by_its_labels_and_not_by_its_statement() -> None:
    one, same, other = make_case("add", stmt="x"), make_case("add", stmt="y"), make_case("add", threads=2)
    assert identify_row(one) == identify_row(same) != identify_row(other)
    assert identify_row(make_case("half \udcff")).isalnum()


@pytest.mark.parametrize(
    ("value", "short"), [(math.nan, 0), (math.inf, 0), (2.0, 2), (0.12345, 0.1235), (-3.456, -3.46)]
)
def test_numbers_are_as_short_as_they_are_read(value: float, short: float) -> None:
    assert shorten_number(value) == short
