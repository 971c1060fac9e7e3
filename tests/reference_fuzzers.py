"""The ready-made fuzzers of `torch.utils.benchmark`, without what keeps them from working."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch
import torch.utils.benchmark as reference


def repair(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let distributions be dictionaries, which its check of probabilities refuses; and let tensors take no memory."""

    def construct(size: tuple[int, ...], dtype: torch.dtype, **_: Any) -> torch.Tensor:
        return torch.empty(size, dtype=dtype, device="meta")

    monkeypatch.setattr(reference.FuzzedParameter, "_check_distribution", lambda self, distribution: distribution)
    monkeypatch.setattr(reference.FuzzedTensor, "default_tensor_constructor", staticmethod(construct))


def take(fuzzer: Any, count: int) -> list[Any]:
    """The first inputs; torch's random state is put back, which that fuzzer sets."""
    with torch.random.fork_rng(devices=[]):
        return list(fuzzer.take(count))


def draw_parameters(fuzzer: Any, count: int) -> Iterator[dict[str, Any]]:
    """The parameters of inputs that draw nothing else from the state, as sparse ones do."""
    state = np.random.RandomState(fuzzer._seed)
    state.randint(low=0, high=2**63, dtype=np.int64)
    for _ in range(count):
        yield fuzzer._generate(state)
