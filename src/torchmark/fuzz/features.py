"""What is known of an input before it exists: what may explain how long something takes with it."""

from __future__ import annotations

from typing import Any

import numpy as np

from torchmark.fuzz.fuzzer import Fuzzer
from torchmark.model.inputs import FuzzedInput
from torchmark.model.rule import Value


def outline(fuzzer: Fuzzer, index: int) -> FuzzedInput:
    """Input number `index` of a fuzzer's stream by index, without its tensors."""
    draft = fuzzer.draft(index)
    tensors = fuzzer.describe(draft)
    features: dict[str, Value] = {}
    for name in fuzzer.names_in_use(draft):
        value = as_value(draft.params[name])
        if value is not None:
            features[name] = value
    for name, tensor in tensors.items():
        features |= describe_tensor(name, tensor)
    return FuzzedInput(index, features, tensors, fuzzer.write(draft))


def as_value(value: Any) -> Value | None:
    """A parameter as a plain value; None for what rules cannot speak of."""
    if isinstance(value, np.generic):
        value = value.item()
    return value if isinstance(value, (bool, int, float, str)) else None


def describe_tensor(name: str, tensor: dict[str, Any]) -> dict[str, Value]:
    """What parameters do not say of it by themselves."""
    features: dict[str, Value] = {}
    if "is_contiguous" in tensor:
        features[f"{name} is contiguous"] = tensor["is_contiguous"]
    if "is_hybrid" in tensor:
        features[f"{name} is hybrid"] = tensor["is_hybrid"]
    features[f"elements of {name}"] = tensor["numel"]
    return features
