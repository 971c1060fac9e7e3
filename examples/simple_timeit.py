"""A broadcasting add, timed three ways: `python -m examples.simple_timeit`."""

from __future__ import annotations

import torch

import torchmark as benchmark


def main() -> None:
    """Print the same statement's time as each method finds it."""
    timer = benchmark.Timer(
        stmt="x + y",
        globals={"x": torch.ones((4, 8)), "y": torch.ones((1, 8))},
        label="Broadcasting add (4x8)",
    )

    print("timeit: one block of a fixed number of runs, hence one sample\n")
    print(timer.timeit(10_000), "\n")

    print("blocked_autorange: many blocks of a size chosen for the clock, for 0.2 s\n")
    print(timer.blocked_autorange(), "\n")

    print("adaptive_autorange: as many blocks as it takes for the result to be steady\n")
    result = timer.adaptive_autorange(threshold=0.1)
    print(result)
    if interval := result.median_interval():
        low, high = interval.low * 1e6, interval.high * 1e6
        print(f"  {interval.confidence:.0%} interval of the median: {low:.3f} to {high:.3f} us")


if __name__ == "__main__":
    main()
