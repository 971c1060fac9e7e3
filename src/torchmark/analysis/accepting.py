"""From a count to an entry of the ledger, and holding a later count against it."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable

from torchmark.analysis.explain import explain
from torchmark.model.case import Case
from torchmark.model.costs import Tally
from torchmark.model.environment import Environment
from torchmark.model.gate import Growth, StaleEntry, Standing
from torchmark.model.ledger import Dependencies, LedgerEntry

# Entries are committed and read by people. A call of a small operator passes through some 150 functions; these are
# nearly all of its instructions.
MOST_FUNCTIONS = 60
# What stands for all functions that an entry does not list.
REST = "other functions"
# A torch that is built anew for each commit has the commit in its version: that is what changes, not a condition.
_COMMIT = re.compile(r"(?<=\+git)[0-9a-f]+$")

Standardise = Callable[[str], str]


def describe_dependencies(definition: str, tally: Tally, environment: Environment) -> Dependencies:
    """What a count depends on; `definition` is the hash of the case's."""
    return Dependencies(
        definition=definition,
        python=environment.python_version,
        torch=_COMMIT.sub("", environment.torch_version),
        cpu_capability=environment.cpu_capability,
        valgrind=environment.valgrind,
        hash_seed=environment.hash_seed,
        layouts=tally.seeds,
        number=tally.number,
    )


def make_entry(
    case: Case, depends_on: Dependencies, tally: Tally, standardise: Standardise, *, why: str, date: str
) -> LedgerEntry:
    """The entry that accepts a count."""
    costs = sum_by_function(tally, standardise)
    kept = sorted(costs, key=lambda name: (-costs[name], name))[:MOST_FUNCTIONS]
    return LedgerEntry(
        suite=case.suite,
        key=case.key,
        depends_on=depends_on,
        total=tally.total,
        totals=tally.totals,
        allocations=tally.allocations,
        tensor_allocations=tally.tensor_allocations,
        functions=tuple((name, costs[name]) for name in sorted(kept)),
        rest=tally.total - sum(costs[name] for name in kept),
        why=why,
        date=date,
    )


def sum_by_function(tally: Tally, standardise: Standardise) -> dict[str, int]:
    """Instructions of all runs by function, under the names that explanations have; nothing where they are not kept."""
    found = explain(tally, tally, standardise)
    costs: dict[str, int] = {}
    for function in found.functions if found is not None else ():
        # What one run takes is a quotient of whole numbers, and goes back to them.
        costs[function.function] = costs.get(function.function, 0) + round(function.head * tally.number)
    return costs


def hold_against(
    entry: LedgerEntry, case: Case, now: Dependencies, tally: Tally, standardise: Standardise
) -> Standing | StaleEntry:
    """The count beside the accepted one, or why that says nothing of it."""
    if differences := _find_differences(entry.depends_on, now):
        return StaleEntry(case, differences)
    number = tally.number
    return Standing(case, entry.total / number, tally.total / number, _find_growth(entry, tally, standardise))


def _find_differences(accepted: Dependencies, now: Dependencies) -> tuple[tuple[str, str, str], ...]:
    return tuple(
        (field.name, _spell(getattr(accepted, field.name)), _spell(getattr(now, field.name)))
        for field in dataclasses.fields(Dependencies)
        if getattr(accepted, field.name) != getattr(now, field.name)
    )


def _spell(value: object) -> str:
    if isinstance(value, tuple):
        return ",".join(map(str, value))
    return "unknown" if value is None else str(value)


def _find_growth(entry: LedgerEntry, tally: Tally, standardise: Standardise) -> tuple[Growth, ...]:
    """Those of the functions that the entry lists which take more now, and all others together if they do."""
    costs = sum_by_function(tally, standardise)
    if not costs:
        return ()
    listed = dict(entry.functions)
    deltas = {name: costs.get(name, 0) - before for name, before in listed.items()}
    deltas[REST] = tally.total - sum(costs.get(name, 0) for name in listed) - entry.rest
    grown = sorted((-delta, name) for name, delta in deltas.items() if delta > 0)
    return tuple(Growth(name, -delta / tally.number) for delta, name in grown)
