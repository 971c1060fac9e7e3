"""Inputs in a few words: what tensors are like, on one line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from torchmark.model.inputs import FuzzedInput


def word_input(one: FuzzedInput) -> str:
    """All tensors of an input, and their type if that is one of its features.

    >>> tensor = {"size": (64, 3), "steps": (1, 2), "order": (1, 0)}
    >>> word_input(FuzzedInput(7, {}, {"x": tensor, "y": {"size": (3,)}}, ""))
    'x 64x3 every 1,2 order 1,0; y 3'
    >>> word_input(FuzzedInput(7, {"dtype": "int8"}, {"x": {"size": (3,)}}, ""))
    'int8 x 3'
    """
    tensors = "; ".join(word_tensor(name, tensor) for name, tensor in one.tensors.items())
    # Told only where inputs differ in it.
    return f"{one.features['dtype']} {tensors}" if "dtype" in one.features else tensors


def word_tensor(name: str, tensor: Mapping[str, Any]) -> str:
    """Its size, and whatever is not as usual: steps, the order in memory, what is sparse."""
    size = tensor["size"]
    parts = [name, "x".join(map(str, size)) or "scalar"]
    if any(step != 1 for step in tensor.get("steps", ())):
        parts.append(f"every {_join(tensor['steps'])}")
    order = tensor.get("order", ())
    if tuple(order) != tuple(range(len(order))):
        parts.append(f"order {_join(order)}")
    if "sparse_dim" in tensor:
        parts.append(f"sparse in {tensor['sparse_dim']}, density {tensor['density']:.2g}")
        parts += [] if tensor["is_coalesced"] else ["uncoalesced"]
    return " ".join(parts)


def _join(numbers: Sequence[int]) -> str:
    return ",".join(map(str, numbers))
