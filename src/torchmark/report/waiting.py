"""A sign of life while something takes long: on a terminal, and nowhere else."""

from __future__ import annotations

import contextlib
import sys
from contextlib import AbstractContextManager
from typing import Any

from torchmark.report.printable import printable

COMPILING = "Compiling C++ (once; takes some ten seconds)"


def show_waiting(text: str) -> AbstractContextManager[Any]:
    """A spinner with a text on standard error, for as long as the context lasts."""
    if not (sys.stderr is not None and sys.stderr.isatty()):
        return contextlib.nullcontext()
    # Loaded only where it is seen.
    from rich.console import Console
    from rich.text import Text

    # As text: names of cases may have brackets, which rich takes for styles and links.
    return Console(stderr=True).status(Text(printable(text)))
