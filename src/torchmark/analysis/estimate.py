"""How long the orders of a plan will take, and how a plan is split into shards of about equal length."""

from __future__ import annotations

import dataclasses
import heapq
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from torchmark.model.outcome import Activity, ActivityKind, Outcome
from torchmark.model.plan import AutogradMode, Case, Label, Metric, Order, Plan, RuntimeMode, Sampling, Target
from torchmark.model.run import Shard
from torchmark.model.task import Language

# Seconds by suite, key of the case and metric.
History = Mapping[tuple[str, str, Metric], float]

# Seconds that timing takes besides the time it is asked to measure for.
TIMING_BESIDES = 0.15
TIMING_COMPILED = 15.0
# Where the number of runs is fixed, it is for calls of small operators, often through an override.
FIXED_RUN = 4e-6
# Seconds that counting takes before the first layout, and for each.
COUNTING = {Language.PYTHON: (0.35, 0.12), Language.CPP: (0.2, 0.1)}
COUNTING_SCRIPT = (0.7, 0.2)
COUNTING_COMPILED = 12.0
# What going backward multiplies that with.
BACKWARD = 2.5

# Seconds to start a worker that counts, times or has torch.compile loaded.
STARTING = {Metric.COUNT: 20.0, Metric.WALL: 2.0}
STARTING_COMPILER = 30.0
# Seconds to compile a hundred C++ snippets together, and a few.
COMPILING_HUNDRED = 30.0
COMPILING_LEAST = 12.0

# Another worker counts only where each has so many seconds of work.
WORK_PER_COUNTER = 200.0

# So many expected seconds have to pass before what they really took weighs as much as what was expected.
TRUST_AFTER_S = 20.0


def expected_seconds(order: Order, sampling: Sampling, history: History) -> tuple[float, bool]:
    """How long an order will take, and whether that is known from before."""
    case = order.case
    if (known := history.get((case.suite, case.key, order.metric))) is not None:
        return known, True
    compiled = case.autolabels.runtime is RuntimeMode.COMPILE
    if order.metric is Metric.COUNT:
        return (COUNTING_COMPILED if compiled else _expect_count(case, len(sampling.layouts))), False
    seconds = sampling.min_run_time_s
    if sampling.number is not None and sampling.blocks is not None:
        seconds = sampling.number * sampling.blocks * FIXED_RUN
    return (TIMING_COMPILED if compiled else seconds + TIMING_BESIDES), False


def _expect_count(case: Case, layouts: int) -> float:
    labels = case.autolabels
    once, each = COUNTING_SCRIPT if labels.runtime is RuntimeMode.JIT else COUNTING[labels.language]
    return (once + each * layouts) * (BACKWARD if labels.autograd is AutogradMode.FORWARD_BACKWARD else 1.0)


@dataclasses.dataclass(frozen=True)
class Estimate:
    """Seconds by the clock and of all processors together; `known` of `total` orders have been measured before."""

    clock_s: float
    cpu_s: float
    known: int
    total: int


def estimate(orders: Sequence[Order], sampling: Sampling, history: History, cores: int) -> Estimate:
    """How long these orders will take: counting shares the cores if there is enough of it, timing is alone."""
    expectations = [(order, *expected_seconds(order, sampling, history)) for order in orders]
    counting = sum(seconds for order, seconds, _ in expectations if order.metric is Metric.COUNT)
    timing = sum(seconds for order, seconds, _ in expectations if order.metric is Metric.WALL)
    costs = sum(cost.seconds for cost in find_start_costs(orders, history))
    known = sum(known for _, _, known in expectations)
    clock_s = costs + timing + counting / count_counters(counting, cores)
    return Estimate(clock_s, costs + timing + counting, known, len(orders))


def count_counters(seconds: float, cores: int) -> int:
    """How many workers will share that much counting.

    >>> count_counters(100.0, 8), count_counters(900.0, 8), count_counters(9000.0, 8)
    (1, 4, 8)
    """
    return max(1, min(cores, int(seconds / WORK_PER_COUNTER)))


@dataclasses.dataclass(frozen=True)
class StartCost:
    """Something that has to be done besides measuring, once for a target."""

    kind: ActivityKind
    target: Target
    metric: Metric | None
    """The one that waits for it, where only one does."""
    seconds: float


