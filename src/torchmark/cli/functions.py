"""Which case's functions are meant, and what each of them costs."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

from torchmark.analysis.places import choose_rounds
from torchmark.callgrind.symbols import standardise
from torchmark.cli.selecting import Loaded, explain_nothing
from torchmark.define.expression import parse
from torchmark.define.selection import Selection, select
from torchmark.errors import UsageError
from torchmark.model.case import Case
from torchmark.model.costs import INSTRUCTIONS, Tally
from torchmark.model.plan import Target
from torchmark.model.run import Run
from torchmark.report.functions import FunctionRow
from torchmark.report.printable import count
from torchmark.report.variants import name_case, name_target
from torchmark.stats.order import middle
from torchmark.store.runs import Store

FUNCTIONS_HELP = "Where the instructions of one case go; EXPR as for -k."
# As many candidates as a person reads.
MOST_CANDIDATES = 10


@dataclasses.dataclass(frozen=True)
class Breakdown:
    """What the functions of a case cost in one environment, per run."""

    case: Case
    target: Target
    title: str
    rows: tuple[FunctionRow, ...]


def break_down(store: Store, run: Run, expression: str) -> list[Breakdown]:
    """The functions of the one case that is meant, in each environment it was counted in.

    Of several rounds it is the one in the middle, which is what the table shows.
    """
    case = choose_case(run, expression)
    loaded = store.load(run.info.id, profiles=True, select=lambda other: other == case)
    alike = {target: _list_counts(loaded, target) for target in run.plan.targets}
    tallies = {target: found[middle([one.total for one in found])] for target, found in alike.items() if found}
    several = len(run.plan.targets) > 1
    found = [
        Breakdown(case, target, name_case(case) + (f" ({name_target(target)})" if several else ""), tuple(rows))
        for target, tally in tallies.items()
        if (rows := list(_list_functions(tally)))
    ]
    if not found:
        raise UsageError(f"{name_case(case)}: No costs by function were kept.")
    return found


def _list_counts(run: Run, target: Target) -> list[Tally]:
    there = (outcome for outcome in run.outcomes if outcome.order.target == target)
    results = (outcome.result for outcome in choose_rounds(there, run.info.host).outcomes)
    return [result for result in results if isinstance(result, Tally)]


def choose_case(run: Run, expression: str) -> Case:
    """The only counted case that fits, or the one whose full name it is."""
    counted = {outcome.order.case for outcome in run.outcomes if isinstance(outcome.result, Tally)}
    cases = tuple(case for case in run.plan.cases if case in counted)
    if not cases:
        raise UsageError("Nothing was counted that is selected here: there are no costs by function.")
    named = [case for case in cases if name_case(case) == expression]
    selection = Selection(expression=None if named else parse(expression))
    found = named or select(cases, selection)
    if not found:
        raise UsageError(explain_nothing(Loaded((), cases, (), selection)))
    if len(found) > 1:
        names = [f"  {name_case(case)}" for case in found[:MOST_CANDIDATES]]
        rest = [f"  and {len(found) - len(names)} more"] if len(found) > len(names) else []
        text = f"--functions is for one case, and {expression!r} means {count(len(found), 'case')}:"
        raise UsageError("\n".join([text, *names, *rest, "Say more of it, or give the whole name."]))
    return found[0]


def _list_functions(tally: Tally) -> Iterator[FunctionRow]:
    """Functions of the same name, wherever they were built, are one."""
    profile = tally.profile
    if profile is None:
        return
    column = profile.events.index(INSTRUCTIONS)
    costs: dict[str, tuple[int, int]] = {}
    noisy = {standardise(label) for label in tally.noisy or ()}
    nothing = (0,) * len(profile.events)
    for function in {**profile.exclusive, **profile.inclusive}:
        name = standardise(function.label)
        own, with_callees = costs.get(name, (0, 0))
        own += profile.exclusive.get(function, nothing)[column]
        costs[name] = own, with_callees + profile.inclusive.get(function, nothing)[column]
    for name, (own, with_callees) in costs.items():
        if own or with_callees:
            yield FunctionRow(name, own / tally.number, with_callees / tally.number, name in noisy)
