from __future__ import annotations

import gc
from collections.abc import Iterator
from typing import Any

import pytest
import torch

from torchmark.worker.zygote import prepare


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
    """A zygote is never to collect garbage; this process is."""
    threads = torch.get_num_threads()
    yield
    gc.unfreeze()
    gc.enable()
    torch.set_num_threads(threads)


@pytest.mark.parametrize("scripting", [True, False])
def test_torchscript_is_loaded_only_where_it_is_wanted(monkeypatch: pytest.MonkeyPatch, scripting: bool) -> None:
    loaded = []
    load: Any = torch.jit.load

    def note(file: object) -> object:
        loaded.append(file)
        return load(file)

    monkeypatch.setattr(torch.jit, "load", note)
    prepare(None, scripting=scripting)
    assert len(loaded) == scripting
    assert not gc.isenabled()


def test_a_torch_that_cannot_make_torchscript_is_ready_all_the_same(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refuse(_: object) -> None:
        raise RuntimeError("TorchScript is gone")

    monkeypatch.setattr(torch.jit, "script", refuse)
    prepare(None, scripting=True)
    assert "TorchScript is gone" in capsys.readouterr().err
    assert not gc.isenabled()
