"""Counts a task of a `Timer` in a worker; `CopyIfCallgrind` marks globals that may be copied there."""

from __future__ import annotations

import enum
import io
import os
import pickle
import textwrap
from collections.abc import Mapping
from typing import Any

import torch

from torchmark.api.callgrind_stats import CallgrindStats, make_stats
from torchmark.api.statements import start_counting
from torchmark.callgrind.profiles import tally
from torchmark.errors import UsageError, WorkerError
from torchmark.model.job import CountJob, Given
from torchmark.model.outcome import Failure
from torchmark.model.task import TaskSpec
from torchmark.report.text.failures import describe_failure
from torchmark.runner.jobs import count
from torchmark.runner.spec import own_worker
from torchmark.runner.worker import get_worker


class Serialization(enum.Enum):
    """How a value travels."""

    PICKLE = 0
    TORCH = 1
    TORCH_JIT = 2


_PLAIN = (str, bytes, bool, int, float, complex, type(None))
_CONTAINERS = (list, tuple, dict)
_SCRIPTED = (torch.jit.ScriptFunction, torch.jit.ScriptModule)
_TORCH = (torch.Tensor, torch.nn.Module)


class CopyIfCallgrind:
    """Says that a global may be replaced by a copy of it where instructions are counted, in another process.

    Plain values, None, tensors, modules, scripted functions and modules, and lists, tuples and dicts of these can be
    copied; a tensor keeps its dtype, its strides and its place in its storage. `setup` is code that runs there before
    the copy is made, for instance to make the class of a module importable.

    >>> CopyIfCallgrind([1, 2]).value
    [1, 2]
    """

    def __init__(self, value: Any, *, setup: str | None = None) -> None:
        self._value = value
        self._setup = setup
        try:
            self._serialization = _choose(value)
        except RecursionError:
            raise UsageError("A global that contains itself cannot be copied.") from None

    @property
    def value(self) -> Any:
        """The value itself."""
        return self._value

    @property
    def setup(self) -> str | None:
        """Code to run before the copy is made."""
        return self._setup

    @property
    def serialization(self) -> Serialization:
        """How the value travels."""
        return self._serialization

    @staticmethod
    def unwrap_all(globals: Mapping[str, Any]) -> dict[str, Any]:
        """The globals with each value that is wrapped taken out."""
        return {k: v.value if isinstance(v, CopyIfCallgrind) else v for k, v in globals.items()}


def _choose(value: Any) -> Serialization:
    if isinstance(value, _PLAIN):
        return Serialization.PICKLE
    if isinstance(value, _SCRIPTED):
        return Serialization.TORCH_JIT
    if isinstance(value, _TORCH):
        return Serialization.TORCH
    # Subclasses may hold more than their items.
    if type(value) in _CONTAINERS:
        parts = [*value.keys(), *value.values()] if isinstance(value, dict) else value
        kinds = {_choose(part) for part in parts}
        if Serialization.TORCH_JIT in kinds:
            raise UsageError("A scripted function or module can be a global by itself, but not part of another one.")
        return Serialization.TORCH if Serialization.TORCH in kinds else Serialization.PICKLE
    allowed = ", ".join(t.__name__ for t in (*_PLAIN, *_CONTAINERS, *_TORCH, *_SCRIPTED))
    raise UsageError(
        f"Unsupported type: {type(value)}\n"
        f"`collect_callgrind` restricts globals to the following types:\n{textwrap.indent(allowed, '  ')}"
    )


def pack_globals(globals: Mapping[str, Any]) -> tuple[tuple[Given, ...], bytes]:
    """All globals but torch, as bytes one behind the other, and what they are."""
    if globals.get("torch", torch) is not torch:
        raise UsageError("`collect_callgrind` does not support mocking out `torch`.")
    givens, pieces = [], []
    for name, wrapped in globals.items():
        if name in ("torch", "__builtins__"):
            continue
        if not isinstance(wrapped, CopyIfCallgrind):
            raise UsageError(
                "`collect_callgrind` requires that globals be wrapped in `CopyIfCallgrind` so that serialization is "
                f"explicit. The global `{name}` is not."
            )
        try:
            piece = _serialise(wrapped)
        except Exception as error:
            raise UsageError(f"The global `{name}` cannot be copied: {error}") from error
        setup = None if wrapped.setup is None else textwrap.dedent(wrapped.setup)
        givens.append(Given(name, wrapped.serialization.name.lower(), len(piece), setup))
        pieces.append(piece)
    return tuple(givens), b"".join(pieces)


def _serialise(wrapped: CopyIfCallgrind) -> bytes:
    if wrapped.serialization is Serialization.PICKLE:
        return pickle.dumps(wrapped.value)
    buffer = io.BytesIO()
    save = torch.jit.save if wrapped.serialization is Serialization.TORCH_JIT else torch.save
    save(wrapped.value, buffer)
    return buffer.getvalue()


def collect(
    spec: TaskSpec,
    job: CountJob,
    payload: bytes,
    *,
    baseline: bool,
    keep_texts: bool,
    simulate: bool,
    given: Mapping[str, str],
    timeout_s: float,
) -> CallgrindStats:
    """Count once; what the task did wrong is a WorkerError."""
    worker = get_worker(own_worker(os.environ, given, simulate=simulate))
    start_counting(worker)
    outcome = count(worker, job, payload, timeout_s, baseline=baseline, keep_texts=keep_texts)
    if isinstance(outcome, Failure):
        text = f"Failed to collect callgrind profile:\n{describe_failure(outcome)}"
        raise WorkerError(text, kind=outcome.kind.value)
    return make_stats(spec, tally(outcome, job.layouts), worker.environment, compiled=job.compiled is not None)
