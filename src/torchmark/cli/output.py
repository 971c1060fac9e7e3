"""Printing: the only place that writes text to standard output or to standard error.

What is printed may be other people's, so no text gets there except through `printable_lines`.
"""

from __future__ import annotations

import contextlib
import io
import sys
import warnings
from collections.abc import Iterator
from typing import TextIO

import click

from torchmark.cli.streams import discard, is_closed
from torchmark.errors import StoreError
from torchmark.report.printable import printable_lines


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


def write_data(text: str) -> None:
    """Write a document to standard output, in UTF-8 where its encoding is ASCII."""
    if is_closed(sys.stdout):
        raise StoreError("Cannot write to standard output: it is closed. Name a file to write to.")
    click.echo(printable_lines(text), nl=False)


def echo_click_error(error: click.ClickException) -> None:
    """What click says about an argument, with the usage of the command."""
    text = io.StringIO()
    error.show(text)
    echo(text.getvalue(), err=True, nl=False)


@contextlib.contextmanager
def printable_warnings() -> Iterator[None]:
    """Within this, warnings of Python are printed like all other text: they quote statements and names of files."""

    def show(
        message: Warning | str,
        category: type[Warning],
        filename: str,
        lineno: int,
        file: TextIO | None = None,
        line: str | None = None,
    ) -> None:
        text = warnings.formatwarning(message, category, filename, lineno, line)
        if file is None:
            echo(text, err=True, nl=False)
        else:
            file.write(text)

    with warnings.catch_warnings():
        warnings.showwarning = show
        yield
