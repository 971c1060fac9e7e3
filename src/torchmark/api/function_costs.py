"""Where the instructions of a stored case go, by function."""

from __future__ import annotations

from collections.abc import Iterator

from torchmark.analysis.results import choose_rounds
from torchmark.callgrind.profiles import standardise
from torchmark.errors import UsageError
from torchmark.model.case import Case
from torchmark.model.costs import INSTRUCTIONS, Tally
from torchmark.model.plan import Target
from torchmark.model.run import Run
from torchmark.report.text.counts import FunctionRow, FunctionTable
from torchmark.report.text.names import name_case, name_target
from torchmark.stats.order import middle
from torchmark.store.runs import Store


def find_counted(run: Run) -> tuple[Case, ...]:
    """The cases of a run that were counted."""
    counted = {outcome.order.case for outcome in run.outcomes if isinstance(outcome.result, Tally)}
    return tuple(case for case in run.plan.cases if case in counted)


def load_functions(store: Store, run: Run, case: Case) -> list[FunctionTable]:
    """The functions of a case, in each environment of a run it was counted in.

    Of several rounds it is the one in the middle, which is what the table shows.
    """
    loaded = store.load(run.info.id, profiles=True, select=lambda other: other == case)
    alike = {target: _list_counts(loaded, target) for target in run.plan.targets}
    tallies = {target: found[middle([one.total for one in found])] for target, found in alike.items() if found}
    several = len(run.plan.targets) > 1
    found = [
        FunctionTable(case, target, name_case(case) + (f" ({name_target(target)})" if several else ""), tuple(rows))
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
