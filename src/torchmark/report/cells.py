"""Texts in columns of a terminal: how wide they are there, cutting and padding."""

from __future__ import annotations

import bisect
import textwrap
from collections.abc import Iterator

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
