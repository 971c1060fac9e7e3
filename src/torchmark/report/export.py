"""Grids in formats for other programs: Markdown for people's posts, CSV for spreadsheets, plain values for JSON."""

from __future__ import annotations

import csv
import dataclasses
import io
from collections.abc import Iterator, Sequence
from typing import Any

from torchmark.analysis.arrange import Grid, Row, has_several_envs, name_env
from torchmark.model.caveat import Caveat
from torchmark.model.summary import Summary
from torchmark.report.markdown import escape_markdown, guard, markdown_row
from torchmark.report.table import Rank, Style, explain, format_columns, rank_cells

SCHEMA = "torchmark.compare"
SCHEMA_VERSION = 1

CSV_COLUMNS = (
    "label", "num_threads", "env", "name", "description",
    "samples", "median_s", "mean_s", "p25_s", "p75_s", "min_s", "max_s", "std_s", "significant_figures",
)  # fmt: skip


def export_markdown(grids: Sequence[Grid], style: Style) -> str:
    """A GitHub table for each grid; the best cells are bold where colours are asked for."""
    return "\n".join(_markdown_table(grid, style) for grid in grids)


def _markdown_table(grid: Grid, style: Style) -> str:
    several = has_several_envs(grid)
    texts = format_columns(grid, style)
    ranks = rank_cells(grid, style.colour)
    head = ["threads", *(["env"] if several else []), "", *(column or "" for column in grid.columns)]
    lines = [f"**{escape_markdown(grid.label)}**", ""] if grid.label else []
    lines.append(markdown_row([escape_markdown(text) for text in head]))
    lines.append(markdown_row(["---:", *(["---"] if several else []), "---", *("---:" for _ in grid.columns)]))
    for i, row in enumerate(grid.rows):
        keys = [
            str(row.num_threads),
            *([escape_markdown(name_env(row.env))] if several else []),
            escape_markdown(row.name),
        ]
        values = (column[i].strip() for column in texts)
        bold = (f"**{v}**" if rank is Rank.BEST else v for v, rank in zip(values, ranks[i], strict=True))
        lines.append(markdown_row([*keys, *bold]))
    return "\n".join([*lines, "", "  \n".join(explain(grid, style)), ""])


def export_csv(grids: Sequence[Grid]) -> str:
    """A line for each cell that was measured; times in seconds, written so that they read back exactly.

    A text that a spreadsheet would take for a formula is guarded, as in the CSV of a run.
    """
    out = io.StringIO()
    writer = csv.DictWriter(out, CSV_COLUMNS, lineterminator="\n")
    writer.writeheader()
    for grid, row, column, cell in _cells(grids):
        values = {"label": grid.label, **_plain(row, column, cell)}
        writer.writerow({name: guard(value) if isinstance(value, str) else value for name, value in values.items()})
    return out.getvalue()


def export_dict(grids: Sequence[Grid]) -> dict[str, Any]:
    """Plain values for JSON: a list of results for each label."""
    return {
        "schema": SCHEMA,
        "schema_version": SCHEMA_VERSION,
        "tables": [
            {
                "label": grid.label,
                "results": [_plain(row, column, cell) for _, row, column, cell in _cells([grid])],
            }
            for grid in grids
        ],
    }


def _plain(row: Row, column: str | None, cell: Summary) -> dict[str, Any]:
    return {
        "num_threads": row.num_threads,
        "env": row.env,
        "name": row.name,
        "description": column,
        **plain_summary(cell),
    }


def plain_summary(summary: Summary) -> dict[str, Any]:
    """A summary as plain values, with the unit in each name."""
    return {
        "samples": summary.samples,
        "median_s": summary.median,
        "mean_s": summary.mean,
        "p25_s": summary.p25,
        "p75_s": summary.p75,
        "min_s": summary.minimum,
        "max_s": summary.maximum,
        "std_s": summary.std,
        "significant_figures": summary.significant_figures,
    }


def plain_caveat(caveat: Caveat) -> dict[str, Any]:
    """A caveat as plain values; `kind` tells which one it is."""
    return {"kind": caveat.kind, **dataclasses.asdict(caveat)}


def _cells(grids: Sequence[Grid]) -> Iterator[tuple[Grid, Row, str | None, Summary]]:
    for grid in grids:
        for row in grid.rows:
            for column, cell in zip(grid.columns, row.cells, strict=True):
                if cell is not None:
                    yield grid, row, column, cell
