from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

from tests.made_inputs import Input, make_study
from torchmark.analysis.rules import FLOOR, LEAST_HELD_BACK, find_rules, split
from torchmark.model.inputs import Condition, Feature, Relation, RuleSearch

NOT_CONTIGUOUS = Condition("x is contiguous", Relation.IS, False)


def is_above(made: Input, name: str, threshold: int) -> bool:
    return Condition(name, Relation.ABOVE, threshold).holds(made[name])


def study(seed: int, effect: Callable[[Input, float], float], count: int = 200, outliers: float = 0.01) -> RuleSearch:
    features, effects, noise, _ = make_study(seed, count, effect, largest=65536, outliers=outliers)
    return find_rules(features, effects, noise)


def sleep_if(holds: Callable[[Input], bool]) -> Callable[[Input, float], float]:
    return lambda made, seconds: math.log(1 + 1e-3 / seconds) if holds(made) else 0.0


def shift_if(ratio: float, holds: Callable[[Input], bool]) -> Callable[[Input, float], float]:
    return lambda made, seconds: math.log(ratio) if holds(made) else 0.0


def test_a_planted_conjunction_is_found_exactly() -> None:
    effect = sleep_if(lambda made: not made["x is contiguous"] and is_above(made, "k0", 1024))
    exact = 0
    for seed in range(2):
        search = study(seed, effect)
        assert len(search.rules) <= 1
        exact += [rule.conditions for rule in search.rules] == [(NOT_CONTIGUOUS, Condition("k0", Relation.ABOVE, 1024))]
    assert exact == 2


def test_something_large_on_a_few_is_told_before_something_small_on_most() -> None:
    def effect(made: Input, seconds: float) -> float:
        # A call of a function, which small inputs feel, and a sleep.
        slept = 5e-4 if not made["x is contiguous"] and is_above(made, "k0", 1024) else 0.0
        return math.log(1 + (4e-7 + slept) / seconds)

    rule = study(0, effect).rules[0]
    assert rule.conditions == (NOT_CONTIGUOUS, Condition("k0", Relation.ABOVE, 1024))


@pytest.mark.parametrize(
    ("ratio", "condition"),
    [
        (2.0, NOT_CONTIGUOUS),
        (0.5, NOT_CONTIGUOUS),
        (1.08, NOT_CONTIGUOUS),
        (1.5, Condition("dim", Relation.IS, 3)),
        (1.5, Condition("dtype", Relation.IS, "int32")),
        (1.5, Condition("elements of x", Relation.ABOVE, 32768)),
        (0.7, Condition("elements of x", Relation.AT_MOST, 4096)),
    ],
)
def test_a_single_planted_condition_is_found_exactly(ratio: float, condition: Condition) -> None:
    search = study(0, shift_if(ratio, lambda made: condition.holds(made[condition.feature])), outliers=0)
    (rule,) = search.rules
    assert rule.conditions == (condition,)
    assert rule.inside == pytest.approx(math.log(ratio), abs=0.02)
    assert rule.outside == pytest.approx(0, abs=0.02)
    assert rule.inputs_inside + rule.inputs_outside == search.held_back


def test_two_planted_rules_are_found_one_after_the_other() -> None:
    def effect(made: Input, seconds: float) -> float:
        if not made["x is contiguous"]:
            return math.log(3)
        return 0.0 if is_above(made, "elements of x", 4096) else -math.log(1.5)

    first, second = study(1, effect).rules
    assert first.conditions == (NOT_CONTIGUOUS,)
    assert second.conditions == (Condition("elements of x", Relation.AT_MOST, 4096),)
    assert second.inputs_inside + second.inputs_outside <= first.inputs_outside


def test_noise_makes_no_rule() -> None:
    for seed in range(40):
        features, effects, noise, _ = make_study(seed, 60)
        # Every third feature, to be quick.
        assert find_rules(features[::3], effects, noise).rules == ()


def test_an_effect_below_the_floor_makes_no_rule() -> None:
    effect = shift_if(1.02, lambda made: not made["x is contiguous"])
    for seed in range(2):
        features, effects, noise, _ = make_study(seed, 200, effect, outliers=0)
        assert find_rules(features, effects, noise).rules == ()
        assert find_rules(features, effects, noise, floor=0.01).rules[0].conditions == (NOT_CONTIGUOUS,)


