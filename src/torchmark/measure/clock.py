"""The clock, how to wait for an accelerator before reading it, and torch's thread count for a measurement."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from typing import Any

import torch

Synchronise = Callable[[], Any]


def find_synchronise() -> Synchronise | None:
    """The function that waits for this process's accelerator; None where there is none."""
    accelerator = getattr(torch, "accelerator", None)
    if accelerator is not None:
        return accelerator.synchronize if accelerator.is_available() else None
    for name, is_available in (
        ("cuda", torch.cuda.is_available),
        ("mps", torch.backends.mps.is_available),
        ("xpu", getattr(getattr(torch, "xpu", None), "is_available", lambda: False)),
    ):
        synchronise: Synchronise | None = getattr(getattr(torch, name, None), "synchronize", None)
        if synchronise is not None and is_available():
            return synchronise
    return None


def choose_clock() -> Callable[[], float]:
    """The clock to use from now on: bare on a machine without accelerators, else synchronising first."""
    synchronise = find_synchronise()
    if synchronise is None:
        return time.perf_counter
    wait = synchronise

    def synchronised() -> float:
        wait()
        return time.perf_counter()

    return synchronised


def choose_native_clock() -> Callable[[], float] | None:
    """The clock for compiled code: None stands for its own, which does not wait for an accelerator."""
    return None if find_synchronise() is None else choose_clock()


def timer() -> float:
    """Seconds on the performance counter, after the accelerator (if any) has finished its work.

    Asks anew at every call whether there is an accelerator. A `Timer` whose clock this is asks once instead.
    """
    synchronise = find_synchronise()
    if synchronise is not None:
        synchronise()
    return time.perf_counter()


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
