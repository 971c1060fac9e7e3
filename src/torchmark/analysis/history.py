"""From many runs to the history of each case: its series, where they cannot be compared, and where they change."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterable, Iterator, Sequence

from torchmark.analysis.readings import Conditions, Reading, find_differences, read_run
from torchmark.model.history import Difference, Ground, History, Point, Shift, Standing
from torchmark.model.judgement import Spread
from torchmark.model.plan import Metric
from torchmark.model.run import Run, RunInfo
from torchmark.stats.changes import CountRange, find_changes, is_other_count

# What changes counts although the case is the same.
VALGRIND = "Valgrind"
_METRICS = (Metric.WALL, Metric.COUNT)


def trace_histories(runs: Sequence[Run], anchor: Run | None = None) -> tuple[History, ...]:
    """The history of each case in each target. `runs` are from the oldest to the newest.

    Times are held against those of `anchor`, which need not be one of the runs. Where it has none that can be compared,
    and without it, it is the oldest run that has. What changed in times is not yet confirmed: see `confirm`.
    """
    read = [read_run(run) for run in runs]
    # As the newest run lists them, then what only older ones have.
    subjects = dict.fromkeys(subject for readings in reversed(read) for subject in readings)
    pinned = {} if anchor is None else read_run(anchor)
    return tuple(
        trace([readings[subject] for readings in read if subject in readings], pinned.get(subject))
        for subject in subjects
    )


def trace(readings: Sequence[Reading], pinned: Reading | None = None) -> History:
    """The history of one case, from at least one reading."""
    segments = {metric: _divide(readings, metric) for metric in _METRICS}
    points = [Point(reading.info, instructions=reading.instructions) for reading in readings]
    anchors: list[RunInfo] = []
    shifts = [*_find_borders(readings, segments), *_find_count_changes(readings, segments[Metric.COUNT])]
    for number, (conditions, members) in enumerate(segments[Metric.WALL].items()):
        fits = pinned is not None and pinned.has(Metric.WALL) and pinned.conditions(Metric.WALL) == conditions
        reference = pinned if pinned is not None and fits else readings[members[0]]
        anchors.append(reference.info)
        ratios = [_take_time(readings[i]) - _take_time(reference) for i in members]
        for i, ratio in zip(members, ratios, strict=True):
            points[i] = dataclasses.replace(points[i], log_ratio=ratio, segment=number)
        shifts += _find_time_changes(readings, members, ratios)
    newest = readings[-1]
    ordered = sorted(shifts, key=lambda shift: shift.position)
    return History(newest.case, newest.target, tuple(points), tuple(anchors), tuple(ordered))


def _take_time(reading: Reading) -> float:
    assert reading.log_time is not None, "segments have only what was measured"
    return reading.log_time


def _divide(readings: Sequence[Reading], metric: Metric) -> dict[Conditions, list[int]]:
    """The positions of what can be compared with each other, in the order in which segments begin.

    A run on a machine that was there before belongs to the runs of that machine, whatever came in between.
    """
    segments: dict[Conditions, list[int]] = {}
    for i, reading in enumerate(readings):
        if reading.has(metric):
            segments.setdefault(reading.conditions(metric), []).append(i)
    return segments


def _find_borders(readings: Sequence[Reading], segments: dict[Metric, dict[Conditions, list[int]]]) -> Iterator[Shift]:
    """Where a segment begins, and why nothing is compared across it; one shift for both metrics."""
    starts: dict[tuple[int, int], list[Metric]] = {}
    for metric, found in segments.items():
        measured = sorted(i for members in found.values() for i in members)
        for members in list(found.values())[1:]:
            previous = measured[measured.index(members[0]) - 1]
            starts.setdefault((previous, members[0]), []).append(metric)
    for (previous, position), metrics in starts.items():
        differences = find_differences(readings[previous], readings[position], metrics)
        redefined = any(one.what == "definition" for one in differences)
        standing = Standing.REDEFINED if redefined else Standing.ENVIRONMENT
        ground = Ground.DEFINITION if redefined else Ground.MACHINE
        yield Shift(tuple(metrics), position, previous, standing, ground, differences=differences)


def _find_count_changes(readings: Sequence[Reading], segments: dict[Conditions, list[int]]) -> Iterator[Shift]:
    """Other counts than in the run before: exact, so nothing but other settings explains them away."""
    for members in segments.values():
        for previous, position in itertools.pairwise(members):
            before, after = readings[previous].instructions, readings[position].instructions
            assert before is not None
            assert after is not None
            if not is_other_count(as_range(before), as_range(after)):
                continue
            differences = find_differences(readings[previous], readings[position], [Metric.COUNT])
            shift = Shift(
                (Metric.COUNT,), position, previous, Standing.CONFIRMED, Ground.EXACT, before.value, after.value
            )
            if has_other_settings(differences):
                shift = dataclasses.replace(shift, standing=Standing.ENVIRONMENT, ground=Ground.SETTINGS)
            yield dataclasses.replace(shift, differences=differences)


def _find_time_changes(readings: Sequence[Reading], members: Sequence[int], ratios: Sequence[float]) -> Iterator[Shift]:
    """Changes of times within a segment, none of them confirmed."""
    for change in find_changes(ratios):
        previous, position = members[change.position - 1], members[change.position]
        yield Shift(
            (Metric.WALL,),
            position,
            previous,
            Standing.UNCONFIRMED,
            Ground.NONE,
            change.before,
            change.after,
            change.p_value,
            find_differences(readings[previous], readings[position], [Metric.WALL]),
            _find_pythons(readings[previous], readings[position]),
        )


def _find_pythons(before: Reading, after: Reading) -> tuple[str, str] | None:
    if before.timed_in is None or after.timed_in is None:
        return None
    return before.timed_in.python, after.timed_in.python


def as_range(spread: Spread) -> CountRange:
    """A count as statistics take it."""
    return CountRange(spread.value, spread.low, spread.high)


def has_other_settings(differences: Iterable[Difference]) -> bool:
    """Whether environment variables or Valgrind are among what differs."""
    return any(one.what == VALGRIND or one.what.startswith("$") for one in differences)
