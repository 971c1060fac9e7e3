"""The program's front door: opens at once for those who only want to read the help.

Importing click takes three times as long as starting Python; it happens only when a command is to run.
"""

from __future__ import annotations

import os
import sys

from torchmark.cli.overview import overview

HELP_ARGUMENTS: tuple[list[str], ...] = ([], ["--help"], ["-h"])
OUTPUT_FAILED = 1


def main(arguments: list[str] | None = None) -> int:
    """Run the program; returns the exit code."""
    for stream in (sys.stdout, sys.stderr):
        # A terminal that lacks a character shows a question mark, and everything else.
        getattr(stream, "reconfigure", lambda **_: None)(errors="replace")
    try:
        code = _run(sys.argv[1:] if arguments is None else arguments)
        # A program may be started without standard output.
        if sys.stdout is not None:
            sys.stdout.flush()
    except OSError as error:
        # Whoever read the output has enough of it, or the disk is full. Python would try once more while it exits.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if not isinstance(error, BrokenPipeError):
            print(f"torchmark: {error}", file=sys.stderr)
        return OUTPUT_FAILED
    return code


def _run(arguments: list[str]) -> int:
    if arguments in HELP_ARGUMENTS:
        print(overview())
        return 0
    from torchmark.cli.program import run

    return run(arguments)
