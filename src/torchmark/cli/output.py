"""Printing, and writing files whole or not at all. No other module writes to the standard streams."""

from __future__ import annotations

import contextlib
import io
import os
import re
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import click

from torchmark.cli.startup import discard, is_closed
from torchmark.errors import StoreError, UsageError
from torchmark.files import open_document, write_whole
from torchmark.report.text.terminal import printable_lines


def echo(text: object = "", *, err: bool = False, nl: bool = True, styled: bool = False) -> None:
    """Print a text; `styled` keeps the colours that tables have."""
    shown = printable_lines(str(text), styled=styled)
    if not err:
        if not is_closed(sys.stdout):
            # The stream is named for its encoding's sake: otherwise click writes UTF-8 where that is ASCII.
            click.echo(shown, file=sys.stdout, nl=nl)
        return
    try:
        click.echo(shown, err=True, nl=nl)
    except OSError:
        # The exit code says what happened, also where no message can.
        discard(sys.stderr)


def echo_click_error(error: click.ClickException) -> None:
    text = io.StringIO()
    error.show(text)
    echo(text.getvalue(), err=True, nl=False)


@contextlib.contextmanager
def printable_warnings() -> Iterator[None]:
    """Within this, warnings of Python are printed like all other text: they quote statements and names of files."""

    def show(message: Any, category: Any, filename: str, lineno: int, file: Any = None, line: Any = None) -> None:
        text = warnings.formatwarning(message, category, filename, lineno, line)
        if file is None:
            echo(text, err=True, nl=False)
        else:
            file.write(text)

    with warnings.catch_warnings():
        warnings.showwarning = show
        yield


STANDARD_OUTPUT = "-"
# As many as Linux follows.
MOST_LINKS = 40
_DESCRIPTORS = re.compile(r"/proc/\d+(/task/\d+)?/fd")


def check_output(output: str | None, usual: str) -> None:
    """Say at once what would otherwise be said when all the work is done; `usual` is what such a file is called."""
    if output is None or output == STANDARD_OUTPUT:
        return
    path = Path(os.path.realpath(output))
    if os.path.isdir(output):
        raise UsageError(f"{output} is a folder. Name a file in it, such as {Path(output, usual)}.")
    if not _is_written_to(output) and not os.path.isdir(path.parent):
        raise UsageError(f"There is no folder {path.parent} to write {path.name} to.")
    # A device or a pipe is written to; a file is replaced by another one.
    place = output if _is_written_to(output) else path.parent
    if not os.access(place, os.W_OK):
        raise UsageError(f"Cannot write {output}: {place} is read-only for you.")


def write_text(text: str, output: str | None) -> None:
    """Write a text to a file, or to standard output where there is none or its name is "-".

    A file appears under its name when it is complete; until then, what was there stays.
    """
    if output is not None and output != STANDARD_OUTPUT:
        # Characters that no encoding has, such as halves of pairs, are no reason to write nothing.
        write_bytes(text.encode(errors="replace"), output)
        return
    if is_closed(sys.stdout):
        raise StoreError("Cannot write to standard output: it is closed. Name a file to write to.")
    # In UTF-8 where its encoding is ASCII.
    click.echo(printable_lines(text), nl=False)


def write_bytes(content: bytes, output: str) -> None:
    """The same for what is no text."""
    try:
        if _is_written_to(output):
            Path(output).write_bytes(content)
        else:
            # What a link leads to is replaced, not the link.
            write_whole(Path(os.path.realpath(output)), content)
    except BrokenPipeError:
        raise  # whoever read it has enough
    except OSError as error:
        raise StoreError(f"Cannot write {output}: {error.strerror}.") from error


def _is_written_to(output: str) -> bool:
    """Whether it is a pipe, a device or a descriptor that somebody reads from: another file in its place is no use."""
    return (os.path.exists(output) and not os.path.isfile(output)) or _is_descriptor(output)


def _is_descriptor(output: str) -> bool:
    """Whether a name such as /dev/fd/3 means an open file of this process, by whatever links."""
    path = os.path.abspath(output)
    for _ in range(MOST_LINKS):
        folder = os.path.realpath(os.path.dirname(path))
        if _DESCRIPTORS.fullmatch(folder):
            return True
        if not os.path.islink(path):
            return False
        path = os.path.join(folder, os.readlink(path))
    return False


STANDARD_INPUT = "-"


def open_input(file: str) -> contextlib.AbstractContextManager[IO[bytes]]:
    """A file, or standard input, to read a document from."""
    if file != STANDARD_INPUT:
        return open_document(file)
    if is_closed(sys.stdin, os.O_WRONLY):
        raise StoreError("Standard input is closed.")
    return contextlib.nullcontext(sys.stdin.buffer)
