"""From what a compiler or linker says about a file to what it says about each snippet."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from torchmark.native.render import PART, SYMBOL

# file:line:column: error: text. Columns are missing now and then.
_HEADER = re.compile(
    r"^(?P<file>[^\s:][^:\n]*):(?P<line>\d+):(?:(?P<column>\d+):)? "
    r"(?P<kind>fatal error|error|internal compiler error|sorry, unimplemented|warning|note): (?P<text>.*)$"
)
# What precedes an error and belongs to it: where the compiler was when it found it.
_CONTEXT = re.compile(
    r"^In file included from |^\s+from |: In [\w ]+|: In instantiation of |required (?:from|by)|: At global scope"
    r"|: in function |^In [\w ]+ inlined from"
)
_UNDEFINED = re.compile(r"undefined reference to [`'\"](?P<symbol>[^'\"]+)['\"]|undefined symbol: (?P<other>.+)$")
# Those of the interpreter, which are there when a library is loaded into it.
_OF_PYTHON = re.compile(r"_?Py[A-Z_]|_Py_")

_OWN_NAME = re.compile(r"(?:void )?torchmark_function_\d+(?:\([^()]*(?:\([^()]*\)[^()]*)*\))?")
_EMPTY_WORDS = re.compile(
    r"^\d+ (?:error|warning)s?(?: and \d+ (?:error|warning)s?)? generated\.$"
    r"|: In (?:lambda )?function .void torchmark_function_"
)

# A message about templates can be hundreds of lines; the first of them tell.
LONGEST_MESSAGE_LINES = 40
MOST_ERRORS = 3

NAMES = {"stmt": "<stmt>", "setup": "<setup>", "global": "<global_setup>", "glue": "<torchmark>"}


class Place(NamedTuple):
    """A place in one part of a snippet."""

    part: str
    line: int
    column: int | None


class Complaint(NamedTuple):
    """One error: of which snippet it is, by number, if that can be told; where; and what the compiler says."""

    snippet: int | None
    place: Place | None
    summary: str
    text: str


def read_complaints(output: str) -> list[Complaint]:
    """The errors in what a compiler wrote, in its order."""
    return [complaint for group in _group(output) if (complaint := _read(group)) is not None]


def _group(output: str) -> Iterator[list[str]]:
    """One list of lines an error, with its context before it and its notes behind it."""
    group: list[str] = []
    has_error = False
    pending: list[str] = []
    for line in output.splitlines():
        header = _HEADER.match(line)
        if header and header["kind"] not in ("note", "warning"):
            if has_error:
                yield group
                group = []
            group += [*pending, line]
            pending, has_error = [], True
        elif header is None and _CONTEXT.search(line):
            pending.append(line)
        else:
            # A note, an excerpt, or something that stands alone.
            group += [*pending, line]
            pending = []
    if has_error:
        yield [*group, *pending]


def _read(group: list[str]) -> Complaint | None:
    index, header = next(((i, found) for i, line in enumerate(group) if (found := _HEADER.match(line))
                          and found["kind"] not in ("note", "warning")), (0, None))  # fmt: skip
    if header is None:
        return None
    summary = header["text"]
    own = PART.search(header["file"])
    column = int(header["column"]) if header["column"] else None
    if own:
        return Complaint(int(own[1]), Place(own[2], int(header["line"]), column), summary, "\n".join(group))
    # In a header, or in what the library makes of a template: on whose behalf, the lines around tell; the last of those
    # before the error is where the user's own code is.
    for line in (*reversed(group[:index]), *group[index + 1 :]):
        if found := re.search(rf"(?:{PART.pattern}):(\d+)(?::(\d+))?", line):
            place = Place(found[2], int(found[3]), int(found[4]) if found[4] else None)
            return Complaint(int(found[1]), place, summary, "\n".join(group))
        if found := PART.search(line):
            return Complaint(int(found[1]), None, summary, "\n".join(group))
    return Complaint(None, None, summary, "\n".join(group))


class Undefined(NamedTuple):
    """A name that a linker did not find, and the function that calls it, if that is a snippet's."""

    key: str | None
    symbol: str


def read_undefined(output: str) -> list[Undefined]:
    """The names that a linker misses, Python's own left out: they are found when the library is loaded."""
    found: list[Undefined] = []
    key: str | None = None
    for line in output.splitlines():
        if "in function" in line or "referenced by" in line:
            symbol = SYMBOL.search(line)
            key = symbol[1] if symbol else None
        if match := _UNDEFINED.search(line):
            name = match["symbol"] or match["other"]
            if not _OF_PYTHON.match(name):
                found.append(Undefined(key, name))
    return list(dict.fromkeys(found))


def for_the_user(text: str) -> str:
    """A message with the names that the user knows, and of bearable length."""
    lines = PART.sub(lambda match: NAMES[match[2]], text).splitlines()
    # "In function 'void torchmark_function_0(...)':" says nothing to anyone, nor does clang's "1 error generated."
    lines = [line for line in lines if not _EMPTY_WORDS.search(line)]
    lines = [_OWN_NAME.sub("the snippet", line) for line in lines]
    if len(lines) > LONGEST_MESSAGE_LINES:
        lines = [*lines[:LONGEST_MESSAGE_LINES], f"... ({len(lines) - LONGEST_MESSAGE_LINES} more lines)"]
    return "\n".join(lines)
