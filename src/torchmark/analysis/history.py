"""The history of each case over many runs: its series, where runs are not comparable, and where results changed.

Pure: `api/stored_results.py` reads the runs that it works on.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from torchmark.analysis.results import choose_rounds, find_cpu, steady_times
from torchmark.analysis.verdict.comparable import PLACES, find_case_obstacles
from torchmark.analysis.verdict.judge import contrast_instructions
from torchmark.model.costs import Tally
from torchmark.model.environment import Environment
from torchmark.model.history import Difference, Ground, History, Point, Shift, ShiftStanding
from torchmark.model.judgement import Spread
from torchmark.model.outcome import CompileCosts, Outcome
from torchmark.model.plan import Case, Metric, Target
from torchmark.model.run import Host, Run, RunInfo
from torchmark.model.task import Times
from torchmark.stats.changes import find_changes
from torchmark.stats.distribution import middle, quantile

# A case in a target, over all runs: suite, key, name of the target.
Subject = tuple[str, str, str]
# What has to be alike for two results to be compared at all.
Conditions = tuple[object, ...]


@dataclasses.dataclass(frozen=True)
class Reading:
    """One case, one target, one run. Only what was measured is there."""

    info: RunInfo
    case: Case
    target: Target
    log_time: float | None
    """Logarithm of the seconds of a run of the statement: the median of the medians of all rounds."""
    instructions: Spread | None
    environments: Mapping[Metric, Environment | None]
    cpus: Mapping[Metric, str | None]
    """The processors, which may be a node's."""

    def has(self, metric: Metric) -> bool:
        return (self.log_time if metric is Metric.WALL else self.instructions) is not None

    def conditions(self, metric: Metric) -> Conditions:
        """Readings that do not have them in common are not compared."""
        where, case = self.environments[metric], self.case
        place = (self.cpus[metric], where and where.cpu_capability, where and where.hash_seed)
        return (*place, case.args, case.artefact, case.parts)


def read_run(run: Run) -> dict[Subject, Reading]:
    """A reading of each case in each target, in the order of the plan; also of those that failed."""
    outcomes: dict[tuple[Case, Target], list[Outcome]] = {
        (case, target): [] for case in run.plan.cases for target in run.plan.targets
    }
    for outcome in run.outcomes:
        outcomes[outcome.order.case, outcome.order.target].append(outcome)
    return {
        (case.suite, case.key, target.name): _read(run.info, case, target, found)
        for (case, target), found in outcomes.items()
    }


def _read(info: RunInfo, case: Case, target: Target, outcomes: Sequence[Outcome]) -> Reading:
    alike = choose_rounds(outcomes, info.host).outcomes
    by_metric = {metric: [outcome for outcome in alike if outcome.order.metric is metric] for metric in Metric}
    return Reading(
        info=info,
        case=case,
        target=target,
        log_time=_find_log_time(alike),
        instructions=_find_spread([outcome.result for outcome in alike if isinstance(outcome.result, Tally)]),
        environments={metric: next((one.environment for one in by_metric[metric]), None) for metric in Metric},
        cpus={metric: _find_cpus(by_metric[metric], info.host) for metric in Metric},
    )


def _find_cpus(outcomes: Iterable[Outcome], host: Host) -> str | None:
    """The processor; counts may be of several, which are a condition together."""
    return " and ".join(sorted({cpu for one in outcomes if (cpu := find_cpu(one, host)) is not None})) or None


def _find_log_time(outcomes: Iterable[Outcome]) -> float | None:
    rounds = [
        quantile(sorted(times), 0.5)
        for outcome in outcomes
        if isinstance(outcome.result, (Times, CompileCosts)) and (times := steady_times(outcome.result).per_run)
    ]
    median = quantile(sorted(rounds), 0.5) if rounds else 0.0
    # A clock that did not move says nothing of how long something takes.
    return math.log(median) if median > 0 else None


