"""The standard streams as the program needs them, and the help of the whole program without loading it."""

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


# Each is the click command `command` of the module cmd_<name>; this line describes it in the overview.
COMMANDS = {
    "time": "Time one or more statements; several give a table.",
    "count": "Count the instructions of one or more statements.",
    "fuzz": "Time statements on random inputs, and tell where they differ.",
    "ab": "Compare two builds, or two statements: is one slower?",
    "overrides": "Measure what __torch_function__ costs, or what changed of it.",
    "flame": "Draw a flame graph of a statement or a case.",
    "run": "Measure every case of a suite, and keep the results.",
    "show": "Show the results of a run.",
    "report": "Write a run, or what changed since another, as one HTML page.",
    "compare": "Compare two runs, or two environments of one.",
    "accept": "Accept counts, so that a gate holds later ones against them.",
    "history": "Show how cases changed over the runs that are kept.",
    "selftest": "Measure how far comparisons can be trusted here.",
    "list": "List the benchmarks of a suite, a file or a folder.",
    "runs": "List the runs that are kept.",
    "rm": "Remove runs that are kept.",
    "merge": "Put the runs of several stores into one, shards together.",
    "import": "Take in a run that was exported elsewhere.",
    "export": "Write a run in the format of another program.",
    "cache": "Show or empty the cache of compiled C++.",
    "schema": "Print the JSON Schema of what a command writes with --json.",
    "doctor": "Say what this machine has and lacks for good measurements.",
}


def overview() -> str:
    lines = [f"  {name:<9}  {about}" for name, about in COMMANDS.items()]
    return "\n".join(
        [
            "Usage: torchmark COMMAND [OPTIONS] [ARGUMENTS]",
            "",
            "  Measure PyTorch code: how long it takes, how many instructions, and whether",
            "  the number can be trusted.",
            "",
            "Commands:",
            *lines,
            "",
            "Options:",
            "  --version  Show the version and exit.",
            "  --help     Show this text and exit.",
            "",
            "'torchmark COMMAND --help' tells more of each command. For completion in bash:",
            '  eval "$(_TORCHMARK_COMPLETE=bash_source torchmark)"    (or zsh_source)',
        ]
    )


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
