"""Fuzzers by name: those that come along, and those in files and modules of the user's."""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch

from torchmark.errors import DefinitionError, UsageError
from torchmark.fuzz.fuzzer import Fuzzer
from torchmark.fuzz.operators import BinaryOpFuzzer, UnaryOpFuzzer
from torchmark.fuzz.sparse_operators import BinaryOpSparseFuzzer, UnaryOpSparseFuzzer
from torchmark.fuzz.spectral import SpectralOpFuzzer

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
            return found
    else:
        found = OWN.get(name.replace("_", "-"))
        if found is None:
            raise UsageError(f"There is no fuzzer {name!r}. There are: {', '.join(OWN)}; yours are spelt FILE.py:NAME.")
    if not callable(found):
        raise UsageError(f"{name!r} is neither a fuzzer nor a function that makes one: {found!r:.80}")
    try:
        made = found(**options)
    except TypeError as error:
        raise UsageError(f"{name!r} does not take these options ({', '.join(options)}): {error}") from error
    if not isinstance(made, Fuzzer):
        raise UsageError(f"{name!r} made {made!r:.80}, which is no fuzzer.")
    return made


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
    try:
        module = _load_file(Path(where)) if where.endswith(".py") else importlib.import_module(where)
    except (UsageError, DefinitionError):
        raise
    except Exception as error:
        raise UsageError(f"{where} cannot be loaded: {type(error).__name__}: {error}") from error
    if not hasattr(module, attribute):
        raise UsageError(f"{where} has no {attribute!r}.")
    return getattr(module, attribute)


def _load_file(path: Path) -> Any:
    if not path.is_file():
        raise UsageError(f"There is no file {os.fspath(path)!r}.")
    spec = importlib.util.spec_from_file_location(f"_torchmark_fuzzer_{path.stem}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    # So that the file can import what lies beside it, and its classes can be found.
    sys.path.insert(0, os.fspath(path.resolve().parent))
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module
