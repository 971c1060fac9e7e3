from __future__ import annotations

from unittest.mock import Mock, call

import click
import pytest

from torchmark import Measurement, TaskSpec, UsageError
from torchmark.cli.cmd_time import as_json, show
from torchmark.cli.parameters import Seconds, ThreadCounts
from torchmark.cli.timing import choose_budget, choose_method


@pytest.mark.parametrize(
    ("min_run_time", "adaptive", "number", "expected"),
    [
        (None, False, None, call.blocked_autorange(min_run_time=0.2, max_run_time=10.0)),
        (3.0, False, None, call.blocked_autorange(min_run_time=3.0, max_run_time=30.0)),
        (None, True, None, call.adaptive_autorange(min_run_time=0.01, max_run_time=10.0)),
        (3.0, True, None, call.adaptive_autorange(min_run_time=3.0, max_run_time=30.0)),
        (None, False, 50, call.repeat(7, 50)),
    ],
)
def test_options_choose_the_method(
    min_run_time: float | None, adaptive: bool, number: int | None, expected: object
) -> None:
    timer = Mock()
    choose_method(choose_budget(min_run_time, adaptive, number))(timer)
    assert timer.mock_calls == [expected]


@pytest.mark.parametrize(("min_run_time", "adaptive"), [(1.0, False), (None, True)])
def test_a_fixed_number_contradicts_a_chosen_one(min_run_time: float | None, adaptive: bool) -> None:
    with pytest.raises(UsageError, match="--number"):
        choose_budget(min_run_time, adaptive, 5)


@pytest.mark.parametrize(("text", "numbers"), [("1", (1,)), ("1,2,16", (1, 2, 16)), ("4, 2", (4, 2))])
def test_thread_lists(text: str, numbers: tuple[int, ...]) -> None:
    assert ThreadCounts().convert(text, None, None) == numbers


@pytest.mark.parametrize("text", ["", "0", "1,-2", "two", "1,,2", "1.5", "99999999999"])
def test_what_is_no_thread_list_is_refused(text: str) -> None:
    with pytest.raises(click.BadParameter, match="such as 1,2,4"):
        ThreadCounts().convert(text, None, None)


@pytest.mark.parametrize(("text", "seconds"), [("0", 0.0), ("1.5", 1.5), ("1e-3", 0.001)])
def test_seconds(text: str, seconds: float) -> None:
    assert Seconds().convert(text, None, None) == seconds


@pytest.mark.parametrize("text", ["nan", "inf", "-1", "soon", ""])
def test_what_is_no_length_of_time_is_refused(text: str) -> None:
    with pytest.raises(click.BadParameter, match=r"such as 0\.5"):
        Seconds().convert(text, None, None)


STEADY = [1e-6, 1.01e-6, 0.99e-6, 1e-6, 1.02e-6, 0.98e-6]


def test_one_result_is_shown_in_full_with_its_interval(capsys: pytest.CaptureFixture[str]) -> None:
    show([Measurement(1, STEADY, TaskSpec("x", "pass"))], set())
    out = capsys.readouterr().out
    assert out.startswith("x\n  Median: 1.00 us\n")
    assert "  The median lies between 0.98 and 1.02 us (97% confidence).\n" in out
    assert "NOTE" not in out


def test_several_results_are_a_table_with_notes_that_say_whose_they_are(capsys: pytest.CaptureFixture[str]) -> None:
    results = [Measurement(1, STEADY, TaskSpec("x", "pass")), Measurement(1, STEADY[:2], TaskSpec("y\nz", "pass"))]
    show(results, {"number"})
    out = capsys.readouterr().out
    assert "1 threads:" in out
    (note,) = [line for line in out.splitlines() if "NOTE" in line]
    assert note == "  NOTE: y ..., 1 thread: 2 samples; an interval of the median takes 6."


def test_advice_that_fits_several_notes_is_given_once(capsys: pytest.CaptureFixture[str]) -> None:
    show([Measurement(1, STEADY[:2], TaskSpec(name, "pass")) for name in "xyz"], set())
    out = capsys.readouterr().out
    assert out.count("NOTE: ") == 3
    assert out.count("Take more with a larger --min-run-time.") == 1


def test_json_has_raw_times_statistics_and_caveats() -> None:
    data = as_json([Measurement(2, [4.0], TaskSpec("x", "pass"))], {"y": "Traceback"})
    assert data["failures"] == [{"stmt": "y", "traceback": "Traceback"}]
    (entry,) = data["measurements"]
    assert entry["raw_times"] == [4.0]
    assert entry["summary"]["median_s"] == 2.0
    assert entry["caveats"] == [{"kind": "few_samples", "samples": 1, "wanted": 6}]
