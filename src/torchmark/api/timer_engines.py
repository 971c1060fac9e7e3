"""What a `Timer` runs besides Python: compiled C++ statements, and counts in a worker."""

from __future__ import annotations

import atexit
import dataclasses
import enum
import io
import os
import pickle
import textwrap
import threading
import time
import weakref
from collections.abc import Callable, Mapping
from typing import Any

import torch

from torchmark.api.callgrind_stats import CallgrindStats, make_stats
from torchmark.api.statements import start_counting
from torchmark.callgrind.profiles import tally
from torchmark.errors import SnippetError, UsageError, WorkerError
from torchmark.measure.clock import choose_native_clock
from torchmark.measure.clock import timer as default_timer
from torchmark.measure.compiled import CompiledTimer
from torchmark.measure.steps import R, Steps
from torchmark.measure.torch_files import read_sdk
from torchmark.model.costs import Counts
from torchmark.model.job import CountJob, Given
from torchmark.model.outcome import Failure
from torchmark.model.task import Compiled, Snippet, TaskSpec
from torchmark.report.text.failures import describe_failure
from torchmark.report.text.terminal import COMPILING, one_line, show_waiting
from torchmark.runner.prepare import build_snippets
from torchmark.runner.spec import WorkerSpec
from torchmark.runner.worker import Worker, retry_if_killed

# Those that have not been compiled. Whoever is the first to run takes the others along.
_waiting: weakref.WeakSet[CppTimer] = weakref.WeakSet()
# Global setups that register operators, and the file of the library that has done so. Torch ends a process that does it
# twice.
_registered: dict[str, tuple[int, int]] = {}
_REGISTERS = "TORCH_LIBRARY"


class _Locks:
    """For the set above, and for compiling; new ones in a fork, where nobody would release the old."""

    def __init__(self) -> None:
        self.waiting = threading.Lock()
        self.compiling = threading.Lock()


_locks = _Locks()
os.register_at_fork(after_in_child=_locks.__init__)  # type: ignore[misc]


class CppTimer:
    """Times a C++ snippet in this process."""

    def __init__(
        self,
        stmt: str,
        setup: str,
        global_setup: str = "",
        timer: Callable[[], float] = default_timer,
        globals: dict[str, Any] | None = None,
    ) -> None:
        if globals:
            raise UsageError("C++ timing does not support globals.")
        self.snippet = Snippet(stmt, setup, global_setup)
        self._given_clock = timer
        self._result: Compiled | Failure | None = None
        self._timer: CompiledTimer | None = None
        with _locks.waiting:
            _waiting.add(self)

    def __reduce__(self) -> tuple[Any, ...]:
        # A copy compiles, or rather finds, its library itself.
        return CppTimer, (*dataclasses.astuple(self.snippet), self._given_clock)

    def timeit(self, number: int) -> float:
        """Seconds that `number` executions of the statement take."""
        return self._load().timeit(number)

    def follow(self, steps: Steps[R]) -> R:
        return self._load().follow(steps)

    @property
    def optimised_away(self) -> bool:
        return self._load().optimised_away

    def compile(self) -> Compiled:
        """Where the compiled snippet is; SnippetError says what is wrong with it."""
        with _locks.compiling:
            if self._result is None or (
                isinstance(self._result, Compiled) and not os.path.exists(self._result.library)
            ):
                self._compile_with_others()
            result = self._result
            if isinstance(result, Failure):
                # Told once. Whoever asks again has perhaps changed a header.
                self._result = None
                text = f"The C++ snippet does not compile: {one_line(self.snippet.stmt)}\n{describe_failure(result)}"
                raise SnippetError(text, kind=result.kind.value)
        assert result is not None
        return result

    def _compile_with_others(self) -> None:
        with _locks.waiting:
            timers = {self, *_waiting}
            _waiting.clear()
        try:
            with show_waiting(COMPILING):
                results = build_snippets([timer.snippet for timer in timers], read_sdk(), os.environ)
        except BaseException:
            with _locks.waiting:
                _waiting.update(timers)
            raise
        for timer in timers:
            timer._result = results[timer.snippet]

    def _load(self) -> CompiledTimer:
        if self._timer is None:
            compiled, clock = self.compile(), self._given_clock
            self._check_registration(compiled)
            # The library's own clock is the one that Python reads; any other is called from there.
            own = None if clock is time.perf_counter else clock
            self._timer = CompiledTimer(compiled, choose_native_clock() if clock is default_timer else own)
        return self._timer

    def _check_registration(self, compiled: Compiled) -> None:
        scope = self.snippet.global_setup
        if _REGISTERS not in scope:
            return
        status = os.stat(compiled.library)
        library = (status.st_dev, status.st_ino)
        if _registered.setdefault(scope, library) != library:
            raise SnippetError(
                "This global setup registers operators (TORCH_LIBRARY), which was done already by another timer of "
                "this process. Make all timers that share it before the first of them runs: they are then compiled "
                "into one library.",
                kind="registered",
            )


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


def collect(spec: TaskSpec, job: CountJob, worker: Worker, attempt: Callable[[], Counts | Failure]) -> CallgrindStats:
    """Count once; what the task did wrong is a WorkerError."""
    start_counting(worker)
    outcome = retry_if_killed(attempt)
    if isinstance(outcome, Failure):
        text = f"Failed to collect callgrind profile:\n{describe_failure(outcome)}"
        raise WorkerError(text, kind=outcome.kind.value)
    return make_stats(spec, tally(outcome, job.layouts), worker.environment, compiled=job.compiled is not None)


# The workers of this process that stay up for the next statement.
_workers: dict[WorkerSpec, Worker] = {}
_lock = threading.Lock()


def get_worker(spec: WorkerSpec) -> Worker:
    """The worker of this kind; it is not started by this."""
    with _lock:
        if spec not in _workers:
            _workers[spec] = Worker(spec)
        return _workers[spec]


@atexit.register
def close_workers() -> None:
    """End them all. Whoever needs one later gets a new one.

    Without waiting: a daemon thread may be in the middle of a job that has long to go.
    """
    while _workers:
        _workers.popitem()[1].abandon()


def _disown_workers() -> None:
    """A fork of this process has copies of all handles, and must not end what is not its own, or keep it alive."""
    global _lock
    # Another thread may have held it, and is not here to release it.
    _lock = threading.Lock()
    while _workers:
        _workers.popitem()[1].disown()


os.register_at_fork(after_in_child=_disown_workers)
