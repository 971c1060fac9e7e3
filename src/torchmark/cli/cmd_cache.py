"""`torchmark cache`: what is kept of compiled C++, and how to get rid of it."""

from __future__ import annotations

import dataclasses
import os
from typing import IO

import click

from torchmark.cli.parameters import is_standard_output, json_option, write_json
from torchmark.report.text import count
from torchmark.report.units import format_size
from torchmark.runner.building import CacheState, clear_cache, inspect_cache

SCHEMA = "torchmark.cache"
SCHEMA_VERSION = 1


@click.group("cache")
def command() -> None:
    """Show or empty the cache of compiled C++.

    Snippets are found there by their text, the compiler, its flags, torch and every header they include. The folder is
    $TORCHMARK_CACHE, or torchmark in the user's folder for caches; $TORCHMARK_CACHE_SIZE bounds it (2G), and what was
    not used for longest makes room.
    """


@command.command("info")
@json_option
def info(json_file: IO[str] | None) -> int:
    """Show where the cache is and how full it is."""
    state = inspect_cache(os.environ)
    if json_file is not None:
        write_json({"schema": SCHEMA, "schema_version": SCHEMA_VERSION, **dataclasses.asdict(state)}, json_file)
    if not is_standard_output(json_file):
        click.echo(state.folder)
        click.echo(f"{_describe(state)}, of {format_size(state.limit_bytes)} at most")
    return 0


@command.command("clear")
def clear() -> int:
    """Remove all that is in it. Programs that use it go on undisturbed."""
    click.echo(f"Removed {_describe(clear_cache(os.environ))}.")
    return 0


def _describe(state: CacheState) -> str:
    libraries = "1 library" if state.libraries == 1 else f"{state.libraries} libraries"
    return f"{count(state.snippets, 'snippet')} in {libraries}, {format_size(state.size_bytes)}"
