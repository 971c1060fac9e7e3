"""The standard streams of a program that may be started without some of them, or with a full disk behind them."""

from __future__ import annotations

import fcntl
import io
import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:  # typing takes longer to import than all else here
    from typing import IO

# How a stream that was closed is opened. Input is opened for writing and output for reading, so that using them fails
# and no data vanish silently. Standard error is where that would be reported: what goes there is dropped.
_STREAMS = (("stdin", os.O_WRONLY), ("stdout", os.O_RDONLY), ("stderr", os.O_WRONLY))


def open_closed_streams() -> None:
    """Open those standard streams that are closed. Otherwise the next file to be opened would take their number."""
    for number, (name, flags) in enumerate(_STREAMS):
        if getattr(sys, name) is not None:
            continue
        null = os.open(os.devnull, flags)
        if null != number:
            os.dup2(null, number)
            os.close(null)
        os.set_inheritable(number, True)
        raw = io.FileIO(number, "r" if name == "stdin" else "w", closefd=False)
        raw.name = f"<{name}>"
        buffer = io.BufferedReader(raw) if name == "stdin" else io.BufferedWriter(raw)
        setattr(sys, name, io.TextIOWrapper(buffer, errors="replace", line_buffering=name == "stderr"))


def is_closed(stream: IO[str] | None, unusable: int = os.O_RDONLY) -> bool:
    """Whether this output was closed when the program started; for the input, `unusable` is `os.O_WRONLY`.

    >>> is_closed(None), is_closed(io.StringIO())
    (True, False)
    """
    if stream is None:
        return True
    try:
        return fcntl.fcntl(stream.fileno(), fcntl.F_GETFL) & os.O_ACCMODE == unusable
    except (OSError, ValueError):  # a stream that is not a file
        return False


def discard(stream: IO[str] | None) -> None:
    """Throw away what could not be written to a stream, and all that follows.

    Python would try once more when it exits, complain, and change the exit code.
    """
    try:
        number = -1 if stream is None else stream.fileno()
    except (OSError, ValueError):  # a stream that is not a file
        return
    if number >= 0:
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, number)
        os.close(null)


def flush(stream: IO[str], text: str = "") -> None:
    """Write a text and what a stream still holds, if that is possible."""
    try:
        stream.write(text)
        stream.flush()
    except (OSError, ValueError, AttributeError):  # full, closed, or taken away by the user's code
        discard(stream)
