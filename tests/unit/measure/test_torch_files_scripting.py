from __future__ import annotations

import os
from pathlib import Path

import pytest
import torch

from torchmark.measure.torch_files import ScriptRefused, script_model


def test_a_function_becomes_a_file_that_can_be_loaded(tmp_path: Path) -> None:
    source = "def model(x):\n    return x * 2\njit_model = torch.jit.script(model)"
    script_model(source, str(tmp_path / "m.pt"))
    assert torch.jit.load(str(tmp_path / "m.pt"))(torch.ones(1)).item() == 2  # type: ignore[no-untyped-call]
    assert [path.name for path in tmp_path.iterdir()] == ["m.pt"]


def test_weights_come_from_the_generator(tmp_path: Path) -> None:
    source = "model = torch.nn.Linear(2, 2)\njit_model = torch.jit.script(model)"
    weights = []
    for name in ("a.pt", "b.pt"):
        torch.manual_seed(3)
        script_model(source, str(tmp_path / name))
        weights.append(torch.jit.load(str(tmp_path / name)).weight)  # type: ignore[no-untyped-call]
    assert torch.equal(*weights)


def test_what_is_no_torchscript_is_refused_and_leaves_no_file(tmp_path: Path) -> None:
    with pytest.raises(ScriptRefused, match="not become TorchScript but <class 'int'>"):
        script_model("jit_model = 1", str(tmp_path / "m.pt"))
    assert not list(tmp_path.iterdir())


def test_a_torch_without_torchscript_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch, "jit", None)
    with pytest.raises(ScriptRefused, match=r"torch .* has no TorchScript"):
        script_model("jit_model = 1", str(tmp_path / "m.pt"))


def test_drafts_of_processes_with_one_number_do_not_meet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    drafts = []
    monkeypatch.setattr(os, "getpid", lambda: 7)
    monkeypatch.setattr(torch.jit, "save", lambda model, path: drafts.append(path))
    for _ in range(2):
        script_model("jit_model = torch.jit.script(torch.nn.ReLU())", str(tmp_path / "m.pt"))
    assert len(set(drafts)) == 2
    assert [path.name for path in tmp_path.iterdir()] == ["m.pt"]


def test_a_model_that_cannot_be_written_leaves_no_draft(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise OSError("full")

    monkeypatch.setattr(torch.jit, "save", refuse)
    with pytest.raises(OSError, match="full"):
        script_model("jit_model = torch.jit.script(torch.nn.ReLU())", str(tmp_path / "m.pt"))
    assert not list(tmp_path.iterdir())
