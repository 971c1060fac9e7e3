from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from torchmark.analysis.flames import DEEPEST, grow, unfold
from torchmark.model.costs import Call, Costs, FlameNode, Function, Method, Profile


def make_profile(own: dict[str, int], calls: dict[tuple[str, str], int]) -> Profile:
    functions = {name: Function("x.c", name, "/lib/libx.so") for name in own}
    exclusive: dict[Function, Costs] = {functions[name]: (cost,) for name, cost in own.items()}
    edges = {(functions[one], functions[other]): Call(1, (cost,)) for (one, other), cost in calls.items()}
    return Profile(("Ir",), exclusive, exclusive, edges)


def unfolded(own: dict[str, int], calls: dict[tuple[str, str], int]) -> dict[str, int]:
    stacks = unfold(make_profile(own, calls), 100)
    assert stacks.total == sum(own.values())
    return {"/".join(frame.name for frame in frames): value for frames, value in stacks.stacks}


def test_a_tree_is_what_it_is() -> None:
    own = {"main": 10, "f": 20, "g": 30}
    assert unfolded(own, {("main", "f"): 50, ("f", "g"): 30}) == {"main": 10, "main/f": 20, "main/f/g": 30}


def test_what_two_call_is_shared_in_proportion() -> None:
    # g spends 60, a third of it for f and two thirds for main.
    own = {"main": 10, "f": 20, "g": 60}
    calls = {("main", "f"): 40, ("main", "g"): 40, ("f", "g"): 20}
    assert unfolded(own, calls) == {"main": 10, "main/f": 20, "main/f/g": 20, "main/g": 40}


def test_shares_are_handed_on_to_callees() -> None:
    own = {"main": 100, "f": 100, "g": 100, "h": 100}
    calls = {("main", "f"): 200, ("main", "g"): 100, ("f", "g"): 100, ("g", "h"): 100}
    assert unfolded(own, calls) == {
        "main": 100,
        "main/f": 100,
        "main/f/g": 50,
        "main/f/g/h": 50,
        "main/g": 50,
        "main/g/h": 50,
    }


def test_a_function_that_calls_itself_is_one_frame() -> None:
    own = {"main": 10, "f": 90}
    assert unfolded(own, {("main", "f"): 90, ("f", "f"): 60}) == {"main": 10, "main/f": 90}


def test_functions_that_call_each_other_are_folded() -> None:
    # Callgrind numbers a function that is entered again; the second f is the first as far as a reader goes.
    own = {"main": 10, "f": 20, "g": 40, "f'2": 30}
    calls = {("main", "f"): 90, ("f", "g"): 70, ("g", "f'2"): 30}
    assert unfolded(own, calls) == {"main": 10, "main/f": 50, "main/f/g": 40}


def test_a_true_cycle_adds_up() -> None:
    own = {"main": 10, "f": 50, "g": 40}
    found = unfolded(own, {("main", "f"): 90, ("f", "g"): 70, ("g", "f"): 40})
    assert set(found) == {"main", "main/f", "main/f/g"}
    assert found["main"] == 10


def test_a_cycle_that_nobody_entered_has_a_beginning() -> None:
    found = unfolded({"f": 50, "g": 50}, {("f", "g"): 100, ("g", "f"): 90})
    assert sum(found.values()) == 100


def test_several_roots_stand_beside_each_other() -> None:
    assert unfolded({"main": 10, "thread": 20}, {}) == {"main": 10, "thread": 20}


def test_the_loop_around_everything_is_left_out() -> None:
    own = {"main": 1, "loop": 1, "f": 5000, "g": 4998}
    calls = {("main", "loop"): 9999, ("loop", "f"): 5000, ("loop", "g"): 4998}
    found = unfolded(own, calls)
    assert found["f"] == 5000
    assert found["g"] == 4998


def test_nothing_is_no_stacks() -> None:
    assert unfold(make_profile({}, {}), 1).stacks == ()


def test_it_says_how_it_was_found_out() -> None:
    stacks = unfold(make_profile({"main": 1}, {}), 7)
    assert (stacks.method, stacks.number) == (Method.CALL_GRAPH, 7)


NAMES = "abcdefgh"


@given(
    st.dictionaries(st.sampled_from(NAMES), st.integers(0, 10**9), min_size=1),
    st.dictionaries(st.tuples(st.sampled_from(NAMES), st.sampled_from(NAMES)), st.integers(0, 10**9)),
)
def test_any_graph_adds_up_to_its_total(own: dict[str, int], calls: dict[tuple[str, str], int]) -> None:
    known = {pair: cost for pair, cost in calls.items() if set(pair) <= set(own)}
    stacks = unfold(make_profile(own, known), 1)
    assert stacks.total == sum(own.values())
    assert all(value > 0 for _, value in stacks.stacks)
    assert all(len(set(frames)) == len(frames) for frames, _ in stacks.stacks)

    def check(node: FlameNode) -> None:
        assert node.value == node.own + sum(child.value for child in node.children)
        for child in node.children:
            check(child)

    check(grow(stacks))


@pytest.mark.parametrize("length", [3000])
def test_a_chain_longer_than_python_recurses_is_no_problem(length: int) -> None:
    own = {f"f{i}": 1 for i in range(length)}
    calls = {(f"f{i}", f"f{i + 1}"): length - i - 1 for i in range(length - 1)}
    assert unfold(make_profile(own, calls), 1).total == length


@pytest.mark.parametrize("depth", [3000, 20_000])
def test_a_chain_of_calls_may_be_as_deep_as_it_likes(depth: int) -> None:
    names = [f"f{i}" for i in range(depth)]
    own = dict.fromkeys(names, 1) | {"other": depth}
    calls = {pair: depth - i for i, pair in enumerate(itertools.pairwise(names))}
    stacks = unfold(make_profile(own, calls), 100)
    assert stacks.total == 2 * depth
    # What is deeper is in the last that is drawn.
    assert max(len(frames) for frames, _ in stacks.stacks) == DEEPEST
    assert grow(stacks).value == 2 * depth
