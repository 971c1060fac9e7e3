"""Fuzzers by name: those that come along, and those in files and modules of the user's."""

from __future__ import annotations

import importlib
import inspect
import os
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import torch

from torchmark.define.discovery import import_file
from torchmark.errors import TorchmarkError, UsageError
from torchmark.fuzz.features import outline
from torchmark.fuzz.fuzzer import Fuzzer
from torchmark.fuzz.operators import BinaryOpFuzzer, UnaryOpFuzzer
from torchmark.fuzz.sparse_operators import BinaryOpSparseFuzzer, UnaryOpSparseFuzzer
from torchmark.fuzz.spectral import SpectralOpFuzzer
from torchmark.model.inputs import FuzzedInput

T = TypeVar("T")

# As many names of a module as an error lists.
MOST_NAMES = 10

# Folders whose lines say nothing about a mistake in a file of the user's.
NOT_THEIRS = (os.path.dirname(importlib.__file__), os.path.dirname(os.path.dirname(__file__)))

OWN: Mapping[str, Callable[..., Fuzzer]] = {
    "unary": UnaryOpFuzzer,
    "binary": BinaryOpFuzzer,
    "spectral": SpectralOpFuzzer,
    "sparse-unary": UnaryOpSparseFuzzer,
    "sparse-binary": BinaryOpSparseFuzzer,
}


def make_fuzzer(name: str, options: Mapping[str, Any]) -> Fuzzer:
    """A fuzzer that comes along, or `FILE.py:NAME` or `MODULE:NAME`: a fuzzer, or what makes one of these options."""
    if ":" in name:
        found = _look_up(name)
        if isinstance(found, Fuzzer):
            if options:
                raise UsageError(
                    f"{name!r} is a fuzzer as it is: {', '.join(options)} cannot be chosen. "
                    "Leave that out, or name a function that makes fuzzers of such options."
                )
            return found
    else:
        found = OWN.get(name.replace("_", "-"))
        if found is None:
            raise UsageError(f"There is no fuzzer {name!r}. There are: {', '.join(OWN)}; yours are spelt FILE.py:NAME.")
    if not callable(found):
        raise UsageError(f"{name!r} is neither a fuzzer nor a function that makes one: {found!r:.80}")
    try:
        inspect.signature(found).bind(**options)
    except TypeError as error:
        given = ", ".join(options) or "none"
        raise UsageError(f"{name!r} does not take these options ({given}): {error}.") from error
    except ValueError:
        pass  # some functions written in C do not tell
    made = run_code(f"{name!r} makes no fuzzer", lambda: found(**options))
    if not isinstance(made, Fuzzer):
        raise UsageError(f"{name!r} made {made!r:.80}, which is no fuzzer.")
    return made


def outline_all(made: Sequence[tuple[str | None, Fuzzer]], indices: Iterable[int]) -> Iterator[FuzzedInput]:
    """Inputs of fuzzers by the names of their types of elements; if there are several, each has its turn."""
    for index in indices:
        name, fuzzer = made[index % len(made)]
        # Constraints are functions of the user's.
        one = run_code(f"Input {index} cannot be made", partial(outline, fuzzer, index))
        yield one if name is None or len(made) == 1 else replace(one, features={"dtype": name, **one.features})


def run_code(trouble: str, code: Callable[[], T]) -> T:
    """Call what may be the user's code. If it fails, that is told as `trouble`, with the place."""
    try:
        return code()
    except TorchmarkError:
        raise
    except (Exception, SystemExit) as error:
        raise UsageError(f"{trouble}: {type(error).__name__}: {error}{_locate(error)}.") from error


def _locate(error: BaseException) -> str:
    """The user's own last line, if any; a syntax error tells its place itself."""
    frames = traceback.extract_tb(error.__traceback__)
    theirs = [frame for frame in frames if not frame.filename.startswith(("<frozen", *NOT_THEIRS))]
    if not theirs or isinstance(error, SyntaxError):
        return ""
    return f" ({Path(theirs[-1].filename).name}, line {theirs[-1].lineno})"


def find_dtype(name: str) -> torch.dtype:
    """A type of torch's by its name.

    >>> find_dtype("bfloat16")
    torch.bfloat16
    """
    found = getattr(torch, name.removeprefix("torch."), None)
    if not isinstance(found, torch.dtype):
        raise UsageError(
            f"torch has no dtype {name!r}. There are float32, int64, bool, complex64, bfloat16 and others."
        )
    return found


def _look_up(name: str) -> Any:
    where, _, attribute = name.rpartition(":")
    if not where or not attribute:
        raise UsageError(f"{name!r} is not FILE.py:NAME or MODULE:NAME.")
    module = run_code(
        f"{where} cannot be loaded",
        lambda: _load_file(Path(where)) if where.endswith(".py") else importlib.import_module(where),
    )
    if not hasattr(module, attribute):
        named = [one for one in vars(module) if not one.startswith("_")][:MOST_NAMES]
        raise UsageError(f"{where} has no {attribute!r}. It has: {', '.join(named) or 'no names'}.")
    return getattr(module, attribute)


def _load_file(path: Path) -> Any:
    if not path.is_file():
        raise UsageError(f"There is no file {os.fspath(path)!r}.")
    return import_file(os.fspath(path.resolve()))
