"""Where a difference in instructions comes from: the same function of two profiles side by side, and stages of a call.

Each instruction is in exactly one function and in exactly one stage, so both add up to the totals.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from torchmark.analysis.naming import NAMELESS, is_nameless, library, plain_name
from torchmark.analysis.stages import STAGES, stage_of
from torchmark.model.costs import INSTRUCTIONS, Function, Tally
from torchmark.model.judgement import Explanation, FunctionChange, StageChange


def explain(base: Tally, head: Tally, standardise: Callable[[str], str]) -> Explanation | None:
    """Functions and stages of both sides, in instructions of one run; None where a side has no costs by function.

    `standardise` makes labels of two installations comparable.
    """
    if base.profile is None or head.profile is None:
        return None
    before, after = _add_up(base, standardise), _add_up(head, standardise)
    functions = [
        FunctionChange(name, stage, before[name, stage] / base.number, after[name, stage] / head.number)
        for name, stage in before.keys() | after.keys()
    ]
    stages = tuple(
        StageChange(stage, _sum_stage(before, stage) / base.number, _sum_stage(after, stage) / head.number)
        for stage in STAGES
    )
    return Explanation(tuple(sorted(functions, key=_by_size)), stages)


_Costs = Counter[tuple[str, str]]


def _add_up(tally: Tally, standardise: Callable[[str], str]) -> _Costs:
    """Instructions of all runs by name and stage. Few names have two stages: those of functions in two libraries."""
    assert tally.profile is not None, "the caller has seen to that"
    event = tally.profile.events.index(INSTRUCTIONS)
    costs: _Costs = Counter()
    for function, cost in tally.profile.exclusive.items():
        if cost[event]:
            costs[_name(function, standardise), stage_of(function)] += cost[event]
    return costs


def _name(function: Function, standardise: Callable[[str], str]) -> str:
    """A name without the file: only some builds know it, and there inlined code has the file that it was written in."""
    if is_nameless(function.name):
        return f"{NAMELESS} in {library(function.binary)}"
    _, _, name = standardise(function._replace(binary="").label).partition(":")
    return plain_name(name)


def _sum_stage(costs: _Costs, stage: str) -> int:
    return sum(cost for (_, its_stage), cost in costs.items() if its_stage == stage)


def _by_size(change: FunctionChange) -> tuple[float, float, str, str]:
    """Those that differ most first, then those that cost most, on whichever side."""
    return -abs(change.delta), -max(change.base, change.head), change.function, change.stage
