"""Runs two variants of a benchmark once each, and compares what they compute."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from typing import Any, Union

import torch

from torchmark.measure.compiled import CompiledTimer
from torchmark.measure.snippet import SnippetTimer
from torchmark.measure.torch_files import SEED
from torchmark.model.job import CheckJob, Way
from torchmark.worker.process import failure_of
from torchmark.worker.protocol import Checked

# What is neither a tensor nor a number, nor made of them.
OTHER = "other"

Value = Union[torch.Tensor, str, None]
Results = dict[str, list[Value]]

# The types of tensors by their names in C++.
_TYPES = {
    "Byte": torch.uint8, "Char": torch.int8, "Short": torch.int16, "Int": torch.int32, "Long": torch.int64,
    "Half": torch.float16, "Float": torch.float32, "Double": torch.float64, "BFloat16": torch.bfloat16,
    "ComplexFloat": torch.complex64, "ComplexDouble": torch.complex128, "Bool": torch.bool,
}  # fmt: skip


def check(job: CheckJob) -> Checked:
    """Whether both ways compute the same; if one of them fails, which."""
    results: list[Results] = []
    for number, way in enumerate((job.first, job.second)):
        try:
            torch.manual_seed(SEED)
            results.append(_run_python(way) if way.compiled is None else _run_compiled(way))
        except BaseException as error:
            failed = failure_of(error)
            return Checked(failed.traceback or failed.message, number)
    return Checked(compare(*results))


def load_comparison() -> None:
    """Load what comparing needs: at its first call torch imports its distributed tensors, which takes a second."""
    torch.testing.assert_close(torch.ones(1), torch.ones(1))


def compare(first: Results, second: Results) -> str | None:
    """What differs, in words; None if nothing does."""
    for name in dict.fromkeys((*first, *second)):
        expected, found = first.get(name, []), second.get(name, [])
        if len(expected) != len(found):
            if any(isinstance(value, str) for value in expected + found):
                continue  # what cannot be taken apart may have any number of parts
            return f"{name} has {len(expected)} parts in one and {len(found)} in the other."
        for one, two in zip(expected, found):
            if isinstance(one, str) or isinstance(two, str) or (one is None and two is None):
                continue
            try:
                torch.testing.assert_close(two, one, equal_nan=True, check_stride=False)
            except (AssertionError, TypeError, ValueError) as error:
                return f"{name} differs: {error}"
    return None


def _run_python(way: Way) -> Results:
    results: Results = {}

    def give(name: str, value: Any) -> None:
        results.setdefault(name, []).extend(take_apart(value))

    SnippetTimer(way.stmt, way.setup, globals={"torch": torch, "torchmark_give": give}).timeit(1)
    return results


def _run_compiled(way: Way) -> Results:
    assert way.compiled is not None
    with tempfile.TemporaryFile() as file:
        os.environ["TORCHMARK_RESULTS"] = str(file.fileno())
        # A compiled statement is always run once before its first block.
        CompiledTimer(way.compiled).timeit(0)
        file.seek(0)
        return read_results(file.readline, file.read)


def take_apart(value: Any) -> list[Value]:
    """The tensors and numbers that something consists of, one after the other.

    >>> take_apart((1, [2.0, None]))
    [tensor(1), tensor(2., dtype=torch.float64), None]
    """
    if isinstance(value, torch.Tensor):
        return [_copy(value)]
    if value is None:
        return [None]
    if isinstance(value, (bool, int)):
        return [torch.tensor(value)]
    if isinstance(value, (float, complex)):
        return [torch.tensor(value, dtype=torch.float64 if isinstance(value, float) else torch.complex128)]
    if isinstance(value, (list, tuple)):
        return [part for one in value for part in take_apart(one)]
    return [OTHER]


def _copy(tensor: torch.Tensor) -> Value:
    plain = tensor.detach()
    if plain.layout != torch.strided:
        try:
            plain = plain.to_dense()
        except (RuntimeError, NotImplementedError):
            return OTHER
    return plain.cpu().clone()


def read_results(readline: Callable[[], bytes], read: Callable[[int], bytes]) -> Results:
    results: Results = {}
    while line := readline():
        size, kind, sizes, name = line.decode().rstrip("\n").split("|", 3)
        data = read(int(size))
        results.setdefault(name, []).append(_revive(kind, [int(n) for n in sizes.split(",") if n], data))
    return results


def _revive(kind: str, shape: list[int], data: bytes) -> Value:
    if kind == "None":
        return None
    if kind not in _TYPES:
        return OTHER
    if not data:
        return torch.empty(shape, dtype=_TYPES[kind])
    return torch.frombuffer(bytearray(data), dtype=_TYPES[kind]).reshape(shape)
