"""The engine of a C++ timer: compiles its snippet when it is first needed, together with all others that wait."""

from __future__ import annotations

import os
import threading
import time
import weakref
from collections.abc import Callable
from typing import Any

from torchmark.errors import SnippetError, UsageError
from torchmark.measure.clock import choose_native_clock
from torchmark.measure.clock import timer as default_timer
from torchmark.measure.compiled import CompiledTimer
from torchmark.measure.sdk import read_sdk
from torchmark.measure.steps import R, Steps
from torchmark.model.outcome import Failure
from torchmark.model.snippet import Compiled, Snippet
from torchmark.report.text.failures import describe_failure
from torchmark.report.text.terminal import COMPILING, one_line, show_waiting
from torchmark.runner.prepare import build_snippets

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
        snippet = self.snippet
        return CppTimer, (snippet.stmt, snippet.setup, snippet.global_setup, self._given_clock)

    def timeit(self, number: int) -> float:
        """Seconds that `number` executions of the statement take."""
        return self._load().timeit(number)

    def follow(self, steps: Steps[R]) -> R:
        """Carry out all of the steps after one run of the setup."""
        return self._load().follow(steps)

    @property
    def optimised_away(self) -> bool:
        """Whether the compiler left nothing of the statement."""
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
            compiled = self.compile()
            self._check_registration(compiled)
            self._timer = CompiledTimer(compiled, _choose_clock(self._given_clock))
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


def _choose_clock(timer: Callable[[], float]) -> Callable[[], float] | None:
    """The library's own clock is the one that Python reads; any other is called from there."""
    if timer is time.perf_counter:
        return None
    return choose_native_clock() if timer is default_timer else timer
