from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.made_histories import ADD, COUNTED, DAY, OTHERS, OWN, TIMED, make_day, make_days
from tests.sample_runs import COUNT, HOST, WALL, compile_costs, only, tally, times
from torchmark.analysis.history import confirm, find_differences, is_open, list_neighbours, read_run, trace_histories
from torchmark.analysis.results import narrow_run
from torchmark.model.history import Difference, Ground, History, Shift, ShiftStanding
from torchmark.model.judgement import Spread
from torchmark.model.plan import Node, Target, TimerArgs
from torchmark.model.run import Run
from torchmark.model.task import Times

SLOWER = [1.0] * 10 + [1.1] * 10
NEW_TORCH = dataclasses.replace(TIMED, torch_version="2.14.0", python="/new/python")


def settle(runs: Sequence[Run]) -> History:
    """The history of `add`, confirmed as the command does it."""
    histories = trace_histories([narrow_run(run, cases=[ADD]) for run in runs])
    whole = {run.info.id: run for run in runs if run.info.id in list_neighbours(histories)}
    (history,) = (confirm(one, whole) for one in histories)
    return history


def settle_time(runs: Sequence[Run]) -> Shift:
    (shift,) = (one for one in settle(runs).shifts if one.metrics == (WALL,))
    return shift


def test_instructions_that_change_with_it_confirm_it() -> None:
    shift = settle_time(make_days(SLOWER, [5000] * 10 + [5500] * 10))
    assert (shift.standing, shift.ground) == (ShiftStanding.CONFIRMED, Ground.INSTRUCTIONS)


@pytest.mark.parametrize("place", [8, 9, 11, 12])
def test_instructions_tell_the_place_of_a_change_nearby(place: int) -> None:
    shift = settle_time(make_days(SLOWER, [5000] * place + [5500] * (20 - place)))
    assert (shift.ground, shift.position, shift.previous) == (Ground.INSTRUCTIONS, place, place - 1)


@pytest.mark.parametrize("counts", [[5000] * 7 + [5500] * 13, [5000] * 10 + [4500] * 10], ids=["far", "opposite"])
def test_other_instructions_elsewhere_or_the_other_way_confirm_nothing(counts: list[int]) -> None:
    assert settle_time(make_days(SLOWER, counts)).standing is ShiftStanding.UNCONFIRMED


def test_of_two_changes_in_times_only_the_nearer_follows_the_instructions() -> None:
    history = settle(make_days([1.0] * 20 + [1.2] * 4 + [1.5] * 20, [5000] * 22 + [6000] * 22))
    assert sorted(one.position for one in history.shifts if one.metrics == (WALL,)) in ([20, 22], [22, 24])
    grounds = [one.ground for one in history.shifts if one.metrics == (WALL,)]
    assert sorted(grounds, key=lambda one: one.value) == [Ground.INSTRUCTIONS, Ground.NONE]


def test_settings_that_changed_instructions_explain_the_time_too() -> None:
    other = dataclasses.replace(TIMED, variables=(("MKL_CBWR", "COMPATIBLE"),))
    counts = [5000] * 10 + [5500] * 10
    shift = settle_time(make_days(SLOWER, counts, environments={10: other}))
    assert (shift.standing, shift.ground) == (ShiftStanding.ENVIRONMENT, Ground.SETTINGS)
    shift = settle_time(make_days(SLOWER, environments={10: other}))
    assert (shift.standing, shift.ground) == (ShiftStanding.ENVIRONMENT, Ground.SETTINGS)


def test_most_other_cases_that_shift_alike_make_it_the_environment() -> None:
    shift = settle_time(make_days(SLOWER, others=[1.0] * 10 + [1.09] * 10))
    assert (shift.standing, shift.ground, shift.others) == (ShiftStanding.ENVIRONMENT, Ground.OTHER_CASES, 3)
    assert shift.common == pytest.approx(0.086, abs=0.01)


@pytest.mark.parametrize("others", [[1.0] * 20, [1.0] * 10 + [1.02] * 10, [1.0] * 10 + [0.9] * 10])
def test_other_cases_that_shift_less_or_the_other_way_explain_nothing(others: list[float]) -> None:
    shift = settle_time(make_days(SLOWER, others=others))
    assert (shift.standing, shift.others) == (ShiftStanding.UNCONFIRMED, 3)


