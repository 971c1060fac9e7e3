from __future__ import annotations

import dataclasses
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.made_histories import ADD, COUNTED, OTHERS, TIMED, make_day, make_days
from tests.sample_runs import COUNT, HOST, WALL
from torchmark.analysis.history import trace_histories
from torchmark.model.case import TimerArgs
from torchmark.model.history import Difference, Ground, History, ShiftStanding
from torchmark.model.plan import Target
from torchmark.model.run import Run

OTHER_HOST = dataclasses.replace(HOST, cpu_model="Another")
REDEFINED = dataclasses.replace(ADD, args=TimerArgs("x + 2"))


def trace_one(runs: list[Run], anchor: Run | None = None) -> History:
    (history,) = trace_histories(runs, anchor)
    return history


def test_no_runs_have_no_history() -> None:
    assert trace_histories([]) == ()


def test_times_are_ratios_to_the_oldest_run_and_counts_are_as_they_are() -> None:
    history = trace_one([make_day(day, {ADD: (seconds, 5000)}) for day, seconds in enumerate((2.0, 4.0, 1.0))])
    assert [point.log_ratio for point in history.points] == pytest.approx([0, math.log(2), -math.log(2)])
    assert [point.instructions.value for point in history.points if point.instructions] == [5000] * 3
    assert history.anchor == history.points[0].run
    assert history.shifts == ()


def test_another_anchor_can_be_pinned_also_one_that_is_not_shown() -> None:
    anchor, *days = [make_day(day, {ADD: (seconds, 5000)}) for day, seconds in enumerate((2.0, 4.0, 8.0))]
    assert [point.log_ratio for point in trace_one(days, anchor).points] == pytest.approx([math.log(2), math.log(4)])
    assert trace_one(days, days[1]).anchors == (days[1].info,)


@pytest.mark.parametrize(
    "useless",
    [
        make_day(9, {ADD: (None, 5000)}),
        make_day(9, {ADD: (1.0, 5000)}, host=OTHER_HOST),
        make_day(9, {REDEFINED: (1.0, 5000)}),
        make_day(9, {OTHERS[0]: (1.0, 5000)}),
    ],
    ids=["failed", "other machine", "redefined", "without the case"],
)
def test_an_anchor_that_cannot_be_compared_gives_way_to_the_oldest_run(useless: Run) -> None:
    days = [make_day(day, {ADD: (1.0 + day, 5000)}) for day in range(2)]
    assert trace_one(days, useless) == trace_one(days)


def test_what_failed_and_what_was_not_planned_leave_no_point_and_a_gap() -> None:
    days = make_days([1.0] * 4 + [None] + [1.0] * 4, [5000, None, *[5000] * 7])
    days[6] = make_day(6, {OTHERS[0]: (1.0, 9000)})
    history = trace_histories(days)[0]
    assert [point.run.name for point in history.points] == [f"day-{i}" for i in range(9) if i != 6]
    assert [point.log_ratio is None for point in history.points] == [False] * 4 + [True] + [False] * 3
    assert history.points[1].instructions is None


def test_cases_come_as_the_newest_run_lists_them() -> None:
    older = make_day(0, {ADD: (1.0, 5000), OTHERS[2]: (1.0, 5000)})
    newer = make_day(1, {OTHERS[0]: (1.0, 5000), ADD: (1.0, 5000)})
    assert [history.case for history in trace_histories([older, newer])] == [OTHERS[0], ADD, OTHERS[2]]


def test_targets_have_histories_of_their_own() -> None:
    days = [make_day(day, {ADD: (1.0, 5000)}, target=Target(name, "/p")) for day, name in enumerate("abab")]
    assert [(one.target.name, len(one.points)) for one in trace_histories(days)] == [("b", 2), ("a", 2)]


def test_a_step_in_times_is_found_and_open() -> None:
    history = trace_one(make_days([1.0] * 8 + [1.1] * 8))
    (shift,) = history.shifts
    assert (shift.metrics, shift.position, shift.previous) == ((WALL,), 8, 7)
    assert (shift.standing, shift.ground) == (ShiftStanding.UNCONFIRMED, Ground.NONE)
    assert shift.share == pytest.approx(0.1, abs=0.01)
    assert shift.p_value is not None
    assert shift.pythons == (TIMED.python, TIMED.python)


