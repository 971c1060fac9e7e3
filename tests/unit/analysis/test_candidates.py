from __future__ import annotations

import numpy as np
import pytest

from torchmark.analysis.conditions import make_column, make_pool
from torchmark.model.rule import Condition, Feature, Relation

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
