"""What a user has to know while things go on: each sentence is written to standard error, once."""

from __future__ import annotations

import contextlib
import sys

_told: set[str] = set()


def tell_once(text: str) -> None:
    """Write a line, unless it has been written before. Nothing fails where it cannot be.

    Names of files are quoted in it, so what is not printable becomes a blank.
    """
    if text in _told or sys.stderr is None:
        return
    _told.add(text)
    with contextlib.suppress(OSError, ValueError):
        line = "".join(c if c.isprintable() else " " for c in text)
        # Perhaps a display stands in the last line of a terminal.
        sys.stderr.write(("\n" if sys.stderr.isatty() else "") + f"torchmark: {line}\n")
        sys.stderr.flush()