def test_too_few_other_cases_explain_nothing() -> None:
    values = [make_day(day, {ADD: (level, 5000), OTHERS[0]: (level, 9000)}) for day, level in enumerate(SLOWER)]
    shift = settle_time(values)
    assert (shift.standing, shift.others, shift.common) == (ShiftStanding.UNCONFIRMED, 1, None)


@pytest.mark.parametrize(("counted", "ground"), [(True, Ground.OTHER_CASES), (False, Ground.SOFTWARE)])
def test_with_another_torch_other_cases_are_witnesses_only_if_they_run_the_same_instructions(
    counted: bool, ground: Ground
) -> None:
    runs = [
        make_day(
            day,
            {ADD: (level, None), **dict.fromkeys(OTHERS, (level, 9000 if counted else None))},
            timed=TIMED if day < 10 else NEW_TORCH,
        )
        for day, level in enumerate(SLOWER)
    ]
    assert settle_time(runs).ground is ground


def test_other_cases_with_other_instructions_are_no_witnesses() -> None:
    runs = [
        make_day(day, {ADD: (level, 5000), **dict.fromkeys(OTHERS, (level, 9000 + 500 * (day >= 10)))})
        for day, level in enumerate(SLOWER)
    ]
    shift = settle_time(runs)
    assert (shift.standing, shift.others) == (ShiftStanding.UNCONFIRMED, 0)


def test_another_torch_whose_level_later_runs_keep_confirms_it() -> None:
    shift = settle_time(make_days(SLOWER, environments={10: NEW_TORCH}))
    assert (shift.standing, shift.ground) == (ShiftStanding.CONFIRMED, Ground.SOFTWARE)
    assert "torch" in [one.what for one in shift.differences]
    assert shift.pythons == (TIMED.python, NEW_TORCH.python)


def test_another_commit_confirms_it_too() -> None:
    runs = [
        make_day(day, {ADD: (level, 5000)}, commit="old" if day < 10 else "new") for day, level in enumerate(SLOWER)
    ]
    assert settle_time(runs).ground is Ground.SOFTWARE


def test_another_torch_some_runs_earlier_confirms_nothing() -> None:
    assert settle_time(make_days(SLOWER, environments={6: NEW_TORCH})).standing is ShiftStanding.UNCONFIRMED


def test_only_the_runs_around_an_open_change_are_asked_for() -> None:
    histories = trace_histories(make_days(SLOWER))
    assert [int(run_id, 16) for run_id in list_neighbours(histories)] == [7, 8, 9, 10, 11, 12]
    assert list_neighbours(trace_histories(make_days(SLOWER, [5000] * 10 + [5500] * 10))) == ()
    assert list_neighbours(trace_histories(make_days([1.0] * 20))) == ()


def test_without_the_other_cases_an_open_change_stays_open() -> None:
    (history,) = trace_histories(make_days(SLOWER))
    assert confirm(history) == history
    assert is_open(history.shifts[0])


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


SUBJECT = (ADD.suite, ADD.key, "")


def test_rounds_weigh_alike_however_many_samples_they_have() -> None:
    # Medians of rounds 2 and 4: 3, where the median of all samples is 2.
    (reading,) = read_run(only(ADD, WALL, times(1, 2.0, 2.0, 2.0, 2.0), times(1, 4.0))).values()
    assert reading.log_time == pytest.approx(math.log(3))
    assert reading.instructions is None


def test_counts_have_the_range_of_all_layouts_of_all_rounds_per_run() -> None:
    (reading,) = read_run(only(ADD, COUNT, tally(100, 900, 1000, 1100), tally(10, 120, 121, 122))).values()
    assert reading.instructions == Spread(12.1, 9.0, 12.2)
    assert reading.log_time is None


def test_what_is_compiled_is_read_once_it_is_compiled() -> None:
    (reading,) = read_run(only(ADD, WALL, compile_costs(times(10, 0.5)))).values()
    assert reading.log_time == pytest.approx(math.log(0.5))


@pytest.mark.parametrize("nothing", [Times(1, ()), Times(1, (0.0,))])
def test_without_samples_or_a_clock_that_moves_there_is_no_time(nothing: Times) -> None:
    (reading,) = read_run(only(ADD, WALL, nothing)).values()
    assert not reading.has(WALL)


