"""Statements compared over many inputs, and rules that explain where they differ, confirmed on inputs held back.

Pure: `api/statements.py` measures what it works on.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.stats import mannwhitneyu  # type: ignore[import-untyped]

from torchmark.analysis.conditions import (
    FeatureColumn,
    Floats,
    Mask,
    find_conjunction,
    find_inside,
    make_column,
    sharpen,
    widen_gaps,
)
from torchmark.analysis.input_comparisons import NOTABLE
from torchmark.model.inputs import Condition, Feature, Relation, Rule, RuleSearch

# Differences below 3 % are left alone: a choice of what is worth a sentence, not a measured limit.
FLOOR = NOTABLE
# One input in so many is held back, each in one of as many turns.
HELD_BACK = 3
# Effects like this are looked for first, a third more time or less; then those above noise. Else something small on
# most inputs would be told before something large on a few.
LARGE = math.log(4 / 3)
# Chance of a rule where there is none, in each turn and for each of the two sizes of effects: at most three studies in
# a thousand, and the floor makes it rarer still.
ALPHA = 0.0005
# For each condition of a rule that holds as a whole.
ALPHA_CONDITION = 0.05
# The best of many conditions looks better than it is; one that keeps less than half was mostly luck.
LEAST_KEPT = 0.5
# One alone is an anecdote. Two of 66 can fall below ALPHA (1 in 2145), and of 200 inputs, a rule on one in twenty has
# no more than three among those held back.
LEAST_SIDE = 2
# The fewest that can fall below ALPHA: there are 3432 ways to choose 7 of 14, and 1716 to choose 6 of 13.
LEAST_HELD_BACK = 14
MOST_RULES = 3
# Of the draws that split inputs. Any will do, as long as it does not depend on what is known of them.
SEED = 20240229


def find_rules(
    features: Sequence[Feature],
    effects: Sequence[float],
    noise: Sequence[float],
    *,
    floor: float = FLOOR,
    neutral: float | None = 0.0,
) -> RuleSearch:
    """The rules that tell where effects are other than elsewhere, each seen on inputs it was not made from.

    `noise` has half the width of each effect's 95 % interval. `neutral` is the effect of no difference; None where
    there is no such thing, as with times per element.
    """
    assert len(effects) == len(noise)
    assert all(len(feature.values) == len(effects) for feature in features)
    table = _InputTable([make_column(feature) for feature in features], np.asarray(effects, dtype=float))
    held_back = len(effects) // HELD_BACK
    searched = len(effects) - held_back
    if held_back < LEAST_HELD_BACK:
        return RuleSearch((), searched, held_back, too_few=True)
    scales = [max(float(np.median(noise)), scale) for scale in (LARGE, floor)]
    rules: list[Rule] = []
    while len(rules) < MOST_RULES:
        rule, candidate = _find_one(table, scales, floor, neutral)
        if rule is None:
            return RuleSearch(tuple(rules), searched, held_back, candidate)
        rules.append(rule)
        table = table.take(np.flatnonzero(~table.meets(rule.conditions)))
    return RuleSearch(tuple(rules), searched, held_back)


def _find_one(
    table: _InputTable, scales: Sequence[float], floor: float, neutral: float | None
) -> tuple[Rule | None, tuple[Condition, ...]]:
    """Of the rules that hold up, the one that explains most of all inputs; and what was found first."""
    candidates: list[tuple[Condition, ...]] = []
    for scale in scales:
        held: list[tuple[float, Rule]] = []
        for turn in range(HELD_BACK):
            searched, held_back = (table.take(inputs) for inputs in split(table.effects, turn))
            study = _Study(searched=searched, held_back=held_back, scale=scale, floor=floor, neutral=neutral)
            candidates.append(study.look())
            rule = study.check(candidates[-1])
            if rule is not None:
                held.append((study.explain(table, rule.conditions), rule))
        if held:
            return max(held, key=lambda pair: pair[0])[1], ()
    return None, next(filter(None, candidates), ())


def split(effects: Sequence[float] | Floats, turn: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Which inputs are searched and which are held back in a turn: always the same ones for the same effects.

    Of every three that follow each other in the order of effects, one is held back, so that rare large effects are on
    both sides. Where effects have nothing to do with what is known of inputs, neither has the split, so what is held
    back is as good a test as any.
    """
    generator = np.random.Generator(np.random.PCG64(SEED))
    ranked = np.argsort(np.asarray(effects, dtype=float), kind="stable")
    groups = len(ranked) // HELD_BACK
    chosen = np.arange(groups) * HELD_BACK + (generator.integers(HELD_BACK, size=groups) + turn) % HELD_BACK
    is_held = np.zeros(len(ranked), dtype=bool)
    is_held[ranked[chosen]] = True
    return np.flatnonzero(~is_held), np.flatnonzero(is_held)


@dataclasses.dataclass(frozen=True)
class _InputTable:
    """Some inputs: what is known of them, and their effects."""

    columns: list[FeatureColumn]
    effects: Floats

    def take(self, inputs: NDArray[np.intp]) -> _InputTable:
        return _InputTable([column.take(inputs) for column in self.columns], self.effects[inputs])

    def meets(self, conditions: Sequence[Condition]) -> Mask:
        return find_inside(conditions, self.columns)


