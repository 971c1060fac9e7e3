from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from torchmark.analysis.conditions import (
    FeatureColumn,
    choose_threshold,
    count_digits,
    find_inside,
    make_column,
    make_pool,
    sharpen,
    widen_gaps,
)
from torchmark.model.inputs import Condition, Feature, Relation

FEATURES = [
    Feature("x is contiguous", (True, False, True, False, None, True)),
    Feature("dtype", ("int8", "int32", None, "int8", "float32", "int8")),
    Feature("dim", (1, 2, 3, 1, 2, 3)),
    Feature("density", (0.5, 0.25, None, 0.125, 0.01, 0.7)),
    Feature("k0", (10, 20, 30, 40, None, 50)),
]


def test_conditions_hold_as_their_type_says() -> None:
    pool = make_pool([make_column(feature) for feature in FEATURES])
    values = {feature.name: feature.values for feature in FEATURES}
    for candidate, holds in zip(pool.candidates, pool.holds, strict=True):
        condition = candidate.condition
        assert holds.tolist() == [condition.holds(value) for value in values[condition.feature]]


@pytest.mark.parametrize(
    ("values", "conditions"),
    [
        ((True, False), {("is", True), ("is", False)}),
        (("a", "b", "c"), {(relation, value) for relation in ("is", "is not") for value in "abc"}),
        ((1, 2, 3), {("is", 1), ("is", 2), ("is", 3), ("is not", 2), (">", 1), ("<=", 2)}),
        (tuple(range(10, 80, 10)), {(r, t) for r in (">", "<=") for t in (16, 20, 32, 40, 50, 64)}),
        ((1, 1, 1), set()),
        ((None, None), set()),
        ((), set()),
    ],
)
def test_values_decide_which_conditions_there_are(values: tuple[int, ...], conditions: set[object]) -> None:
    pool = make_pool([make_column(Feature("f", values))])
    found = {(c.condition.relation.value, c.condition.value) for c in pool.candidates}
    # Of conditions that hold for the same inputs one is kept: "is 1" for "<= 1" and "is not 1" is "> 1".
    assert found == conditions


def test_of_conditions_that_hold_for_the_same_inputs_the_most_readable_is_kept() -> None:
    size = Feature("k0", (1, 2, 3, 4, 5, 6, 7, 8))
    truth = Feature("x is large", (False,) * 4 + (True,) * 4)
    kept = [c.condition for c in make_pool([make_column(size), make_column(truth)]).candidates]
    assert Condition("x is large", Relation.IS, True) in kept
    assert Condition("k0", Relation.ABOVE, 4) not in kept


def test_whole_numbers_stay_whole() -> None:
    column = make_column(Feature("k0", (3, None, 1, 3)))
    assert column.distinct(np.ones(4, dtype=bool)) == [1, 3]
    assert all(isinstance(value, int) for value in column.distinct(column.present))


SEARCHED = (
    Feature("x is contiguous", (True, True, True, False, False, False, False)),
    Feature("k0", (950, 1100, 1200, 500, 900, 1300, 2000)),
)
NOT_CONTIGUOUS = Condition("x is contiguous", Relation.IS, False)


def above(threshold: float) -> tuple[Condition, ...]:
    return NOT_CONTIGUOUS, Condition("k0", Relation.ABOVE, threshold)


def columns(*features: Feature) -> list[FeatureColumn]:
    return [make_column(feature) for feature in features]


def test_a_threshold_lies_anywhere_between_inputs_that_meet_the_other_conditions() -> None:
    # 1150 parts all inputs where it should, and so does 1024 those that are not contiguous.
    assert widen_gaps(above(1150), columns(*SEARCHED)) == above(1024)
    at_most = (NOT_CONTIGUOUS, Condition("k0", Relation.AT_MOST, 1150))
    assert widen_gaps(at_most, columns(*SEARCHED)) == (NOT_CONTIGUOUS, Condition("k0", Relation.AT_MOST, 1024))


