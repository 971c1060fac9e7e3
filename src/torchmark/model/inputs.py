"""An input of statements, what is known of it, and rules on inputs that say where something takes longer."""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Mapping, Sequence
from typing import Any, Union

Value = Union[float, int, bool, str]


@dataclasses.dataclass(frozen=True)
class Feature:
    """One thing that is known of each of several inputs, such as "k0" or "x is contiguous".

    A value is None where there is none: a tensor of two dimensions has no size in the third.
    """

    name: str
    values: tuple[Value | None, ...]


class Relation(enum.Enum):
    """How a condition compares."""

    ABOVE = ">"
    AT_MOST = "<="
    IS = "is"
    IS_NOT = "is not"


@dataclasses.dataclass(frozen=True)
class Condition:
    """Something that holds for an input or does not.

    >>> Condition("k0", Relation.ABOVE, 1024).holds(2000)
    True
    >>> Condition("k2", Relation.IS_NOT, 1).holds(None)
    False
    """

    feature: str
    relation: Relation
    value: Value

    def holds(self, value: Value | None) -> bool:
        """Whether it holds where the feature has this value; what has none meets no condition."""
        if value is None:
            return False
        if self.relation is Relation.IS:
            return value == self.value
        if self.relation is Relation.IS_NOT:
            return value != self.value
        assert not isinstance(value, str)
        assert not isinstance(self.value, str)
        return value > self.value if self.relation is Relation.ABOVE else value <= self.value


@dataclasses.dataclass(frozen=True)
class Rule:
    """Where all conditions hold, the effect is another than elsewhere: seen on some inputs, and again on others.

    Effects are logarithms of ratios of times. Numbers of inputs and medians are those of the inputs that were held back
    while the rule was looked for.
    """

    conditions: tuple[Condition, ...]
    inside: float
    """The median effect where it holds."""
    outside: float
    """And where it does not."""
    inputs_inside: int
    inputs_outside: int
    p_value: float
    """How likely so large a difference between the two is by chance."""


@dataclasses.dataclass(frozen=True)
class RuleSearch:
    """What came of looking for rules. Each rule is about the inputs to which no rule before it applies."""

    rules: tuple[Rule, ...]
    searched: int
    """Inputs that rules were looked for in, in each turn,"""
    held_back: int
    """and that they were held against."""
    candidate: tuple[Condition, ...] = ()
    """The first that did not hold up, if one was found at all."""
    too_few: bool = False
    """Whether there were too few inputs to hold anything against, so that nothing was looked for."""


@dataclasses.dataclass(frozen=True)
class FuzzedInput:
    """Input number `index` of a fuzzer."""

    index: int
    features: Mapping[str, Value]
    """What may explain how long something takes with it: parameters, and what tensors are like."""
    tensors: Mapping[str, Mapping[str, Any]]
    """What each tensor is like, by its name: size, steps, order in memory, and so on."""
    code: str
    """Python that makes it, with torch alone."""

    @property
    def elements(self) -> int:
        """Of its largest tensor."""
        return max((tensor["numel"] for tensor in self.tensors.values()), default=0)


def gather_features(inputs: Sequence[FuzzedInput]) -> list[Feature]:
    """What is known of any of them, with a value for each, in the order in which it first comes up.

    >>> few = [FuzzedInput(0, {"n": 3}, {}, ""), FuzzedInput(1, {"n": 4, "m": 2}, {}, "")]
    >>> gather_features(few)
    [Feature(name='n', values=(3, 4)), Feature(name='m', values=(None, 2))]
    """
    names = dict.fromkeys(name for one in inputs for name in one.features)
    return [Feature(name, tuple(one.features.get(name) for one in inputs)) for name in names]
