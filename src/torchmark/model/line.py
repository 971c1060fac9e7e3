"""Values on one line, as `repr` shows them: a list of results is read line by line."""

from __future__ import annotations

import dataclasses
import enum
import unicodedata
from typing import Any

# A terminal of usual width shows it without wrapping, with a prompt before it.
LONGEST = 100
# A text within a value, such as a statement, is cut to this, so that what follows it is shown too.
LONGEST_TEXT = 40
ELLIPSIS = "…"


def fit_line(text: str, longest: int = LONGEST) -> str:
    """A text on one line of at most so many columns, with dots where its end is missing.

    >>> fit_line("x = 1\\ny = 2"), fit_line("transpose", 6)
    ('x = 1 y = 2', 'trans…')
    """
    # No more than this can be shown, and a text may be very long.
    line = " ".join("".join(c if c.isprintable() else " " for c in text[: 4 * longest]).split())
    if _measure(line) <= longest:
        return line
    while _measure(line) >= longest:
        line = line[:-1]
    return line.rstrip() + ELLIPSIS


def show_fields(value: Any) -> str:
    """A dataclass as a call that would make it, without what is as usual; long texts are cut.

    >>> @dataclasses.dataclass
    ... class Task:
    ...     stmt: str
    ...     threads: int = 1
    >>> show_fields(Task("x + y")), show_fields(Task("x", 2))
    ("Task('x + y')", "Task('x', threads=2)")
    """
    parts = []
    for number, field in enumerate(dataclasses.fields(value)):
        one = getattr(value, field.name)
        if field.default is not dataclasses.MISSING and one == field.default:
            continue
        text = fit_line(str(one) if isinstance(one, enum.Enum) else repr(one), LONGEST_TEXT)
        parts.append(text if number == 0 else f"{field.name}={text}")
    return name_value(value, ", ".join(parts))


def name_value(value: object, text: str) -> str:
    """The name of a value's class, with a text in brackets after it, on one line."""
    name = type(value).__name__
    return f"{name}({fit_line(text, LONGEST - len(name) - 2)})"


def _measure(text: str) -> int:
    """How many columns a terminal needs; the characters of some scripts take two."""
    return len(text) if text.isascii() else sum(1 + (unicodedata.east_asian_width(c) in "WF") for c in text)
