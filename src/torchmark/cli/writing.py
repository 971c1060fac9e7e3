"""Writing a file whole or not at all."""

from __future__ import annotations

import contextlib
import os
import secrets
from pathlib import Path

import click

from torchmark.errors import StoreError, UsageError

STANDARD_OUTPUT = "-"


def check_output(output: str | None, usual: str) -> None:
    """Say at once what would otherwise be said when all the work is done; `usual` is what such a file is called."""
    if output is None or output == STANDARD_OUTPUT:
        return
    path = Path(os.path.realpath(output))
    if os.path.isdir(path):
        raise UsageError(f"{output} is a folder. Name a file in it, such as {Path(output, usual)}.")
    if not os.path.isdir(path.parent):
        raise UsageError(f"There is no folder {path.parent} to write {path.name} to.")
    # A device or a pipe is written to; a file is replaced by another one.
    place = path if os.path.exists(path) and not os.path.isfile(path) else path.parent
    if not os.access(place, os.W_OK):
        raise UsageError(f"Cannot write {output}: {place} is read-only for you.")


def write_text(text: str, output: str | None) -> None:
    """Write a text to a file, or to standard output where there is none or its name is "-".

    A file appears under its name when it is complete; until then, what was there stays.
    """
    if output is None or output == STANDARD_OUTPUT:
        click.echo(text, nl=False)
        return
    # Characters that no encoding has, such as halves of pairs, are no reason to write nothing.
    write_bytes(text.encode(errors="replace"), output)


def write_bytes(content: bytes, output: str) -> None:
    """The same for what is no text."""
    # What a link leads to is replaced, not the link.
    path = Path(os.path.realpath(output))
    try:
        if path.exists() and not path.is_file():
            # A pipe or a device: there is nothing to replace.
            path.write_bytes(content)
        else:
            _replace(path, content)
    except BrokenPipeError:
        raise  # whoever read it has enough
    except OSError as error:
        raise StoreError(f"Cannot write {output}: {error.strerror}.") from error


def _replace(path: Path, content: bytes) -> None:
    # Not longer than the name of the file, which may be as long as the system allows.
    draft = path.with_name(f".{secrets.token_hex(8)}.part")
    try:
        with draft.open("xb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        if path.exists():
            draft.chmod(path.stat().st_mode & 0o7777)
        draft.replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            draft.unlink()
        raise
