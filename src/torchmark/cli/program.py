"""Everything about the command line that all commands share: finding them, and turning errors into text.

Apart from `main.py`, because it imports click.
"""

from __future__ import annotations

import difflib
import os
import shlex
from collections.abc import Sequence
from importlib import import_module

import click
from click.shell_completion import CompletionItem

from torchmark import __version__
from torchmark.cli.output import echo, echo_click_error, printable_warnings
from torchmark.cli.startup import COMMANDS, overview
from torchmark.errors import ExitCode, TorchmarkError

# Names that other programs have for commands of this one.
_MEANINGS = {
    "bench": "run",
    "benchmark": "run",
    "cmp": "compare",
    "delete": "rm",
    "diff": "compare",
    "flamegraph": "flame",
    "ls": "list",
    "profile": "flame",
    "remove": "rm",
    "timeit": "time",
    "version": "--version",
}


class Program(click.Group):
    """A group whose commands are imported when they are called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """In the order of the overview."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = import_module(f"torchmark.cli.commands.cmd_{cmd_name}").command
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args[0] in COMMANDS or ctx.resilient_parsing or args[0].startswith("-"):
            return super().resolve_command(ctx, args)
        raise click.UsageError(f"No such command {args[0]!r:.80}. {_propose(args)}", ctx)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Complete the name of a command, without importing any of them."""
        if incomplete.startswith("-"):
            return super().shell_complete(ctx, incomplete)
        return [CompletionItem(name, help=about) for name, about in COMMANDS.items() if name.startswith(incomplete)]

    def format_help(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The same text that the front door prints."""
        formatter.write(overview() + "\n")


@click.group(cls=Program, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, "--version", "-V", prog_name="torchmark")
def program() -> None:
    """Measure PyTorch code."""


def _propose(words: Sequence[str]) -> str:
    word = words[0]
    if word in _MEANINGS:
        return f"Did you mean 'torchmark {_MEANINGS[word]}'?"
    if os.path.exists(word):
        command = "compare" if word.endswith(".json") else "run"
        return f"It is a file or a folder. Did you mean: {shlex.join(['torchmark', command, *words])}"
    if not word.replace("-", "_").isidentifier():
        return f"To time it as a statement: {shlex.join(['torchmark', 'time', *words])}"
    near = difflib.get_close_matches(word.lower(), COMMANDS, n=2)
    if near:
        return f"Did you mean {' or '.join(repr(f'torchmark {name}') for name in near)}?"
    return "'torchmark --help' lists the commands."


def run(arguments: list[str]) -> int:
    """Run one command; the only place where an error becomes text and an exit code."""
    if arguments[:1] == ["help"]:
        arguments = [*arguments[1:], "--help"]
    try:
        with printable_warnings():
            return program.main(arguments, "torchmark", standalone_mode=False) or 0
    except click.ClickException as error:
        echo_click_error(error)
        return error.exit_code
    except TorchmarkError as error:
        echo(f"torchmark: {error}", err=True)
        return error.exit_code
    except (click.Abort, KeyboardInterrupt):
        echo("torchmark: interrupted", err=True)
        return ExitCode.INTERRUPTED
