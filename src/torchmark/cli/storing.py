"""The option that names the store, the same for all commands that use it."""

from __future__ import annotations

import os
from pathlib import Path

import click
from click.shell_completion import CompletionItem

from torchmark.cli.output import echo
from torchmark.errors import TorchmarkError
from torchmark.report.printable import printable
from torchmark.store.runs import DEFAULT_STORE, Store, open_store


def open_to_write(path: Path, *, create: bool = True) -> Store:
    """Open the store to add runs, and say so if an earlier store of that name had left files, which were renamed."""
    store = open_store(path, create=create)
    for one in store.left:
        text = f"{str(one)!r} is left of an earlier store of the same name. Remove it if you miss no results."
        echo(f"Note: {text}", err=True)
    return store


def spell_store(path: Path) -> str:
    """What commands that are proposed to the user have to say of the store: nothing if they would find it anyway."""
    source = click.get_current_context().get_parameter_source("store_path")
    return str(path) if source is click.core.ParameterSource.COMMANDLINE else ""


def complete_run(ctx: click.Context, _: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Names of runs of the store, where there is one; not those that could steer a terminal."""
    path = ctx.params.get("store_path") or os.environ.get("TORCHMARK_STORE") or DEFAULT_STORE
    try:
        with open_store(Path(path), read_only=True) as store:
            names = [entry.info.name for entry in store.list_entries()]
    except (TorchmarkError, OSError):
        return []
    known = dict.fromkeys(name for name in names if name and name == printable(name))
    return [CompletionItem(name) for name in known if name.startswith(incomplete)]


store_option = click.option(
    "--store",
    "store_path",
    type=click.Path(path_type=Path),
    default=DEFAULT_STORE,
    envvar="TORCHMARK_STORE",
    metavar="PATH",
    help=f"The file that runs are kept in ($TORCHMARK_STORE, or {DEFAULT_STORE}).",
)
