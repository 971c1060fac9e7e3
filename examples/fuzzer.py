"""Which layouts make an addition slow? Random pairs of tensors, ranked: `python -m examples.fuzzer`."""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import torchmark as benchmark
from examples.running import UntilInterrupted, name_order, positive, run, seed, show_progress

SHOWN = 15
KI = 1024


class Result(NamedTuple):
    """One pair of tensors, and how long adding them took."""

    measurement: benchmark.Measurement
    shape: tuple[int, ...]
    x_order: str
    y_order: str

    @property
    def numel(self) -> int:
        """Elements of each tensor."""
        return math.prod(self.shape)

    @property
    def ns_per_element(self) -> float:
        """What pairs are ranked by."""
        return self.measurement.median * 1e9 / self.numel


def make_fuzzer(seed: int) -> benchmark.Fuzzer:
    """Pairs of two or three dimensions with 64 Ki to 128 Ki elements, a quarter of them shuffled in memory."""
    return benchmark.Fuzzer(
        parameters=[
            [benchmark.FuzzedParameter(f"k{i}", 16, 16 * KI, "loguniform") for i in range(3)],
            benchmark.FuzzedParameter("d", distribution={2: 0.6, 3: 0.4}),
        ],
        tensors=[
            benchmark.FuzzedTensor(
                name,
                size=("k0", "k1", "k2"),
                dim_parameter="d",
                probability_contiguous=0.75,
                min_elements=64 * KI,
                max_elements=128 * KI,
            )
            for name in ("x", "y")
        ],
        seed=seed,
    )


def measure_all(fuzzer: benchmark.Fuzzer, n: int, min_run_time: float) -> Iterator[Result]:
    """One result for each pair."""
    for tensors, properties, _ in fuzzer.take(n):
        measurement = benchmark.Timer("x + y", globals=tensors).blocked_autorange(min_run_time=min_run_time)
        orders = (name_order(properties[name]["order"]) or "contiguous" for name in ("x", "y"))
        yield Result(measurement, tuple(tensors["x"].shape), *orders)


def print_ranking(results: Sequence[Result]) -> None:
    """The best, and of the others the worst, both from fast to slow."""
    ranked = sorted(results, key=lambda result: result.ns_per_element)
    best, rest = ranked[:SHOWN], ranked[SHOWN:]
    for title, part in (("Best", best), ("Worst", rest[-SHOWN:])):
        if part:
            print(f"\n{title:<6} ns/element       size   shape                x in memory   y in memory\n{'-' * 76}")
        for result in part:
            shape = " x ".join(map(str, result.shape))
            where = f"{result.x_order:<11}   {result.y_order}"
            print(f"{result.ns_per_element:>17.3f}   {result.numel:>8}   {shape:<18}   {where}")


def main(argv: Sequence[str] | None = None) -> int:
    """Measure as many pairs as were asked for, and print where the extremes are."""
    parser = argparse.ArgumentParser(prog="python -m examples.fuzzer", description=__doc__)
    parser.add_argument("-n", type=positive, help="how many pairs (default: 250; 60 with --quick)")
    parser.add_argument("--seed", type=seed, default=0, help="another seed gives other pairs (default: %(default)s)")
    parser.add_argument("--quick", action="store_true", help="fewer pairs, each measured more briefly")
    args = parser.parse_args(argv)

    n = args.n or (60 if args.quick else 250)
    fuzzer = make_fuzzer(args.seed)
    results: list[Result] = []
    with UntilInterrupted() as measuring:
        for result in measure_all(fuzzer, n, 0.02 if args.quick else 0.1):
            results.append(result)
            show_progress(len(results), n)
    kept = 1 - fuzzer.rejection_rate
    print(f"{len(results)} pairs." + (f" Average attempts per valid config: {1 / kept:.1f}" if kept else ""))
    print_ranking(results)
    return measuring.exit_code


if __name__ == "__main__":
    run(main)
