"""Text that steers neither a terminal nor the log of continuous integration, whoever wrote it.

All text that is printed goes through here: names of cases and runs come from files of other people.
"""

from __future__ import annotations

import re

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


def show_lines(text: str) -> str:
    """A text of several lines for a page: nothing is left that is not to be seen.

    >>> show_lines("a\\tb\\n\\u202ec")
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
