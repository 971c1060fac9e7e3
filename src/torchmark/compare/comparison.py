"""A comparison of cases of two sides as a value, what was found out of it, and judging by that.

Both sides are counted here; `compare/session.py` has them timed. What fails costs its own case only.
"""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Sequence

from torchmark.analysis.results import summarise_counts
from torchmark.analysis.verdict.explain import explain
from torchmark.analysis.verdict.judge import LARGE_RATIO, find_steady_delta, is_instruction_change, judge
from torchmark.analysis.verdict.stored import contrast_counts
from torchmark.callgrind.profiles import standardise
from torchmark.compare.experiment import DEFAULTS, Settings, Timing
from torchmark.model.costs import Tally
from torchmark.model.environment import Environment
from torchmark.model.job import DEFAULT_LAYOUTS
from torchmark.model.judgement import CaseJudgement, CountEvidence, Explanation, Side, SideFailure, Verdict
from torchmark.model.outcome import Event, Failure, Outcome
from torchmark.model.plan import Case, Metric, Order, Plan, Sampling, Target
from torchmark.processes import StopRequest
from torchmark.runner.backend import Backend
from torchmark.runner.prepare import FAULTS, find_faults, find_syntax_faults
from torchmark.runner.worker import DEFAULT_TIMEOUT_S


@dataclasses.dataclass(frozen=True)
class ComparedPair:
    """What is compared: the same case on both sides, or two statements."""

    base: Case
    head: Case

    @property
    def is_of_two(self) -> bool:
        return self.base != self.head


@dataclasses.dataclass(frozen=True)
class Comparison:
    """All that is to be compared, where, and how."""

    entries: tuple[ComparedPair, ...]
    base: Target
    head: Target
    """The same as `base` where two statements are compared in one interpreter."""
    metrics: tuple[Metric, ...] = (Metric.WALL, Metric.COUNT)
    settings: Settings = DEFAULTS
    count_layouts: tuple[int, ...] = DEFAULT_LAYOUTS
    timeout_s: float = DEFAULT_TIMEOUT_S
    decisive: float = LARGE_RATIO
    """The share of instructions from which on they decide although the clock cannot tell."""

    @property
    def plan(self) -> Plan:
        cases = dict.fromkeys(case for entry in self.entries for case in (entry.base, entry.head))
        targets = tuple(dict.fromkeys((self.base, self.head)))
        sampling = Sampling((Metric.COUNT,), layouts=self.count_layouts, timeout_s=self.timeout_s)
        return Plan(tuple(cases), targets, sampling)

    @property
    def orders(self) -> tuple[Order, ...]:
        """The counts that are wanted, each once."""
        pairs = [self.list_orders(entry) for entry in self.entries]
        return tuple(dict.fromkeys(order for side in zip(*pairs, strict=True) for order in side))

    def list_orders(self, entry: ComparedPair) -> tuple[Order, Order]:
        return Order(entry.base, self.base, Metric.COUNT), Order(entry.head, self.head, Metric.COUNT)


@dataclasses.dataclass
class Evidence:
    """What was found out so far."""

    counted: dict[Order, Tally | Failure] = dataclasses.field(default_factory=dict)
    environments: dict[Order, Environment] = dataclasses.field(default_factory=dict)
    timed: dict[ComparedPair, Timing] = dataclasses.field(default_factory=dict)

    def take(self, event: Event) -> None:
        if isinstance(event, Outcome) and isinstance(event.result, (Tally, Failure)):
            self.counted[event.order] = event.result
            if event.environment is not None:
                self.environments[event.order] = event.environment

    def list_environments(self, target: Target) -> tuple[Environment, ...]:
        """Where cases of a target were counted, each once."""
        return tuple(dict.fromkeys(where for order, where in self.environments.items() if order.target == target))

    def find_environment(self, target: Target) -> Environment | None:
        return next(iter(self.list_environments(target)), None)


def count_sides(
    comparison: Comparison, backend: Backend, evidence: Evidence, stop: StopRequest, observe: Callable[[Event], None]
) -> None:
    """Count every case on both sides; the back end has been opened. `observe` hears of everything."""
    with contextlib.closing(backend.execute(comparison.plan, comparison.orders, stop)) as events:
        for event in events:
            evidence.take(event)
            observe(event)


def judge_pair(comparison: Comparison, entry: ComparedPair, evidence: Evidence) -> CaseJudgement:
    timing = evidence.timed.get(entry, Timing(None))
    base, head = map(evidence.counted.get, comparison.list_orders(entry))
    known = {one.side for one in timing.failures}
    sides = zip(Side, (base, head), strict=True)
    failed = (SideFailure(side, one) for side, one in sides if isinstance(one, Failure) and side not in known)
    count, explanation = _contrast(base, head)
    judged = judge(
        entry.head,
        timing.evidence,
        count,
        base_case=entry.base if entry.is_of_two else None,
        caveats=timing.caveats,
        failures=(*timing.failures, *failed),
        explanation=explanation,
        decisive=comparison.decisive,
    )
    telling = judged.verdict in (Verdict.SLOWER, Verdict.FASTER) or (count is not None and is_instruction_change(count))
    return judged if telling else dataclasses.replace(judged, explanation=None)


def _contrast(
    base: Tally | Failure | None, head: Tally | Failure | None
) -> tuple[CountEvidence | None, Explanation | None]:
    if not (isinstance(base, Tally) and isinstance(head, Tally)):
        return None, None
    explanation = explain(base, head, standardise)
    count = contrast_counts(summarise_counts([base]), summarise_counts([head]))
    steady = None if explanation is None else find_steady_delta(explanation.functions)
    return None if count is None else dataclasses.replace(count, steady_delta=steady), explanation


def try_sides(comparison: Comparison, evidence: Evidence) -> Comparison:
    """Run the statements of a comparison once; gives the comparison without entries that fail, which are noted.

    Where one side is not even valid Python, nothing is started to try the other.
    """
    return _note_faults(_note_faults(comparison, evidence, find_syntax_faults), evidence, find_faults)


def _note_faults(
    comparison: Comparison, evidence: Evidence, find: Callable[[Sequence[Case], Target], dict[Case, Failure]]
) -> Comparison:
    cases = [entry.base for entry in comparison.entries], [entry.head for entry in comparison.entries]
    if comparison.base == comparison.head:
        faults = [find([*cases[0], *cases[1]], comparison.base)] * 2
    else:
        faults = [find(cases[0], comparison.base), find(cases[1], comparison.head)]
    for entry in comparison.entries:
        sides = zip(Side, faults, (entry.base, entry.head), strict=True)
        failures = tuple(SideFailure(side, found[case]) for side, found, case in sides if case in found)
        if failures:
            evidence.timed[entry] = Timing(None, failures=failures)
    return _keep(comparison, lambda entry: entry not in evidence.timed)


def leave_out_failed(comparison: Comparison, evidence: Evidence) -> Comparison:
    """The comparison without entries whose code failed while it was counted: timing them fails in the same way."""
    failed = {order for order, one in evidence.counted.items() if isinstance(one, Failure) and one.kind in FAULTS}
    return _keep(comparison, lambda entry: failed.isdisjoint(comparison.list_orders(entry)))


def _keep(comparison: Comparison, is_wanted: Callable[[ComparedPair], bool]) -> Comparison:
    return dataclasses.replace(comparison, entries=tuple(filter(is_wanted, comparison.entries)))
