"""Pieces of Markdown tables, as GitHub shows them."""

from __future__ import annotations

import re
from collections.abc import Sequence

from torchmark.report.printable import printable

# What has a meaning in Markdown, or as a link or a mention on GitHub. What others are escaped with comes first.
_ACTIVE = {
    "\\": "\\\\",
    "&": "&amp;",
    "#": "\\#",
    **{mark: f"\\{mark}" for mark in "|*_`<[>~$"},
    "@": "&#64;",
    "://": "&#58;//",
    "www.": "www&#46;",
}
# What begins a list or a rule where it comes first.
_LEADING = re.compile(r"^(\d*)([-+.)])(?=[\s-]|$)")


def markdown_row(cells: Sequence[str]) -> str:
    """A line of a table, of cells that are Markdown already.

    >>> markdown_row(["a", "---:"])
    '| a | ---: |'
    """
    return f"| {' | '.join(cells)} |"


def escape_markdown(text: str | None) -> str:
    """Text of other people that is shown to the letter: it cannot end its cell, turn into markup or become a link.

    >>> print(escape_markdown("a|b\\nc"), escape_markdown("1. see https://example.org"))
    a\\|b<br>c 1\\. see https&#58;//example.org
    """
    return "<br>".join(_escape_line(printable(line.expandtabs())) for line in (text or "").splitlines())


def _escape_line(line: str) -> str:
    for mark, harmless in _ACTIVE.items():
        line = line.replace(mark, harmless)
    return _LEADING.sub(r"\1\\\2", line)


FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r", "\n", "'")


def guard(text: str) -> str:
    """A text that no spreadsheet takes for a formula.

    >>> guard("=1+1"), guard("'quoted'"), guard("x = 1"), guard("a;=1")
    ("'=1+1", "''quoted'", 'x = 1', "a;'=1")
    """
    text = _INNER_FORMULA.sub(r"\1'", text)
    return f"'{text}" if text.startswith(FORMULA_STARTS) else text


# Quotes in a text are doubled: those before a formula may be read as an empty cell in quotes.
_INNER_FORMULA = re.compile(r"""([;\n])(?=["']*[-=+@]|')""")
