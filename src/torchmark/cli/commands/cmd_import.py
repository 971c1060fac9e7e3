"""`torchmark import`: take a run that was exported elsewhere into the store."""

from __future__ import annotations

from pathlib import Path

import click

from torchmark.cli.options import open_to_write, store_option
from torchmark.cli.output import STANDARD_INPUT, echo, open_input
from torchmark.errors import StoreError
from torchmark.report.text.terminal import count
from torchmark.store.documents import import_run, parse_document


@click.command("import")
@click.argument("file", metavar="FILE")
@store_option
def command(file: str, store_path: Path) -> int:
    """Take the run in FILE, which torchmark export has written, into the store; - is standard input.

    Nothing of a file is run, and nothing is kept of one that is not as it should be.
    """
    name = "<stdin>" if file == STANDARD_INPUT else file
    try:
        with open_input(file) as stream:
            run = import_run(parse_document(stream))
    except StoreError as error:
        raise StoreError(f"{name}: {error}") from error
    except OSError as error:
        raise StoreError(f"{name}: It cannot be read: {error.strerror}.") from error
    with open_to_write(store_path) as store:
        info = store.add(run)
    echo(f"Took in {info.name!r} ({info.id[:8]}) with {count(info.outcomes, 'result')}.")
    return 0
