"""Our Timer and torch.utils.benchmark's on the same statements: `python -m benchmarks.timer`.

Both measure for 0.2 s, twenty times each, in a new random order each time so that they see the same machine. Printed
are the reported medians, the time each needs to reach its answer, and the spread of the answers; and the cost of a
clock read. Ratios are taken pair by pair, each with the 95 % interval of their median.
"""

from __future__ import annotations

import random
import statistics
import time
import timeit
from collections.abc import Callable
from typing import Any, NamedTuple

import torch.utils.benchmark as reference

import torchmark
from benchmarks.context import describe
from torchmark.analysis.summarise import find_median_interval
from torchmark.measure.clock import choose_clock

REPETITIONS = 20

STATEMENTS = {
    "pass": ("pass", "pass"),
    "4x4 add": ("x + y", "x, y = torch.ones(4, 4), torch.ones(4, 4)"),
    "512x512 matmul": ("x @ y", "x, y = torch.ones(512, 512), torch.ones(512, 512)"),
}

PEER = "torch.utils.benchmark"
METHODS: dict[str, Callable[[str, str], Any]] = {
    PEER: lambda stmt, setup: reference.Timer(stmt, setup).blocked_autorange(min_run_time=0.2),
    # Its clock costs more than ours, hence its blocks are longer: this shows what is left without that difference.
    f"{PEER}, bare clock": lambda stmt, setup: reference.Timer(
        stmt, setup, timer=timeit.default_timer
    ).blocked_autorange(min_run_time=0.2),
    "torchmark": lambda stmt, setup: torchmark.Timer(stmt, setup).blocked_autorange(min_run_time=0.2),
    "torchmark, max_run_time=10": lambda stmt, setup: torchmark.Timer(stmt, setup).blocked_autorange(
        min_run_time=0.2, max_run_time=10.0
    ),
}


class Trial(NamedTuple):
    """One answer: the median, how long it took to get, and from how many samples."""

    median: float
    seconds: float
    samples: int


def measure_all() -> dict[tuple[str, str], list[Trial]]:
    """Every method on every statement, in turns."""
    trials: dict[tuple[str, str], list[Trial]] = {(s, m): [] for s in STATEMENTS for m in METHODS}
    rng = random.Random(0)
    for _ in range(REPETITIONS):
        for name, (stmt, setup) in STATEMENTS.items():
            for method in rng.sample(list(METHODS), len(METHODS)):
                start = time.perf_counter()
                result = METHODS[method](stmt, setup)
                seconds = time.perf_counter() - start
                trials[name, method].append(Trial(result.median, seconds, len(result.raw_times)))
    return trials


def spread(values: list[float]) -> float:
    """Interquartile range as a share of the median."""
    low, middle, high = statistics.quantiles(values, n=4)
    return (high - low) / middle


def clock_costs() -> dict[str, float]:
    """Seconds for one read of the clock that each Timer uses, the best of twenty blocks."""
    clocks = {PEER: reference.timer, "torchmark": choose_clock()}
    return {
        name: min(timeit.repeat(clock, number=20_000, repeat=REPETITIONS)) / 20_000 for name, clock in clocks.items()
    }


def compare(own: list[float], peer: list[float]) -> str:
    """Median of the ratios pair by pair, with its interval."""
    ratios = [a / b for a, b in zip(own, peer, strict=True)]
    interval = find_median_interval(ratios, 0.95)
    assert interval is not None
    return f"{statistics.median(ratios):.3f} ({interval.low:.3f} to {interval.high:.3f})"


def main() -> None:
    """Print everything as Markdown; ratios are against torch.utils.benchmark."""
    print(describe(), "\n")
    trials = measure_all()
    print("| statement | method | median | ratio | spread | time to answer | ratio | samples |")
    print("| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: |")
    for name in STATEMENTS:
        peer_medians, peer_seconds, _ = map(list, zip(*trials[name, PEER], strict=True))
        for method in METHODS:
            medians, seconds, samples = map(list, zip(*trials[name, method], strict=True))
            median = statistics.median(medians)
            unit, scale = torchmark.select_unit(median)
            print(
                f"| {name} | {method} | {median / scale:.4g} {unit} | {compare(medians, peer_medians)} "
                f"| {spread(medians):.1%} | {statistics.median(seconds):.3f} s | {compare(seconds, peer_seconds)} "
                f"| {statistics.median(samples):.0f} |"
            )
    costs = clock_costs()
    ratio = costs[PEER] / costs["torchmark"]
    print(f"\nA clock read: {', '.join(f'{n} {c * 1e9:.0f} ns' for n, c in costs.items())}; {ratio:.1f} times cheaper.")


if __name__ == "__main__":
    main()
