"""Where the command line writes flame graphs: their formats, which of them a file's name asks for, and the files.

Apart from the command, which stays short enough to be read at once.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from torchmark.cli.output import STANDARD_OUTPUT, check_output, echo, write_bytes, write_text
from torchmark.errors import UsageError
from torchmark.model.outcome import Failure
from torchmark.model.plan import Case
from torchmark.report.flame.formats import Graph
from torchmark.report.flame.page import describe_flame
from torchmark.report.flame.picture import Renderer, open_renderer, render_png
from torchmark.report.text.failures import describe_failure
from torchmark.report.text.names import name_case, name_files

DEFAULT_NAME = "flame"
# The formats, and what names of their files end with; the first is what is added to a name.
FORMATS = {
    "svg": (".svg",),
    "png": (".png",),
    "html": (".html", ".htm"),
    "speedscope": (".speedscope.json", ".json"),
    "collapsed": (".collapsed.txt", ".txt", ".folded", ".collapsed"),
}


def choose_format(wanted: str | None, output: str | None) -> str:
    """What is asked for, or what the file's name tells.

    >>> choose_format(None, "x.html"), choose_format("collapsed", "x.html"), choose_format(None, None)
    ('html', 'collapsed', 'svg')
    """
    if wanted is not None:
        return wanted
    if output is None or output == "-" or is_folder(output):
        return "svg"
    for name, endings in FORMATS.items():
        if output.lower().endswith(endings):
            return name
    raise UsageError(
        f"The name {output!r} does not tell the format: end it with .svg, .png, .html, .json or .txt, or say --format."
    )


def is_folder(output: str) -> bool:
    return output.endswith(os.sep) or os.path.isdir(output)


def place_files(cases: Sequence[Case], output: str | None, kind: str) -> dict[Case, str]:
    """The file of each case. UsageError, before anything is measured, for one that cannot be written."""
    ending = FORMATS[kind][0]
    if output is None or not is_folder(output):
        if len(cases) != 1:
            how = " with -o." if output is None else f": -o {output.rstrip('/')}/"
            raise UsageError(f"These are {len(cases)} cases. Select one with -k, or name a folder for all{how}")
        files = {cases[0]: DEFAULT_NAME + ending if output is None else output}
    else:
        try:
            Path(output).mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UsageError(f"The folder {output} cannot be made: {error.strerror}.") from error
        files = {case: os.path.join(output, name + ending) for case, name in name_files(cases).items()}
    for file in files.values():
        check_output(file, DEFAULT_NAME + ending)
    return files


def prepare_renderer(kind: str, output: str | None) -> Renderer | None:
    """What draws pictures; an error before anything is measured if there is nothing that does."""
    if kind != "png":
        return None
    if output == STANDARD_OUTPUT:
        raise UsageError("A PNG is not written to standard output. Name a file, such as -o flame.png.")
    return open_renderer()


def write_graph(case: Case, graph: Graph | Failure, file: str, kind: str, renderer: Renderer | None) -> bool:
    """Write a graph, or say why there is none; whether that is so."""
    if isinstance(graph, Failure):
        echo(f"Failed: {name_case(case)}\n{describe_failure(graph)}", err=True)
        return True
    if renderer is not None:
        write_bytes(render_png(graph.flame, renderer), file)
    else:
        write_text(graph.render(kind), file)
    if file != STANDARD_OUTPUT:
        echo(f"{name_case(case)}: {file}")
        for line in describe_flame(graph.flame):
            echo(f"  {line}")
    return False
