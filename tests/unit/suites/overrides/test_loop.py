from __future__ import annotations

from typing import Any

import pytest
import torch

from torchmark.suites.overrides import loop, tensors


@pytest.mark.parametrize("name", ["SubTensor", "WithTorchFunction", "SubWithTorchFunction"])
def test_types_have_their_names(name: str) -> None:
    assert loop.find_type(name) is getattr(tensors, name)
    assert loop.find_type(f"torchmark.suites.overrides.tensors:{name}") is getattr(tensors, name)


def test_a_tensor_is_made_by_torch_itself() -> None:
    assert loop.find_type("Tensor") is torch.tensor


@pytest.mark.parametrize("name", ["TensorLike", "nothing.at.all:Type", "torch:Nothing", ""])
def test_what_is_no_type_is_refused(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        loop.main([name])
    assert "error: " in capsys.readouterr().err


def test_it_adds_as_often_as_it_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[tuple[Any, Any]] = []
    monkeypatch.setattr(torch, "add", lambda x, y: calls.append((x, y)))
    loop.main(["SubTensor", "-n", "3"])
    loop.main(["SubTensor", "--nreps", "2"])
    assert [(x.item(), y.item()) for x, y in calls] == [(1.0, 2.0)] * 5
