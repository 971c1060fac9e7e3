"""Text for terminals: without control characters, cut and padded by the width of its letters; a spinner."""

from __future__ import annotations

import bisect
import contextlib
import re
import sys
import textwrap
from collections.abc import Iterator
from contextlib import AbstractContextManager
from typing import Any

# The styles that tables of ours have: bold, dim, one of the usual colours, and their end. Nothing else is let through:
# other sequences move the cursor, hide text, or write to the clipboard.
_STYLE = r"\033\[(?:[0-2]|[39][0-7])?(?:;(?:[0-2]|[39][0-7]))*m"
_STYLES = re.compile(f"({_STYLE})")
# GitHub takes a line for a command if it begins with two colons, with or without blanks before them.
_COLONS = re.compile(rf"((?:\s|{_STYLE})*:)(?=:)")
# GitHub (##[command]), Azure Pipelines (##vso[command]) and TeamCity (##teamcity[command]) find these anywhere in a
# line.
_HASHES = re.compile(r"##(?=\w*\[)")


def printable(text: str) -> str:
    """A text on one line, in which nothing but letters and blanks is left; what is not to be seen becomes a blank.

    >>> printable("a\\x1b[31m\\tb")
    'a [31m b'
    """
    return text if text.isprintable() else "".join(c if c.isprintable() else " " for c in text)


def printable_lines(text: str, *, styled: bool = False) -> str:
    """A text of several lines as it may be printed: printable, and without lines that a log takes for commands.

    `styled` text keeps the styles that tables have.

    >>> printable_lines("a\\tb\\n\\u202ec")
    'a       b\\n c'
    >>> printable_lines("no torch\\n::error::no torch")
    'no torch\\n: :error::no torch'
    """
    return "\n".join(_print_line(line.expandtabs(), styled=styled) for line in text.split("\n"))


def format_lines(text: str) -> str:
    """A text of several lines for a page: nothing is left that is not to be seen.

    >>> format_lines("a\\tb\\n\\u202ec")
    'a       b\\n c'
    """
    return "\n".join(printable(line.expandtabs()) for line in text.splitlines())


def escape_json(text: str) -> str:
    """The same JSON, which is in ASCII already, as it may be printed: the escaped characters are only within strings.

    >>> escape_json('["##[error]"]')
    '["#\\\\u0023[error]"]'
    """
    return text.replace("##", "#\\u0023").replace("\x7f", "\\u007f")


def _print_line(line: str, *, styled: bool) -> str:
    if not line.isprintable():
        # With one group in the pattern, every other part is a style.
        parts = _STYLES.split(line) if styled else [line]
        line = "".join(part if i % 2 else printable(part) for i, part in enumerate(parts))
    return _HASHES.sub("## ", _COLONS.sub(r"\1 ", line, count=1) if _COLONS.match(line) else line)


def count(n: int, noun: str) -> str:
    """A number with its noun, plural where it is one.

    >>> count(1, "thread"), count(2, "thread")
    ('1 thread', '2 threads')
    """
    return f"{n} {noun}" if n == 1 else f"{n} {noun}s"


def one_line(text: str) -> str:
    """A text as far as it fits on a line.

    >>> one_line("x = 1"), one_line("x = 1\\ny = 2")
    ('x = 1', 'x = 1 ...')
    """
    first, *rest = text.splitlines() or [""]
    return f"{first} ..." if rest else first


ELLIPSIS = "…"
# Longer than any word that is read. Breaking a word into lines copies the rest of it for each line: gigabytes for a
# word of a megabyte.
LONGEST_WORD = 10_000


def measure(text: str) -> int:
    """How many columns a text takes; some characters take two, and some none.

    >>> measure("add"), measure("加算")
    (3, 4)
    """
    if _is_plain(text):
        return len(text)
    from rich.cells import cell_len

    return cell_len(text)


def cut(text: str, width: int) -> str:
    """A text in at most so many columns, with dots where its end is missing.

    >>> cut("transpose", 6), cut("view", 6)
    ('trans…', 'view')
    """
    if measure(text) <= width:
        return text
    return _set_width(text, width - 1).rstrip() + ELLIPSIS if width > 0 else ""


def cut_middle(text: str, width: int) -> str:
    """The same, with the dots in the middle: of a name, the end tells most.

    >>> cut_middle("Pointwise / Math / add", 13)
    'Pointw… / add'
    """
    if measure(text) <= width:
        return text
    if width < 3:
        return cut(text, width)
    head = _set_width(text, (width - 1) // 2).rstrip()
    room = width - 1 - measure(head)
    # By halves: one character after the other would measure a long text once for each of its characters.
    start = bisect.bisect_left(range(len(text)), True, key=lambda i: measure(text[i:]) <= room)
    return f"{head}{ELLIPSIS}{text[start:]}"


def pad(text: str, width: int, *, right: bool = False) -> str:
    """A text with blanks behind it, or before it, up to a width.

    >>> pad("加", 4, right=True)
    '  加'
    """
    blanks = " " * max(width - measure(text), 0)
    return blanks + text if right else text + blanks


def wrap(text: str, width: int, hanging: int = 0) -> list[str]:
    """A text on as many lines as it takes; all but the first are indented."""
    # Where characters take two columns, half as many of them are sure to fit.
    narrow = width if measure(text) == len(text) else max(width // 2, hanging + 2)
    words = " ".join(part for word in text.split(" ") for part in _break_word(word))
    # Before a word that it breaks at the very end of a line, textwrap leaves a blank.
    lines = textwrap.wrap(words, narrow, subsequent_indent=" " * hanging, break_on_hyphens=False)
    return [line.rstrip() for line in lines]


def _break_word(word: str) -> Iterator[str]:
    yield word[:LONGEST_WORD]
    for start in range(LONGEST_WORD, len(word), LONGEST_WORD):
        yield word[start : start + LONGEST_WORD]


def _is_plain(text: str) -> bool:
    """Whether each character takes one column for sure. Only other texts need rich, which takes 20 ms to load."""
    return text.isascii() and text.isprintable()


def _set_width(text: str, width: int) -> str:
    if _is_plain(text):
        return text[: max(width, 0)].ljust(width)
    from rich.cells import set_cell_size

    return set_cell_size(text, width)


COMPILING = "Compiling C++ (once; takes some ten seconds)"


def show_waiting(text: str) -> AbstractContextManager[Any]:
    """A spinner with a text on standard error, for as long as the context lasts."""
    if not (sys.stderr is not None and sys.stderr.isatty()):
        return contextlib.nullcontext()
    # Loaded only where it is seen.
    from rich.console import Console
    from rich.text import Text

    # As text: names of cases may have brackets, which rich takes for styles and links.
    return Console(stderr=True).status(Text(printable(text)))
