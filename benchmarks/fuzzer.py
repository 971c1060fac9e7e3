"""Our Fuzzer and torch.utils.benchmark's on the same specifications: `python -m benchmarks.fuzzer`.

Both make the same inputs, which is checked first, then take turns in a random order. The reference refuses dictionaries
of probabilities, because a check of it is inverted; the check is taken out here for it to run at all. It has no way to
ask for parameters alone, so the function inside of it that draws them is called, while ours draws the memory order of
each tensor as well. Ratios are taken pair by pair, each with the 95 % interval of their median.
"""

from __future__ import annotations

import argparse
import functools
import random
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple
from unittest.mock import patch

import numpy as np
import torch
import torch.utils.benchmark as reference
from torch.utils.benchmark.op_fuzzers.unary import UnaryOpFuzzer as ReferenceUnaryOpFuzzer

import torchmark
from benchmarks.context import describe
from benchmarks.timer import PEER, compare

INDICES = (0, 10**6)
# One input is larger than another: so many neighbours take turns.
NEIGHBOURS = 500
CHECKED = 50


class Task(NamedTuple):
    """What both are asked to make: the fuzzers, and whether tensors are wanted, too."""

    name: str
    own: torchmark.Fuzzer
    peer: Any
    tensors: bool


def make_plain(library: Any) -> Any:
    """Without dictionaries, which the reference takes as it is."""
    return library.Fuzzer(
        parameters=[
            [library.FuzzedParameter(f"k{i}", 2, 64, "loguniform") for i in range(3)],
            library.FuzzedParameter("scale", 0.0, 1.0, "uniform"),
            library.FuzzedParameter("offset", 0, 100, "uniform"),
        ],
        tensors=[library.FuzzedTensor("x", ("k0", "k1", "k2"), min_elements=64, max_elements=4096)],
        seed=0,
    )


def make_small_unary(library: Any) -> Any:
    """The specification of `UnaryOpFuzzer` with small tensors, so that what takes time is not to fill them."""
    powers = {2**i: 0.1 for i in range(1, 11)}
    steps = {1: 0.8, 2: 0.06, 4: 0.06, 8: 0.04, 16: 0.04}
    parameter, alias, dims = library.FuzzedParameter, library.ParameterAlias, range(3)
    return library.Fuzzer(
        parameters=[
            parameter("dim", distribution={1: 0.3, 2: 0.4, 3: 0.3}, strict=True),
            [parameter(f"k_any_{i}", 2, 1024, "loguniform") for i in dims],
            [parameter(f"k_pow2_{i}", distribution=powers) for i in dims],
            [
                parameter(f"k{i}", distribution={alias(f"k_any_{i}"): 0.8, alias(f"k_pow2_{i}"): 0.2}, strict=True)
                for i in dims
            ],
            [parameter(f"x_step_{i}", distribution=steps) for i in dims],
            parameter("random_value", 0, 2**32 - 1, "uniform"),
        ],
        tensors=[
            library.FuzzedTensor(
                "x",
                size=("k0", "k1", "k2"),
                steps=("x_step_0", "x_step_1", "x_step_2"),
                probability_contiguous=0.75,
                min_elements=16,
                max_elements=4096,
                max_allocation_bytes=256 * 1024,
                dim_parameter="dim",
            )
        ],
        seed=0,
    )


def make_tasks() -> list[Task]:
    """All that is compared; the reference's inverted check is out of the way while its fuzzers are made."""
    with patch.object(reference.FuzzedParameter, "_check_distribution", lambda _, distribution: distribution):
        plain = (make_plain(torchmark), make_plain(reference))
        small = (make_small_unary(torchmark), make_small_unary(reference))
        unary = (torchmark.UnaryOpFuzzer(seed=0), ReferenceUnaryOpFuzzer(seed=0))
    return [
        Task("loguniform and uniform: parameters", *plain, tensors=False),
        Task("loguniform and uniform: inputs", *plain, tensors=True),
        Task("UnaryOpFuzzer: parameters", *unary, tensors=False),
        Task("UnaryOpFuzzer, up to 4 Ki elements: parameters", *small, tensors=False),
        Task("UnaryOpFuzzer, up to 4 Ki elements: inputs", *small, tensors=True),
    ]


