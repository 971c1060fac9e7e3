"""From two stored runs to judgements: exact on counts, cautious on times, which were not taken in turns."""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable, Mapping, Sequence

from torchmark.analysis.results import choose_rounds, narrow_run, steady_times, summarise_run
from torchmark.analysis.summarise import find_median_interval
from torchmark.analysis.verdict.comparable import RunTarget, find_case_obstacles, find_obstacles, find_place_obstacles
from torchmark.analysis.verdict.explain import explain
from torchmark.analysis.verdict.judge import judge, weigh_interval
from torchmark.model.caveats import (
    ComparisonCaveat,
    FewRounds,
    Incomparable,
    LeftOut,
    ManyThreads,
    NotInTurns,
    OtherPlaces,
)
from torchmark.model.costs import Tally
from torchmark.model.environment import Environment
from torchmark.model.judgement import CaseJudgement, CountEvidence, Side, SideFailure, Spread, TimeEvidence, Verdict
from torchmark.model.outcome import CompileCosts, Failure, Outcome
from torchmark.model.plan import Case, Metric, Target
from torchmark.model.run import CaseSummary, CountSummary, Run
from torchmark.model.task import Interval, Times
from torchmark.stats.distribution import middle, quantile
from torchmark.stats.intervals import contrast_means

# A spread takes three processes: of two, Student's interval is as wide as no change is.
FEWEST_ROUNDS = 3
# As for a gate in CI.
CONFIDENCE = 0.99
# Processes of one build differ by 0.8 to 3 %, for as long as they live, and a machine may be slower for minutes. A rule
# of 5 % on what is timed one after the other is still wrong often; anything smaller is wrong most of the time.
FLOOR = 0.05
EQUIVALENCE = 0.05
# Of the median within one process, where processes cannot be compared.
WITHIN = 0.95

Rounds = Sequence[Sequence[float]]
"""Seconds per run of each block, process by process."""


def weigh_times(base: Rounds, head: Rounds) -> TimeEvidence | None:
    """What the clock says of both; None where one of them has no times."""
    base, head = _usable(base), _usable(head)
    if not base or not head:
        return None
    base_s, head_s = _typical(base), _typical(head)
    tell = functools.partial(TimeEvidence, base_s=base_s, head_s=head_s, floor=FLOOR, equivalence=EQUIVALENCE)
    if min(len(base), len(head)) < FEWEST_ROUNDS:
        bounds = _bound(base, head)
        return tell(Verdict.UNDECIDED, math.log(head_s / base_s), bounds.low, bounds.high, bounds.confidence)
    found = contrast_means(_log_medians(base), _log_medians(head), CONFIDENCE)
    verdict = weigh_interval(found.estimate, found.low, found.high, floor=FLOOR, equivalence=EQUIVALENCE)
    return tell(verdict, found.estimate, found.low, found.high, CONFIDENCE, p_value=found.p_value)


def _usable(rounds: Rounds) -> list[list[float]]:
    """Rounds that have a logarithm. A clock that is coarse may give nothing but zeros."""
    ordered = (sorted(times) for times in rounds if times)
    return [times for times in ordered if quantile(times, 0.5) > 0]


def _log_medians(rounds: Rounds) -> list[float]:
    return [math.log(quantile(times, 0.5)) for times in rounds]


def _typical(rounds: Rounds) -> float:
    return math.exp(sum(_log_medians(rounds)) / len(rounds))


def _bound(base: Rounds, head: Rounds) -> Interval:
    """All log-ratios that the intervals of both sides allow.

    How far processes are apart is not in them, so nothing is decided.
    """
    ours, theirs = _enclose(base), _enclose(head)
    # Both have to hold.
    confidence = ours.confidence + theirs.confidence - 1
    if confidence <= 0:
        # One or two samples of each side exclude nothing.
        return Interval(-math.inf, math.inf, 0.0)
    return Interval(math.log(theirs.low / ours.high), math.log(theirs.high / ours.low), confidence)


def _enclose(rounds: Rounds) -> Interval:
    """From the lowest to the highest that the median of any round may be."""
    found = [_find_interval(times) for times in rounds]
    low, high = min(one.low for one in found), max(one.high for one in found)
    return Interval(low, high, min(one.confidence for one in found))


def _find_interval(times: Sequence[float]) -> Interval:
    """Of few samples all of them, with what confidence that gives; none of a single one."""
    found = find_median_interval(times, WITHIN)
    if found is None:
        # The median lies outside if all samples are on one side of it.
        found = Interval(times[0], times[-1], 1 - 2.0 ** (1 - len(times)))
    # Times that no clock can have given have no logarithm.
    positive = [t for t in times if t > 0]
    return Interval(max(found.low, positive[0]), found.high, found.confidence)


