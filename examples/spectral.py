"""Fourier transforms over regular and irregular sizes: `python -m examples.spectral`.

Regular lengths have no prime factors but 2, 3 and 5. Each input is transformed along one dimension, several, and all.
"""

from __future__ import annotations

import argparse
import contextlib
import csv
import os
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple, TextIO

import torch

import torchmark as benchmark
from examples.running import UntilInterrupted, duration, positive, run, seed, show_progress

THREADS = (1, 4, 16)
HEADER = "benchmark,device,num_threads,numel,shape,contiguous,dim,mean (us),median (us),iqr (us)"
Dim = int | tuple[int, ...] | None
DIMS: dict[int, tuple[Dim, ...]] = {
    1: (None,),
    2: (0, 1, None),
    3: (0, 1, 2, (0, 1), (0, 2), None),
}
TRANSFORMS: dict[str, tuple[Callable[..., torch.Tensor], torch.dtype]] = {
    "fft_real": (torch.fft.fftn, torch.float32),
    "fft_complex": (torch.fft.fftn, torch.complex64),
    "ifft": (torch.fft.ifftn, torch.complex64),
    "rfft": (torch.fft.rfftn, torch.float32),
    "irfft": (torch.fft.irfftn, torch.complex64),
}


class Result(NamedTuple):
    """One transform of one input."""

    name: str
    device: str
    shape: tuple[int, ...]
    contiguous: bool
    dim: Dim
    measurement: benchmark.Measurement


def is_regular(length: int) -> bool:
    """Whether a length has no prime factors but 2, 3 and 5.

    >>> is_regular(360), is_regular(361)
    (True, False)
    """
    for factor in (2, 3, 5):
        while length % factor == 0:
            length //= factor
    return length == 1


def name_dim(dim: Dim) -> str:
    """The dimensions that are transformed, as one word.

    >>> name_dim((0, 1)), name_dim(2), name_dim(None)
    ('0-1', '2', 'None')
    """
    return "-".join(map(str, dim)) if isinstance(dim, tuple) else str(dim)


def measure(name: str, device: str, args: argparse.Namespace) -> Iterator[Result]:
    """One transform on every input, along all choices of dimensions, with all numbers of threads."""
    function, dtype = TRANSFORMS[name]
    fuzzer = benchmark.SpectralOpFuzzer(
        seed=args.seed,
        dtype=dtype,
        cuda=device == "cuda",
        probability_regular=args.probability_regular,
        preset=None if args.preset == "reference" else args.preset,
    )
    for index, (tensors, properties, _) in enumerate(fuzzer.take(args.samples)):
        x, contiguous = tensors["x"], properties["x"]["is_contiguous"]
        show_progress(index + 1, args.samples, f"{name} on {device}")
        for dim in DIMS[x.dim()]:
            for threads in choose_threads(device):
                timer = benchmark.Timer(
                    "function(x, dim=dim)",
                    globals={"function": function, "x": x, "dim": dim},
                    label=f"{name} on {device}, by dim",
                    sub_label=name_row(index, x.shape, contiguous),
                    description="all" if dim is None else name_dim(dim),
                    num_threads=threads,
                )
                measurement = timer.blocked_autorange(min_run_time=args.min_run_time)
                yield Result(name, device, tuple(x.shape), contiguous, dim, measurement)


def choose_threads(device: str) -> tuple[int, ...]:
    """Those numbers of threads that there are cores for."""
    cores = len(os.sched_getaffinity(0)) if device == "cpu" else 1
    return tuple(threads for threads in THREADS if threads <= cores)


def name_row(index: int, shape: Sequence[int], contiguous: bool) -> str:
    """What a row is called: irregular lengths have a mark.

    >>> name_row(3, (360, 361), False)
    '3: 360 x 361*, strided'
    """
    lengths = " x ".join(f"{length}{'' if is_regular(length) else '*'}" for length in shape)
    return f"{index}: {lengths}{'' if contiguous else ', strided'}"


