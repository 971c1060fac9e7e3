"""From a text of the user's to syntax trees, and a whole text run as a module would be."""

from __future__ import annotations

import ast
import contextlib
import warnings
from collections.abc import Iterator
from typing import Any

from torchmark.measure.source import SourceFile, open_source, source_lines


def parse_text(text: str, name: str) -> ast.Module:
    """The tree of a text that is a complete module by itself; errors and warnings call it by this name."""
    try:
        compile(text, name, "exec", dont_inherit=True)
    except SyntaxError as error:
        # Found after parsing (`return` outside a function, say), when Python no longer has the text at hand.
        if error.text is None and error.lineno is not None:
            error.text = source_lines(text)[error.lineno - 1]
        raise
    except (ValueError, RecursionError, MemoryError, OverflowError) as error:
        # Null bytes, lone surrogates, nesting without end: not a text that Python can compile either.
        raise SyntaxError(f"{name} cannot be compiled: {error}") from None
    with warned_already():
        return ast.parse(text, name)


def run_setup(setup: str, namespace: dict[str, Any], name: str = "<setup>") -> SourceFile:
    """Run a setup at the top level of a module: what it assigns is in `namespace` afterwards; errors call it `name`.

    What is given must live as long as what the setup defines, or tracebacks lose their lines. It is known to them from
    before the setup runs, so that they have the lines of a setup that fails, too.
    """
    tree = parse_text(setup, name)
    source = open_source("", setup, name)
    with warned_already():
        code = compile(tree, source.name, "exec", dont_inherit=True)
    exec(code, namespace)
    return source


@contextlib.contextmanager
def warned_already() -> Iterator[None]:
    """For compiling a text once more: its warnings have been given with the user's own line numbers."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
