from __future__ import annotations

import dataclasses
import time
from collections.abc import Iterator

import pytest

from tests.made_histories import ADD, OTHERS, TIMED, make_day, make_days
from tests.sample_runs import COUNT, HOST, WALL
from torchmark.analysis.history import confirm, trace_histories
from torchmark.model.case import TimerArgs
from torchmark.model.history import History
from torchmark.model.run import Run
from torchmark.report.text.history import MANY, render_histories, tell_day
from torchmark.report.text.terminal import measure

NEW_TORCH = dataclasses.replace(TIMED, torch_version="2.14.0", torch_commit="0" * 40, python="/new/python")
STEP = [1.0] * 10 + [1.1] * 10


@pytest.fixture(autouse=True)
def utc() -> Iterator[None]:
    """Days are those of one place."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TZ", "UTC")
        time.tzset()
        yield
    time.tzset()


def settle(runs: list[Run]) -> list[History]:
    whole = {run.info.id: run for run in runs}
    return [confirm(history, whole) for history in trace_histories(runs)]


def test_a_block_has_series_marks_and_changes() -> None:
    runs = [
        make_day(day, {ADD: (level, 5000 + 500 * (day >= 10))}, timed=TIMED if day < 10 else NEW_TORCH)
        for day, level in enumerate(STEP)
    ]
    assert render_histories(settle(runs), 80).splitlines() == [
        "Pointwise / add, Python",
        "  time: +10.0 % against day-0, 20 runs",
        "  ▁▁▁▁▁▁▁▁▁▁██████████",
        "            ^",
        "  instructions: 5,500, +500 (+10.0 %) since the oldest of 20 runs",
        "  ▁▁▁▁▁▁▁▁▁▁██████████",
        "            ^",
        "  ^ 2023-11-24 day-10: instructions +500 (+10.0 %), confirmed: counts are exact.",
        "    torch 2.13.0 → 2.14.0.",
        "  ^ 2023-11-24 day-10: time +10.0 %, confirmed: its instructions changed with",
        "    it. torch 2.13.0 → 2.14.0.",
        "",
        "^ confirmed",
        "1 case in 20 runs: something changed.",
    ]


@pytest.mark.parametrize("width", [40, 80])
def test_it_fits_and_is_ascii_where_it_has_to_be(width: int) -> None:
    runs = make_days([1.0] * 100 + [1.2] * 100, others=[1.0] * 50 + [1.1] * 150, environments={100: NEW_TORCH})
    for plain in (False, True):
        text = render_histories(settle(runs), width, plain=plain)
        assert max(map(measure, text.splitlines())) <= width
        assert text.isascii() == plain


def test_what_is_open_names_the_comparison_that_would_tell() -> None:
    runs = [
        make_day(day, {ADD: (level, 5000)}, timed=TIMED if day < 10 else dataclasses.replace(TIMED, python="/b/python"))
        for day, level in enumerate(STEP)
    ]
    histories = settle(runs)
    command = """torchmark ab standard --base /usr/bin/python3 --head /b/python -k '"Pointwise / add" and python'"""
    text = render_histories(histories, 200, interpreters={"/usr/bin/python3", "/b/python"})
    assert "? 2023-11-24 day-10: time +10.0 %, unconfirmed: nothing else that was measured explains it." in text
    assert f"    Find out with:  {command}\n" in text
    assert "torchmark ab" not in render_histories(histories, 200, interpreters={"/usr/bin/python3"})
    same = settle(make_days(STEP))
    assert "torchmark ab" not in render_histories(same, 200, interpreters={TIMED.python})


def test_other_cases_are_named_as_a_reason() -> None:
    runs = [make_day(day, dict.fromkeys((ADD, *OTHERS), (level, 5000))) for day, level in enumerate(STEP)]
    text = render_histories(settle(runs), 120)
    assert "environment shift: 3 other cases shifted by +10.0 % in the median." in text
    text = render_histories(settle(make_days(STEP, others=[1.0] * 20)), 100)
    assert "unconfirmed: 3 other cases did not shift with it." in text


def test_borders_of_segments_are_told() -> None:
    redefined = dataclasses.replace(ADD, args=TimerArgs("x + 2"))
    runs = [
        make_day(0, {ADD: (1.0, 5000)}),
        make_day(1, {ADD: (2.0, 5000)}, host=dataclasses.replace(HOST, cpu_model="Another")),
        make_day(2, {redefined: (2.0, 5000)}, host=dataclasses.replace(HOST, cpu_model="Another")),
    ]
    text = render_histories(settle(runs), 120)
    assert (
        "~ 2023-11-15 day-1: environment shift: nothing is compared across it. cpu A Fine CPU @ 2.30GHz → Anoth" in text
    )
    assert "| 2023-11-16 day-2: redefined: nothing is compared across it. definition stmt: x + 1 → stmt: x + 2." in text
    assert "   ~|\n" in text


def test_an_anchor_that_is_of_no_use_is_told() -> None:
    runs = [make_day(day, {ADD: (1.0, 5000)}) for day in range(3)]
    pinned = make_day(9, {OTHERS[0]: (1.0, 5000)})
    text = render_histories([confirm(one) for one in trace_histories(runs, pinned)], 100, pinned=pinned.info)
    assert "time: +0.0 % against day-0, 3 runs; day-9 has no time that it can be compared with" in text


def test_only_what_was_asked_for_is_shown() -> None:
    histories = settle(make_days(STEP, [5000] * 10 + [5500] * 10))
    assert "instructions:" not in render_histories(histories, 80, metrics=[WALL])
    assert "time:" not in render_histories(histories, 80, metrics=[COUNT])


def test_one_run_is_no_history_and_nothing_is_nothing() -> None:
    text = render_histories(settle([make_day(0, {ADD: (1.0, 5000)})]), 80)
    assert "time: measured in one run only; a history takes two" in text
    assert "instructions: 5,000; counted in one run only" in text
    text = render_histories(settle([make_day(day, {ADD: (None, None)}) for day in range(2)]), 80)
    assert "Nothing was measured in 2 runs." in text


def test_of_many_cases_those_that_changed_are_shown() -> None:
    cases = [dataclasses.replace(ADD, label=(f"case {i}",)) for i in range(MANY + 1)]
    runs = [make_day(day, {case: (1.0, 5000 + 99 * day * (case is cases[3])) for case in cases}) for day in range(2)]
    text = render_histories(settle(runs), 100)
    assert text.startswith("case 3, Python\n")
    assert text.count("Python\n") == 1
    assert " ".join(text.split()).endswith(
        "changed in 1 of them. The others are not shown; name them, or choose fewer with -k."
    )
    text = render_histories(settle(runs[:1] * 2), 100)
    assert text == "13 cases in 1 run: nothing changed. They are not shown; name them, or choose fewer with -k."


def test_names_of_others_do_not_steer_the_terminal() -> None:
    run = make_day(0, {dataclasses.replace(ADD, label=("\x1b[31mred",)): (1.0, 5000)})
    other = dataclasses.replace(run, info=dataclasses.replace(run.info, id="f" * 32, name="\x1b[2J"))
    text = render_histories(settle([other, run]), 80)
    assert all(line.isprintable() for line in text.splitlines())


def test_a_moment_that_no_calendar_has_is_a_question_mark() -> None:
    assert tell_day(0.0) == "1970-01-01"
    assert tell_day(1e300) == "?"
