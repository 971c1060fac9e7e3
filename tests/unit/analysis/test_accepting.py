from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from tests.made_contrasts import count_functions, environment
from tests.sample_runs import ADD
from torchmark.analysis.gate import MOST_FUNCTIONS, REST, describe_dependencies, hold_against, make_entry
from torchmark.callgrind.profiles import standardise
from torchmark.model.costs import Costs, Function, Profile, Tally
from torchmark.model.gate import Growth, LedgerStanding, StaleEntry
from torchmark.model.ledger import LedgerEntry

TALLY = count_functions(400, 1000)
NOW = describe_dependencies("abc", TALLY, environment())


def accept(tally: Tally) -> LedgerEntry:
    return make_entry(ADD, NOW, tally, standardise, why="Because.", date="2001-12-31")


def test_an_entry_has_all_that_a_count_depends_on_and_comes_to() -> None:
    entry = accept(TALLY)
    assert (entry.suite, entry.key, entry.why, entry.date) == ("standard", ADD.key, "Because.", "2001-12-31")
    assert (entry.total, entry.totals, entry.allocations, entry.tensor_allocations) == (1400, (1400,) * 3, 200, 100)
    assert entry.functions == (("_PyEval_EvalFrameDefault", 1000), ("loop", 400))
    assert entry.rest == 0
    assert (NOW.definition, NOW.python, NOW.torch, NOW.layouts, NOW.number) == (
        "abc",
        "3.11.7",
        "2.13.0",
        (1, 2, 3),
        100,
    )


def test_the_same_count_stands_where_it_was_accepted() -> None:
    assert hold_against(accept(TALLY), ADD, NOW, TALLY, standardise) == LedgerStanding(ADD, 14.0, 14.0)


def test_more_is_told_by_function() -> None:
    found = hold_against(accept(TALLY), ADD, NOW, count_functions(300, 6000), standardise)
    assert found == LedgerStanding(ADD, 14.0, 63.0, (Growth("_PyEval_EvalFrameDefault", 50.0),))


def test_only_the_costliest_functions_are_listed_and_the_rest_adds_up() -> None:
    def count_many(last: int) -> Tally:
        names = range(MOST_FUNCTIONS + 5)
        costs: dict[Function, Costs] = {Function("", f"f{n:03}", ""): (1000 - n,) for n in names}
        costs[Function("", "new", "")] = (last,)
        total = sum(cost[0] for cost in costs.values())
        profile = Profile(("Ir",), costs, {}, {})
        return dataclasses.replace(TALLY, totals=(total,) * 3, events=(("Ir", total),), profile=profile)

    entry = accept(count_many(100))
    assert len(entry.functions) == MOST_FUNCTIONS
    assert entry.rest + sum(cost for _, cost in entry.functions) == entry.total
    found = hold_against(entry, ADD, NOW, count_many(200), standardise)
    assert isinstance(found, LedgerStanding)
    assert found.functions == (Growth(REST, 1.0),)


def test_without_costs_by_function_all_is_rest_and_no_function_is_named() -> None:
    bare = dataclasses.replace(TALLY, profile=None)
    assert (accept(bare).functions, accept(bare).rest) == ((), 1400)
    more = dataclasses.replace(bare, events=(("Ir", 1500),))
    assert hold_against(accept(TALLY), ADD, NOW, more, standardise) == LedgerStanding(ADD, 14.0, 15.0)


@pytest.mark.parametrize(
    ("changes", "difference"),
    [
        ({"definition": "def"}, ("definition", "abc", "def")),
        ({"torch": "2.14.0"}, ("torch", "2.13.0", "2.14.0")),
        ({"cpu_capability": None}, ("cpu_capability", "AVX2", "unknown")),
        ({"layouts": (1,)}, ("layouts", "1,2,3", "1")),
        ({"number": 10}, ("number", "100", "10")),
        ({"hash_seed": "1"}, ("hash_seed", "0", "1")),
    ],
)
def test_a_count_under_other_conditions_makes_the_entry_stale(
    changes: dict[str, Any], difference: tuple[str, str, str]
) -> None:
    now = dataclasses.replace(NOW, **changes)
    assert hold_against(accept(TALLY), ADD, now, TALLY, standardise) == StaleEntry(ADD, (difference,))


def test_the_commit_that_torch_was_built_from_is_no_condition() -> None:
    one, other = (
        describe_dependencies("abc", TALLY, environment(torch_version=f"2.14.0a0+git{commit}"))
        for commit in ("8ac9b20", "0000000")
    )
    assert one == other
    assert one.torch == "2.14.0a0+git"