def write_row(result: Result, file: TextIO) -> None:
    """One line of CSV, at once on its way to the disk."""
    measurement = result.measurement
    where: list[Any] = [result.name, result.device, measurement.num_threads]
    shape = "x".join(map(str, result.shape))
    numel = torch.Size(result.shape).numel()
    times = [round(seconds * 1e6, 4) for seconds in (measurement.mean, measurement.median, measurement.iqr)]
    row = [*where, numel, shape, result.contiguous, name_dim(result.dim), *times]
    csv.writer(file, lineterminator="\n").writerow(row)
    file.flush()


def make_parser(devices: Sequence[str]) -> argparse.ArgumentParser:
    """All options; `devices` are those that are there."""
    parser = argparse.ArgumentParser(prog="python -m examples.spectral", description=__doc__)
    add, names = parser.add_argument, list(TRANSFORMS)
    presets = ("small", "medium", "large", "reference")
    add(
        "--device",
        nargs="+",
        choices=("cpu", "cuda"),
        default=devices,
        metavar="NAME",
        help="cpu, cuda (default: what is there)",
    )
    add("--bench", nargs="+", choices=names, default=names, metavar="NAME", help=f"{', '.join(names)} (default: all)")
    add("--seed", type=seed, default=0, help="another seed gives other inputs (default: %(default)s)")
    add("--samples", type=positive, help="inputs for each transform (default: 10; 6 with --quick)")
    add("--probability-regular", type=float, default=0.5, metavar="P", help="of each length (default: %(default)s)")
    add("--preset", choices=presets, help="how large (default: reference; small with --quick)")
    add("--min-run-time", type=duration, metavar="S", help="seconds for each (default: 1; 0.02 with --quick)")
    add("-o", "--output", metavar="CSV", help="where to write every result, as soon as it is there")
    add("--quick", action="store_true", help="fewer and smaller inputs, measured more briefly")
    return parser


def parse(argv: Sequence[str] | None) -> argparse.Namespace:
    """The options, with what --quick stands for put in where nothing was said."""
    devices = ["cpu", "cuda"] if torch.cuda.is_available() else ["cpu"]
    parser = make_parser(devices)
    args = parser.parse_args(argv)
    if not set(args.device) <= set(devices):
        parser.error("torch sees no CUDA device here; leave out --device, or say --device cpu")
    if not 0 <= args.probability_regular <= 1:
        parser.error(f"a probability is from 0 to 1, not {args.probability_regular}")
    args.samples = args.samples or (6 if args.quick else 10)
    args.preset = args.preset or ("small" if args.quick else "reference")
    if args.min_run_time is None:
        args.min_run_time = 0.02 if args.quick else 1.0
    return args


def open_output(path: str) -> TextIO:
    """The file, with its header; opened before anything is measured, so that a wrong path costs nothing."""
    try:
        file = open(path, "w", newline="", encoding="utf-8")  # noqa: SIM115 - closed by who asked for it
    except OSError as error:
        raise SystemExit(f"{path} cannot be written: {error.strerror}.") from None
    file.write(HEADER + "\n")
    return file


def main(argv: Sequence[str] | None = None) -> int:
    """Print a table for each transform, and write the CSV."""
    args = parse(argv)
    results = []
    with contextlib.ExitStack() as stack:
        file = stack.enter_context(open_output(args.output)) if args.output else None
        measuring = stack.enter_context(UntilInterrupted())
        for device in args.device:
            for name in args.bench:
                for result in measure(name, device, args):
                    results.append(result.measurement)
                    if file:
                        write_row(result, file)
    comparison = benchmark.Compare(results)
    comparison.trim_significant_figures()
    comparison.colorize()
    comparison.print()
    if any("*" in result.as_row_name for result in results):
        print("* has a prime factor other than 2, 3 and 5")
    return measuring.exit_code


if __name__ == "__main__":
    run(main)
