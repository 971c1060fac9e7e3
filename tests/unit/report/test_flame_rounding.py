"""Graphs in whole units of one run."""

from __future__ import annotations

from collections.abc import Iterator

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.made_flames import RUN, compared_flame, flames
from torchmark.analysis.flames import prune
from torchmark.model.flame import Flame, FlameNode
from torchmark.report.flame.page import round_to_runs


def pairs(one: FlameNode, other: FlameNode) -> Iterator[tuple[FlameNode, FlameNode]]:
    yield one, other
    for below, beside in zip(one.children, other.children, strict=True):
        yield from pairs(below, beside)


def test_amounts_are_divided_by_runs_and_what_is_left_goes_into_the_next() -> None:
    tree = FlameNode(RUN, 150, 400, (FlameNode(RUN, 150, 150), FlameNode(RUN, 100, 100)))
    assert round_to_runs(tree, 100) == FlameNode(RUN, 1, 4, (FlameNode(RUN, 2, 2), FlameNode(RUN, 1, 1)))


def test_changes_are_what_they_were() -> None:
    changes = [
        (new.own - (new.base_own or 0)) * 100 == old.own - (old.base_own or 0)
        for old, new in pairs(compared_flame().root, round_to_runs(compared_flame().root, 100))
    ]
    assert all(changes)


@settings(max_examples=40)
@given(flames(), st.integers(1, 1000), st.sampled_from([0.0, 0.1]))
def test_values_add_up_and_stay_within_two_units(flame: Flame, runs: int, share: float) -> None:
    root = prune(flame.root, share)
    for old, new in pairs(root, round_to_runs(root, runs)):
        assert abs(old.value - new.value * runs) < 2 * runs
        assert new.value >= new.own + sum(child.value for child in new.children)
        assert (old.base_value is None) is (new.base_value is None)
        if old.base_value is not None and new.base_value is not None:
            assert abs(old.base_value - new.base_value * runs) < 2 * runs
            assert new.base_value >= (new.base_own or 0) + sum(child.base_value or 0 for child in new.children)
        if old.own == old.base_own:
            assert new.own == new.base_own
