"""Flame graphs in the formats that the command line writes, and which of them a file's name asks for."""

from __future__ import annotations

import dataclasses
import os

from torchmark.analysis.flames import draw_difference, draw_one
from torchmark.analysis.stacks import align, leave_out_native
from torchmark.errors import UsageError
from torchmark.model.flame import Flame, Stacks
from torchmark.report.flame.formats import as_collapsed, as_speedscope
from torchmark.report.flame.page import render_html, render_svg
from torchmark.report.formats.entries import dump_json

# The formats, and what names of their files end with; the first is what is added to a name.
FORMATS = {
    "svg": (".svg",),
    "png": (".png",),
    "html": (".html", ".htm"),
    "speedscope": (".speedscope.json", ".json"),
    "collapsed": (".collapsed.txt", ".txt", ".folded", ".collapsed"),
}
DEFAULT_FORMAT = "svg"


def choose_format(wanted: str | None, output: str | None) -> str:
    """What is asked for, or what the file's name tells.

    >>> choose_format(None, "x.html"), choose_format("collapsed", "x.html"), choose_format(None, None)
    ('html', 'collapsed', 'svg')
    """
    if wanted is not None:
        return wanted
    if output is None or output == "-" or is_folder(output):
        return DEFAULT_FORMAT
    for name, endings in FORMATS.items():
        if output.lower().endswith(endings):
            return name
    raise UsageError(
        f"The name {output!r} does not tell the format: end it with .svg, .png, .html, .json or .txt, or say --format."
    )


def is_folder(output: str) -> bool:
    """Whether files are to be made in it."""
    return output.endswith(os.sep) or os.path.isdir(output)


@dataclasses.dataclass(frozen=True)
class Graph:
    """One graph to write: the stacks of one side, or of both."""

    head: Stacks
    title: str
    note: str
    base: Stacks | None = None
    native: bool = True

    @property
    def flame(self) -> Flame:
        """The tree."""
        base, head = self._choose_sides()
        if base is None:
            return draw_one(head, self.title, self.note)
        return draw_difference(base, head, self.title, self.note)

    def render(self, kind: str) -> str:
        """As a text of this format; a PNG is not text."""
        if kind == "svg":
            return render_svg(self.flame)
        if kind == "html":
            return render_html(self.flame)
        base, head = self._choose_sides()
        if base is not None:
            base, head, _ = align(base, head)
        if kind == "collapsed":
            return as_collapsed(head, base)
        return dump_json(as_speedscope(head, base, name=self.title))

    def _choose_sides(self) -> tuple[Stacks | None, Stacks]:
        """Base and head with the frames that are wanted."""
        if self.native:
            return self.base, self.head
        return self.base and leave_out_native(self.base), leave_out_native(self.head)
