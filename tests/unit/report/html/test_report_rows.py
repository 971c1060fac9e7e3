from __future__ import annotations

import dataclasses
import itertools
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.made_judgements import make_judgement, make_time
from tests.made_reports import make_entry, make_failed, make_small
from tests.made_summaries import make_case, make_summary
from torchmark.model.plan import Sampling
from torchmark.model.report_data import ReportEntry
from torchmark.report.html.report_details import list_numbers
from torchmark.report.html.report_page import describe_method
from torchmark.report.html.report_rows import (
    COMPARED,
    MOST_SAMPLES,
    SINGLE,
    Texts,
    choose_columns,
    find_main_stage,
    find_times,
    identify_row,
    pack_samples,
    shorten_number,
)

A = make_case("a")


def cells(entry: ReportEntry, *, compared: bool = True) -> dict[str, str]:
    return {column.key: column.fill(entry).text for column in (COMPARED if compared else SINGLE)}


def test_a_change_is_told_in_time_in_instructions_and_by_the_stage_it_is_in() -> None:
    told = cells(make_entry(A, 0.12))
    assert told["verdict"] == "▲ slower"
    assert (told["change"], told["time"], told["delta"], told["stage"]) == (
        "+12%",
        "1.12 us",
        "+1,200",
        "argument parsing",
    )


def test_a_failure_is_told_in_place_of_its_numbers_and_sorts_last() -> None:
    entry = make_failed(A)
    assert cells(entry)["time"] == "failed"
    assert next(column for column in COMPARED if column.key == "time").fill(entry).key is None


def test_a_single_side_is_told_what_costs_most() -> None:
    entry = make_entry(A, compared=False)
    assert cells(entry, compared=False)["stage"] == "kernel"
    assert find_main_stage(dataclasses.replace(entry, breakdown=None)) is None


def test_columns_with_nothing_in_them_are_left_out() -> None:
    entries = [dataclasses.replace(make_entry(A), breakdown=None)]
    assert "stage" not in [column.key for column in choose_columns(entries, compared=True)]
    assert [column.key for column in choose_columns([], compared=True)] == ["verdict"]


def test_times_in_turns_stand_in_for_samples_that_were_not_kept() -> None:
    bare = make_summary(A, None)
    entry = ReportEntry(A, (bare, bare), make_judgement(case=A, time=make_time(0.5, base_s=2e-6)))
    assert [f"{t:.3g}" for t in find_times(entry) if t is not None] == ["2e-06", "3e-06"]


def test_numbers_have_a_column_for_each_side_and_no_empty_rows() -> None:
    rows = dict(list_numbers(make_entry(A, 0.1)))
    assert rows["Median"] == ["1.00 us", "1.10 us"]
    assert rows["Instructions"] == ["10,000", "11,000"]
    assert "First compile" not in rows
    assert list_numbers(ReportEntry(A, (None,))) == []


def test_every_entry_of_a_report_has_all_cells() -> None:
    for compared in (True, False):
        for entry in make_small(compared=compared).entries:
            assert cells(entry, compared=compared)["verdict"]


def test_how_it_was_measured_tells_rounds_and_whether_sides_took_turns() -> None:
    times, counts = describe_method([Sampling(repeat=3), Sampling(repeat=3)], in_turns=True)
    assert "in 3 rounds; the sides were timed case by case." in times
    assert "5 layouts of memory" in counts
    assert describe_method([Sampling(())]) == ()


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
