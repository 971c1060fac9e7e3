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
from torchmark.report.failures import describe_failure
from torchmark.report.text import one_line
from torchmark.report.waiting import show_waiting
from torchmark.runner.building import build_snippets

COMPILING = "Compiling C++ (once; takes some ten seconds)"

_lock = threading.Lock()
# Those that have not been compiled. Whoever is the first to run takes the others along.
_waiting: weakref.WeakSet[CppTimer] = weakref.WeakSet()


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
        self._clock = _choose_clock(timer)
        self._result: Compiled | Failure | None = None
        self._timer: CompiledTimer | None = None
        with _lock:
            _waiting.add(self)

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
        with _lock:
            if self._result is None:
                _compile_all([self, *_waiting])
        if isinstance(self._result, Failure):
            text = f"The C++ snippet does not compile: {one_line(self.snippet.stmt)}\n{describe_failure(self._result)}"
            raise SnippetError(text, kind=self._result.kind.value)
        assert self._result is not None
        return self._result

    def _load(self) -> CompiledTimer:
        if self._timer is None:
            self._timer = CompiledTimer(self.compile(), self._clock)
        return self._timer


def _compile_all(timers: list[CppTimer]) -> None:
    with show_waiting(COMPILING):
        results = build_snippets([timer.snippet for timer in timers], read_sdk(), os.environ)
    for timer in timers:
        timer._result = results[timer.snippet]
        _waiting.discard(timer)


def _choose_clock(timer: Callable[[], float]) -> Callable[[], float] | None:
    """The library's own clock is the one that Python reads; any other is called from there."""
    if timer is time.perf_counter:
        return None
    return choose_native_clock() if timer is default_timer else timer
