"""The program's front door: knows the commands and nothing else, so that help appears at once.

Importing click takes three times as long as starting Python; it happens only when a command is to run.
"""

from __future__ import annotations

import sys

# Name, module with its click command in `command`, and the line that describes it.
COMMANDS = {
    "time": ("torchmark.cli.cmd_time", "Time one or more statements; several give a table."),
    "doctor": ("torchmark.cli.cmd_doctor", "Say what this machine has and lacks for good measurements."),
}

HELP_ARGUMENTS: tuple[list[str], ...] = ([], ["--help"], ["-h"])


def overview() -> str:
    """The help of the whole program."""
    lines = [f"  {name:<8}  {about}" for name, (_, about) in COMMANDS.items()]
    return "\n".join(
        [
            "Usage: torchmark COMMAND [OPTIONS] [ARGUMENTS]",
            "",
            "  Measure PyTorch code: how long it takes, and whether the number can be",
            "  trusted.",
            "",
            "Commands:",
            *lines,
            "",
            "Options:",
            "  --version  Show the version and exit.",
            "  --help     Show this text and exit.",
            "",
            "'torchmark COMMAND --help' tells more of each command.",
        ]
    )


def main(arguments: list[str] | None = None) -> int:
    """Run the program; returns the exit code."""
    arguments = sys.argv[1:] if arguments is None else arguments
    if arguments in HELP_ARGUMENTS:
        print(overview())
        return 0
    from torchmark.cli.program import run

    return run(arguments)
