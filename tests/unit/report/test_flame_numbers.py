"""Numbers of a flame graph as texts."""

from __future__ import annotations

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.made_flames import compared_flame, plain_flame
from torchmark.model.flame import FlameUnit
from torchmark.report.flame.labels import FlameScale, find_step, gauge_of, show_percent, show_relation, tell_frame


def test_a_tooltip_has_shares_of_all_and_of_the_caller_and_what_is_spent_in_the_function_itself() -> None:
    flame = plain_flame()
    root = flame.root
    run = root.children[0]
    hook = run.children[0]
    add = hook.children[0]
    assert tell_frame(root, None, root, gauge_of(flame)) == [
        "all",
        "1,000.5 instructions per run, 100% of all",
        "in itself 0, 0% of all",
    ]
    assert tell_frame(run, root, root, gauge_of(flame))[2] == "1,000.5 instructions per run, 100% of all"
    assert tell_frame(add, hook, root, gauge_of(flame)) == [
        "at::_ops::add_Tensor::call(at::Tensor const&, at::Tensor const&)",
        "libtorch_cpu.so",
        "490.5 instructions per run, 49% of all, 71% of its caller",
        "in itself 50.5, 5.0% of all",
    ]


def test_a_tooltip_of_a_difference_has_both_sides_and_what_is_new_or_gone() -> None:
    flame = compared_flame()
    root = flame.root
    run = root.children[0]
    hook, old, malloc = run.children
    gauge = gauge_of(flame)
    assert tell_frame(hook, run, root, gauge)[2:] == [
        "690.5 → 780.5 (+90, +13%) instructions per run",
        "in itself 200 → 320 (+120, +60%)",
        "69% → 80% of all",
    ]
    assert tell_frame(old, run, root, gauge)[3] == "in itself 110 → 0 (−110, gone)"
    assert tell_frame(malloc, run, root, gauge)[3] == "in itself 100 (no change)"


def test_samples_are_not_divided_by_runs() -> None:
    assert gauge_of(dataclasses.replace(plain_flame(), unit=FlameUnit.SAMPLES)) == FlameScale("samples", 1)


@given(st.integers(0, 10**12), st.integers(1, 10**4))
def test_a_value_is_shown_to_half_a_tenth(value: int, runs: int) -> None:
    shown = float(FlameScale("", runs).show(value).replace(",", ""))
    assert abs(shown - value / runs) <= 0.05 + 1e-9 * value


@pytest.mark.parametrize(
    ("part", "whole", "text"),
    [(0, 0, "0%"), (5, 0, "0%"), (994, 10_000, "9.9%"), (995, 10_000, "10%"), (1, 10**9, "<0.01%"), (3, 2, "150%")],
)
def test_shares_have_two_figures_or_so(part: int, whole: int, text: str) -> None:
    assert show_percent(part, whole) == text


def test_changes_from_nothing_and_to_nothing_are_no_percentages() -> None:
    assert [show_relation(*pair) for pair in ((0, 5), (5, 0), (4, 4), (4, 3), (0, 0))] == [
        "new",
        "gone",
        "no change",
        "−25%",
        "no change",
    ]


@given(st.integers(-1000, 1000), st.integers(1, 1000))
def test_colours_grow_with_the_change_and_have_its_sign(change: int, largest: int) -> None:
    step = find_step(max(min(change, largest), -largest), largest)
    assert abs(step) <= 5
    assert step * change >= 0
    assert find_step(largest, largest) == 5
    assert find_step(0, 0) == 0
