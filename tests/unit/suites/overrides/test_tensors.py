from __future__ import annotations

from typing import Any

import pytest
import torch

from torchmark.suites.overrides import tensors as module
from torchmark.suites.overrides.cases import CALLS

# It has no annotations.
tensors: Any = module


@pytest.mark.parametrize("call", CALLS.values())
@pytest.mark.parametrize("name", ["SubTensor", "SubWithTorchFunction", "TensorLike", "WrapperTensor"])
def test_every_call_computes_what_it_does_with_tensors(name: str, call: str) -> None:
    kind = getattr(tensors, name)
    given = {"torch": torch, "x": kind([1.0]), "y": kind([2.0]), "z": kind([0.0])}
    plain = {"torch": torch, "x": torch.tensor([1.0]), "y": torch.tensor([2.0]), "z": torch.tensor([0.0])}
    result, expected = eval(call, given), eval(call, plain)
    if isinstance(expected, torch.Tensor):
        assert type(result) is kind
        result = getattr(result, "_tensor", result)
    assert torch.equal(torch.as_tensor(result).as_subclass(torch.Tensor), torch.as_tensor(expected))


def test_the_classic_tensor_like_adds() -> None:
    one, two = tensors.WithTorchFunction([1.0], requires_grad=True), tensors.WithTorchFunction(torch.tensor([2.0]))
    three: Any = torch.add(one, two)
    assert three._tensor.tolist() == [3.0]
    assert one._tensor.requires_grad


@pytest.mark.parametrize("derive", [tensors.derive, tensors.derive_overriding])
def test_a_chain_has_its_depth_and_is_made_once(derive: Any) -> None:
    kind = derive(torch.Tensor, 4)
    assert derive(torch.Tensor, 4) is kind
    assert len(kind.__mro__) == len(torch.Tensor.__mro__) + 4
    assert type(torch.add(kind([1.0]), kind([2.0]))) is kind


def test_a_context_is_left_when_nobody_holds_it_any_more() -> None:
    seen = []

    class Seeing(tensors.FunctionMode):  # type: ignore[misc]
        def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            seen.append(func)
            return super().__torch_function__(func, types, args, kwargs)

    x = torch.tensor([1.0])
    entered = tensors.Entered(Seeing())
    torch.neg(x)
    del entered
    torch.neg(x)
    assert seen == [torch.neg]


def test_overrides_of_types_can_be_disabled() -> None:
    x = tensors.SubTensor([1.0])
    with tensors.DisableTorchFunctionSubclass():
        assert type(torch.neg(x)) is torch.Tensor
    assert type(torch.neg(x)) is tensors.SubTensor
