"""Commands that measure or compare a case of a report again, as a person would type them."""

from __future__ import annotations

import collections
import dataclasses
import shlex
from collections.abc import Collection, Iterable, Iterator, Sequence
from enum import Enum
from typing import TypeVar

from torchmark.define.discovery import DEFAULT_SUITES
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
    force: bool = False
    """Whether they are compared although they are not comparable."""

    @property
    def ending(self) -> str:
        """What commands say of the store."""
        return f" --store {shlex.quote(self.store)}" if self.store else ""


def spell_again(sides: Sides, options: Sequence[str] = ()) -> tuple[Command, ...]:
    """How to get the whole page again, with these options, which are quoted for a shell already."""
    names = [sides.head, *([sides.base] if sides.base is not None else [])]
    text = " ".join(["torchmark", "report", *map(shlex.quote, names), *options])
    return (Command("This page again, from the results that are kept:", text + sides.ending),)


class Labels:
    """The labels of all cases, to name one of them so that no other case is meant."""

    def __init__(self, cases: Iterable[Case]) -> None:
        self._longer = _find_longer({join_path(case) for case in cases} - {""})

    def name_exactly(self, path: str) -> Expression:
        """An expression for this label that leaves out others of which it is a part, if these are few."""
        minimal: list[str] = []
        for other in sorted(self._longer.get(path, ()), key=lambda text: (len(text), text)):
            # What holds one that is left out already is left out with it.
            if not any(short in other for short in minimal):
                minimal.append(other)
            if len(minimal) > MOST_EXCLUDED:
                return Word(path)
        return And((Word(path), *(Not(Word(other)) for other in minimal))) if minimal else Word(path)


def _find_longer(paths: Collection[str]) -> dict[str, list[str]]:
    """For each text those others that it is a part of. Where these are parts of each other, the longer may be missing.

    This is the automaton of Aho and Corasick, whose work grows with the length of all texts together. Looking for each
    text in every other one would grow with the square of their number.
    """
    nodes: list[dict[str, int]] = [{}]
    ends = [""]
    for path in paths:
        node = 0
        for letter in path:
            if letter not in nodes[node]:
                nodes[node][letter] = len(nodes)
                nodes.append({})
                ends.append("")
            node = nodes[node][letter]
        ends[node] = path
    # Of each node, the node of its longest end that is also the beginning of a text, and the longest text that it ends
    # with besides itself.
    fallback, within = [0] * len(nodes), [""] * len(nodes)
    waiting = collections.deque(nodes[0].values())
    while waiting:
        node = waiting.popleft()
        within[node] = ends[fallback[node]] or within[fallback[node]]
        for letter, following in nodes[node].items():
            back = fallback[node]
            while back and letter not in nodes[back]:
                back = fallback[back]
            fallback[following] = nodes[back].get(letter, 0)
            waiting.append(following)
    longer: dict[str, list[str]] = {path: [] for path in paths}
    for path in paths:
        parts, node = set(), 0
        for letter in path:
            node = nodes[node][letter]
            parts.add(within[node] if ends[node] in ("", path) else ends[node])
        for part in parts - {""}:
            longer[part].append(path)
    return longer


def spell_commands(case: Case, labels: Labels, sides: Sides) -> tuple[Command, ...]:
    """How to measure a case again, and where there are two sides, how to compare it. `labels` has all cases."""
    which = " ".join(_select(case, labels))
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
    force = " --force" if sides.force else ""
    yield Command("Compare what is kept of it:", f"torchmark compare {names} {which}{force}{sides.ending}")


def _select(case: Case, labels: Labels) -> Iterator[str]:
    """Options that mean this case, and others of its label only where nothing tells them apart."""
    path = join_path(case)
    if path:
        yield f"-k {shlex.quote(str(labels.name_exactly(path)))}"
    variant = case.autolabels
    yield f"--language {_spell(LANGUAGES, variant.language)}"
    yield f"--runtime {_spell(RUNTIMES, variant.runtime)}"
    yield f"--autograd {_spell(AUTOGRAD, variant.autograd)}"
    yield f"--threads {case.args.num_threads}"


def join_path(case: Case) -> str:
    """A label as expressions find it: as much of it as can be typed, and without blanks at its ends."""
    parts = "".join(c if c.isprintable() else "\n" for c in " / ".join(case.label)).split("\n")
    return max(parts, key=len).strip()


def _spell(names: dict[str, Kind], value: Kind) -> str:
    return next(name for name, one in names.items() if one is value)
