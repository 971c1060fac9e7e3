"""An engine whose times come from a seeded random generator: the same sequence of calls gives the same results."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

import torchmark

NOISE = 0.05
SHORTEST = 5e-9

MULTI_LINE = "with torch.no_grad():\n    y = x + 1"


class MockEngine:
    """Draws the cost of a clock read, of the body, and of another clock read."""

    clock_cost = 100e-9
    costs: ClassVar[Mapping[str, float]] = {
        "pass": 8e-9,
        "cheap_fn()": 4e-6,
        "expensive_fn()": 20e-6,
        MULTI_LINE: 10e-6,
    }

    def __init__(self, stmt: str, setup: str, timer: Any, globals: dict[str, Any]) -> None:
        self._random = np.random.RandomState(0)
        self._cost = self.costs[stmt]
        self.calls: list[int] = []

    def _draw(self, mean: float) -> float:
        return max(float(self._random.normal(mean, mean * NOISE)), SHORTEST)

    def timeit(self, number: int) -> float:
        self.calls.append(number)
        return sum([self._draw(self.clock_cost), self._draw(self._cost * number), self._draw(self.clock_cost)])


class MockAcceleratorEngine(MockEngine):
    clock_cost = 10e-6
    costs: ClassVar[Mapping[str, float]] = {"pass": 8e-9, "cheap_fn()": 4e-6, "expensive_fn()": 5e-6}


class MockTimer(torchmark.Timer):
    _timer_cls = MockEngine


class MockAcceleratorTimer(torchmark.Timer):
    _timer_cls = MockAcceleratorEngine


SHAPES = ((16, 16), (16, 128), (128, 128), (4096, 1024), (2048, 2048))
IMPLEMENTATIONS = {
    "overhead_optimized": (1e-6, 1e-9),
    "compute_optimized": (3e-6, 5e-10),
    "special_case (square)": (1e-6, 4e-10),
}


def measure_implementations(timer_cls: Any = torchmark.Timer) -> list[Any]:
    """Three implementations with fixed and per-element costs on five shapes; the last takes square ones only."""
    results = []
    for name, (fixed, per_element) in IMPLEMENTATIONS.items():
        prices = {f"fn({i}, {j})": fixed + per_element * i * j for i, j in SHAPES}
        engine = type("Engine", (MockEngine,), {"costs": prices})
        timer = type("Mocked", (timer_cls,), {"_timer_cls": engine})
        for i, j in SHAPES:
            if i == j or "square" not in name:
                task = timer(f"fn({i}, {j})", label="fn", sub_label=name, description=f"({i}, {j})")
                results.append(task.blocked_autorange(min_run_time=10))
    return results
