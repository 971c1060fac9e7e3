"""Signs of life of a long run, on standard error: a bar on a terminal, now and then a line in a log.

Nothing is ever written but from `take`, on entering and on leaving: no thread, no timer. So nothing disturbs what is
being timed.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from contextlib import suppress
from types import TracebackType
from typing import IO, Any, Generic, Protocol, TypeVar

from torchmark.report.cells import cut, measure
from torchmark.report.printable import printable, printable_lines

DEFAULT_WIDTH = 80
LEAST_WIDTH = 20
# In a log: at most a line in so many seconds, and one at each of so many steps or after so many seconds.
LOG_EVERY_S = 10.0
LOG_STEPS = 20
LOG_AT_LEAST_EVERY_S = 60.0
# Lines of a log that are longer than this nobody reads to their end.
LOG_WIDTH = 300

RED, END = "\033[31m", "\033[0m"
ERASE_BELOW = "\033[J"


E = TypeVar("E")
Told = TypeVar("Told", contravariant=True)


class Advancing(Protocol[Told]):
    """How far things have come, in numbers and in words, by what it is told of."""

    total: int
    done: int

    @property
    def elapsed_s(self) -> float:
        """Since the beginning."""

    def add(self, event: Told) -> str | None:
        """Note an event; the words for a failure, if it is one."""

    def describe(self) -> str:
        """One line for a log."""

    def conclude(self) -> str:
        """The last line of a log."""

    def draw(self, width: int, *, fancy: bool) -> str:
        """A line for a terminal, with a bar."""

    def describe_current(self, width: int) -> str:
        """What is under way, if that is known."""


class Progress(Protocol[Told]):
    """Something that is told all that happens, between what is measured."""

    def take(self, event: Told) -> None:
        """Something has begun, or has come to its end."""

    def __enter__(self) -> Progress[Told]: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


def make_progress(
    stream: IO[str] | None, quiet: bool, advance: Advancing[E], variables: Mapping[str, str] = os.environ
) -> Progress[E]:
    """The display that fits the stream."""
    # A program may be started without standard error.
    if quiet or stream is None:
        return NoProgress()
    if not stream.isatty() or variables.get("TERM", "dumb") == "dumb":
        return LogProgress(stream, advance)
    return LiveProgress(stream, advance, colour=not variables.get("NO_COLOR"))


class NoProgress:
    """Says nothing."""

    def take(self, event: object) -> None:
        """Nothing happens."""

    def __enter__(self) -> NoProgress:
        return self

    def __exit__(self, *_: Any) -> None:
        pass


class LogProgress(Generic[E]):
    """Plain lines for logs: few, and every failure at once."""

    def __init__(self, stream: IO[str], advance: Advancing[E]) -> None:
        self._stream = stream
        self._advance = advance
        self._told_s = 0.0
        self._told_done = 0

    def __enter__(self) -> LogProgress[E]:
        self._tell()
        return self

    def take(self, event: E) -> None:
        """A line if it is a failure, and one if it is time for that."""
        advance = self._advance
        if (failure := advance.add(event)) is not None:
            self._write(failure)
        waited = advance.elapsed_s - self._told_s
        far = (advance.done - self._told_done) * LOG_STEPS >= advance.total
        if waited >= LOG_AT_LEAST_EVERY_S or (waited >= LOG_EVERY_S and far):
            self._tell()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._write(self._advance.conclude())

    def _tell(self) -> None:
        self._told_s, self._told_done = self._advance.elapsed_s, self._advance.done
        self._write(self._advance.describe())

    def _write(self, line: str) -> None:
        _write(self._stream, printable_lines(cut(printable(line), LOG_WIDTH)) + "\n")


class LiveProgress(Generic[E]):
    """Two lines at the bottom of a terminal, drawn anew with each event; failures scroll by above them."""

    def __init__(self, stream: IO[str], advance: Advancing[E], *, colour: bool = False) -> None:
        self._stream = stream
        self._advance = advance
        self._colour = colour
        self._drawn: list[str] = []

    def __enter__(self) -> LiveProgress[E]:
        self._draw()
        return self

    def take(self, event: E) -> None:
        """Draw how things are now."""
        failure = self._advance.add(event)
        if failure is None:
            self._draw()
            return
        line = cut(printable(failure), self._width)
        self._draw(f"{RED}{line}{END}" if self._colour else line)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        _write(self._stream, self._erase())
        self._drawn = []

    @property
    def _width(self) -> int:
        """One less than there are, for the cursor."""
        columns = 0
        with suppress(OSError, ValueError):
            columns = os.get_terminal_size(self._stream.fileno()).columns
        return max(columns or shutil.get_terminal_size((DEFAULT_WIDTH, 0)).columns, LEAST_WIDTH) - 1

    def _draw(self, above: str | None = None) -> None:
        erase, width = self._erase(), self._width
        lines = [self._advance.draw(width, fancy=self._is_fancy), self._advance.describe_current(width)]
        self._drawn = [cut(printable(line), width) for line in lines if line]
        _write(self._stream, erase + (f"{above}\n" if above is not None else "") + "\n".join(self._drawn))

    @property
    def _is_fancy(self) -> bool:
        return (getattr(self._stream, "encoding", None) or "").lower().replace("-", "") == "utf8"

    def _erase(self) -> str:
        if not self._drawn:
            return ""
        # A window that has become narrower has broken the lines.
        width = self._width + 1
        rows = sum(max(-(-measure(line) // width), 1) for line in self._drawn)
        return "\r" + (f"\033[{rows - 1}A" if rows > 1 else "") + ERASE_BELOW


def _write(stream: IO[str], text: str) -> None:
    """Results matter more than a display that nobody can see any more."""
    with suppress(OSError, ValueError):
        stream.write(text)
        stream.flush()
