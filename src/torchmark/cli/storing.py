"""The option that names the store, the same for all commands that use it."""

from __future__ import annotations

from pathlib import Path

import click

DEFAULT_STORE = Path(".torchmark/results.db")


def spell_store(path: Path) -> str:
    """What commands that are proposed to the user have to say of the store: nothing if they would find it anyway."""
    source = click.get_current_context().get_parameter_source("store_path")
    return str(path) if source is click.core.ParameterSource.COMMANDLINE else ""


store_option = click.option(
    "--store",
    "store_path",
    type=click.Path(path_type=Path),
    default=DEFAULT_STORE,
    envvar="TORCHMARK_STORE",
    metavar="PATH",
    help=f"The file that runs are kept in ($TORCHMARK_STORE, or {DEFAULT_STORE}).",
)
