from __future__ import annotations

import re

import pytest

from torchmark import Measurement, TaskSpec


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
