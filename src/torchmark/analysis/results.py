"""From the outcomes of a run to one summary for each case in each target; of places of several kinds, of one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from torchmark.analysis.counting import doubt_count, spread
from torchmark.analysis.doubt import find_caveats_of_rounds
from torchmark.analysis.places import choose_rounds
from torchmark.analysis.summarise import find_median_interval, summarise
from torchmark.model.case import Case
from torchmark.model.caveat import Caveat
from torchmark.model.compiling import CompileCosts
from torchmark.model.costs import Tally
from torchmark.model.outcome import Failure, Outcome
from torchmark.model.plan import Order, Plan, Target
from torchmark.model.run import Host, Run
from torchmark.model.summary import CaseSummary, CountSummary, Interval, WallSummary
from torchmark.model.times import Times
from torchmark.stats.order import middle, quantile

CONFIDENCE = 0.95


def summarise_run(run: Run) -> tuple[CaseSummary, ...]:
    """A summary for each case in each target, in the order of the plan."""
    return summarise_outcomes(run.plan, run.outcomes, run.info.host)


def summarise_outcomes(plan: Plan, outcomes: Iterable[Outcome], host: Host | None = None) -> tuple[CaseSummary, ...]:
    """The same for outcomes that belong to no run; `host` is where those were measured that name no node."""
    by_order = {outcome.order: outcome for outcome in outcomes}
    return tuple(
        _summarise(case, target, _choose_orders(plan, case, target), by_order, host)
        for case in plan.cases
        for target in plan.targets
    )


def _choose_orders(plan: Plan, case: Case, target: Target) -> list[Order]:
    sampling = plan.sampling
    return [Order(case, target, metric, n) for metric in sampling.metrics for n in range(sampling.repeat)]


def _summarise(
    case: Case, target: Target, orders: Sequence[Order], by_order: Mapping[Order, Outcome], host: Host | None
) -> CaseSummary:
    there = [by_order[order] for order in orders if order in by_order]
    chosen = choose_rounds(there, host)
    results = [outcome.result for outcome in chosen.outcomes]
    tallies = [result for result in results if isinstance(result, Tally)]
    timed = [result for result in results if isinstance(result, (Times, CompileCosts))]
    caveats = [*_doubt_times(timed), *(caveat for outcome in chosen.outcomes for caveat in _doubt_count(outcome))]
    failures = [(outcome.order.metric, outcome.result) for outcome in there if isinstance(outcome.result, Failure)]
    return CaseSummary(
        case,
        target,
        wall=_summarise_times(timed),
        count=summarise_counts(tallies) if tallies else None,
        failures=tuple(dict.fromkeys(failures)),
        caveats=(*chosen.caveats, *tuple({caveat.kind: caveat for caveat in reversed(caveats)}.values())[::-1]),
        unchecked=next((outcome.unchecked for outcome in there if outcome.unchecked), None),
        missing=tuple(dict.fromkeys(order.metric for order in orders if order not in by_order)),
        nodes=chosen.nodes,
    )


def _summarise_times(results: Sequence[Times | CompileCosts]) -> WallSummary | None:
    rounds = [steady_times(result).per_run for result in results]
    samples = [t for times in rounds for t in times]
    if not samples:
        return None
    return WallSummary(
        times=summarise(samples),
        interval=_find_interval([times for times in rounds if times]),
        samples_s=tuple(samples),
        compiling=next((result for result in results if isinstance(result, CompileCosts)), None),
    )


def _find_interval(rounds: Sequence[Sequence[float]]) -> Interval | None:
    """Of the median of all samples, and no narrower than what the medians of rounds say.

    Samples of one process have more in common than those of several, and an interval that takes them for independent is
    too narrow. Where there are too few rounds for an interval of their medians, it encloses them all.
    """
    interval = find_median_interval([t for times in rounds for t in times], CONFIDENCE)
    if interval is None or len(rounds) == 1:
        return interval
    medians = sorted(quantile(sorted(times), 0.5) for times in rounds)
    among = find_median_interval(medians, CONFIDENCE) or Interval(medians[0], medians[-1], CONFIDENCE)
    return Interval(min(interval.low, among.low), max(interval.high, among.high), interval.confidence)


def steady_times(result: Times | CompileCosts) -> Times:
    """The times of a statement that is compiled already, where compiling was measured besides."""
    return result.steady if isinstance(result, CompileCosts) else result


def summarise_counts(tallies: Sequence[Tally]) -> CountSummary:
    """Of all rounds, the one in the middle stands for all; there is at least one."""
    chosen = tallies[middle([tally.total for tally in tallies])]
    number = chosen.number
    totals = tuple(total for tally in tallies for total in tally.totals)
    return CountSummary(
        instructions=chosen.total / number,
        spread=spread(totals) if len(totals) > 1 else None,
        allocations=chosen.allocations / number,
        tensor_allocations=chosen.tensor_allocations / number,
        baseline=None if chosen.baseline is None else chosen.baseline / number,
        number=number,
        totals=totals,
    )


def _doubt_times(results: Sequence[Times | CompileCosts]) -> tuple[Caveat, ...]:
    return find_caveats_of_rounds([steady_times(result) for result in results]) if results else ()


def _doubt_count(outcome: Outcome) -> tuple[Caveat, ...]:
    result = outcome.result
    if not isinstance(result, Tally):
        return ()
    threads = outcome.order.case.args.num_threads
    return doubt_count(result.totals, threads, outcome.environment, optimised_away=result.optimised_away)
