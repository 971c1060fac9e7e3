"""Faults in definitions: raised at once where a program defines a benchmark, gathered where a suite is loaded.

While a suite is loaded, a group that is not well defined becomes a `Broken` value in its place: it hides no others, and
its label can be told.
"""

from __future__ import annotations

import contextlib
import contextvars
import dataclasses
import functools
import sys
from collections.abc import Callable, Iterator
from types import FrameType
from typing import NoReturn, ParamSpec, TypeVar, cast

from torchmark.errors import DefinitionError


@dataclasses.dataclass(frozen=True)
class Gathered:
    """What is wrong with a suite: faults that stand in no group's place, with their labels, and the lines of others.

    Some of those others may have got lost, if the suite does not use the group or text that they stand for.
    """

    file: str
    faults: list[tuple[tuple[str, ...], DefinitionError]] = dataclasses.field(default_factory=list)
    lines: dict[DefinitionError, int | None] = dataclasses.field(default_factory=dict)


_gathering: contextvars.ContextVar[Gathered | None] = contextvars.ContextVar("torchmark_gathering", default=None)


@dataclasses.dataclass(frozen=True)
class Broken:
    """Stands where a group would, had it been well defined."""

    error: DefinitionError

    def keys(self) -> tuple[tuple[()]]:
        """So that a suite can spread it like the dictionary of a good one: `{**GroupedVariants(...)}`."""
        return ((),)

    def __getitem__(self, key: tuple[()]) -> Broken:
        return self

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
def gather(file: str) -> Iterator[Gathered]:
    """Within this, faults do not raise: they are in what it gives."""
    gathered = Gathered(file)
    token = _gathering.set(gathered)
    try:
        yield gathered
    finally:
        _gathering.reset(token)


def report(label: tuple[str, ...], error: DefinitionError) -> None:
    """A fault that stands in no group's place: noted where faults are gathered, and else raised."""
    gathered = _gathering.get()
    if gathered is None:
        raise error
    gathered.faults.append((label, error))


P = ParamSpec("P")
R = TypeVar("R")


def breakable(make: Callable[P, R]) -> Callable[P, R]:
    """For what makes groups: a fault, also in how it is called, breaks what it makes and nothing else."""

    @functools.wraps(make)
    def wrapper(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return make(*args, **kwargs)
        except DefinitionError as error:
            return cast(R, break_off(error))
        except TypeError as error:
            # Raised by the call itself, and not somewhere within.
            if _gathering.get() is None or error.__traceback__ is None or error.__traceback__.tb_next is not None:
                raise
            return cast(R, break_off(DefinitionError(str(error))))

    return wrapper


def break_off(error: DefinitionError) -> Broken:
    """What to put in a group's place; raises the error unless faults are gathered."""
    gathered = _gathering.get()
    if gathered is None:
        raise error
    gathered.lines[error] = _line_of_definition(gathered.file)
    return Broken(error)


def _line_of_definition(file: str) -> int | None:
    """The line of the suite that asked for the group, if only by way of a function in another file."""
    frame: FrameType | None = sys._getframe()
    while frame is not None and frame.f_code.co_filename != file:
        frame = frame.f_back
    return frame.f_lineno if frame is not None else None