def test_conditions_without_a_threshold_or_without_another_side_stay() -> None:
    assert widen_gaps((NOT_CONTIGUOUS,), columns(*SEARCHED)) == (NOT_CONTIGUOUS,)
    assert widen_gaps(above(100), columns(*SEARCHED)) == above(100)


def test_other_inputs_tell_powers_of_two_apart() -> None:
    searched = columns(Feature("k0", (500, 4500)))
    more = columns(Feature("k0", (400, 700, 1500, 3000, 5000)))
    slow_above_1024 = np.array([0.0, 0.0, 1.0, 1.0, 1.0])
    slow_above_2048 = np.array([0.0, 0.0, 0.0, 1.0, 1.0])
    rule = (Condition("k0", Relation.ABOVE, 1024),)
    assert sharpen(rule, searched, more, slow_above_1024) == rule
    assert sharpen(rule, searched, more, slow_above_2048) == (Condition("k0", Relation.ABOVE, 2048),)


def test_an_odd_number_does_not_replace_a_power_of_two() -> None:
    searched = columns(Feature("k0", (900, 1300)))
    more = columns(Feature("k0", (400, 1100, 2000)))
    rule = (Condition("k0", Relation.ABOVE, 1024),)
    assert sharpen(rule, searched, more, np.array([0.0, 0.0, 1.0])) == rule


def test_no_conditions_hold_for_all_inputs() -> None:
    assert find_inside((), columns(*SEARCHED)).all()


@pytest.mark.parametrize(
    ("lo", "hi", "threshold"),
    [
        (1000, 1100, 1024),
        (1024, 1100, 1024),
        (1000, 1024, 1000),
        (1000, 1025, 1024),
        (900, 2100, 1024),  # the middle is 1375; 2048 is further
        (3, 5000, 128),  # the middle is 122
        (1100, 1300, 1200),
        (1100, 1111, 1100),
        (1101, 1109, 1105),
        (1101, 1102, 1101),
        (95, 127, 100),
        (1, 2, 1),
        (2, 3, 2),
        (0, 7, 0),
        (-5, 5, 0),
        (-5, 0, -5),
        (-1300, -1100, -1200),
        (-1, 0, -1),
    ],
)
def test_integers_are_parted_at_a_power_of_two_or_a_round_number(lo: int, hi: int, threshold: int) -> None:
    chosen = choose_threshold(lo, hi)
    assert chosen == threshold
    assert isinstance(chosen, int)


@pytest.mark.parametrize(
    ("lo", "hi", "threshold"),
    [
        (0.043, 0.071, 0.06),
        (0.0501, 0.0507, 0.0504),
        (0.001, 0.9, 0.03),
        (0.9, 1.2, 1.0),
        (3.1, 5.7, 4.0),
        (0.05, 0.0500000001, 0.05),
        (5e-324, 1e-320, 5e-324),
    ],
)
def test_floats_are_parted_at_a_short_decimal(lo: float, hi: float, threshold: float) -> None:
    assert choose_threshold(lo, hi) == threshold


@given(st.integers(-(10**12), 10**12), st.integers(1, 10**9))
def test_a_threshold_parts_any_two_integers(lo: int, width: int) -> None:
    threshold = choose_threshold(lo, lo + width)
    assert isinstance(threshold, int)
    assert lo <= threshold < lo + width


@given(st.floats(allow_nan=False, allow_infinity=False), st.floats(allow_nan=False, allow_infinity=False))
def test_a_threshold_parts_any_two_floats(one: float, another: float) -> None:
    assume(one != another)
    lo, hi = sorted((one, another))
    assert lo <= choose_threshold(lo, hi) < hi


def test_no_number_in_a_gap_is_rounder() -> None:
    for lo in range(1, 300):
        for hi in range(lo + 1, 300, 7):
            assert count_digits(choose_threshold(lo, hi)) == min(count_digits(t) for t in range(lo, hi))


def test_digits_are_those_that_a_reader_sees() -> None:
    assert [count_digits(value) for value in (0, 1, 1024, 1000, 0.05, 0.125, 1.5e-7, 1023)] == [0, 0, 0, 1, 1, 3, 2, 4]
