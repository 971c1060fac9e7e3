"""From the outcomes of a run to one summary for each case in each target, using one kind of machine."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Collection, Iterable, Mapping, Sequence

from torchmark.analysis.summarise import doubt_count, find_caveats, find_median_interval, spread, summarise
from torchmark.model.caveats import OtherPlaces
from torchmark.model.costs import Tally
from torchmark.model.environment import Environment
from torchmark.model.outcome import CompileCosts, Failure, Outcome
from torchmark.model.plan import Case, Metric, Node, NodeKind, Order, Plan, Sampling, Target
from torchmark.model.run import CaseSummary, CountSummary, Host, Run, WallSummary
from torchmark.model.task import Interval, Times
from torchmark.stats.distribution import middle, quantile

Kind = tuple[tuple[str, "str | None"], ...]
"""What the results of a place depend on, by the words that caveats tell it with."""

# What the run's own machine is called beside nodes.
OWN_MACHINE = "own machine"
# What torch says of the machine in the text on how it was built. It is part of the kind by itself.
_CAPABILITY_LINE = "CPU capability usage"
# Of an environment, all that matters to either metric, by the words that it is told with.
_FIELDS = {
    "torch": "torch_version",
    "torch_commit": "torch_commit",
    "torch_build": "torch_build",
    "capability": "cpu_capability",
    "valgrind": "valgrind",
    "hash_seed": "hash_seed",
}
_WORDS = {
    Metric.WALL: ("cpu", "torch", "torch_commit", "torch_build", "capability"),
    Metric.COUNT: tuple(_FIELDS),
}
# Another version is another commit, and another commit another build.
_IMPLIED = {"torch_commit": ("torch",), "torch_build": ("torch", "torch_commit")}


@dataclasses.dataclass(frozen=True)
class Chosen:
    """Results that may be taken together, and what was left out for their sake."""

    outcomes: tuple[Outcome, ...]
    """In the order in which they were given; failures are not among them."""
    caveats: tuple[OtherPlaces, ...] = ()


def find_cpu(outcome: Outcome, host: Host | None) -> str | None:
    """The processor that an outcome is of; `host` is the run's own machine."""
    if outcome.node is not None:
        return outcome.node.cpu_model
    return None if host is None else host.cpu_model


def find_kind(outcome: Outcome, host: Host | None) -> Kind:
    """What of its place an outcome depends on. What is not known is a value of its own."""
    return _find_kind(outcome.environment, find_cpu(outcome, host), outcome.order.metric)


@functools.lru_cache
def _find_kind(environment: Environment | None, cpu: str | None, metric: Metric) -> Kind:
    known: dict[str, str | None] = {"cpu": cpu}
    if environment is not None:
        known |= {what: getattr(environment, field) for what, field in _FIELDS.items()}
        lines = (environment.torch_build or "").splitlines()
        known["torch_build"] = "\n".join(line for line in lines if _CAPABILITY_LINE not in line) or None
    return tuple((what, known.get(what)) for what in _WORDS[metric])


def choose_rounds(outcomes: Iterable[Outcome], host: Host | None = None) -> Chosen:
    """Of the outcomes of one case in one target: for each metric, the results from places of one kind.

    It is the kind that most of them have; of kinds with as many, the one that was there first.
    """
    results = [(one, find_kind(one, host)) for one in outcomes if not isinstance(one.result, Failure)]
    kept: dict[Metric, Kind] = {}
    caveats = []
    for metric in dict.fromkeys(outcome.order.metric for outcome, _ in results):
        rounds = [(outcome, kind) for outcome, kind in results if outcome.order.metric is metric]
        kept[metric] = _choose_kind(rounds)
        if any(kind != kept[metric] for _, kind in rounds):
            caveats.append(_doubt(metric, rounds, kept[metric]))
    return Chosen(tuple(one for one, kind in results if kind == kept[one.order.metric]), tuple(caveats))


def _choose_kind(rounds: Sequence[tuple[Outcome, Kind]]) -> Kind:
    groups: dict[Kind, list[tuple[float, int]]] = {}
    for outcome, kind in rounds:
        groups.setdefault(kind, []).append((outcome.began, outcome.order.round))
    return min(groups, key=lambda kind: (-len(groups[kind]), min(groups[kind])))


def _doubt(metric: Metric, rounds: Sequence[tuple[Outcome, Kind]], kept: Kind) -> OtherPlaces:
    others = [(outcome, kind) for outcome, kind in rounds if kind != kept]
    nodes = dict.fromkeys(outcome.node.name for outcome, _ in others if outcome.node is not None)
    what = _find_differing([kept, *(kind for _, kind in others)])
    return OtherPlaces(metric=metric.value, rounds=len(others), of=len(rounds), what=what, nodes=tuple(nodes))


