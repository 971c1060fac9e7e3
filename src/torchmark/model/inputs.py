"""One input of statements: what is known of it, and how it is made."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from torchmark.model.rule import Feature, Value


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
