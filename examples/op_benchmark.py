"""Where do two types of numbers differ? Three operators on the same inputs: `python -m examples.op_benchmark`.

Two fuzzers with the same seed draw the same shapes, orders and steps, once as float32 and once as int32; that they did
is checked for every input.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch

import torchmark as benchmark
from examples.running import (
    UntilInterrupted,
    duration,
    name_order,
    name_shape,
    name_steps,
    name_time,
    positive,
    run,
    seed,
    show_progress,
)

DTYPES = (torch.float32, torch.int32)
OPERATORS: dict[str, type[benchmark.UnaryOpFuzzer | benchmark.BinaryOpFuzzer]] = {
    "torch.median(x, dim=0)": benchmark.UnaryOpFuzzer,
    "torch.square(x)": benchmark.UnaryOpFuzzer,
    "x + y": benchmark.BinaryOpFuzzer,
}
SHOWN = 10


class Result(NamedTuple):
    """Both measurements of one input, and what its tensors are like."""

    float_s: float
    int_s: float
    tensors: list[tuple[str, str, str, str]]
    """Name, shape, order and steps of each."""

    @property
    def ratio(self) -> float:
        """How many times as long the slower one takes."""
        return max(self.float_s, self.int_s) / min(self.float_s, self.int_s)


def find_differences(first: benchmark.FuzzedItem, second: benchmark.FuzzedItem) -> list[str]:
    """In what two inputs differ besides their type; nothing where they are what they should be."""
    return [
        *_compare("parameter", first.params, second.params),
        *_compare("tensor", dict.fromkeys(first.tensors), dict.fromkeys(second.tensors)),
        *(
            text
            for name in first.tensors.keys() & second.tensors.keys()
            for text in _compare(f"{name}:", _describe(first, name), _describe(second, name))
        ),
    ]


def _describe(item: benchmark.FuzzedItem, name: str) -> dict[str, Any]:
    properties = {key: value for key, value in item.tensor_properties[name].items() if key != "dtype"}
    return {**properties, "shape": item.tensors[name].shape, "stride": item.tensors[name].stride()}


def _compare(what: str, first: dict[str, Any], second: dict[str, Any]) -> Iterator[str]:
    for key in sorted(first.keys() ^ second.keys()):
        yield f"{what} {key} is missing in one of them"
    for key in sorted(first.keys() & second.keys()):
        # Orders are arrays, which `==` compares element by element.
        if not np.array_equal(first[key], second[key]):
            yield f"{what} {key} is {first[key]} and {second[key]}"


def measure(stmt: str, seed: int, n: int, min_run_time: float, preset: str | None) -> Iterator[Result]:
    """Both types on the first `n` inputs."""
    streams = [OPERATORS[stmt](seed=seed, dtype=dtype, preset=preset).take(n) for dtype in DTYPES]
    for index, pair in enumerate(zip(*streams, strict=True)):
        if differences := find_differences(*pair):
            raise ValueError(f"Input {index} is not the same for both types: {'; '.join(differences)}.")
        float_s, int_s = (
            benchmark.Timer(stmt, globals=item.tensors).blocked_autorange(min_run_time=min_run_time).median
            for item in pair
        )
        tensors, properties, _ = pair[0]
        described = [
            (
                name,
                name_shape(tensor.shape),
                name_order(properties[name]["order"]),
                name_steps(properties[name]["steps"]),
            )
            for name, tensor in tensors.items()
        ]
        yield Result(float_s, int_s, described)


def print_extremes(stmt: str, results: Sequence[Result]) -> None:
    """The inputs that differ least, and of the others those that differ most."""
    ranked = sorted(results, key=lambda result: result.ratio)
    print(f"\n{stmt}: {len(results)} inputs\n")
    columns = f"{'shape':<24}   {'in memory':<9}   steps"
    print(f"{'ratio':>7}   faster   {'float32':>9}   {'int32':>9}      {columns}\n{'-' * 96}")
    least, rest = ranked[:SHOWN], ranked[SHOWN:]
    for result in least:
        _print_result(result)
    if len(rest) > SHOWN:
        print("    ...")
    for result in rest[-SHOWN:]:
        _print_result(result)


def _print_result(result: Result) -> None:
    faster = "int32" if result.int_s < result.float_s else "float32"
    times = [name_time(seconds) for seconds in (result.float_s, result.int_s)]
    head = f"{result.ratio:>6.2f}x   {faster:<7}  {times[0]:>9}   {times[1]:>9}"
    for name, shape, order, steps in result.tensors:
        print(f"{head:<41}   {name}: {shape:<24}   {order:<9}   {steps}".rstrip())
        head = ""


def parse(argv: Sequence[str] | None) -> argparse.Namespace:
    """The options, with what --quick stands for put in where nothing was said."""
    parser = argparse.ArgumentParser(prog="python -m examples.op_benchmark", description=__doc__)
    presets = ("small", "medium", "large", "reference")
    parser.add_argument("-n", type=positive, help="inputs for each operator (default: 100; 25 with --quick)")
    parser.add_argument("--preset", choices=presets, help="how large (default: reference; small with --quick)")
    parser.add_argument(
        "--min-run-time", type=duration, metavar="S", help="seconds for each (default: 1; 0.02 with --quick)"
    )
    parser.add_argument("--seed", type=seed, default=0, help="another seed gives other inputs (default: %(default)s)")
    parser.add_argument("--quick", action="store_true", help="fewer and smaller inputs, measured more briefly")
    args = parser.parse_args(argv)
    args.n = args.n or (25 if args.quick else 100)
    args.preset = args.preset or ("small" if args.quick else "reference")
    if args.min_run_time is None:
        args.min_run_time = 0.02 if args.quick else 1.0
    return args


def main(argv: Sequence[str] | None = None) -> int:
    """Print the extremes of each operator."""
    args = parse(argv)
    preset = None if args.preset == "reference" else args.preset
    results: dict[str, list[Result]] = {}
    with UntilInterrupted() as measuring:
        for stmt in OPERATORS:
            results[stmt] = []
            for result in measure(stmt, args.seed, args.n, args.min_run_time, preset):
                results[stmt].append(result)
                show_progress(len(results[stmt]), args.n, stmt)
    for stmt, measured in results.items():
        print_extremes(stmt, measured)
    return measuring.exit_code


if __name__ == "__main__":
    run(main)
