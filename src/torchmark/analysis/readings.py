"""What a run says of a case in one target, and what two runs do not have in common."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence

from torchmark.analysis.comparable import PLACES, find_case_obstacles
from torchmark.analysis.places import choose_rounds, find_cpu
from torchmark.analysis.results import steady_times
from torchmark.model.case import Case
from torchmark.model.compiling import CompileCosts
from torchmark.model.costs import Tally
from torchmark.model.environment import Environment
from torchmark.model.history import Difference
from torchmark.model.judgement import Spread
from torchmark.model.outcome import Outcome
from torchmark.model.plan import Metric, Target
from torchmark.model.run import Host, Run, RunInfo
from torchmark.model.times import Times
from torchmark.stats.order import middle, quantile

# A case in a target, over all runs: suite, key, name of the target.
Subject = tuple[str, str, str]
# What has to be alike for two results to be compared at all.
Conditions = tuple[object, ...]

_HASH_SEED = "PYTHONHASHSEED"


@dataclasses.dataclass(frozen=True)
class Reading:
    """One case, one target, one run. Only what was measured is there."""

    info: RunInfo
    case: Case
    target: Target
    log_time: float | None = None
    """Logarithm of the seconds of a run of the statement: the median of the medians of all rounds."""
    instructions: Spread | None = None
    timed_in: Environment | None = None
    counted_in: Environment | None = None
    timed_on: str | None = None
    """The processor, which may be a node's."""
    counted_on: str | None = None

    def has(self, metric: Metric) -> bool:
        """Whether it was measured."""
        return (self.log_time if metric is Metric.WALL else self.instructions) is not None

    def environment(self, metric: Metric) -> Environment | None:
        """What it was measured in."""
        return self.timed_in if metric is Metric.WALL else self.counted_in

    def cpu(self, metric: Metric) -> str | None:
        """The processor that it was measured on."""
        return self.timed_on if metric is Metric.WALL else self.counted_on

    def conditions(self, metric: Metric) -> Conditions:
        """Readings that do not have them in common are not compared."""
        where, case = self.environment(metric), self.case
        place = (self.cpu(metric), where and where.cpu_capability, where and where.hash_seed)
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
    timed = [outcome for outcome in alike if isinstance(outcome.result, (Times, CompileCosts))]
    counted = [outcome for outcome in alike if isinstance(outcome.result, Tally)]
    return Reading(
        info,
        case,
        target,
        _find_log_time(timed),
        _find_spread([outcome.result for outcome in counted if isinstance(outcome.result, Tally)]),
        next((outcome.environment for outcome in timed), None),
        next((outcome.environment for outcome in counted), None),
        _find_cpus(timed, info.host),
        _find_cpus(counted, info.host),
    )


def _find_cpus(outcomes: Iterable[Outcome], host: Host) -> str | None:
    """The processor; counts may be of several, which are a condition together."""
    found = {cpu for outcome in outcomes if (cpu := find_cpu(outcome, host)) is not None}
    return " and ".join(sorted(found)) or None


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


def find_differences(before: Reading, after: Reading, metrics: Iterable[Metric]) -> tuple[Difference, ...]:
    """All that two readings do not have in common, what matters most first."""
    metrics = tuple(metrics)
    found = [Difference("cpu", before.cpu(metric), after.cpu(metric)) for metric in metrics]
    if before.conditions(Metric.WALL)[3:] != after.conditions(Metric.WALL)[3:]:
        texts = find_case_obstacles(before.case, after.case)
        found += [Difference("definition", one.base, one.head) for one in texts]
    for metric in metrics:
        found += _contrast(before.environment(metric), after.environment(metric))
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
    first: Mapping[str, str] = dict(before.variables)
    second: Mapping[str, str] = dict(after.variables)
    for name in sorted({*first, *second} - PLACES - {_HASH_SEED}):
        yield Difference(f"${name}", first.get(name), second.get(name))


def _find_commit(reading: Reading) -> str | None:
    """The commit of the folder that the case is defined in."""
    for source in reading.info.sources:
        if source.suite == reading.case.suite:
            return source.commit
    return None
