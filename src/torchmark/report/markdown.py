"""Pieces of Markdown tables, as GitHub shows them."""

from __future__ import annotations

from collections.abc import Sequence


def markdown_row(cells: Sequence[str]) -> str:
    """A line of a table, of cells that are Markdown already.

    >>> markdown_row(["a", "---:"])
    '| a | ---: |'
    """
    return f"| {' | '.join(cells)} |"


def escape_markdown(text: str | None) -> str:
    """Text that cannot end its cell or turn into markup.

    >>> print(escape_markdown("a|b\\nc"))
    a\\|b<br>c
    """
    text = (text or "").replace("\\", "\\\\")
    for mark in "|*_`<[":
        text = text.replace(mark, f"\\{mark}")
    return "<br>".join(text.splitlines())
