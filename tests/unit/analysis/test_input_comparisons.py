"""Statements against each other over inputs: hand-made times."""

from __future__ import annotations

import math

import pytest

from torchmark.analysis.input_comparisons import UNKNOWN_NOISE, compare_on_inputs
from torchmark.model.inputs import FuzzedInput
from torchmark.model.task import Times


def make_input(index: int, elements: int = 1000) -> FuzzedInput:
    return FuzzedInput(index, {"n": elements}, {"x": {"numel": elements, "size": (elements,)}}, "")


def steady(seconds: float, rounds: int = 6, number: int = 10) -> Times:
    return Times(number, (seconds * number,) * rounds)


def test_the_first_statement_is_what_the_others_are_held_against() -> None:
    results = [(make_input(0), [steady(1e-6), steady(2e-6), steady(5e-7)])]
    second, third = compare_on_inputs(["a", "b", "c"], results)
    assert (second.stmt, second.base) == ("b", "a")
    assert math.exp(second.effects[0]) == pytest.approx(2)
    assert math.exp(third.effects[0]) == pytest.approx(0.5)
    assert second.entries[0].base_s == pytest.approx(1e-6)
    assert second.entries[0].other_s == pytest.approx(2e-6)


def test_the_smallest_ratio_comes_first() -> None:
    ratios = [3.0, 1.0, 2.0]
    (contest,) = compare_on_inputs(
        ["a", "b"], [(make_input(i), [steady(1.0), steady(r)]) for i, r in enumerate(ratios)]
    )
    assert [entry.input.index for entry in contest.entries] == [1, 2, 0]
    assert contest.quantile(0.5) == pytest.approx(2)


def test_rounds_are_compared_with_themselves() -> None:
    # Twice as long in each round, although the machine becomes slower all the time.
    base, other = Times(1, tuple(range(1, 8))), Times(1, tuple(2 * t for t in range(1, 8)))
    (contest,) = compare_on_inputs(["a", "b"], [(make_input(0), [base, other])])
    ratio = contest.entries[0].ratio
    assert ratio.low == pytest.approx(math.log(2))
    assert ratio.high == pytest.approx(math.log(2))
    assert contest.entries[0].noise == pytest.approx(0)


def test_with_too_few_rounds_the_effect_counts_as_uncertain() -> None:
    (contest,) = compare_on_inputs(["a", "b"], [(make_input(0), [steady(1.0, rounds=5), steady(9.0, rounds=5)])])
    assert contest.entries[0].noise == UNKNOWN_NOISE
    assert contest.count_notable() == (0, 0)


def test_only_what_is_sure_and_more_than_three_percent_is_notable() -> None:
    wavering = Times(1, (0.8, 1.3, 0.8, 1.3, 1.3, 1.3, 0.9))
    pairs = [
        (steady(1.0), steady(1.02)),
        (steady(1.0), steady(1.04)),
        (steady(1.0), steady(0.9)),
        (steady(1.0, rounds=7), wavering),
    ]
    (contest,) = compare_on_inputs(["a", "b"], [(make_input(i), list(pair)) for i, pair in enumerate(pairs)])
    assert contest.count_notable() == (1, 1)


def test_one_statement_alone_is_held_against_its_elements() -> None:
    results = [
        (make_input(0, 1000), [steady(2e-6)]),
        (make_input(1, 10), [steady(2e-6)]),
        (make_input(2, 0), [steady(1)]),
    ]
    (contest,) = compare_on_inputs(["a"], results)
    assert contest.base is None
    # Nanoseconds for each element; where there is none, nothing can be said.
    assert [math.exp(effect) for effect in contest.effects] == [pytest.approx(2), pytest.approx(200)]
