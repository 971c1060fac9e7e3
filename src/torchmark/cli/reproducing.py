"""Commands that measure or compare a case of a report again, as a person would type them."""

from __future__ import annotations

import dataclasses
import shlex
from collections.abc import Iterator, Sequence
from enum import Enum
from typing import TypeVar

from torchmark.cli.selecting import DEFAULT_SUITES
from torchmark.define.expression import And, Expression, Not, Word
from torchmark.define.selection import AUTOGRAD, LANGUAGES, RUNTIMES
from torchmark.model.case import Case
from torchmark.model.dossier import Command

# Labels that begin like that of a case are left out by name, if they are no more than these.
MOST_EXCLUDED = 3

Kind = TypeVar("Kind", bound=Enum)


@dataclasses.dataclass(frozen=True)
class Sides:
    """What the sides of a report are called in commands; of a single one, base's are None."""

    head: str
    head_python: str | None = None
    base: str | None = None
    base_python: str | None = None
    store: str = ""

    @property
    def ending(self) -> str:
        """What commands say of the store."""
        return f" --store {shlex.quote(self.store)}" if self.store else ""


def spell_again(sides: Sides) -> tuple[Command, ...]:
    """How to get the whole page again."""
    names = [sides.head, *([sides.base] if sides.base is not None else [])]
    text = " ".join(["torchmark", "report", *map(shlex.quote, names)])
    return (Command("This page again, from the results that are kept:", text + sides.ending),)


def spell_commands(case: Case, paths: Sequence[str], sides: Sides) -> tuple[Command, ...]:
    """How to measure a case again, and where there are two sides, how to compare it. `paths` are all cases' labels."""
    which = " ".join(_select(case, paths))
    suite = case.suite or DEFAULT_SUITES[0]
    return tuple(_list_commands(shlex.quote(suite), which, sides))


def _list_commands(suite: str, which: str, sides: Sides) -> Iterator[Command]:
    if sides.base is None:
        python = f" --python {shlex.quote(sides.head_python)}" if sides.head_python else ""
        yield Command("Measure it again:", f"torchmark run {suite} {which}{python}")
        yield Command("Show what is kept of it:", f"torchmark show {shlex.quote(sides.head)} {which}{sides.ending}")
        return
    if sides.base_python and sides.head_python and sides.base_python != sides.head_python:
        pythons = f"--base {shlex.quote(sides.base_python)} --head {shlex.quote(sides.head_python)}"
        yield Command("Compare it anew, in turns:", f"torchmark ab {suite} {which} {pythons}")
    else:
        yield Command("Measure it again:", f"torchmark run {suite} {which}")
    names = f"{shlex.quote(sides.base)} {shlex.quote(sides.head)}"
    yield Command("Compare what is kept of it:", f"torchmark compare {names} {which}{sides.ending}")


def _select(case: Case, paths: Sequence[str]) -> Iterator[str]:
    """Options that mean this case, and others of its label only where nothing tells them apart."""
    path = join_path(case)
    if path:
        yield f"-k {shlex.quote(str(_name_exactly(path, paths)))}"
    labels = case.autolabels
    yield f"--language {_spell(LANGUAGES, labels.language)}"
    yield f"--runtime {_spell(RUNTIMES, labels.runtime)}"
    yield f"--autograd {_spell(AUTOGRAD, labels.autograd)}"
    yield f"--threads {case.args.num_threads}"


def join_path(case: Case) -> str:
    """A label as expressions find it: as much of it as can be typed, and without blanks at its ends."""
    parts = "".join(c if c.isprintable() else "\n" for c in " / ".join(case.label)).split("\n")
    return max(parts, key=len).strip()


def _name_exactly(path: str, paths: Sequence[str]) -> Expression:
    longer = sorted({other for other in paths if path in other and other != path}, key=len)
    # What holds one that is left out already is left out with it.
    minimal = [one for i, one in enumerate(longer) if not any(short in one for short in longer[:i])]
    if not minimal or len(minimal) > MOST_EXCLUDED:
        return Word(path)
    return And((Word(path), *(Not(Word(other)) for other in minimal)))


def _spell(names: dict[str, Kind], value: Kind) -> str:
    return next(name for name, one in names.items() if one is value)
