"""Where instructions go, shortened: whatever is left out is in the sum."""

from __future__ import annotations

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.made_contrasts import count_functions
from torchmark.analysis.flames import MOST_CHANGED, MOST_COSTLY, break_down, shorten
from torchmark.model.judgement import Explanation, FunctionChange, Side

_costs = st.floats(0, 1e6)


@given(st.lists(st.tuples(_costs, _costs), max_size=80))
def test_what_is_shown_and_the_rest_add_up_to_all(costs: list[tuple[float, float]]) -> None:
    functions = tuple(FunctionChange(f"f{i}", "kernel", *pair) for i, pair in enumerate(costs))
    found = shorten(Explanation(functions, ()))
    rest = (found.rest.base, found.rest.head) if found.rest is not None else (0.0, 0.0)
    for side, left in zip(("base", "head"), rest, strict=True):
        shown = sum(getattr(one, side) for one in found.functions)
        assert shown + left == pytest.approx(sum(getattr(one, side) for one in functions))
    assert len(found.functions) + found.others == len(functions)
    assert len(found.functions) <= MOST_CHANGED + MOST_COSTLY
    assert (found.rest is None) == (found.others == 0)


def test_a_small_function_that_changed_is_shown_before_costly_ones_that_did_not() -> None:
    costly = [FunctionChange(f"f{i}", "kernel", 1000.0, 1000.0) for i in range(100)]
    changed = FunctionChange("g", "kernel", 1.0, 3.0)
    found = shorten(Explanation((changed, *costly), ()))
    assert found.functions[0] == changed


def test_a_single_party_has_numbers_of_head_alone() -> None:
    found = break_down([count_functions(100, 300)], lambda label: label)
    assert found is not None
    assert {found.list_costs(one) for one in found.functions} == {(None, 1.0), (None, 3.0)}
    assert sum(stage.head for stage in found.stages) == 4.0


@pytest.mark.parametrize("bare", [False, True])
@pytest.mark.parametrize("side", list(Side))
def test_a_side_without_costs_by_function_has_no_numbers(side: Side, bare: bool) -> None:
    counted = count_functions(100, 300)
    absent = dataclasses.replace(counted, profile=None) if bare else None
    found = break_down([counted, absent] if side is Side.BASE else [absent, counted], lambda label: label)
    assert found is not None
    assert found.only is side
    there, missing = (0, 1) if side is Side.BASE else (1, 0)
    costs = [*map(found.list_costs, found.functions), *map(found.list_costs, found.stages)]
    assert {one[missing] for one in costs} == {None}
    assert {one[there] for one in costs} >= {1.0, 3.0}


def test_without_costs_by_function_there_is_nothing() -> None:
    bare = dataclasses.replace(count_functions(100, 300), profile=None)
    assert break_down([bare, None], lambda label: label) is None