def test_what_is_seen_in_the_search_alone_is_a_candidate_and_no_rule(monkeypatch: pytest.MonkeyPatch) -> None:
    effect = shift_if(2, lambda made: made["dtype"] == "int32")
    features, effects, noise, inputs = make_study(0, 200, effect, outliers=0)
    held = range(2, len(inputs), 3)
    sides = np.setdiff1d(np.arange(len(inputs)), held), np.array(held)
    monkeypatch.setattr("torchmark.analysis.rules.split", lambda effects, turn: sides)
    flat = [0.0 if index in held else effect for index, effect in enumerate(effects)]
    search = find_rules(features, flat, noise)
    assert search.rules == ()
    assert search.candidate == (Condition("dtype", Relation.IS, "int32"),)


@pytest.mark.parametrize(("slow", "told"), [(True, True), (False, False)])
def test_a_single_condition_is_told_of_the_side_that_is_not_neutral(slow: bool, told: bool) -> None:
    # Most inputs are contiguous: the slow side is told whether it is the larger one or not.
    (rule,) = study(0, shift_if(2, lambda made: made["x is contiguous"] is slow), outliers=0).rules
    assert rule.conditions == (Condition("x is contiguous", Relation.IS, told),)


def test_without_a_neutral_effect_the_longer_side_is_told() -> None:
    features, effects, noise, _ = make_study(0, 200, shift_if(2, lambda made: made["dim"] == 2), outliers=0)
    (rule,) = find_rules(features, [effect - 20 for effect in effects], noise, neutral=None).rules
    assert rule.conditions == (Condition("dim", Relation.IS, 2),)


@pytest.mark.parametrize("count", [0, 1, 5, 3 * LEAST_HELD_BACK - 1])
def test_too_few_inputs_are_counted_and_not_searched(count: int) -> None:
    features, effects, noise, _ = make_study(0, count)
    assert find_rules(features, effects, noise) == RuleSearch((), count - count // 3, count // 3, too_few=True)


def test_as_many_inputs_as_can_be_enough_are_searched() -> None:
    count = 3 * LEAST_HELD_BACK
    feature = Feature("x is contiguous", tuple(index % 2 == 0 for index in range(count)))
    (rule,) = find_rules([feature], [index % 2 + index / 1000 for index in range(count)], [0.0] * count).rules
    assert rule.conditions == (NOT_CONTIGUOUS,)


@pytest.mark.parametrize("values", [(1,) * 60, (None,) * 60, (True,) * 60, tuple(range(60)), ("a", None) * 30])
def test_equal_effects_and_features_that_tell_nothing_make_no_rule(values: tuple[int, ...]) -> None:
    feature = Feature("f", values)
    assert find_rules([feature], [1.0] * 60, [0.0] * 60) == RuleSearch((), 40, 20)
    assert find_rules([], [1.0, 2.0] * 30, [0.0] * 60) == RuleSearch((), 40, 20)
    assert find_rules([feature, feature], [1.0, 2.0, 1.0] * 20, [0.0] * 60).rules == ()


@pytest.mark.parametrize("count", [0, 1, 2, 3, 7, 100])
def test_of_every_three_effects_in_order_one_is_held_back(count: int) -> None:
    effects = np.random.default_rng(0).permutation(count).astype(float)
    turns = [split(effects, turn) for turn in range(3)]
    for searched, held_back in turns:
        assert sorted([*searched, *held_back]) == list(range(count))
        assert sorted(effects[held_back] // 3) == list(range(count // 3))
    # Each has its turn, but for one or two that are left over.
    assert len({index for _, held_back in turns for index in held_back.tolist()}) == count - count % 3


def test_the_same_inputs_give_the_same_rules() -> None:
    effect = shift_if(2, lambda made: not made["x is contiguous"])
    assert study(3, effect) == study(3, effect)


def test_the_floor_is_three_percent() -> None:
    assert math.exp(FLOOR) == pytest.approx(1.03)
