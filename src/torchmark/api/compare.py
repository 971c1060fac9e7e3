"""`Compare`: measurements side by side, one table a label."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from typing import Any

from torchmark.analysis.grid import Grid, arrange, ordered_unique
from torchmark.api.measurement import Measurement
from torchmark.errors import UsageError
from torchmark.model.task import name_value
from torchmark.report.html.templates import render_grids
from torchmark.report.text.grid import Colorize, Style, export_csv, export_dict, export_markdown, render_table
from torchmark.report.text.terminal import count, printable_lines


class Compare:
    """Tables of measurements: label names the table, sub_label (or stmt) the row, description the column.

    Replicates (equal tasks) are merged. Rows are set in blocks by thread count and, where there are several, by
    environment. Two different tasks that would share a cell get rows of their own, named by what differs.

    >>> from torchmark import Measurement, TaskSpec
    >>> results = [Measurement(1, [t], TaskSpec(s, "", label="add", description="4x4"))
    ...            for s, t in (("x + y", 2e-6), ("x.add(y)", 3e-6))]
    >>> print("\\n".join(line.rstrip() for line in str(Compare(results)).splitlines()))
    [------- add --------]
                    |  4x4
    1 threads: -----------
          x + y     |  2.0
          x.add(y)  |  3.0
    <BLANKLINE>
    Times are in microseconds (us).
    """

    def __init__(self, results: list[Measurement]) -> None:
        self._results: list[Measurement] = []
        self._trim = False
        self._colour = Colorize.NONE
        self._warnings = False
        self.extend_results(results)

    def extend_results(self, results: Iterable[Measurement]) -> None:
        """Add more measurements."""
        results = list(results)
        for result in results:
            if not isinstance(result, Measurement):
                raise UsageError(f"Expected an instance of `Measurement`, got {type(result)} instead.")
        self._results.extend(results)

    def trim_significant_figures(self) -> None:
        """Show only as many figures as the scatter of each measurement supports."""
        self._trim = True

    def colorize(self, rowwise: bool = False) -> None:
        """Colour each cell by how it compares with the best of its column, or of its row."""
        self._colour = Colorize.ROWWISE if rowwise else Colorize.COLUMNWISE

    def highlight_warnings(self) -> None:
        """Mark cells whose samples vary widely."""
        self._warnings = True

    def print(self) -> None:
        """Print the tables; in colour only on a terminal, and never where NO_COLOR is set."""
        on_terminal = sys.stdout.isatty() and os.environ.get("TERM") != "dumb"
        in_colour = on_terminal and _colours_allowed()
        print(printable_lines(self._render(in_colour=in_colour), styled=in_colour))

    def __str__(self) -> str:
        # Where the text will go is not known here: it has the colours that were asked for.
        return self._render(in_colour=_colours_allowed())

    def __repr__(self) -> str:
        labels = ordered_unique(m.label or "" for m in self._results)
        tables = f"{count(len(labels), 'table')}: {', '.join(filter(None, labels))}".removesuffix(": ")
        return name_value(self, f"{count(len(self._results), 'measurement')}, {tables}")

    def _render(self, *, in_colour: bool) -> str:
        style = self._style if in_colour else Style(self._trim, Colorize.NONE, self._warnings)
        return "\n".join(render_table(grid, style) for grid in self._grids())

    def to_markdown(self) -> str:
        """The tables as GitHub Markdown; with `colorize`, the best cells are bold."""
        return export_markdown(self._grids(), self._style)

    def to_csv(self) -> str:
        """One line a cell, all times in seconds at full precision."""
        return export_csv(self._grids())

    def to_dict(self) -> dict[str, Any]:
        """The tables as plain values for JSON, all times in seconds."""
        return export_dict(self._grids())

    def _repr_html_(self) -> str:
        return render_grids(self._grids(), self._style)

    @property
    def _style(self) -> Style:
        return Style(self._trim, self._colour, self._warnings)

    def _grids(self) -> tuple[Grid, ...]:
        merged = Measurement.merge(self._results)
        return arrange([(m.task_spec, m.summary if m.raw_times else None) for m in merged])


def _colours_allowed() -> bool:
    # https://no-color.org: any value that is not empty switches colours off.
    return not os.environ.get("NO_COLOR")