def check_equal(task: Task) -> None:
    """Both streams have the same parameters and tensors; otherwise there is nothing to compare."""
    for index, (own, peer) in enumerate(zip(task.own.take(CHECKED), list(task.peer.take(CHECKED)), strict=True)):
        same = own.params == peer[2] and own.tensors.keys() == peer[0].keys()
        if not same or not all(torch.equal(tensor, peer[0][name]) for name, tensor in own.tensors.items()):
            raise SystemExit(f"Input {index} is not the same for both ({task.name}): {own.params} and {peer[2]}")


def draw(fuzzer: Any, n: int) -> Iterator[Any]:
    """What `Fuzzer.parameters` gives, from the inside of the reference."""
    state = np.random.RandomState(fuzzer._seed)
    for _ in range(n):
        yield fuzzer._generate(state)


def exhaust(items: Iterator[Any]) -> float:
    """Seconds that it takes to have them all."""
    start = time.perf_counter()
    for _ in items:
        pass
    return time.perf_counter() - start


def measure_all(tasks: Sequence[Task], n: int, repetitions: int) -> dict[tuple[str, str], list[float]]:
    """Seconds for `n` items, a value for each repetition, by task and library."""
    jobs: dict[tuple[str, str], Callable[[], Iterator[Any]]] = {}
    for task in tasks:
        own, peer = task.own, task.peer
        jobs[task.name, "torchmark"] = functools.partial(own.take if task.tensors else own.parameters, n)
        jobs[task.name, PEER] = functools.partial(peer.take if task.tensors else functools.partial(draw, peer), n)
    seconds: dict[tuple[str, str], list[float]] = {job: [] for job in jobs}
    rng = random.Random(0)
    for _ in range(repetitions):
        for job in rng.sample(list(jobs), len(jobs)):
            seconds[job].append(exhaust(jobs[job]()))
    return seconds


def measure_access(fuzzer: torchmark.Fuzzer, repetitions: int) -> dict[int, float]:
    """Seconds for one input by its index, the median of many, in turns."""
    seconds: dict[int, list[float]] = {index: [] for index in INDICES}
    for repetition in range(repetitions):
        for index in INDICES:
            start = time.perf_counter()
            fuzzer[index + repetition % NEIGHBOURS]
            seconds[index].append(time.perf_counter() - start)
    return {index: statistics.median(values) for index, values in seconds.items()}


def main(argv: Sequence[str] | None = None) -> None:
    """Print everything as Markdown."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.fuzzer", description="Ours and the reference's fuzzer.")
    parser.add_argument("-n", type=int, default=300, help="items each time (default: %(default)s)")
    parser.add_argument("--repetitions", type=int, default=20, help="at least 6 (default: %(default)s)")
    args = parser.parse_args(argv)
    print(describe(), "\n")
    tasks = make_tasks()
    for task in tasks:
        if task.tensors:
            check_equal(task)
    seconds = measure_all(tasks, args.n, args.repetitions)
    print(f"| what | {PEER} | torchmark | times as fast |\n| --- | ---: | ---: | ---: |")
    for task in tasks:
        own, peer = seconds[task.name, "torchmark"], seconds[task.name, PEER]
        rates = [f"{args.n / statistics.median(values):,.0f} /s" for values in (peer, own)]
        print(f"| {task.name} | {rates[0]} | {rates[1]} | {compare(peer, own)} |")
    each = statistics.median(seconds[tasks[-1].name, PEER]) / args.n
    print(f"\n| {NEIGHBOURS} inputs from | torchmark, by index | {PEER}, by all before, from the rate above |")
    print("| --- | ---: | ---: |")
    for index, own_s in measure_access(tasks[-1].own, 50 * args.repetitions).items():
        print(f"| `fuzzer[{index}]` | {own_s * 1e6:.0f} us each | {each * (index + 1):.3g} s |")


if __name__ == "__main__":
    main()
