"""Reads `callgrind.out`: costs by function and calls between functions, in one pass over the lines; and tidies a file
that is kept for other programs.

The format is the one in Valgrind's manual: names are written once and referred to by number, a `calls=` line is
followed by the cost of those calls, and positions (which are skipped) may be relative. Parts in one file are added up.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from torchmark.errors import StoreError
from torchmark.model.costs import Call, Costs, Function, Profile, add_calls

NEWEST_VERSION = 1
# Counts are kept as 64 bits with a sign.
MOST = 2**63
TRIGGER = "Trigger: Client Request: "
# What stands before the trigger: versions, a process number, and a command line of a user's own length.
HEADER_LENGTH = 20_000

_COMMAND = re.compile(r"^cmd: *(.*?)( -c .*)?$", re.MULTILINE)
_OPEN_CALL = re.compile(r"^calls=0(?=\s)", re.MULTILINE)


def read_profile(path: Path) -> Profile:
    """The profile in a file."""
    with path.open(errors="replace") as lines:
        return parse_profile(lines)


def read_trigger(text: str) -> str | None:
    """The text that was given with the request for a profile, without reading on."""
    _, found, after = text[:HEADER_LENGTH].partition(f"desc: {TRIGGER}")
    return after.partition("\n")[0] if found else None


def tidy_for_other_programs(text: str) -> str:
    """A file of a counting worker as `callgrind_annotate` and KCachegrind read it rightly.

    Callgrind writes 0 calls of a function that was entered before counting began and has not returned.
    callgrind_annotate takes the line after that for the caller's own cost, so such a call is written as one. Costs stay
    as they are. The command loses the source text that the worker starts with.
    """
    return _OPEN_CALL.sub("calls=1", _COMMAND.sub(r"cmd: \1 (a counting process of torchmark)", text))


def parse_profile(lines: Iterable[str], *, must_be_complete: bool = False) -> Profile:
    """The profile in these lines; StoreError says which line is not what it should be.

    Callgrind ends each part with its totals. Where there are any, they must agree; `must_be_complete` demands them.
    """
    reader = _Reader()
    try:
        reader.read(lines)
        profile = reader.finish()
    except (ValueError, KeyError, IndexError) as error:
        raise StoreError(f"This is no profile of Callgrind's: line {reader.line_number} is unexpected.") from error
    if not reader.events:
        raise StoreError("This is no profile of Callgrind's: it does not say which events it counts.")
    if reader.totals is None:
        if must_be_complete:
            raise StoreError("This profile of Callgrind's is cut off: its totals are missing.")
    elif profile.totals() != reader.totals:
        raise StoreError(f"The functions of this profile add up to {profile.totals()}, its totals are {reader.totals}.")
    return profile


class _Reader:
    """The state between lines. Functions are numbered while reading; costs are lists, one number an event."""

    def __init__(self) -> None:
        self.line_number = 0
        self.events: tuple[str, ...] = ()
        self.totals: Costs | None = None
        self._positions = 1
        self._trigger: str | None = None
        # Compressed names. Callees share them with the functions, files and binaries that are listed themselves.
        self._binaries: dict[str, str] = {}
        self._files: dict[str, str] = {}
        self._names: dict[str, str] = {}
        self._indices: dict[tuple[str, str, str], int] = {}
        self._exclusive: list[list[int]] = []
        self._edges: dict[tuple[int, int], list[int]] = {}

    def read(self, lines: Iterable[str]) -> None:
        """All lines. Long, because a profile has tens of thousands of them and each call would count."""
        binary = file = name = callee_name = ""
        callee_binary: str | None = None
        callee_file: str | None = None
        current = -1
        costs: list[int] = []
        # How many calls the next costs are of; also 0, for one that had not returned yet.
        pending: int | None = None
        single = False
        for self.line_number, line in enumerate(lines, 1):
            first = line[0]
            if first in "0123456789+-*":
                fields = line.split()
                values = fields[self._positions :]
                if pending is not None:
                    index = self._number(callee_file or file, callee_name, callee_binary or binary)
                    self._add_call(current, index, pending, values)
                    pending = callee_file = callee_binary = None
                elif single and len(values) == 1:
                    costs[0] += int(values[0])
                else:
                    _add(costs, values)
            elif first == "f":
                kind, _, text = line.partition("=")
                if kind == "fn":
                    name = _expand(self._names, text)
                else:  # fl, or fi and fe for code that was inlined from another file
                    file = _expand(self._files, text)
                    if kind == "fl":
                        continue  # the function follows
                current = self._number(file, name, binary)
                costs = self._exclusive[current]
            elif line.startswith("cfn="):
                callee_name = _expand(self._names, line[4:])
            elif line.startswith("calls="):
                pending = int(line[6:].split()[0])
            elif line.startswith(("cfi=", "cfl=")):
                callee_file = _expand(self._files, line[4:])
            elif line.startswith("cob="):
                callee_binary = _expand(self._binaries, line[4:])
            elif line.startswith("ob="):
                binary = _expand(self._binaries, line[3:])
            elif first not in "#\n":
                self._take_header(line)
                single = len(self.events) == 1

    def _take_header(self, line: str) -> None:
        key, separator, value = line.partition(":")
        value = value.strip()
        if key == "version" and int(value) > NEWEST_VERSION:
            raise ValueError(value)
        if key == "positions":
            self._positions = len(value.split())
        elif key == "events":
            events = tuple(value.split())
            if self.events not in ((), events):
                raise ValueError("two parts count different events")
            self.events = events
        elif key == "totals":
            part = [int(number) for number in value.split()]
            part += [0] * (len(self.events) - len(part))
            self.totals = tuple(map(sum, zip(part, self.totals or (0,) * len(part), strict=True)))
        elif key == "desc" and value.startswith(TRIGGER):
            self._trigger = value[len(TRIGGER) :]
        elif line.startswith("jfi="):
            _expand(self._files, line[4:])
        elif line.startswith("jfn="):
            _expand(self._names, line[4:])
        elif not separator and not line.startswith(("jump=", "jcnd=")) and line.strip():
            raise ValueError(line)

    def _number(self, file: str, name: str, binary: str) -> int:
        key = (file, name, binary)
        index = self._indices.get(key)
        if index is None:
            index = self._indices[key] = len(self._exclusive)
            self._exclusive.append([0] * len(self.events))
        return index

    def _add_call(self, caller: int, callee: int, count: int, values: list[str]) -> None:
        edge = self._edges.get((caller, callee))
        if edge is None:
            edge = self._edges[caller, callee] = [0] * (len(self.events) + 1)
        edge[0] += count
        for i, value in enumerate(values, 1):
            edge[i] += int(value)

    def finish(self) -> Profile:
        """The profile; ValueError if a number cannot be a count."""
        for numbers in (*self._exclusive, *self._edges.values()):
            if not all(0 <= number < MOST for number in numbers):
                raise ValueError(numbers)
        functions = [Function(*key) for key in self._indices]
        calls = ((caller, callee, costs) for (caller, callee), (_, *costs) in self._edges.items())
        inclusive = add_calls(self._exclusive, calls)
        return Profile(
            self.events,
            _by_function(functions, self._exclusive),
            _by_function(functions, inclusive),
            {
                (functions[caller], functions[callee]): Call(count, tuple(costs))
                for (caller, callee), (count, *costs) in self._edges.items()
            },
            self._trigger,
        )


def _add(costs: list[int], values: list[str]) -> None:
    """Trailing zeros may be left out."""
    for i, value in enumerate(values):
        costs[i] += int(value)


def _expand(known: dict[str, str], text: str) -> str:
    """A name, which may be `(number) name` the first time and `(number)` after that."""
    text = text.rstrip("\n")
    if not text.startswith("("):
        return text
    number, closed, name = text.partition(")")
    if not closed or not number[1:].isdigit():
        return text
    if name:
        known[number] = name.lstrip()
    return known[number]


def _by_function(functions: list[Function], costs: list[list[int]]) -> dict[Function, Costs]:
    return {function: tuple(cost) for function, cost in zip(functions, costs, strict=True)}