def _find_spread(tallies: Sequence[Tally]) -> Spread | None:
    if not tallies:
        return None
    chosen = tallies[middle([tally.total for tally in tallies])]
    all_layouts = [total / tally.number for tally in tallies for total in (*tally.totals, tally.total)]
    return Spread(chosen.total / chosen.number, min(all_layouts), max(all_layouts))


def find_differences(before: Reading, after: Reading, metrics: Collection[Metric]) -> tuple[Difference, ...]:
    """All that two readings do not have in common, what matters most first."""
    found = [Difference("cpu", before.cpus[metric], after.cpus[metric]) for metric in metrics]
    if before.conditions(Metric.WALL)[3:] != after.conditions(Metric.WALL)[3:]:
        found += [Difference("definition", one.base, one.head) for one in find_case_obstacles(before.case, after.case)]
    for metric in metrics:
        found += _contrast(before.environments[metric], after.environments[metric])
    found += [
        Difference("commit", _find_commit(before), _find_commit(after)),
        Difference("compiler", before.info.host.compiler, after.info.host.compiler),
        Difference("system", before.info.host.system, after.info.host.system),
    ]
    return tuple(dict.fromkeys(one for one in found if one.before != one.after))


_FIELDS = {
    "capability": "cpu_capability",
    "hash seed": "hash_seed",
    "torch": "torch_version",
    "torch commit": "torch_commit",
    "Python": "python_version",
    "Valgrind": "valgrind",
}


def _contrast(before: Environment | None, after: Environment | None) -> Iterator[Difference]:
    """What differs between two environments; nothing is known of one that is missing."""
    if before is None or after is None:
        return
    for what, field in _FIELDS.items():
        yield Difference(what, getattr(before, field), getattr(after, field))
    first, second = dict(before.variables), dict(after.variables)
    for name in sorted({*first, *second} - PLACES - {"PYTHONHASHSEED"}):
        yield Difference(f"${name}", first.get(name), second.get(name))


def _find_commit(reading: Reading) -> str | None:
    """The commit of the folder that the case is defined in."""
    return next((source.commit for source in reading.info.sources if source.suite == reading.case.suite), None)


# What changes counts although the case is the same.
VALGRIND = "Valgrind"


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
    segments = {metric: _divide(readings, metric) for metric in Metric}
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
    shifts.sort(key=lambda shift: shift.position)
    newest = readings[-1]
    return History(newest.case, newest.target, points=tuple(points), anchors=tuple(anchors), shifts=tuple(shifts))


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
        yield Shift(
            metrics=tuple(metrics),
            position=position,
            previous=previous,
            standing=ShiftStanding.REDEFINED if redefined else ShiftStanding.ENVIRONMENT,
            ground=Ground.DEFINITION if redefined else Ground.MACHINE,
            differences=differences,
        )


def _find_count_changes(readings: Sequence[Reading], segments: dict[Conditions, list[int]]) -> Iterator[Shift]:
    """Other counts than in the run before: exact, so nothing but other settings explains them away."""
    for members in segments.values():
        for previous, position in itertools.pairwise(members):
            before, after = readings[previous].instructions, readings[position].instructions
            assert before is not None
            assert after is not None
            if not contrast_instructions(before, after):
                continue
            differences = find_differences(readings[previous], readings[position], [Metric.COUNT])
            explained = has_other_settings(differences)
            yield Shift(
                metrics=(Metric.COUNT,),
                position=position,
                previous=previous,
                standing=ShiftStanding.ENVIRONMENT if explained else ShiftStanding.CONFIRMED,
                ground=Ground.SETTINGS if explained else Ground.EXACT,
                before=before.value,
                after=after.value,
                differences=differences,
            )


