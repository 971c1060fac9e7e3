"""Text for terminals: without control characters, cut and padded by the width of its letters; a spinner."""

from __future__ import annotations

import contextlib
import functools
import itertools
import re
import sys
import unicodedata
from collections.abc import Hashable, Iterable, Iterator
from contextlib import AbstractContextManager
from typing import Any, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V", bound=Hashable)

# The styles that tables of ours have: bold, dim, one of the usual colours, and their end. Nothing else is let through:
# other sequences move the cursor, hide text, or write to the clipboard.
_STYLE = r"\033\[(?:[0-2]|[39][0-7])?(?:;(?:[0-2]|[39][0-7]))*m"
_STYLES = re.compile(f"({_STYLE})")
# GitHub takes a line for a command if it begins with two colons, with or without blanks before them. Styles do not
# count: what reads the log may have removed them.
_COLONS = re.compile(rf"((?:\s|{_STYLE})*:)(?=(?:{_STYLE})*:)")
# GitHub (##[command]), Azure Pipelines (##vso[command]) and TeamCity (##teamcity[command]) find these anywhere in a
# line.
_HASHES = re.compile(rf"(#(?:{_STYLE})*#)(?=(?:\w|{_STYLE})*\[)")


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
    return _HASHES.sub(r"\1 ", _COLONS.sub(r"\1 ", line, count=1) if _COLONS.match(line) else line)


def count(n: int, noun: str) -> str:
    """A number with its noun, plural where it is one.

    >>> count(1, "thread"), count(2, "thread")
    ('1 thread', '2 threads')
    """
    return f"{n} {noun}" if n == 1 else f"{n} {noun}s"


def group(pairs: Iterable[tuple[K, V]]) -> dict[K, list[V]]:
    """The values of each key, each once, in the order in which they come.

    >>> group([("no", "base"), ("bad", "base"), ("no", "head")])
    {'no': ['base', 'head'], 'bad': ['base']}
    """
    groups: dict[K, dict[V, None]] = {}
    for key, value in pairs:
        groups.setdefault(key, {})[value] = None
    return {key: list(values) for key, values in groups.items()}


def one_line(text: str) -> str:
    """A text as far as it fits on a line.

    >>> one_line("x = 1"), one_line("x = 1\\ny = 2")
    ('x = 1', 'x = 1 ...')
    """
    first, *rest = text.splitlines() or [""]
    return f"{first} ..." if rest else first


ELLIPSIS = "…"
DEFAULT_WIDTH = 80
# What is narrower is taken to be this wide: such a terminal breaks lines by itself.
LEAST_WIDTH = 40
BOLD, DIM, END = "\033[1m", "\033[2m", "\033[0m"
RED, GREEN, YELLOW, BLUE = "\033[31m", "\033[32m", "\033[33m", "\033[34m"
LIGHT_RED, LIGHT_GREEN = "\033[91m", "\033[92m"


def paint(text: str, style: str, colour: bool) -> str:
    return f"{style}{text}{END}" if colour and style else text


def measure(text: str) -> int:
    """How many columns a text takes: as many as its characters, so that parts take no more than the whole.

    >>> measure("add"), measure("加算"), measure("e\u0301")
    (3, 4, 1)
    """
    return len(text) if text.isascii() else sum(map(_width_of, text))


# Terminals disagree on whether the character before it takes one column more. The line has to fit all of them.
EMOJI_STYLE = "\ufe0f"


@functools.cache
def _width_of(character: str) -> int:
    if unicodedata.category(character) in ("Mn", "Me", "Cc", "Cf"):
        return int(character == EMOJI_STYLE)
    return 2 if unicodedata.east_asian_width(character) in ("W", "F") else 1


def _count_fitting(characters: Iterable[str], width: int) -> int:
    sums = itertools.accumulate(map(_width_of, characters))
    return sum(1 for _ in itertools.takewhile(lambda taken: taken <= width, sums))


def cut(text: str, width: int) -> str:
    """A text in at most so many columns, with dots where its end is missing.

    >>> cut("transpose", 6), cut("view", 6)
    ('trans…', 'view')
    """
    if measure(text) <= width:
        return text
    return text[: _count_fitting(text, width - 1)].rstrip() + ELLIPSIS if width > 0 else ""


def cut_middle(text: str, width: int) -> str:
    """The same, with the dots in the middle: of a name, the end tells most.

    >>> cut_middle("Pointwise / Math / add", 13)
    'Pointw… / add'
    """
    if measure(text) <= width:
        return text
    if width < 3:
        return cut(text, width)
    head = text[: _count_fitting(text, (width - 1) // 2)].rstrip()
    return f"{head}{ELLIPSIS}{text[len(text) - _count_fitting(reversed(text), width - 1 - measure(head)) :]}"


def pad(text: str, width: int, *, right: bool = False) -> str:
    """A text with blanks behind it, or before it, up to a width.

    >>> pad("加", 4, right=True)
    '  加'
    """
    blanks = " " * max(width - measure(text), 0)
    return blanks + text if right else text + blanks


def wrap(text: str, width: int, hanging: int = 0) -> list[str]:
    """A text on as many lines as it takes; all but the first are indented. Only words that fit no line are broken.

    No line begins with the sign of the number before it.

    >>> wrap("a text of words", 9, hanging=2)
    ['a text of', '  words']
    """
    lines, room, later = [""], width, width - hanging
    for token in _TOKENS.findall(text.expandtabs().translate(_LINE_ENDS)):
        size = measure(token)
        if size <= room:
            lines[-1] += token
            room -= size
        elif token.startswith(" "):
            # The next line begins with a word.
            room = 0
        else:
            first, *more = ["", token] if size <= later else _break_word(token, room, later)
            lines[-1] += first
            lines += [" " * hanging + piece for piece in more]
            room = later - measure(more[-1])
    return [line for line in map(str.rstrip, lines) if line]


_TOKENS = re.compile(" +|[^ ]+(?: %[^ ]*)*")
_LINE_ENDS = dict.fromkeys(map(ord, "\n\r\v\f"), " ")


def _break_word(word: str, room: int, later: int) -> Iterator[str]:
    """Pieces, the first of which fits into the room, and all others into what there is later."""
    start = taken = 0
    for i, character in enumerate(word):
        if taken + _width_of(character) > room:
            yield word[start:i]
            start, taken, room = i, 0, later
        taken += _width_of(character)
    yield word[start:]


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
