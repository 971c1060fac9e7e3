"""Everything about the command line that all commands share: finding them, and turning errors into text."""

from __future__ import annotations

from importlib import import_module

import click

from torchmark import __version__
from torchmark.cli.output import echo, echo_click_error, printable_warnings
from torchmark.cli.overview import COMMANDS, overview
from torchmark.errors import TorchmarkError

INTERRUPTED = 130


class Program(click.Group):
    """A group whose commands are imported when they are called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """In the order of the overview."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import the one command that is asked for."""
        if cmd_name not in COMMANDS:
            return None
        module, _ = COMMANDS[cmd_name]
        command: click.Command = import_module(module).command
        return command

    def format_help(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The same text that the front door prints."""
        formatter.write(overview() + "\n")


@click.group(cls=Program, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="torchmark")
def program() -> None:
    """Measure PyTorch code."""


def run(arguments: list[str]) -> int:
    """Run one command; the only place where an error becomes text and an exit code."""
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
        return INTERRUPTED
