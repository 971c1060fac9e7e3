"""The program's front door: opens at once for those who only want to read the help.

Importing click takes three times as long as starting Python; it happens only when a command is to run.
"""

from __future__ import annotations

import sys

from torchmark.cli.overview import overview

HELP_ARGUMENTS: tuple[list[str], ...] = ([], ["--help"], ["-h"])


def main(arguments: list[str] | None = None) -> int:
    """Run the program; returns the exit code."""
    arguments = sys.argv[1:] if arguments is None else arguments
    if arguments in HELP_ARGUMENTS:
        print(overview())
        return 0
    from torchmark.cli.program import run

    return run(arguments)
