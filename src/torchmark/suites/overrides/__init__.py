"""The overrides suite: what `__torch_function__` and its relatives cost, by type and by call.

The definitions are loaded when they are asked for: a process that runs the loop has nothing else in it.
"""

from __future__ import annotations

from typing import Any


def __getattr__(name: str) -> Any:
    if name == "BENCHMARKS":
        from torchmark.suites.overrides.cases import BENCHMARKS

        return BENCHMARKS
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
