"""Times a compiled snippet: the loop is in a shared library, and asks this process what to do next."""

from __future__ import annotations

import contextlib
import ctypes
import os
import sys
import threading
from collections.abc import Iterator
from typing import Any

from torchmark.errors import SnippetError, UsageError
from torchmark.measure.snippet import Clock
from torchmark.measure.steps import R, Steps
from torchmark.model.task import Compiled

# What a 64-bit counter of the loop can hold.
MOST_RUNS = 2**63 - 1
_LONGEST_PROBLEM_BYTES = 4096

_NEXT = ctypes.CFUNCTYPE(None, ctypes.c_double, ctypes.POINTER(ctypes.c_longlong))
_CLOCK = ctypes.CFUNCTYPE(ctypes.c_double)
# What functions of loaded libraries are, those of `PyDLL` included.
_FOREIGN = _CLOCK.__mro__[1]


class CompiledTimer:
    """Times a snippet of a library, with the library's own steady clock unless another is given.

    The setup runs anew before each block, except for the blocks of `follow`. After each setup the statement runs once
    before the first block.
    """

    def __init__(self, compiled: Compiled, clock: Clock | None = None) -> None:
        self._library = _load(compiled.library)
        self._run = getattr(self._library, f"torchmark_{compiled.key}")
        self._run.restype = None
        self._run.argtypes = [_NEXT, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_ulong]
        self._clock: Any = self._library.torchmark_steady_clock if clock is None else clock
        self._is_empty = getattr(self._library, f"torchmark_empty_{compiled.key}")

    @property
    def optimised_away(self) -> bool:
        """Whether the compiler has left nothing of the statement, and the loop is empty."""
        return bool(self._is_empty())

    def timeit(self, number: int) -> float:
        return self.follow(_one_block(number))

    def follow(self, steps: Steps[R]) -> R:
        driver = _Driver(_warmed_up(steps))
        problem = ctypes.create_string_buffer(_LONGEST_PROBLEM_BYTES)
        # Kept in variables, for the library knows only their addresses.
        ask = _NEXT(driver.next)
        clock: Any = self._clock if isinstance(self._clock, _FOREIGN) else _CLOCK(driver.guard(self._clock))
        with _catching(driver):
            self._run(ask, ctypes.cast(clock, ctypes.c_void_p), problem, len(problem))
        if driver.error is not None:
            raise driver.error
        if problem.value:
            raise SnippetError(problem.value.decode(errors="replace"), kind="raised")
        if not driver.has_ended:
            raise SnippetError("The code left its loop: it must neither return nor break.", kind="left")
        result: R = driver.result
        return result


# What was loaded, by the identity of its file; and how often each path was loaded.
_loaded: dict[tuple[int, int], ctypes.CDLL] = {}
_versions: dict[str, int] = {}


def _load(path: str) -> ctypes.CDLL:
    """The library at a path as it is now. The loader itself never looks twice at a path."""
    try:
        status = os.stat(path)
        identity = (status.st_dev, status.st_ino)
        if identity not in _loaded:
            version = _versions.get(path, 0)
            folder, name = os.path.split(path)
            # The same place, spelt in another way for each file that has been there. The lock of the interpreter is
            # released while the library runs.
            _loaded[identity] = ctypes.CDLL(os.path.join(folder, *["."] * version, name))
            _versions[path] = version + 1
        return _loaded[identity]
    except OSError as error:
        raise SnippetError(f"The compiled snippet cannot be loaded: {error}.", kind="not_loaded") from error


class _Driver:
    """Lets steps be carried out by a loop that asks for them.

    No exception passes through the library: one ends the loop, and is raised behind it.
    """

    def __init__(self, steps: Steps[Any]) -> None:
        self._steps = steps
        self._has_begun = False
        self.has_ended = False
        self.result: Any = None
        self.error: BaseException | None = None

    def next(self, elapsed: float, number: Any) -> None:
        """Write down the number of runs of the next block; nothing at the end."""
        try:
            if self.error is None:
                request = self._steps.send(elapsed if self._has_begun else None)
                self._has_begun = True
                assert isinstance(request, int)
                if not 0 <= request <= MOST_RUNS:
                    raise UsageError(f"A loop counts from 0 to 2**63 - 1, not to {request}.")
                number[0] = request
        except StopIteration as end:
            self.has_ended, self.result = True, end.value
        except BaseException as error:
            self.error = error

    def guard(self, clock: Clock) -> Clock:
        """A clock whose exceptions are kept."""

        def guarded() -> float:
            try:
                return clock()
            except BaseException as error:
                self.error = self.error or error
                return 0.0

        return guarded


# The driver of each thread that is inside a library, and the hook that was in place before the first of them.
_active: dict[int, _Driver] = {}
_hook_before: list[Any] = []
_hook_lock = threading.Lock()


@contextlib.contextmanager
def _catching(driver: _Driver) -> Iterator[None]:
    """Also keep what is raised on the way into a callback: by the handler of a signal, an interrupt most often.

    ctypes gives such an exception to the hook for those that nobody can catch.
    """
    thread = threading.get_ident()
    with _hook_lock:
        outer = _active.get(thread)
        if not _active:
            _hook_before[:] = [sys.unraisablehook]
            sys.unraisablehook = _keep
        _active[thread] = driver
    try:
        yield
    finally:
        with _hook_lock:
            if outer is not None:
                _active[thread] = outer
            else:
                del _active[thread]
            if not _active and sys.unraisablehook is _keep:
                sys.unraisablehook = _hook_before[0]


def _keep(unraisable: Any) -> None:
    driver = _active.get(threading.get_ident())
    if driver is not None and unraisable.exc_value is not None and "ctypes callback" in str(unraisable.err_msg):
        driver.error = driver.error or unraisable.exc_value
    else:
        _hook_before[0](unraisable)


def _one_block(number: int) -> Steps[float]:
    seconds: float = yield number
    return seconds


def _warmed_up(steps: Steps[R]) -> Steps[R]:
    yield 1
    return (yield from steps)