def test_what_failed_is_a_gap() -> None:
    readings = read_run(make_day(0, {ADD: (None, 5000), OTHERS[0]: (None, None)}))
    assert [reading.has(WALL) for reading in readings.values()] == [False, False]
    assert [reading.has(COUNT) for reading in readings.values()] == [True, False]


def test_the_same_case_in_two_targets_is_two_subjects() -> None:
    assert list(read_run(make_day(0, {ADD: (1.0, 5)}, target=Target("new", "/opt/python")))) == [
        (ADD.suite, ADD.key, "new")
    ]


def test_all_that_differs_is_named() -> None:
    before = read_run(make_day(0, {ADD: (1.0, 5000)}))[SUBJECT]
    later = dataclasses.replace(
        TIMED, torch_version="2.14.0", torch_commit="def456", python_version="3.12.1", hash_seed="1",
        cpu_capability="AVX512", variables=(("OMP_NUM_THREADS", "1"), ("PATH", "/elsewhere")),
    )  # fmt: skip
    counted = dataclasses.replace(COUNTED, valgrind="3.23.0")
    host = dataclasses.replace(HOST, cpu_model="Another", compiler="g++ 13", system="Linux 6.2")
    redefined = dataclasses.replace(ADD, args=TimerArgs("x + 2"))
    day = make_day(1, {redefined: (1.0, 5000)}, timed=later, counted=counted, host=host, commit="beef")
    after = read_run(day)[SUBJECT]
    assert find_differences(before, after, [WALL]) == (
        Difference("cpu", HOST.cpu_model, "Another"),
        Difference("definition", "stmt: x + 1", "stmt: x + 2"),
        Difference("capability", "AVX2", "AVX512"),
        Difference("hash seed", "0", "1"),
        Difference("torch", "2.13.0", "2.14.0"),
        Difference("torch commit", "abc123", "def456"),
        Difference("Python", "3.11.7", "3.12.1"),
        Difference("$OMP_NUM_THREADS", None, "1"),
        Difference("commit", "c0ffee", "beef"),
        Difference("compiler", "g++ 12", "g++ 13"),
        Difference("system", HOST.system, "Linux 6.2"),
    )
    assert Difference("Valgrind", "3.22.0", "3.23.0") in find_differences(before, after, [COUNT])


def test_what_is_alike_or_only_elsewhere_is_no_difference() -> None:
    before, after = (read_run(make_day(day, {ADD: (1.0 + day, 5000)}))[SUBJECT] for day in (0, 1))
    assert find_differences(before, after, [WALL, COUNT]) == ()
    assert after.info.created - before.info.created == DAY
    assert after.target == OWN
    assert before.conditions(WALL) == after.conditions(WALL)


def test_the_processor_of_a_reading_is_that_of_its_node() -> None:
    day, later = make_day(0, {ADD: (1.0, 5000)}), make_day(1, {ADD: (1.0, 5000)})
    on = [dataclasses.replace(one, node=Node("a", "EPYC")) for one in later.outcomes]
    before, after = (read_run(one)[SUBJECT] for one in (day, dataclasses.replace(later, outcomes=tuple(on))))
    assert before.conditions(WALL) != after.conditions(WALL)
    assert find_differences(before, after, [WALL]) == (Difference("cpu", HOST.cpu_model, "EPYC"),)
    same = [dataclasses.replace(one, node=Node("b", HOST.cpu_model)) for one in later.outcomes]
    alike = read_run(dataclasses.replace(later, outcomes=tuple(same)))[SUBJECT]
    assert before.conditions(WALL) == alike.conditions(WALL)


def test_a_reading_is_of_the_rounds_that_are_alike() -> None:
    run = only(ADD, WALL, times(1, 2.0), times(1, 8.0), times(1, 2.0))
    nodes = Node("a", "EPYC"), Node("b", "Xeon"), Node("c", "EPYC")
    pairs = zip(run.outcomes, nodes, strict=True)
    spread_over = dataclasses.replace(run, outcomes=tuple(dataclasses.replace(one, node=node) for one, node in pairs))
    (reading,) = read_run(spread_over).values()
    assert reading.log_time == pytest.approx(math.log(2))
    assert reading.cpus[WALL] == "EPYC"