def find_start_costs(orders: Sequence[Order], history: History) -> tuple[StartCost, ...]:
    """Starting workers and compiling C++. What was measured before is taken to be compiled already."""
    costs = []
    for target in dict.fromkeys(order.target for order in orders):
        own = [order for order in orders if order.target == target]
        plain = {order.metric for order in own if order.case.autolabels.runtime is not RuntimeMode.COMPILE}
        costs += [StartCost(ActivityKind.START, target, one, STARTING[one]) for one in Metric if one in plain]
        if any(order.case.autolabels.runtime is RuntimeMode.COMPILE for order in own):
            costs.append(StartCost(ActivityKind.START, target, None, STARTING_COMPILER))
        snippets = {order.case for order in own if _is_new_snippet(order, history)}
        if snippets:
            seconds = max(COMPILING_HUNDRED * len(snippets) / 100, COMPILING_LEAST)
            costs.append(StartCost(ActivityKind.COMPILE, target, None, seconds))
    return tuple(costs)


def _is_new_snippet(order: Order, history: History) -> bool:
    case = order.case
    return case.args.language is Language.CPP and (case.suite, case.key, order.metric) not in history


class Estimator:
    """What remains while orders are carried out; what they really take corrects what was expected of the others."""

    def __init__(self, orders: Sequence[Order], sampling: Sampling, history: History, cores: int) -> None:
        self._expected = {order: expected_seconds(order, sampling, history)[0] for order in orders}
        self._remaining = dict.fromkeys(Metric, 0.0)
        for order, seconds in self._expected.items():
            self._remaining[order.metric] += seconds
        self._share = {Metric.COUNT: 1 / count_counters(self._remaining[Metric.COUNT], cores), Metric.WALL: 1.0}
        self._spent = dict.fromkeys(Metric, 0.0)
        self._supposed = dict.fromkeys(Metric, 0.0)
        self._costs = list(find_start_costs(orders, history))

    def add(self, event: Outcome | Activity) -> None:
        """Something is done. What was not expected changes nothing."""
        if isinstance(event, Activity):
            done = [cost for cost in self._costs if (cost.kind, cost.target) == (event.kind, event.target)]
            self._costs = [cost for cost in self._costs if cost not in done[:1]]
            return
        order = event.order
        if (expected := self._expected.pop(order, None)) is None:
            return
        self._remaining[order.metric] -= expected
        self._spent[order.metric] += max(event.ended - event.began, 0.0)
        self._supposed[order.metric] += expected
        # Where there are results, nobody waits for a worker any more.
        self._costs = [cost for cost in self._costs if (cost.target, cost.metric) != (order.target, order.metric)]

    def remaining_s(self) -> float:
        """Seconds by the clock until all is done."""
        if not self._expected:
            return 0.0
        remaining = sum(cost.seconds for cost in self._costs)
        for metric, seconds in self._remaining.items():
            correction = (self._spent[metric] + TRUST_AFTER_S) / (self._supposed[metric] + TRUST_AFTER_S)
            remaining += max(seconds, 0.0) * correction * self._share[metric]
        return remaining


Group = tuple[str, Label, AutogradMode]


def deal(plan: Plan, of: int) -> dict[Case, int]:
    """The number of the shard, from 1 on, that each case belongs to with all its targets, metrics and rounds.

    The most expensive group comes first, and each goes to the shard that has least: so no two shards are further apart
    than the most expensive group. What was measured before plays no part, for other machines would know otherwise.
    """
    costs: Counter[Group] = Counter()
    for case in plan.cases:
        costs[_group(case)] += _expect_ms(case, plan)
    # More shards than groups would stay empty.
    shards = [(0, 0, number) for number in range(1, min(of, len(costs)) + 1)]
    dealt = {}
    # Where costs are the same, in the order of the plan.
    for group, cost in sorted(costs.items(), key=lambda item: -item[1]):
        load, size, number = shards[0]
        heapq.heapreplace(shards, (load + cost, size + 1, number))
        dealt[group] = number
    return {case: dealt[_group(case)] for case in plan.cases}


def list_own_cases(plan: Plan, shard: Shard | None) -> tuple[Case, ...]:
    """The cases of a shard, in the order of the plan; all where there are no shards."""
    if shard is None:
        return plan.cases
    return tuple(case for case, number in deal(plan, shard.of).items() if number == shard.number)


def pick_orders(orders: Iterable[Order], plan: Plan, shard: Shard | None) -> tuple[Order, ...]:
    own = frozenset(list_own_cases(plan, shard))
    return tuple(order for order in orders if order.case in own)


def _group(case: Case) -> Group:
    """What must agree: the same label, with or without a backward pass."""
    return case.suite, case.label, case.autolabels.autograd


def _expect_ms(case: Case, plan: Plan) -> int:
    """How long a case is expected to take in all. In whole numbers, whose sum does not depend on their order."""
    sampling = plan.sampling
    orders = [Order(case, target, metric) for target in plan.targets for metric in sampling.metrics]
    seconds = sum(expected_seconds(order, sampling, {})[0] for order in orders) * sampling.repeat
    if case.args.language is Language.CPP:
        seconds += len(plan.targets) * COMPILING_HUNDRED / 100
    return round(seconds * 1000)
