"""Which cases of a plan belong to which shard: the same on every machine, and about as long for all.

Variants that are compared with each other stay together, so that a shard never prepares a case only to be a witness.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable

from torchmark.analysis.estimate import COMPILING_HUNDRED, expected_seconds
from torchmark.model.case import AutogradMode, Case, Label
from torchmark.model.plan import Order, Plan
from torchmark.model.shard import Shard
from torchmark.model.task import Language

Group = tuple[str, Label, AutogradMode]


def deal(plan: Plan, of: int) -> dict[Case, int]:
    """The number of the shard, from 1 on, that each case belongs to with all its targets, metrics and rounds.

    The most expensive group comes first, and each goes to the shard that has least: so no two shards are further apart
    than the most expensive group. What was measured before plays no part, for other machines would know otherwise.
    """
    costs: dict[Group, int] = {}
    for case in plan.cases:
        costs[_group(case)] = costs.get(_group(case), 0) + _expect_ms(case, plan)
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
    """Those orders of a plan that are a shard's."""
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
