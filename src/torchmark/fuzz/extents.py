"""How large tensors are and how they lie in memory, in plain numbers."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from torchmark.errors import DefinitionError


class Extent(NamedTuple):
    """How large a tensor is, every how many elements of each dimension it has, and how much is allocated for that."""

    size: tuple[int, ...]
    steps: tuple[int, ...]
    allocated: tuple[int, ...]

    @property
    def is_cut(self) -> bool:
        """Whether it is a part of what is allocated."""
        return any(step != 1 for step in self.steps)


def prod(values: Sequence[int], base: int = 1) -> int:
    """The product of whole numbers, which never overflows.

    >>> prod((2**40, 2**40))
    1208925819614629174706176
    """
    return math.prod(map(int, values), start=base)


def check_lengths(tensor: str, argument: str, values: Sequence[object], least: int) -> tuple[str | int, ...]:
    """Names, and whole numbers that are not too small."""
    if isinstance(values, str):
        raise DefinitionError(f"{argument} is a tuple, such as ({values!r},), not a text: tensor {tensor!r}.")
    checked: list[str | int] = []
    for value in values:
        # numpy's whole numbers become Python's, which are written in a way that all interpreters read.
        given = value if isinstance(value, str) else _as_whole(value)
        if given is None or (isinstance(given, int) and given < least):
            raise DefinitionError(
                f"{argument} has whole numbers from {least}, or names of parameters, not {value!r}: tensor {tensor!r}."
            )
        checked.append(given)
    return tuple(checked)


def _as_whole(value: object) -> int | None:
    try:
        return operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        return None


def is_shuffled(order: Any) -> bool:
    """Whether dimensions lie in memory in another order than their own."""
    return len(order) > 1 and bool((order != np.arange(len(order))).any())


def is_contiguous(extent: Extent, order: Any) -> bool:
    """Whether a tensor that is allocated in this order and then cut is contiguous.

    >>> is_contiguous(Extent((2, 3), (1, 1), (2, 3)), np.array([1, 0]))
    False
    >>> is_contiguous(Extent((2, 1), (1, 4), (2, 4)), np.array([0, 1]))
    False
    """
    strides = [0] * len(extent.size)
    stride = 1
    for dim in reversed([int(i) for i in order]):
        strides[dim] = stride * extent.steps[dim]
        stride *= extent.allocated[dim]
    expected = 1
    for length, stride in zip(reversed(extent.size), reversed(strides), strict=True):
        if length != 1 and stride != expected:
            return 0 in extent.size
        expected *= length
    return True
