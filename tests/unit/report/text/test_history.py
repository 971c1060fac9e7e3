from __future__ import annotations

import dataclasses
import time
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.made_histories import ADD, OTHERS, OWN, TIMED, make_day, make_days
from tests.sample_runs import COUNT, HOST, WALL
from torchmark.analysis.history import confirm, trace_histories
from torchmark.model.history import Difference, Ground, History, Shift, ShiftStanding
from torchmark.model.plan import TimerArgs
from torchmark.model.run import Run
from torchmark.report.text.history import (
    ASCII_BLOCKS,
    BLOCKS,
    MANY,
    describe_shift,
    draw,
    format_command,
    format_day,
    render_histories,
)
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
    assert format_day(0.0) == "1970-01-01"
    assert format_day(1e300) == "?"


OPEN = Shift(
    metrics=(WALL,),
    position=5,
    previous=4,
    standing=ShiftStanding.UNCONFIRMED,
    ground=Ground.NONE,
    before=0.0,
    after=0.0953101798,
    pythons=("/a/python", "/b c/python"),
)


@pytest.mark.parametrize("ground", Ground)
def test_every_ground_has_words(ground: Ground) -> None:
    text = describe_shift(dataclasses.replace(OPEN, ground=ground, others=3, common=0.1))
    assert text.startswith("time +10.0 %, unconfirmed: ")
    assert text.endswith(".")


def test_a_version_stands_for_its_commit_and_commits_are_short() -> None:
    differences = (
        Difference("torch", "2.12", "2.13"),
        Difference("torch commit", "0" * 40, "1" * 40),
        Difference("commit", None, "2" * 40),
        Difference("$MKL_CBWR", "\x1b[1m" + "x" * 100, None),
    )
    text = describe_shift(dataclasses.replace(OPEN, differences=differences), plain=True)
    assert "torch 2.12 -> 2.13, commit none -> 2222222222, $MKL_CBWR  [1mxxx" in text
    assert text.endswith("… -> none.")
    assert "11111" not in text
    assert "1111111111." in describe_shift(dataclasses.replace(OPEN, differences=differences[1:2]))


def test_from_no_instructions_at_all_there_is_no_share() -> None:
    shift = Shift(
        metrics=(COUNT,),
        position=1,
        previous=0,
        standing=ShiftStanding.CONFIRMED,
        ground=Ground.EXACT,
        before=0.0,
        after=1234.0,
    )
    assert describe_shift(shift) == "instructions +1,234, confirmed: counts are exact."


def test_a_command_quotes_what_has_to_be_quoted() -> None:
    case = dataclasses.replace(ADD, label=('a "b"',), suite="my suite.py")
    history = History(case, OWN, (), ())
    there = {"/a/python", "/b c/python"}
    command = format_command(history, OPEN, there)
    assert command == (
        "torchmark ab 'my suite.py' --base /a/python --head '/b c/python' -k '\"a \"\"b\"\"\" and python'"
    )
    assert format_command(history, dataclasses.replace(OPEN, standing=ShiftStanding.CONFIRMED), there) is None
    assert format_command(history, dataclasses.replace(OPEN, pythons=None), there) is None
    assert format_command(history, OPEN, {"/a/python"}) is None


SERIES = st.lists(st.none() | st.floats(-1e6, 1e6), max_size=60)


def test_nothing_and_gaps_alone_are_blank() -> None:
    assert draw([], 10).text == ""
    assert draw([None, None], 10).text == "  "


def test_what_is_all_alike_is_flat() -> None:
    assert draw([5.0] * 4, 10).text == "▁▁▁▁"


def test_lowest_and_highest_fill_the_height() -> None:
    assert draw([0.0, 7.0, 3.0], 10).text == "▁█▄"
    assert draw([0.0, 7.0, 3.0], 10, blocks=ASCII_BLOCKS).text == "_#="


def test_a_span_near_the_smallest_float_fills_the_height() -> None:
    assert draw([0.0, 2.2e-309], 10).text == "▁█"


def test_noise_looks_as_small_as_it_is() -> None:
    assert draw([0.0, 0.001, 0.0], 10, least_span=0.02).text == "▁▁▁"


def test_several_values_of_a_column_are_their_median() -> None:
    line = draw([0.0, 0.0, 9.0, 7.0, 7.0, 7.0], 2)
    assert line.text == "▁█"
    assert line.columns == (0, 0, 0, 1, 1, 1)


def test_marks_stand_below_their_values() -> None:
    assert draw([0.0] * 3 + [1.0] * 3, 10).mark({3: "^", 0: "~"}) == "~  ^"
    assert draw([0.0] * 3 + [1.0] * 3, 2).mark({3: "^", 4: "?"}) == " ^"
    assert draw([0.0], 10).mark({}) == ""


@given(SERIES, st.integers(1, 80))
def test_every_value_has_a_column_and_the_line_fits(values: list[float | None], width: int) -> None:
    line = draw(values, width)
    assert len(line.text) == min(len(values), width)
    assert set(line.text) <= {*BLOCKS, " "}
    assert list(line.columns) == sorted(line.columns)
    if len(values) <= width:
        assert [c == " " for c in line.text] == [value is None for value in values]
    assert all(0 <= column < len(line.text) for column in line.columns)
