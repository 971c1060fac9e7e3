"""Statements that were timed together: the table and the sentence below it."""

from __future__ import annotations

import re

import pytest

from torchmark import Measurement, TaskSpec
from torchmark.analysis.summarise import TimedStatement, rank
from torchmark.model.task import Times
from torchmark.report.text.measurement import (
    LONGEST_NAME,
    conclude,
    name_rows,
    render_standings,
    shorten_name,
)
from torchmark.report.text.terminal import measure

EQUAL = [1.0, 1.1, 1.2, 1.3, 1.2, 1.1, 1.0, 1.3]


def timed(name: str, microseconds: float) -> TimedStatement:
    """The 95 % interval of the median of 20 samples is from the sixth to the fifteenth of them."""
    shares = [0.99] * 6 + [1.0] * 8 + [1.01] * 6
    return TimedStatement(TaskSpec(name, "pass"), Times(1, tuple(share * microseconds * 1e-6 for share in shares)))


def test_a_row_has_three_digits_intervals_and_the_ratio_to_the_fastest() -> None:
    standings, names = rank([[1.0] * 8, [1.2] * 8]), ["x + y", "torch.add(x, y)"]
    assert render_standings("1 thread", names, [timed("", 1.0), timed("", 1.2)], standings, 80) == [
        "1 thread            median      95 % interval  ratio  95 % interval",
        "  x + y            1.00 us  0.990 to 1.010 us   1.00",
        "  torch.add(x, y)  1.20 us  1.188 to 1.212 us   1.20   1.20 to 1.20",
    ]


@pytest.mark.parametrize("texts", [["x" * 200 + "a" + "x" * 200, "x" * 401], ["算" * 99, "a"], ["f()\n1", "f()\n2"]])
def test_a_table_fits_and_no_two_rows_have_the_same_name(texts: list[str]) -> None:
    results, standings = [timed(text, 999) for text in texts], rank([[1.0] * 8, [99.0] * 8])
    lines = render_standings("2 threads", name_rows(texts), results, standings, 80)
    assert max(map(measure, lines)) <= 80
    names = [*map(shorten_name, name_rows(texts))]
    assert len(set(names)) == 2
    assert max(map(measure, names)) <= LONGEST_NAME


def test_the_same_statement_twice_has_two_names() -> None:
    assert name_rows(["x", "y", "x"]) == ["[1] x", "[2] y", "[3] x"]


@pytest.mark.parametrize(
    ("series", "sentence"),
    [
        ([[2.0] * 8, [1.0] * 8], "B is faster: A takes 2.00 times as long (95 % interval 2.00 to 2.00)."),
        (
            [EQUAL, EQUAL[::-1]],
            "These measurements cannot tell which is faster: the ratio lies between 0.77 and 1.30.",
        ),
        (
            [[1.0] * 8, [1.01] * 8],
            "These measurements cannot tell which is faster: the ratio lies between 1.01 and 1.01, and a "
            "difference below 5 % can come from the layout of memory.",
        ),
        (
            [[1.0] * 3, [9.0] * 3],
            "These measurements cannot tell which is faster: there are too few rounds in turns for an interval of the "
            "ratio.",
        ),
        (
            [[2.0] * 8, [1.0] * 8, [3.0] * 8],
            "B is the fastest: A, the next one, takes 2.00 times as long (95 % interval 2.00 to 2.00).",
        ),
        (
            [[1.0] * 8, [1.0] * 8, [3.0] * 8],
            "These measurements cannot tell which of A and B is the fastest: the ratio lies between 1.00 and 1.00.",
        ),
        (
            [[1.0] * 8] * 3,
            "These measurements cannot tell which of A, B and C is the fastest: their ratios may be 1, or differ from "
            "it by less than 5 %.",
        ),
    ],
)
def test_one_sentence_says_which_is_faster_or_that_it_cannot_be_told(series: list[list[float]], sentence: str) -> None:
    assert conclude("ABC"[: len(series)], rank(series)) == sentence


def shown(measurement: Measurement) -> str:
    return re.sub(r"0x[0-9a-f]+", "0xXXXXXXXXXXXX", repr(measurement))


HEADING = "<torchmark.Measurement object at 0xXXXXXXXXXXXX>\n"
PASS = TaskSpec("pass", "pass")


def test_a_single_sample_shows_its_time_without_calling_it_a_median() -> None:
    text = shown(Measurement(5, [5e-6], PASS))
    assert text == HEADING + "pass\n  1.00 us\n  1 measurement, 5 runs, 1 thread"


def test_a_single_run_is_singular() -> None:
    assert shown(Measurement(1, [1e-6], PASS)).endswith("1 measurement, 1 run, 1 thread")


def test_quartiles_are_shown_from_four_samples_on() -> None:
    three = shown(Measurement(1, [1e-6, 1e-6, 1e-6], PASS))
    four = shown(Measurement(1, [1e-6, 1e-6, 1e-6, 1e-6], PASS))
    assert "IQR" not in three
    assert "  IQR:    0.00 us (1.00 to 1.00)\n" in four
    assert four.endswith("  4 measurements, 1 runs per measurement, 1 thread")


def test_no_samples_print_sensibly() -> None:
    assert shown(Measurement(5, [], PASS)) == HEADING + "pass\n  0 measurements, 5 runs per measurement, 1 thread"


@pytest.mark.parametrize(
    ("seconds", "text"), [(3e-10, "0.30 ns"), (4.2e-12, "0.0042 ns"), (0.0, "0.00 ns"), (1.5e-9, "1.50 ns")]
)
def test_times_of_a_nanosecond_and_less(seconds: float, text: str) -> None:
    assert f"  {text}\n" in shown(Measurement(1, [seconds], PASS))


def test_labels_description_setup_and_threads() -> None:
    spec = TaskSpec("x", "x = 1\ny = 2", label="L", sub_label="S", description="D", num_threads=16)
    assert shown(Measurement(10, [1e-2, 1e-2], spec)) == HEADING + (
        "L: S\nD\nsetup:\n  x = 1\n  y = 2\n\n  Median: 1.00 ms\n  2 measurements, 10 runs per measurement, 16 threads"
    )


def test_a_wide_result_warns() -> None:
    # quartiles 1.05 and 1.15: 9.1 % is fine; 1 and 1.2 around 1.1: 18 %
    fine = Measurement(1, [1.0, 1.05, 1.1, 1.15, 1.2], PASS)
    wide = Measurement(1, [0.9, 1.0, 1.1, 1.2, 1.3], PASS)
    assert "WARNING" not in shown(fine)
    assert shown(wide).endswith(
        "\n  WARNING: Interquartile range is 18.2% of the median measurement."
        "\n           This could indicate system fluctuation."
    )


def test_a_very_wide_result_warns_louder_even_with_two_samples() -> None:
    assert shown(Measurement(1, [1.0, 3.0], PASS)).endswith(
        "\n  WARNING: Interquartile range is 50.0% of the median measurement."
        "\n           This suggests significant environmental influence."
    )
