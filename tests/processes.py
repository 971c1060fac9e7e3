"""Processes that tests look at from outside."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path


def is_alive(pid: int) -> bool:
    """A zombie that its new parent has not looked at yet is gone all the same."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def wait_until(look: Callable[[], bool]) -> None:
    """Not for ever."""
    end = time.monotonic() + 60
    while not look():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.01)
