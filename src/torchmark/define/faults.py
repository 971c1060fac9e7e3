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
from typing import NoReturn, TypeAlias

from torchmark.errors import DefinitionError

_Faults: TypeAlias = "list[tuple[tuple[str, ...], DefinitionError]]"
# The file of the suite that is being loaded, and its faults.
_gathering: contextvars.ContextVar[tuple[str, _Faults] | None] = contextvars.ContextVar(
    "torchmark_gathering", default=None
)


@dataclasses.dataclass(frozen=True)
class Broken:
    """Stands where a group would, had it been well defined; `line` is where in the suite's file it was to be made."""

    error: DefinitionError
    line: int | None = None

    def __getattr__(self, name: str) -> NoReturn:
        # A suite that goes on to work with the group is told what is wrong with it.
        raise AttributeError(name) if name.startswith("__") else self.error


class BrokenText(str):
    """Stands for a text that could not be made; a group made of it is broken."""

    error: DefinitionError

    def __new__(cls, error: DefinitionError) -> BrokenText:
        """An empty text that remembers why."""
        self = super().__new__(cls, "")
        self.error = error
        return self


@contextlib.contextmanager
def gather(file: str) -> Iterator[_Faults]:
    """Within this, faults do not raise. Those that stand in no group's place are in the list, with their labels."""
    faults: _Faults = []
    token = _gathering.set((file, faults))
    try:
        yield faults
    finally:
        _gathering.reset(token)


def is_gathering() -> bool:
    """Whether a suite is being loaded."""
    return _gathering.get() is not None


def report(label: tuple[str, ...], error: DefinitionError) -> None:
    """A fault that stands in no group's place: noted where faults are gathered, and else raised."""
    gathering = _gathering.get()
    if gathering is None:
        raise error
    gathering[1].append((label, error))


def break_off(error: DefinitionError) -> Broken:
    """What to put in a group's place; raises the error unless faults are gathered."""
    gathering = _gathering.get()
    if gathering is None:
        raise error
    return Broken(error, _line_of_definition(gathering[0]))


def _line_of_definition(file: str) -> int | None:
    """The line of the suite that asked for the group, if only by way of a function in another file."""
    frame: FrameType | None = sys._getframe()
    while frame is not None and frame.f_code.co_filename != file:
        frame = frame.f_back
    return frame.f_lineno if frame is not None else None
