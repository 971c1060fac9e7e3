"""`torchmark import`: take a run that was exported elsewhere into the store."""

from __future__ import annotations

import contextlib
import os
import stat
import sys
from pathlib import Path
from typing import IO

import click

from torchmark.cli.options import open_to_write, store_option
from torchmark.cli.output import echo
from torchmark.cli.startup import is_closed
from torchmark.errors import StoreError, UsageError
from torchmark.report.text.terminal import count
from torchmark.store.documents import import_run, parse_document

STANDARD_INPUT = "-"
# Where descriptors that are open already have names: the shell's <(...) gives such a name.
_OPEN_ALREADY = ("/dev/fd/", "/dev/stdin", "/proc/self/fd/")


@click.command("import")
@click.argument("file", metavar="FILE")
@store_option
def command(file: str, store_path: Path) -> int:
    """Take the run in FILE, which torchmark export has written, into the store; - is standard input.

    Nothing of a file is run, and nothing is kept of one that is not as it should be.
    """
    name = "<stdin>" if file == STANDARD_INPUT else file
    try:
        with open_document(file) as stream:
            run = import_run(parse_document(stream))
    except StoreError as error:
        raise StoreError(f"{name}: {error}") from error
    except OSError as error:
        raise StoreError(f"{name}: It cannot be read: {error.strerror}.") from error
    with open_to_write(store_path) as store:
        info = store.add(run)
    echo(f"Took in {info.name!r} ({info.id[:8]}) with {count(info.outcomes, 'result')}.")
    return 0


def open_document(file: str) -> contextlib.AbstractContextManager[IO[bytes]]:
    """What to read from. A pipe that nobody may ever write to, or a device, is not waited for."""
    if file == STANDARD_INPUT:
        if is_closed(sys.stdin, os.O_WRONLY):
            raise StoreError("Standard input is closed.")
        return contextlib.nullcontext(sys.stdin.buffer)
    try:
        descriptor = os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise UsageError(f"{file!r} cannot be opened: {reason}.") from error
    mode = os.fstat(descriptor).st_mode
    if stat.S_ISREG(mode) or (stat.S_ISFIFO(mode) and file.startswith(_OPEN_ALREADY)):
        os.set_blocking(descriptor, True)
        return open(descriptor, "rb")
    os.close(descriptor)
    if stat.S_ISDIR(mode):
        raise StoreError("It cannot be read: it is a folder.")
    raise StoreError("It is not an ordinary file. If you mean it, copy it into one first")
