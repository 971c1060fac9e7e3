"""Faults in definitions: raised at once where a program defines a benchmark, gathered where a suite is loaded.

While a suite is loaded, a group that is not well defined becomes a `Broken` value in its place: it hides no others, and
its label can be told.
"""

from __future__ import annotations

import contextlib
import contextvars
import dataclasses
import sys
from collections.abc import Iterator
from types import FrameType

from torchmark.errors import DefinitionError

_gathering: contextvars.ContextVar[list[tuple[tuple[str, ...], DefinitionError]] | None] = contextvars.ContextVar(
    "torchmark_gathering", default=None
)


@dataclasses.dataclass(frozen=True)
class Broken:
    """Stands where a group would, had it been well defined; `line` is where in the suite's file it was to be made."""

    error: DefinitionError
    line: int | None = None


class BrokenText(str):
    """Stands for a text that could not be made; a group made of it is broken."""

    error: DefinitionError

    def __new__(cls, error: DefinitionError) -> BrokenText:
        """An empty text that remembers why."""
        self = super().__new__(cls, "")
        self.error = error
        return self


@contextlib.contextmanager
def gather() -> Iterator[list[tuple[tuple[str, ...], DefinitionError]]]:
    """Within this, faults do not raise. Those that stand in no group's place are in the list, with their labels."""
    faults: list[tuple[tuple[str, ...], DefinitionError]] = []
    token = _gathering.set(faults)
    try:
        yield faults
    finally:
        _gathering.reset(token)


def is_gathering() -> bool:
    """Whether a suite is being loaded."""
    return _gathering.get() is not None


def report(label: tuple[str, ...], error: DefinitionError) -> None:
    """A fault that stands in no group's place: noted where faults are gathered, and else raised."""
    faults = _gathering.get()
    if faults is None:
        raise error
    faults.append((label, error))


def break_off(error: DefinitionError) -> Broken:
    """What to put in a group's place; raises the error unless faults are gathered."""
    if not is_gathering():
        raise error
    return Broken(error, _line_of_definition())


def _line_of_definition() -> int | None:
    """The line outside this package that asked for the group."""
    frame: FrameType | None = sys._getframe()
    while frame is not None and frame.f_globals.get("__name__", "").startswith("torchmark.define."):
        frame = frame.f_back
    return frame.f_lineno if frame is not None else None
