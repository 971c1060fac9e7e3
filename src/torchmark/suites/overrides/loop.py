"""A loop of `torch.add` with operands of one type, and nothing else in the process, to profile with any tool.

python -m torchmark.suites.overrides.loop SubTensor -n 1000000
"""

from __future__ import annotations

import argparse
import importlib
from collections.abc import Callable, Sequence
from typing import Any

import torch

from torchmark.suites.overrides import tensors

TYPES = ("Tensor", "SubTensor", "WithTorchFunction", "SubWithTorchFunction")
DEFAULT_NUMBER = 1_000_000


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        prog="python -m torchmark.suites.overrides.loop", description="Run torch.add on two operands of a type."
    )
    parser.add_argument("type", metavar="TYPE", help=f"{', '.join(TYPES)}, or your own as module:Class")
    parser.add_argument(
        "-n", "--nreps", type=int, default=DEFAULT_NUMBER, metavar="N", help=f"how many calls ({DEFAULT_NUMBER})"
    )
    options = parser.parse_args(arguments)
    try:
        make = find_type(options.type)
    except (ImportError, AttributeError, ValueError) as error:
        parser.error(str(error))
    run(make([1.0]), make([2.0]), options.nreps)


def find_type(name: str) -> Callable[[list[float]], Any]:
    module, separator, path = name.partition(":")
    if not separator and name not in TYPES:
        raise ValueError(f"{name!r} is none of {', '.join(TYPES)}, and not spelt module:Class.")
    if name == "Tensor":
        return torch.tensor
    found: Any = importlib.import_module(module) if separator else tensors
    for part in (path or name).split("."):
        found = getattr(found, part)
    make: Callable[[list[float]], Any] = found
    return make


def run(x: Any, y: Any, number: int) -> None:
    for _ in range(number):
        torch.add(x, y)


if __name__ == "__main__":
    main()