CaseId = tuple[str, str]
"""Suite and key: what a case is known by in any run."""


@dataclasses.dataclass(frozen=True)
class Contrast:
    """What comparing two runs gives. Obstacles stand among the caveats of the judgements that they are obstacles to."""

    judgements: tuple[CaseJudgement, ...]
    missing: tuple[Case, ...] = ()
    """Only base has results of them."""
    new: tuple[Case, ...] = ()
    """Only head has."""
    obstacles: tuple[Incomparable, ...] = ()
    """To comparing anything."""
    case_obstacles: tuple[tuple[Case, tuple[Incomparable, ...]], ...] = ()
    """To comparing single cases."""


@dataclasses.dataclass(frozen=True)
class CountedCase:
    """The count that stands for all rounds, and where it was taken."""

    tally: Tally
    environment: Environment | None


@dataclasses.dataclass(frozen=True)
class _Results:
    """All that one side has of a case."""

    summary: CaseSummary
    outcomes: tuple[Outcome, ...]
    """Those that speak for it."""
    counted: CountedCase | None

    @property
    def case(self) -> Case:
        return self.summary.case

    @property
    def tally(self) -> Tally | None:
        return None if self.counted is None else self.counted.tally

    @property
    def rounds(self) -> tuple[tuple[float, ...], ...]:
        results = (outcome.result for outcome in self.outcomes)
        return tuple(steady_times(one).per_run for one in results if isinstance(one, (Times, CompileCosts)))


def identify(case: Case) -> CaseId:
    """What a case is known by in any run, and in the ledger."""
    return case.suite, case.key


def compare_runs(
    base_run: Run, base_target: Target, head_run: Run, head_target: Target, standardise: Callable[[str], str]
) -> Contrast:
    """Judge every case that both have results of. Changed counts are explained where costs by function are loaded."""
    parts = RunTarget(base_run, base_target), RunTarget(head_run, head_target)
    base, head = (_collect(part) for part in parts)
    both = [(base[key], head[key]) for key in base if key in head]
    common, own = _find_all_obstacles(*parts, both)
    same_run = base_run.info.id == head_run.info.id
    judgements = tuple(
        _judge(one, other, (*common, *special), in_turns=same_run and _took_turns(one, other))
        for (one, other), special in zip(both, own, strict=True)
    )
    return explain_changes(
        Contrast(
            judgements,
            missing=tuple(one.case for key, one in base.items() if key not in head),
            new=tuple(one.case for key, one in head.items() if key not in base),
            obstacles=common,
            case_obstacles=tuple((one.case, found) for (_, one), found in zip(both, own, strict=True) if found),
        ),
        {key: one.tally for key, one in base.items() if one.tally is not None},
        {key: one.tally for key, one in head.items() if one.tally is not None},
        standardise,
    )


def _find_all_obstacles(
    base: RunTarget, head: RunTarget, both: Sequence[tuple[_Results, _Results]]
) -> tuple[tuple[Incomparable, ...], list[tuple[Incomparable, ...]]]:
    """Those to comparing anything, and those to comparing each case, none of them twice."""
    common = find_obstacles(base, head)
    told = {obstacle.what for obstacle in common}
    hosts = base.run.info.host, head.run.info.host
    found = (find_place_obstacles(one.outcomes, hosts[0], other.outcomes, hosts[1]) for one, other in both)
    places = [[obstacle for obstacle in obstacles if obstacle.what not in told] for obstacles in found]
    shared = [one for one in places[0] if all(one in others for others in places)] if len(places) > 1 else []
    own = [
        (
            *(obstacle for obstacle in obstacles if obstacle not in shared),
            *find_case_obstacles(one.case, other.case, one.tally, other.tally),
        )
        for (one, other), obstacles in zip(both, places, strict=True)
    ]
    return (*common, *shared), own


def _took_turns(base: _Results, head: _Results) -> bool:
    """Whether they did as targets of one run: they take turns case by case, if they are on one machine."""
    nodes = [{one.node for one in side.outcomes if one.order.metric is Metric.WALL} for side in (base, head)]
    return nodes[0] == nodes[1]


def find_unmeasured(base_run: Run, base_target: Target, head_run: Run, head_target: Target) -> tuple[Case, ...]:
    """Cases that base has a result of, by a metric, and that head was to measure by it too, but has no outcome of.

    A case that head's run does not have at all is not among them: that is what `missing` is for.
    """
    planned = {identify(case) for case in head_run.plan.cases}
    done = {(identify(one.order.case), one.order.metric) for one in RunTarget(head_run, head_target).outcomes}
    found = {
        identify(one.order.case): one.order.case
        for one in RunTarget(base_run, base_target).outcomes
        if not isinstance(one.result, Failure)
        and one.order.metric in head_run.plan.sampling.metrics
        and identify(one.order.case) in planned
        and (identify(one.order.case), one.order.metric) not in done
    }
    return tuple(found.values())


