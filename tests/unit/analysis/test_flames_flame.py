from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.made_flames import DEEP, make_deep_stacks
from torchmark.analysis.flames import ALL, grow, list_callers_first, prune
from torchmark.model.costs import FlameNode, FlameUnit, Frame, Method, Stack, Stacks

F, G, H = Frame("f"), Frame("g"), Frame("h")


def make(*stacks: tuple[tuple[Frame, ...], int], number: int = 1) -> Stacks:
    return Stacks(tuple(Stack(*one) for one in stacks), FlameUnit.INSTRUCTIONS, Method.CALLERS, number)


def walk(node: FlameNode) -> list[FlameNode]:
    return [node, *(below for child in node.children for below in walk(child))]


def test_values_are_what_is_in_a_frame_and_below_it() -> None:
    root = grow(make(((F,), 2), ((F, G), 3), ((F, G, H), 5), ((H,), 7)))
    assert (root.frame, root.value, root.own) == (ALL, 17, 0)
    first, second = root.children
    assert (first.frame, first.value, first.own) == (F, 10, 2)
    assert (second.frame, second.value, second.own) == (H, 7, 7)
    assert first.children[0].value == 8
    assert first.base_value is None


def count(root: FlameNode) -> int:
    return len(list_callers_first(root))


def test_nothing_is_a_root_of_nothing() -> None:
    assert grow(make()) == FlameNode(ALL, 0, 0)


def test_the_largest_child_comes_first_and_names_decide_between_equals() -> None:
    root = grow(make(((G,), 2), ((F,), 2), ((H,), 3)))
    assert [child.frame for child in root.children] == [H, F, G]


def test_a_difference_has_both_sides_of_every_frame() -> None:
    root = grow(make(((F,), 9), ((F, H), 1)), make(((F,), 4), ((F, G), 6)))
    assert (root.base_value, root.value) == (10, 10)
    (first,) = root.children
    assert (first.base_own, first.own) == (4, 9)
    gone, new = first.children
    assert (gone.frame, gone.base_value, gone.value) == (G, 6, 0)
    assert (new.frame, new.base_value, new.value) == (H, 0, 1)


def test_sides_of_different_numbers_of_runs_are_brought_to_the_same() -> None:
    root = grow(make(((F,), 30), number=3), make(((F,), 20), number=2))
    assert root.base_value == root.value == 60


def test_pruning_leaves_values_alone() -> None:
    root = grow(make(((F,), 90), ((F, G), 8), ((H,), 2)))
    pruned = prune(root, 0.05)
    assert pruned.value == 100
    assert [child.frame for child in pruned.children] == [F]
    assert count(pruned) == 3
    assert prune(root, 0.0) == root


def test_what_base_alone_has_is_not_pruned_for_being_nothing_in_head() -> None:
    root = grow(make(((F,), 50)), make(((F,), 50), ((G,), 50)))
    assert len(prune(root, 0.1).children) == 2


paths = st.lists(st.sampled_from([F, G, H]), min_size=1, max_size=5).map(tuple)
many = st.dictionaries(paths, st.integers(0, 10**12), max_size=20)


@given(many)
def test_every_frame_is_itself_and_its_children(values: dict[tuple[Frame, ...], int]) -> None:
    stacks = make(*values.items())
    root = grow(stacks)
    assert root.value == stacks.total
    for node in walk(root):
        assert node.value == node.own + sum(child.value for child in node.children)


@given(many, many, st.floats(0, 1))
def test_both_sides_of_a_difference_add_up(
    base: dict[tuple[Frame, ...], int], head: dict[tuple[Frame, ...], int], share: float
) -> None:
    root = grow(make(*head.items()), make(*base.items()))
    assert (root.base_value, root.value) == (sum(base.values()), sum(head.values()))
    for node in walk(root):
        assert node.base_own is not None
        assert node.base_value == node.base_own + sum(child.base_value or 0 for child in node.children)
    for node in walk(prune(root, share)):
        assert node.value >= sum(child.value for child in node.children)


def test_a_deep_stack_is_no_problem() -> None:
    # As deep as callers are kept, and more.
    deep = tuple(Frame(str(i)) for i in range(400))
    assert grow(make((deep, 1))).value == 1


@pytest.mark.parametrize("share", [0.0, 0.5, 1.0])
def test_the_root_is_never_pruned(share: float) -> None:
    assert prune(grow(make(((F,), 1), ((G,), 1))), share).frame == ALL


def test_a_chain_of_calls_may_be_as_deep_as_it_likes() -> None:
    stacks = make_deep_stacks()
    root = grow(stacks)
    assert (root.value, count(root)) == (101, DEEP + 1)
    assert count(prune(root, 0.5)) == DEEP + 1
    difference = grow(make_deep_stacks(leaf=200), stacks)
    assert (difference.base_value, difference.value, count(difference)) == (101, 201, DEEP + 1)
