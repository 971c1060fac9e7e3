"""`torchmark cache`: what is kept of compiled C++, and how to get rid of it."""

from __future__ import annotations

import dataclasses
import os

import click

from torchmark.cli.options import json_option, offer_json
from torchmark.cli.output import echo
from torchmark.model.schemas import begin_document
from torchmark.native.cache import CacheState
from torchmark.report.text.terminal import count, show_waiting
from torchmark.report.text.units import format_size
from torchmark.runner.prepare import clear_cache, inspect_cache, warm_cache


@click.group("cache")
def command() -> None:
    """Show or empty the cache of compiled C++.

    Snippets are found there by their text, the compiler, its flags, torch and every header they include. The folder is
    $TORCHMARK_CACHE, or torchmark in it where it has other things in it, or torchmark in the user's folder for caches;
    $TORCHMARK_CACHE_SIZE bounds it (2G), and what was not used for longest makes room.
    """


@command.command("info")
@json_option
def info(json_file: str | None) -> int:
    """Show where the cache is and how full it is."""
    state = inspect_cache(os.environ)
    if offer_json(lambda: {**begin_document("cache"), **dataclasses.asdict(state)}, json_file):
        echo(state.folder)
        echo(f"{_describe(state)}, of {format_size(state.limit_bytes)} at most")
    return 0


@command.command("warm")
def warm() -> int:
    """Compile torch's headers ahead, for new statements to compile faster.

    Takes some 20 s and, with g++, half a gigabyte. Worth it for those who try one C++ statement after the other.
    """
    with show_waiting("Compiling torch's headers"):
        warm_cache(os.environ)
    echo(_describe(inspect_cache(os.environ)))
    return 0


@command.command("clear")
def clear() -> int:
    """Remove all that torchmark has compiled there, and nothing else."""
    echo(f"Removed {_describe(clear_cache(os.environ))}.")
    return 0


def _describe(state: CacheState) -> str:
    libraries = "1 library" if state.libraries == 1 else f"{state.libraries} libraries"
    headers = ", torch's headers compiled ahead" if state.preludes else ""
    return f"{count(state.snippets, 'snippet')} in {libraries}{headers}, {format_size(state.size_bytes)}"