def _find_differing(kinds: Sequence[Kind]) -> tuple[str, ...]:
    """What is not the same in all of them, without what follows from the rest."""
    found = [column[0][0] for column in zip(*kinds, strict=True) if len(set(column)) > 1]
    telling = [what for what in found if not set(_IMPLIED.get(what, ())) & set(found)]
    apart = {tuple(dict(kind)[what] for what in telling) for kind in kinds}
    return tuple(telling if len(apart) == len(set(kinds)) else found)


def list_nodes(outcomes: Iterable[Outcome], host: Host | None = None) -> tuple[Node, ...]:
    """All that took part, the run's own machine among them if it did; none if there was no other."""
    found = dict.fromkeys(_find_node(one, host) for one in outcomes if one.node or one.environment)
    nodes = sorted(found, key=lambda node: (node.name, node.cpu_model or ""))
    own = Node(OWN_MACHINE, None if host is None else host.cpu_model)
    return () if nodes == [own] else tuple(nodes)


def _find_node(outcome: Outcome, host: Host | None) -> Node:
    return outcome.node or Node(OWN_MACHINE, None if host is None else host.cpu_model)


def list_kinds(outcomes: Iterable[Outcome], metric: Metric, host: Host | None = None) -> tuple[NodeKind, ...]:
    """The kinds of places that results of a metric come from, in one target; the largest first, none if all are alike.

    Builds of torch, which are long texts, are numbered.
    """
    groups: dict[Kind, dict[Node, None]] = {}
    for outcome in outcomes:
        if outcome.order.metric is metric and not isinstance(outcome.result, Failure):
            groups.setdefault(find_kind(outcome, host), {})[_find_node(outcome, host)] = None
    if len(groups) < 2:
        return ()
    builds = list(dict.fromkeys(dict(kind)["torch_build"] for kind in groups))
    what = _find_differing(list(groups))
    found = []
    for kind, nodes in sorted(groups.items(), key=lambda item: -len(item[1])):
        known = dict(kind) | {"torch_build": str(1 + builds.index(dict(kind)["torch_build"]))}
        ordered = tuple(sorted(nodes, key=lambda node: node.name))
        found.append(NodeKind(tuple((one, known[one]) for one in what), ordered))
    return tuple(found)


CONFIDENCE = 0.95


def summarise_run(run: Run) -> tuple[CaseSummary, ...]:
    """A summary for each case in each target, in the order of the plan."""
    plan, by_order = run.plan, {outcome.order: outcome for outcome in run.outcomes}
    return tuple(
        _summarise(case, target, plan.sampling, by_order, run.info.host)
        for case in plan.cases
        for target in plan.targets
    )


def _summarise(
    case: Case, target: Target, sampling: Sampling, by_order: Mapping[Order, Outcome], host: Host
) -> CaseSummary:
    orders = [Order(case, target, metric, n) for metric in sampling.metrics for n in range(sampling.repeat)]
    there = [by_order[order] for order in orders if order in by_order]
    chosen = choose_rounds(there, host)
    results = [outcome.result for outcome in chosen.outcomes]
    tallies = [result for result in results if isinstance(result, Tally)]
    timed = [result for result in results if isinstance(result, (Times, CompileCosts))]
    caveats = list(find_caveats(*map(steady_times, timed)) if timed else ())
    for one in chosen.outcomes:
        if isinstance(one.result, Tally):
            away = one.result.optimised_away
            caveats += doubt_count(one.result.totals, case.args.num_threads, one.environment, optimised_away=away)
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
        nodes=tuple(dict.fromkeys(one.node for one in chosen.outcomes if one.node is not None)),
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


def narrow_run(
    run: Run,
    *,
    cases: Collection[Case] | None = None,
    targets: Collection[Target] | None = None,
    metrics: Collection[Metric] | None = None,
) -> Run:
    """The same run with nothing but what is given, in its old order; None is all. Its numbers tell of what is left."""
    plan, sampling = run.plan, run.plan.sampling
    left = sampling.metrics if metrics is None else tuple(one for one in sampling.metrics if one in metrics)
    plan = Plan(
        cases=plan.cases if cases is None else tuple(case for case in plan.cases if case in cases),
        targets=plan.targets if targets is None else tuple(target for target in plan.targets if target in targets),
        sampling=dataclasses.replace(sampling, metrics=left),
    )
    kept = set(plan.orders)
    outcomes = tuple(outcome for outcome in run.outcomes if outcome.order in kept)
    info = dataclasses.replace(
        run.info,
        orders=len(kept),
        outcomes=len(outcomes),
        failures=sum(isinstance(outcome.result, Failure) for outcome in outcomes),
    )
    return Run(info, plan, outcomes, tuple(one for one in run.activities if one.target in plan.targets))
