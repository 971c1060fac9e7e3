from __future__ import annotations

import numpy as np

from torchmark.analysis.conditions import FeatureColumn, find_inside, make_column, sharpen, widen_gaps
from torchmark.model.rule import Condition, Feature, Relation

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
