"""torch's thread count for the length of a measurement."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import torch


@contextlib.contextmanager
def set_torch_threads(n: int) -> Iterator[None]:
    """Run the body with `n` torch threads and put the old number back, whatever happens.

    Nothing is set when `n` is the current number: some thread pools can be sized only once.
    """
    before = torch.get_num_threads()
    _ensure(n)
    try:
        yield
    finally:
        _ensure(before)


def _ensure(n: int) -> None:
    if torch.get_num_threads() != n:
        torch.set_num_threads(n)