def test_other_counts_are_confirmed_by_themselves() -> None:
    history = trace_one(make_days([1.0] * 5, [5000, 5020, 5051, 5051, 4900]))
    assert [(one.metrics, one.position, one.before, one.after, one.ground) for one in history.shifts] == [
        ((COUNT,), 2, 5020, 5051, Ground.EXACT),
        ((COUNT,), 4, 5051, 4900, Ground.EXACT),
    ]
    assert history.shifts[0].share == pytest.approx(31 / 5020)


@pytest.mark.parametrize(
    "counted",
    [
        dataclasses.replace(COUNTED, valgrind="3.23.0"),
        dataclasses.replace(COUNTED, variables=(("MKL_CBWR", "COMPATIBLE"),)),
    ],
)
def test_counts_with_other_settings_are_a_shift_of_the_environment(counted: object) -> None:
    days = [make_day(0, {ADD: (1.0, 5000)}), make_day(1, {ADD: (1.0, 5100)}, counted=counted)]  # type: ignore[arg-type]
    (shift,) = trace_one(days).shifts
    assert (shift.standing, shift.ground) == (ShiftStanding.ENVIRONMENT, Ground.SETTINGS)
    assert len(shift.differences) == 1


@pytest.mark.parametrize(
    ("change", "what"),
    [
        ({"host": OTHER_HOST}, "cpu"),
        ({"timed": dataclasses.replace(TIMED, cpu_capability="AVX512")}, "capability"),
        ({"timed": dataclasses.replace(TIMED, hash_seed="1")}, "hash seed"),
    ],
)
def test_another_machine_begins_a_segment_that_nothing_is_compared_with(change: dict[str, object], what: str) -> None:
    days = [make_day(day, {ADD: (1.0, 5000)}) for day in range(6)]
    days += [make_day(day, {ADD: (3.0, 7000)}, **change) for day in range(6, 12)]  # type: ignore[arg-type]
    history = trace_one(days)
    (shift,) = history.shifts
    assert (shift.metrics, shift.position, shift.share) == ((WALL, COUNT), 6, None)
    assert (shift.standing, shift.ground) == (ShiftStanding.ENVIRONMENT, Ground.MACHINE)
    assert [one.what for one in shift.differences] == [what]
    assert [point.segment for point in history.points] == [0] * 6 + [1] * 6
    assert [point.log_ratio for point in history.points] == [0.0] * 12
    assert history.anchor == days[6].info


def test_machines_that_take_turns_are_told_once_and_compared_with_themselves() -> None:
    days = [
        make_day(day, {ADD: ((1.0 + 0.2 * (day >= 16)) * (1 + day % 2), 5000)}, host=(HOST, OTHER_HOST)[day % 2])
        for day in range(32)
    ]
    history = trace_one(days)
    assert [(one.position, one.ground) for one in history.shifts] == [
        (1, Ground.MACHINE),
        (16, Ground.NONE),
        (17, Ground.NONE),
    ]


def test_another_definition_is_told_and_nothing_is_compared_with_it() -> None:
    days = [make_day(day, {ADD if day < 3 else REDEFINED: (1.0 + day, 5000 + 100 * (day >= 3))}) for day in range(4)]
    history = trace_one(days)
    (shift,) = history.shifts
    assert (shift.standing, shift.ground) == (ShiftStanding.REDEFINED, Ground.DEFINITION)
    assert shift.differences == (Difference("definition", "stmt: x + 1", "stmt: x + 2"),)
    assert history.case == REDEFINED


def test_tags_are_no_definition() -> None:
    tagged = dataclasses.replace(ADD, tags=("quick",))
    assert trace_one([make_day(0, {ADD: (1.0, 5000)}), make_day(1, {tagged: (1.0, 5000)})]).shifts == ()


@given(st.lists(st.none() | st.floats(1e-9, 1e3), min_size=1, max_size=12), st.floats(1e-3, 1e3))
def test_the_unit_of_time_does_not_matter(seconds: list[float | None], factor: float) -> None:
    both = [
        trace_one([make_day(day, {ADD: (None if s is None else s * unit, 5000)}) for day, s in enumerate(seconds)])
        for unit in (1.0, factor)
    ]
    for one, other in zip(both[0].points, both[1].points, strict=True):
        assert (one.log_ratio is None) == (other.log_ratio is None)
        assert one.log_ratio == pytest.approx(other.log_ratio, abs=1e-9)
