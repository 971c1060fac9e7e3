"""Flame graphs for a page of many cases: no larger than there is room for, and with the same sums."""

from __future__ import annotations

import dataclasses

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.made_contrasts import count_functions
from tests.made_flames import DEEP, make_deep_stacks
from torchmark.analysis.flames import (
    ALL,
    LEAST_FRAMES,
    MOST_FRAMES,
    abridge,
    draw_flame,
    list_callers_first,
    picture,
    share_out_frames,
)
from torchmark.model.costs import Flame, FlameNode, FlameUnit, Frame, Method


def grow_star(widths: list[int]) -> FlameNode:
    """A root with so many frames below it."""
    leaves = tuple(FlameNode(Frame(f"f{i}"), width, width) for i, width in enumerate(widths))
    return FlameNode(ALL, 0, sum(widths), leaves)


def abridge_tree(root: FlameNode, most: int) -> FlameNode:
    return abridge(Flame(root, "", FlameUnit.INSTRUCTIONS, Method.CALLERS), most).root


def count_frames(root: FlameNode) -> int:
    return len(list_callers_first(root))


@given(st.lists(st.integers(1, 10**6), max_size=60), st.integers(2, 40))
@example([1] * 10 + [620870, 1000000, 1000000], 3)
def test_the_widest_frames_stay_and_the_root_keeps_its_value(widths: list[int], most: int) -> None:
    cut = abridge_tree(grow_star(widths), most)
    assert cut.value == sum(widths)
    kept = sorted((one.value for one in cut.children), reverse=True)
    assert kept == sorted(widths, reverse=True)[: len(kept)]
    # The root is one of them.
    assert len(kept) >= min(len(widths), most - 1)


def test_what_fits_is_left_as_it_is() -> None:
    root = grow_star([3, 2, 1])
    assert abridge_tree(root, 4) is root


def test_more_cases_have_fewer_frames_each_within_limits() -> None:
    shares = [share_out_frames(number) for number in (0, 1, 181, 1000, 10**6)]
    assert shares == sorted(shares, reverse=True)
    assert set(shares) <= set(range(LEAST_FRAMES, MOST_FRAMES + 1))


def test_two_sides_give_a_difference_and_one_gives_a_graph() -> None:
    tally = count_functions(100, 300)
    both, one = picture([tally, count_functions(150, 300)], "t", 100), picture([None, tally], "t", 100)
    assert both is not None
    assert (both.root.base_value, both.root.value) == (400, 450)
    assert one is not None
    assert (one.root.base_value, one.root.value, count_frames(one.root)) == (None, 400, 3)


def test_different_numbers_of_runs_are_brought_to_their_product() -> None:
    found = picture([count_functions(100, 300, number=100), count_functions(10, 30, number=10)], "t", 100)
    assert found is not None
    assert found.number == 1000
    assert found.root.value == found.root.base_value


def test_nothing_is_drawn_without_costs_by_function() -> None:
    assert picture([dataclasses.replace(count_functions(1, 2), profile=None)], "t", 100) is None


@pytest.mark.parametrize("depth", [3000, DEEP])
def test_a_chain_of_calls_may_be_as_deep_as_it_likes(depth: int) -> None:
    one = draw_flame(make_deep_stacks(depth), "deep")
    assert count_frames(one.root) == depth + 1
    assert count_frames(abridge(one, 100).root) >= 100
    both = draw_flame(make_deep_stacks(depth, leaf=7), "deep", base=make_deep_stacks(depth))
    assert (both.root.base_value, both.root.value) == (101, 8)
