"""`torchmark import`: take a run that was exported elsewhere into the store."""

from __future__ import annotations

import json
from pathlib import Path
from typing import IO

import click

from torchmark.cli.output import echo
from torchmark.cli.storing import store_option
from torchmark.errors import StoreError
from torchmark.report.text import count
from torchmark.store.runs import open_store
from torchmark.store.transfer import import_run


@click.command("import")
@click.argument("file", type=click.File("rb"), metavar="FILE")
@store_option
def command(file: IO[bytes], store_path: Path) -> int:
    """Take the run in FILE, which torchmark export has written, into the store; - is standard input.

    Nothing of a file is run, and nothing is kept of one that is not as it should be.
    """
    try:
        run = import_run(json.loads(file.read()))
    except (ValueError, RecursionError) as error:
        raise StoreError(f"{file.name}: This is no JSON: {error}.") from error
    except StoreError as error:
        raise StoreError(f"{file.name}: {error}") from error
    except OSError as error:
        raise StoreError(f"{file.name}: It cannot be read: {error.strerror}.") from error
    with open_store(store_path, create=True) as store:
        info = store.add(run)
    echo(f"Took in {info.name!r} ({info.id[:8]}) with {count(info.outcomes, 'result')}.")
    return 0
