from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import pytest

from tests.made_histories import ADD, OTHERS, TIMED, make_day, make_days
from tests.sample_runs import WALL
from torchmark.analysis.history import confirm, is_open, list_neighbours, trace_histories
from torchmark.analysis.results import narrow_run
from torchmark.model.history import Ground, History, Shift, ShiftStanding
from torchmark.model.run import Run

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
