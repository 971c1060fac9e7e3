"""From two stored runs to judgements: exact on counts, cautious on times, which were not taken in turns."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence

from torchmark.analysis.comparable import Part, find_case_obstacles, find_obstacles
from torchmark.analysis.explain import explain
from torchmark.analysis.judge import judge
from torchmark.analysis.narrow import narrow_run
from torchmark.analysis.results import steady_times, summarise_run
from torchmark.analysis.stored_times import FEWEST_ROUNDS, weigh_times
from torchmark.model.case import Case
from torchmark.model.comparison import ComparisonCaveat, FewRounds, Incomparable, ManyThreads, NotInTurns
from torchmark.model.compiling import CompileCosts
from torchmark.model.costs import Tally
from torchmark.model.environment import Environment
from torchmark.model.judgement import CountEvidence, Judgement, Side, SideFailure, Spread
from torchmark.model.outcome import Outcome
from torchmark.model.plan import Target
from torchmark.model.run import Run
from torchmark.model.summary import CaseSummary, CountSummary
from torchmark.model.times import Times
from torchmark.stats.order import middle

CaseId = tuple[str, str]
"""Suite and key: what a case is known by in any run."""


@dataclasses.dataclass(frozen=True)
class Contrast:
    """What comparing two runs gives. Obstacles stand among the caveats of the judgements that they are obstacles to."""

    judgements: tuple[Judgement, ...]
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
    rounds: tuple[tuple[float, ...], ...]
    counted: CountedCase | None

    @property
    def case(self) -> Case:
        return self.summary.case

    @property
    def tally(self) -> Tally | None:
        return None if self.counted is None else self.counted.tally


def identify(case: Case) -> CaseId:
    """What a case is known by in any run, and in the ledger."""
    return case.suite, case.key


def compare_runs(
    base_run: Run, base_target: Target, head_run: Run, head_target: Target, standardise: Callable[[str], str]
) -> Contrast:
    """Judge every case that both have results of. Changed counts are explained where costs by function are loaded."""
    parts = Part(base_run, base_target), Part(head_run, head_target)
    base, head = (_collect(part) for part in parts)
    both = [(base[key], head[key]) for key in base if key in head]
    common = find_obstacles(*parts)
    # Targets of one run take turns case by case.
    in_turns = base_run.info.id == head_run.info.id
    own = [find_case_obstacles(one.case, other.case, one.tally, other.tally) for one, other in both]
    judgements = tuple(
        _judge(one, other, (*common, *special), in_turns=in_turns)
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


def explain_changes(
    contrast: Contrast,
    base: Mapping[CaseId, Tally],
    head: Mapping[CaseId, Tally],
    standardise: Callable[[str], str],
) -> Contrast:
    """The same, with the functions of what takes other instructions, for cases that both have costs by function of."""

    def add_functions(judgement: Judgement) -> Judgement:
        key, count = identify(judgement.case), judgement.count
        if count is None or not count.delta or key not in base or key not in head:
            return judgement
        found = explain(base[key], head[key], standardise)
        return judgement if found is None else dataclasses.replace(judgement, explanation=found)

    return dataclasses.replace(contrast, judgements=tuple(map(add_functions, contrast.judgements)))


def leave_out_incomparable(contrast: Contrast) -> Contrast:
    """The same without judgements on what is not comparable; an obstacle to everything leaves none."""
    refused = {identify(case) for case, _ in contrast.case_obstacles}
    left = [one for one in contrast.judgements if not contrast.obstacles and identify(one.case) not in refused]
    return dataclasses.replace(contrast, judgements=tuple(left))


def choose_counts(run: Run, target: Target) -> dict[CaseId, CountedCase]:
    """The count that stands for each case of a target: that of the round in the middle."""
    rounds: dict[CaseId, list[CountedCase]] = {}
    for outcome in Part(run, target).outcomes:
        if isinstance(outcome.result, Tally):
            several = rounds.setdefault(identify(outcome.order.case), [])
            several.append(CountedCase(outcome.result, outcome.environment))
    return {key: several[middle([one.tally.total for one in several])] for key, several in rounds.items()}


def _collect(part: Part) -> dict[CaseId, _Results]:
    """What there is of each case; of one that has neither results nor failures, nothing."""
    by_case: dict[CaseId, list[Outcome]] = {}
    for outcome in part.outcomes:
        by_case.setdefault(identify(outcome.order.case), []).append(outcome)
    counts = choose_counts(part.run, part.target)
    summaries = summarise_run(narrow_run(part.run, targets=[part.target]))
    return {
        key: _Results(summary, _list_rounds(by_case[key]), counts.get(key))
        for summary in summaries
        if (key := identify(summary.case)) in by_case
    }


def _list_rounds(outcomes: Sequence[Outcome]) -> tuple[tuple[float, ...], ...]:
    results = (outcome.result for outcome in outcomes)
    return tuple(steady_times(one).per_run for one in results if isinstance(one, (Times, CompileCosts)))


def _judge(base: _Results, head: _Results, obstacles: tuple[Incomparable, ...], *, in_turns: bool) -> Judgement:
    time = weigh_times(base.rounds, head.rounds)
    count = contrast_counts(base.summary.count, head.summary.count)
    caveats: list[ComparisonCaveat] = [*obstacles]
    if time is not None:
        caveats += [] if in_turns else [NotInTurns()]
        rounds = min(len(base.rounds), len(head.rounds))
        caveats += [FewRounds(rounds, FEWEST_ROUNDS)] if rounds < FEWEST_ROUNDS else []
    threads = head.case.args.num_threads
    caveats += [ManyThreads(threads)] if threads > 1 else []
    failures = tuple(
        SideFailure(side, failure)
        for side, results in ((Side.BASE, base), (Side.HEAD, head))
        for _, failure in results.summary.failures
    )
    return judge(head.case, time, count, caveats=tuple(caveats), failures=tuple(dict.fromkeys(failures)))


def contrast_counts(base: CountSummary | None, head: CountSummary | None) -> CountEvidence | None:
    """What both counts say together; nothing where one is missing."""
    if base is None or head is None:
        return None
    return CountEvidence(
        _spread(base),
        _spread(head),
        base.allocations,
        head.allocations,
        base.tensor_allocations,
        head.tensor_allocations,
    )


def _spread(count: CountSummary) -> Spread:
    # A file may have a count and not the layouts that it is the median of.
    totals = [total / count.number for total in count.totals] or [count.instructions]
    return Spread(count.instructions, min(totals), max(totals))
