"""The option that names the store, the same for all commands that use it."""

from __future__ import annotations

from pathlib import Path

import click

DEFAULT_STORE = Path(".torchmark/results.db")

store_option = click.option(
    "--store",
    "store_path",
    type=click.Path(path_type=Path),
    default=DEFAULT_STORE,
    envvar="TORCHMARK_STORE",
    metavar="PATH",
    help=f"The file that runs are kept in ($TORCHMARK_STORE, or {DEFAULT_STORE}).",
)