def explain_changes(
    contrast: Contrast, base: Mapping[CaseId, Tally], head: Mapping[CaseId, Tally], standardise: Callable[[str], str]
) -> Contrast:
    """The same, with the functions of what takes other instructions, for cases that both have costs by function of."""

    def add_functions(judgement: CaseJudgement) -> CaseJudgement:
        key, count = identify(judgement.case), judgement.count
        if count is None or not count.delta or key not in base or key not in head:
            return judgement
        found = explain(base[key], head[key], standardise)
        return judgement if found is None else dataclasses.replace(judgement, explanation=found)

    return dataclasses.replace(contrast, judgements=tuple(map(add_functions, contrast.judgements)))


def leave_out_incomparable(contrast: Contrast) -> Contrast:
    """The same without judgements on what is not comparable; an obstacle to everything leaves none."""
    refused = {identify(case) for case, _ in contrast.case_obstacles}
    left = (one for one in contrast.judgements if not contrast.obstacles and identify(one.case) not in refused)
    return dataclasses.replace(contrast, judgements=tuple(left))


def choose_counts(run: Run, target: Target) -> dict[CaseId, CountedCase]:
    """The count that stands for each case of a target: that of the round in the middle, of those that are alike."""
    chosen = {key: _choose_count(outcomes) for key, outcomes in _choose_outcomes(RunTarget(run, target)).items()}
    return {key: counted for key, counted in chosen.items() if counted is not None}


def _choose_outcomes(part: RunTarget) -> dict[CaseId, tuple[Outcome, ...]]:
    """The results that speak for each case that has outcomes."""
    by_case: dict[CaseId, list[Outcome]] = {}
    for outcome in part.outcomes:
        by_case.setdefault(identify(outcome.order.case), []).append(outcome)
    return {key: choose_rounds(found, part.run.info.host).outcomes for key, found in by_case.items()}


def _choose_count(outcomes: Sequence[Outcome]) -> CountedCase | None:
    counts = [CountedCase(one.result, one.environment) for one in outcomes if isinstance(one.result, Tally)]
    return counts[middle([one.tally.total for one in counts])] if counts else None


def _collect(part: RunTarget) -> dict[CaseId, _Results]:
    """What there is of each case; of one that has neither results nor failures, nothing."""
    speaking = _choose_outcomes(part)
    return {
        key: _Results(summary, speaking[key], _choose_count(speaking[key]))
        for summary in summarise_run(narrow_run(part.run, targets=[part.target]))
        if (key := identify(summary.case)) in speaking
    }


def _judge(base: _Results, head: _Results, obstacles: tuple[Incomparable, ...], *, in_turns: bool) -> CaseJudgement:
    time = weigh_times(base.rounds, head.rounds)
    count = contrast_counts(base.summary.count, head.summary.count)
    caveats: list[ComparisonCaveat] = [*obstacles]
    if time is not None:
        caveats += [] if in_turns else [NotInTurns()]
        rounds = min(len(base.rounds), len(head.rounds))
        caveats += [FewRounds(rounds, FEWEST_ROUNDS)] if rounds < FEWEST_ROUNDS else []
    sides = ((Side.BASE, base), (Side.HEAD, head))
    caveats += [
        LeftOut(side.value, one.metric, one.rounds, one.of)
        for side, results in sides
        for one in results.summary.caveats
        if isinstance(one, OtherPlaces)
    ]
    threads = head.case.args.num_threads
    caveats += [ManyThreads(threads)] if threads > 1 else []
    failures = (SideFailure(side, failure) for side, results in sides for _, failure in results.summary.failures)
    return judge(head.case, time, count, caveats=tuple(caveats), failures=tuple(dict.fromkeys(failures)))


def contrast_counts(base: CountSummary | None, head: CountSummary | None) -> CountEvidence | None:
    """What both counts say together; nothing where one is missing."""
    if base is None or head is None:
        return None
    return CountEvidence(
        base=_spread(base),
        head=_spread(head),
        base_allocations=base.allocations,
        head_allocations=head.allocations,
        base_tensor_allocations=base.tensor_allocations,
        head_tensor_allocations=head.tensor_allocations,
    )


def _spread(count: CountSummary) -> Spread:
    # A file may have a count and not the layouts that it is the median of.
    totals = [total / count.number for total in count.totals] or [count.instructions]
    return Spread(count.instructions, min(totals), max(totals))
