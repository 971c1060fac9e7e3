"""Times a compiled snippet: the loop is in a shared library, and asks this process what to do next."""

from __future__ import annotations

import ctypes
import os
from typing import Any

from torchmark.errors import SnippetError, UsageError
from torchmark.measure.snippet import Clock
from torchmark.measure.steps import R, Steps
from torchmark.model.snippet import Compiled

# What a 64-bit counter of the loop can hold.
MOST_RUNS = 2**63 - 1
_LONGEST_PROBLEM_BYTES = 4096

_NEXT = ctypes.CFUNCTYPE(ctypes.c_longlong, ctypes.c_double)
_CLOCK = ctypes.CFUNCTYPE(ctypes.c_double)
_STOP = -1


class CompiledTimer:
    """Times a snippet of a library, with the library's own steady clock unless another is given.

    The setup runs anew before each block, except for the blocks of `follow`. After each setup the statement runs once
    before the first block.
    """

    def __init__(self, compiled: Compiled, clock: Clock | None = None) -> None:
        self._library = _load(compiled.library)
        self._run = getattr(self._library, f"torchmark_{compiled.key}")
        self._run.argtypes = [_NEXT, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_ulong]
        # Kept here, for the library knows only an address.
        self._clock: Any = self._library.torchmark_steady_clock if clock is None else as_native(clock)
        self._is_empty = getattr(self._library, f"torchmark_empty_{compiled.key}")

    @property
    def optimised_away(self) -> bool:
        """Whether the compiler has left nothing of the statement, and the loop is empty."""
        return bool(self._is_empty())

    def timeit(self, number: int) -> float:
        """Seconds that `number` executions of the statement take."""
        return self.follow(_one_block(number))

    def follow(self, steps: Steps[R]) -> R:
        """Carry out all of the steps after one run of the setup."""
        driver = _Driver(_warmed_up(steps))
        problem = ctypes.create_string_buffer(_LONGEST_PROBLEM_BYTES)
        failed = self._run(_NEXT(driver.next), ctypes.cast(self._clock, ctypes.c_void_p), problem, len(problem))
        if driver.error is not None:
            raise driver.error
        if failed:
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
    """Lets steps be carried out by a loop that asks for them."""

    def __init__(self, steps: Steps[Any]) -> None:
        self._steps = steps
        self._has_begun = False
        self.has_ended = False
        self.result: Any = None
        self.error: BaseException | None = None

    def next(self, elapsed: float) -> int:
        """The number of runs of the next block. An error ends the loop; it cannot pass through the library."""
        try:
            request = self._steps.send(elapsed if self._has_begun else None)
            self._has_begun = True
            assert isinstance(request, int)
            if not 0 <= request <= MOST_RUNS:
                raise UsageError(f"A loop counts from 0 to 2**63 - 1, not to {request}.")
            return request
        except StopIteration as end:
            self.has_ended, self.result = True, end.value
        except BaseException as error:
            self.error = error
        return _STOP


def as_native(clock: Clock) -> Any:
    """A clock as a C function: one that is a C function already, or one of Python's wrapped in one."""
    return clock if isinstance(clock, _CLOCK.__mro__[1]) else _CLOCK(clock)


def _one_block(number: int) -> Steps[float]:
    seconds: float = yield number
    return seconds


def _warmed_up(steps: Steps[R]) -> Steps[R]:
    yield 1
    return (yield from steps)