def _find_time_changes(readings: Sequence[Reading], members: Sequence[int], ratios: Sequence[float]) -> Iterator[Shift]:
    """Changes of times within a segment, none of them confirmed."""
    for change in find_changes(ratios):
        previous, position = members[change.position - 1], members[change.position]
        before, after = (readings[i].environments[Metric.WALL] for i in (previous, position))
        yield Shift(
            metrics=(Metric.WALL,),
            position=position,
            previous=previous,
            standing=ShiftStanding.UNCONFIRMED,
            ground=Ground.NONE,
            before=change.before,
            after=change.after,
            p_value=change.p_value,
            differences=find_differences(readings[previous], readings[position], [Metric.WALL]),
            pythons=None if before is None or after is None else (before.python, after.python),
        )


def has_other_settings(differences: Iterable[Difference]) -> bool:
    """Whether environment variables or Valgrind are among what differs."""
    return any(one.what == VALGRIND or one.what.startswith("$") for one in differences)


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
        return dataclasses.replace(shift, standing=ShiftStanding.ENVIRONMENT, ground=Ground.SETTINGS)
    others = list(_shift_others(history, shift, by_id))
    common = quantile(sorted(others), 0.5) if len(others) >= LEAST_OTHERS else None
    shift = dataclasses.replace(shift, others=len(others), common=common)
    size = _size(shift)
    if common is not None and common * size >= ALIKE * size**2:
        return dataclasses.replace(shift, standing=ShiftStanding.ENVIRONMENT, ground=Ground.OTHER_CASES)
    if _has_other_software(shift) and _count_later(history, shift) >= LEAST_LATER:
        return dataclasses.replace(shift, standing=ShiftStanding.CONFIRMED, ground=Ground.SOFTWARE)
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
    ground = Ground.INSTRUCTIONS if counted.standing is ShiftStanding.CONFIRMED else Ground.SETTINGS
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
    places = [one.position for one in history.shifts if one.metrics == (Metric.WALL,) and one.before is not None]
    start = max((place for place in places if place < shift.position), default=0)
    end = min((place for place in places if place > shift.position), default=len(history.points))
    segment = history.points[shift.position].segment
    members = [i for i in range(start, end) if history.points[i].segment == segment]
    return [i for i in members if i < shift.position], [i for i in members if i >= shift.position]


def _shift_others(history: History, shift: Shift, by_id: Mapping[str, Mapping[Subject, Reading]]) -> Iterator[float]:
    """By how much the times of other cases of the same target shifted, if their instructions did not change."""
    own = (history.case.suite, history.case.key, history.target.name)
    sides = [[by_id.get(info.id, {}) for info in side] for side in _find_neighbours(history, shift)]
    for subject in dict.fromkeys(subject for run in sides[0] for subject in run):
        if subject == own or subject[2] != history.target.name:
            continue
        before, after = ([run[subject] for run in side if subject in run] for side in sides)
        times = [[one.log_time for one in side if one.log_time is not None] for side in (before, after)]
        if all(times) and _shows_machine(before, after, other_software=_has_other_software(shift)):
            yield quantile(sorted(times[1]), 0.5) - quantile(sorted(times[0]), 0.5)


def _shows_machine(before: Sequence[Reading], after: Sequence[Reading], *, other_software: bool) -> bool:
    """Whether a case is the same program on both sides, so that only what is around it can have moved its time.

    Without counts that is not known where torch, Python or the code became another.
    """
    if len({one.conditions(Metric.WALL) for one in (*before, *after) if one.has(Metric.WALL)}) > 1:
        return False
    counts = [[one.instructions for one in side if one.instructions is not None] for side in (before, after)]
    if not all(counts):
        return not other_software
    return not contrast_instructions(counts[0][-1], counts[1][0])


def _has_other_software(shift: Shift) -> bool:
    return any(one.what in SOFTWARE for one in shift.differences)


def _count_later(history: History, shift: Shift) -> int:
    """How many runs behind the one of the change are nearer to the new level than to the old one."""
    assert shift.before is not None
    assert shift.after is not None
    middle, rises = (shift.before + shift.after) / 2, shift.after > shift.before
    later = (history.points[i].log_ratio for i in _split_members(history, shift)[1][1:])
    return sum((ratio > middle) == rises for ratio in later if ratio is not None)
