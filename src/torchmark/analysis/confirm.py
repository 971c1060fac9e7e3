"""Whether a change in the times of a case is one of the case, or of what is around it.

Witnesses are its own instructions, the other cases of the same runs, and what else changed at that run.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Mapping, Sequence

from torchmark.analysis.history import as_range, has_other_settings
from torchmark.analysis.readings import Reading, Subject, read_run
from torchmark.model.history import Ground, History, Shift, Standing
from torchmark.model.plan import Metric
from torchmark.model.run import Run, RunInfo
from torchmark.stats.changes import is_other_count
from torchmark.stats.order import quantile

# The place of a change in times is an estimate; steps of three standard deviations are found within so many runs.
NEAR = 2
# Runs on each side of a change in which other cases are looked at: enough for a median that an outlier does not move.
NEIGHBOURS = 3
# The median of fewer other cases says little.
LEAST_OTHERS = 3
# Other cases shifted alike if their median is at least this part of the shift: then more than half of them did.
ALIKE = 0.5
# Later runs that have to keep a level that other software brought.
LEAST_LATER = 2

SOFTWARE = ("torch", "torch commit", "Python", "commit")


def confirm(history: History, whole_runs: Mapping[str, Run] | None = None) -> History:
    """The history with a standing for each change in times. `whole_runs`, by their ids, have the other cases."""
    by_id = {run_id: read_run(run) for run_id, run in (whole_runs or {}).items()}
    shifts = [_confirm(history, shift, by_id) if is_open(shift) else shift for shift in history.shifts]
    return dataclasses.replace(history, shifts=tuple(sorted(shifts, key=lambda shift: shift.position)))


def is_open(shift: Shift) -> bool:
    """Whether it is a change in times of which nothing is known yet."""
    return shift.metrics == (Metric.WALL,) and shift.ground is Ground.NONE


def list_neighbours(histories: Iterable[History]) -> tuple[str, ...]:
    """The ids of the runs whose other cases may explain a change that instructions do not."""
    return tuple(
        dict.fromkeys(
            info.id
            for history in histories
            for shift in history.shifts
            if is_open(shift) and _match_count_change(history, shift) is None
            for side in _find_neighbours(history, shift)
            for info in side
        )
    )


def _confirm(history: History, shift: Shift, by_id: Mapping[str, Mapping[Subject, Reading]]) -> Shift:
    counted = _match_count_change(history, shift)
    if counted is not None:
        return _follow(history, shift, counted)
    if has_other_settings(shift.differences):
        return dataclasses.replace(shift, standing=Standing.ENVIRONMENT, ground=Ground.SETTINGS)
    others = list(_shift_others(history, shift, by_id))
    common = quantile(sorted(others), 0.5) if len(others) >= LEAST_OTHERS else None
    shift = dataclasses.replace(shift, others=len(others), common=common)
    size = _size(shift)
    if common is not None and common * size >= ALIKE * size**2:
        return dataclasses.replace(shift, standing=Standing.ENVIRONMENT, ground=Ground.OTHER_CASES)
    if _has_other_software(shift) and _count_later(history, shift) >= LEAST_LATER:
        return dataclasses.replace(shift, standing=Standing.CONFIRMED, ground=Ground.SOFTWARE)
    return shift


def _size(shift: Shift) -> float:
    assert shift.before is not None
    assert shift.after is not None
    return shift.after - shift.before


def _match_count_change(history: History, shift: Shift) -> Shift | None:
    """The nearest change of instructions in the same direction, if it is near enough, and nearer to no other change."""
    alike = [other for other in history.shifts if other.before is not None and _size(other) * _size(shift) > 0]
    rivals = [other for other in alike if is_open(other)]
    near = [
        counted
        for counted in alike
        if counted.metrics == (Metric.COUNT,)
        and _distance(counted, shift) <= NEAR
        and min(rivals, key=lambda rival: _distance(counted, rival)) is shift
    ]
    return min(near, key=lambda counted: _distance(counted, shift), default=None)


def _distance(one: Shift, other: Shift) -> int:
    return abs(one.position - other.position)


def _follow(history: History, shift: Shift, counted: Shift) -> Shift:
    """What is exact tells what it is, and where, if there is a time at both places."""
    confirmed = counted.standing is Standing.CONFIRMED
    ground = Ground.INSTRUCTIONS if confirmed else Ground.SETTINGS
    followed = dataclasses.replace(shift, standing=counted.standing, ground=ground)
    segment = history.points[shift.position].segment
    if any(history.points[i].segment != segment for i in (counted.previous, counted.position)):
        return followed
    return dataclasses.replace(
        followed, position=counted.position, previous=counted.previous, differences=counted.differences
    )


def _find_neighbours(history: History, shift: Shift) -> tuple[Sequence[RunInfo], Sequence[RunInfo]]:
    """A few runs before the change and as many from it on, no further than to the next one."""
    before, after = _split_members(history, shift)
    return [history.points[i].run for i in before[-NEIGHBOURS:]], [history.points[i].run for i in after[:NEIGHBOURS]]


def _split_members(history: History, shift: Shift) -> tuple[list[int], list[int]]:
    """The points on both sides of a change in times that have the levels before and after it."""
    places = [
        other.position for other in history.shifts if other.metrics == (Metric.WALL,) and other.before is not None
    ]
    start = max((place for place in places if place < shift.position), default=0)
    end = min((place for place in places if place > shift.position), default=len(history.points))
    segment = history.points[shift.position].segment
    members = [i for i in range(start, end) if history.points[i].segment == segment]
    return [i for i in members if i < shift.position], [i for i in members if i >= shift.position]


def _shift_others(history: History, shift: Shift, by_id: Mapping[str, Mapping[Subject, Reading]]) -> Iterator[float]:
    """By how much the times of other cases of the same target shifted, if their instructions did not change."""
    own = (history.case.suite, history.case.key, history.target.name)
    sides = [[by_id.get(info.id, {}) for info in side] for side in _find_neighbours(history, shift)]
    subjects = dict.fromkeys(subject for run in sides[0] for subject in run)
    for subject in subjects:
        if subject == own or subject[2] != history.target.name:
            continue
        before, after = ([run[subject] for run in side if subject in run] for side in sides)
        times = [[one.log_time for one in side if one.log_time is not None] for side in (before, after)]
        if all(times) and _is_witness(before, after, other_software=_has_other_software(shift)):
            yield quantile(sorted(times[1]), 0.5) - quantile(sorted(times[0]), 0.5)


def _is_witness(before: Sequence[Reading], after: Sequence[Reading], *, other_software: bool) -> bool:
    """Whether a case is the same program on both sides, so that only what is around it can have moved its time.

    Without counts that is not known where torch, Python or the code became another.
    """
    timed = [one.conditions(Metric.WALL) for one in (*before, *after) if one.has(Metric.WALL)]
    if len(set(timed)) > 1:
        return False
    counts = [[one.instructions for one in side if one.instructions is not None] for side in (before, after)]
    if not all(counts):
        return not other_software
    return not is_other_count(as_range(counts[0][-1]), as_range(counts[1][0]))


def _has_other_software(shift: Shift) -> bool:
    return any(one.what in SOFTWARE for one in shift.differences)


def _count_later(history: History, shift: Shift) -> int:
    """How many runs behind the one of the change are nearer to the new level than to the old one."""
    assert shift.before is not None
    assert shift.after is not None
    middle, rises = (shift.before + shift.after) / 2, shift.after > shift.before
    later = (history.points[i].log_ratio for i in _split_members(history, shift)[1][1:])
    return sum((ratio > middle) == rises for ratio in later if ratio is not None)