@dataclasses.dataclass(frozen=True)
class _Study:
    """Inputs to search and inputs held back: those that no earlier rule applies to."""

    searched: _InputTable
    held_back: _InputTable
    scale: float
    floor: float
    neutral: float | None

    def explain(self, table: _InputTable, conditions: Sequence[Condition]) -> float:
        """How much of the sum of squares of a table's effects lies between those inside and those outside."""
        effects, inside = self._compress(table.effects), table.meets(conditions)
        share = float(inside.mean())
        return share * (1 - share) * float(effects[inside].mean() - effects[~inside].mean()) ** 2

    def look(self) -> tuple[Condition, ...]:
        """The best conjunction, told of the side that reads naturally."""
        if not len(self.searched.effects):
            return ()
        columns = self.searched.columns
        conditions = widen_gaps(find_conjunction(columns, self._compress(self.searched.effects)), columns)
        return self._turn(conditions) if len(conditions) == 1 else conditions

    def _compress(self, effects: Floats) -> Floats:
        """In units of what matters, and large ones by their logarithm: an outlier is one input, not the whole sum.

        A unit is the noise, or the floor if that is larger: what is too small to be stated is not to be found either.
        """
        compressed: Floats = np.arcsinh((effects - np.median(self.searched.effects)) / self.scale)
        return compressed

    def _turn(self, conditions: tuple[Condition, ...]) -> tuple[Condition, ...]:
        """A single condition or its opposite: the one where effects are further from neutral, or else larger."""
        opposite = (_negate(conditions[0]),)
        inside, outside = self.searched.meets(conditions), self.searched.meets(opposite)
        if not (inside ^ outside).all():
            return conditions
        here, there = (float(np.median(self.searched.effects[side])) for side in (inside, outside))
        if self.neutral is not None:
            here, there = abs(here - self.neutral), abs(there - self.neutral)
        return conditions if here >= there else opposite

    def check(self, conditions: tuple[Condition, ...]) -> Rule | None:
        """The rule, if it holds on the inputs held back; without conditions that do not matter there."""
        while conditions:
            rule = self._hold(conditions)
            if rule is None:
                return None
            idle = [c for c in conditions if len(conditions) > 1 and not self._matters(c, rule)]
            if not idle:
                return self._sharpen(rule)
            conditions = tuple(c for c in conditions if c != idle[-1])
        return None

    def _sharpen(self, rule: Rule) -> Rule:
        """The same rule with thresholds that agree with the inputs held back, too, where the search left them open.

        It has been held against those already, so they may now tell 1024 from 2048 where the search saw neither.
        """
        effects = self._compress(self.held_back.effects)
        conditions = sharpen(rule.conditions, self.searched.columns, self.held_back.columns, effects)
        return self._hold(conditions) or rule

    def _hold(self, conditions: tuple[Condition, ...]) -> Rule | None:
        seen = self._compare(self.searched, self.searched.meets(conditions))
        inside = self.held_back.meets(conditions)
        if min(inside.sum(), (~inside).sum()) < LEAST_SIDE:
            return None
        kept = self._compare(self.held_back, inside) * math.copysign(1, seen)
        here, there = self.held_back.effects[inside], self.held_back.effects[~inside]
        p_value = _p_above(here, there) if seen > 0 else _p_above(there, here)
        difference = float(np.median(here) - np.median(there))
        if not p_value < ALPHA or kept < LEAST_KEPT * abs(seen) or math.copysign(1, seen) * difference < self.floor:
            return None
        return Rule(
            conditions=conditions,
            inside=float(np.median(here)),
            outside=float(np.median(there)),
            inputs_inside=int(inside.sum()),
            inputs_outside=int((~inside).sum()),
            p_value=p_value,
        )

    def _compare(self, table: _InputTable, inside: Mask) -> float:
        """How far the medians lie apart on the compressed scale, on which halves of large effects are near them."""
        effects = self._compress(table.effects)
        return float(np.median(effects[inside]) - np.median(effects[~inside]))

    def _matters(self, condition: Condition, rule: Rule) -> bool:
        """Whether inputs that fail this condition alone differ from those inside, in the direction of the rule.

        Where they are too few to tell, the search is believed as long as they do not speak against it.
        """
        inside = self.held_back.meets(rule.conditions)
        others = self.held_back.meets([c for c in rule.conditions if c != condition])
        here, nearly = self.held_back.effects[inside], self.held_back.effects[others & ~inside]
        if not len(nearly):
            return False
        if rule.inside < rule.outside:
            here, nearly = -here, -nearly
        if math.comb(len(here) + len(nearly), len(here)) * ALPHA_CONDITION <= 1:
            return float(np.median(here) - np.median(nearly)) >= self.floor
        return _p_above(here, nearly) < ALPHA_CONDITION


def _p_above(larger: Floats, smaller: Floats) -> float:
    """How likely chance alone puts the first as far above the second, by their ranks."""
    return float(mannwhitneyu(larger, smaller, alternative="greater").pvalue)


def _negate(condition: Condition) -> Condition:
    if isinstance(condition.value, bool):
        return dataclasses.replace(condition, value=not condition.value)
    opposites = {
        Relation.ABOVE: Relation.AT_MOST,
        Relation.AT_MOST: Relation.ABOVE,
        Relation.IS: Relation.IS_NOT,
        Relation.IS_NOT: Relation.IS,
    }
    return dataclasses.replace(condition, relation=opposites[condition.relation])
