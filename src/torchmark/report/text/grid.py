"""Grids of results as a text table that users of torch.utils.benchmark know, as Markdown, CSV and JSON."""

from __future__ import annotations

import csv
import dataclasses
import enum
import io
import itertools
import re
from collections.abc import Iterator, Sequence
from typing import Any

from torchmark.analysis.grid import Grid, GridRow, has_several_envs, name_env
from torchmark.analysis.summarise import is_suspect
from torchmark.model.caveats import Caveat
from torchmark.model.schemas import begin_document
from torchmark.model.task import Summary
from torchmark.report.text.terminal import BLUE, BOLD, DIM, END, LIGHT_GREEN, LIGHT_RED, RED, one_line, printable
from torchmark.report.text.units import count_integer_digits, select_unit, trim_sigfig, unit_to_english

SEPARATOR = "  |  "
# "(! 99%)" without its leading blank: what a cell without a warning leaves free for its neighbours' warnings.
WARNING_WIDTH = 7
WARNING_LEGEND = "(! XX%) Measurement has high variance, where XX is the IQR / median * 100."

# A value counts as best within this much of the best, as a share or in seconds.
BEST_SHARE = 1.01
BEST_WITHIN_S = 100e-9


class Colorize(enum.Enum):
    """Within what a cell's colour compares it: nothing, its column or its row."""

    NONE = "none"
    COLUMNWISE = "columnwise"
    ROWWISE = "rowwise"


@dataclasses.dataclass(frozen=True)
class Style:
    """How cells are shown; the layout is the same for all."""

    trim: bool = False
    colour: Colorize = Colorize.NONE
    warnings: bool = False


class Rank(enum.Enum):
    """How a value compares with the best one; the value is what to colour it with."""

    BEST = LIGHT_GREEN + BOLD
    GOOD = BLUE + BOLD
    PLAIN = ""
    BAD = DIM + LIGHT_RED
    VERY_BAD = RED + BOLD


def rank_value(value: float, best: float) -> Rank:
    """Compare two times in seconds.

    >>> rank_value(2.5, 1.0)
    <Rank.BAD: '\\x1b[2m\\x1b[91m'>
    """
    if value <= best * BEST_SHARE or value <= best + BEST_WITHIN_S:
        return Rank.BEST
    if value <= best * 1.1:
        return Rank.GOOD
    if value >= best * 5:
        return Rank.VERY_BAD
    return Rank.BAD if value >= best * 2 else Rank.PLAIN


def choose_unit(grid: Grid) -> tuple[str, float]:
    """One unit for all cells: the one in which the smallest median reads best."""
    medians = [cell.median for row in grid.rows for cell in row.cells if cell is not None]
    return select_unit(min(medians, default=1.0))


def rank_cells(grid: Grid, colour: Colorize) -> list[list[Rank | None]]:
    """How each cell compares with the best of its row, or of its column among the same thread count.

    None for a missing cell, and for all of them without colour.
    """
    return [[_rank_cell(grid, row, j, colour) for j in range(len(grid.columns))] for row in grid.rows]


def _rank_cell(grid: Grid, row: GridRow, j: int, colour: Colorize) -> Rank | None:
    cell = row.cells[j]
    if cell is None or colour is Colorize.NONE:
        return None
    if colour is Colorize.ROWWISE:
        rivals: Sequence[Summary | None] = row.cells
    else:
        rivals = [other.cells[j] for other in grid.rows if other.num_threads == row.num_threads]
    return rank_value(cell.median, min(rival.median for rival in rivals if rival is not None))


def format_columns(grid: Grid, style: Style) -> list[list[str]]:
    """The text of every cell, column by column; all cells of a column are aligned at the decimal point."""
    _, scale = choose_unit(grid)
    return [_format_column([row.cells[j] for row in grid.rows], scale, style) for j in range(len(grid.columns))]


def _format_column(cells: Sequence[Summary | None], scale: float, style: Style) -> list[str]:
    measured = [cell for cell in cells if cell is not None]
    digits = [count_integer_digits(cell.median / scale) for cell in measured]
    known = (max(cell.significant_figures - n, 0) for cell, n in zip(measured, digits, strict=True))
    decimals = min(known, default=0) if style.trim else 1
    width = max(digits, default=0) + decimals + (1 if decimals else 0)
    warning_width = WARNING_WIDTH if style.warnings and any(map(is_suspect, measured)) else 0

    def show(cell: Summary | None) -> str:
        if cell is None:
            return " " * (len(f"{1:>{width}.{decimals}f}") + warning_width)
        value = trim_sigfig(cell.median / scale, cell.significant_figures) if style.trim else cell.median / scale
        warning = f" (! {cell.iqr_share * 100:.0f}%)" if warning_width and is_suspect(cell) else ""
        return f"{value:>{width}.{decimals}f}{warning:>{warning_width}}"

    return [show(cell) for cell in cells]


def render_table(grid: Grid, style: Style) -> str:
    """The whole table with its title and legend; ends with a newline."""
    names = ["", *_name_column(grid)]
    headers = [column or "" for column in grid.columns]
    columns = [[header, *cells] for header, cells in zip(headers, format_columns(grid, style), strict=True)]
    widths = [max(map(len, column)) for column in (names, *columns)]
    centred = [[text.center(width) for text in column] for column, width in zip(columns, widths[1:], strict=True)]
    ranks = rank_cells(grid, style.colour)

    lines = [SEPARATOR.join([names[0].ljust(widths[0]), *(column[0] for column in centred)])]
    width = len(lines[0])
    threads = None
    for i, row in enumerate(grid.rows):
        if row.num_threads != threads:
            threads = row.num_threads
            lines.append(f"{threads} threads: ".ljust(width, "-"))
        cells = (_paint(column[i + 1], rank) for column, rank in zip(centred, ranks[i], strict=True))
        lines.append(SEPARATOR.join([names[i + 1].ljust(widths[0]), *cells]))

    title = f"[{f' {grid.label or str()} '.center(width - 2, '-')}]"
    return "\n".join([title, *lines, "", *explain(grid, style), ""])


def _name_column(grid: Grid) -> list[str]:
    several = has_several_envs(grid)
    pad = 4 + (max(len(name_env(row.env)) for row in grid.rows) if several else 0)
    names = []
    for _, group in itertools.groupby(grid.rows, key=lambda row: (row.num_threads, row.env)):
        for i, row in enumerate(group):
            env = name_env(row.env)
            tag = f"({env})" if env and several and i == 0 else ""
            names.append(f"  {tag:<{pad}}{one_line(row.name)}")
    return names


def _paint(text: str, rank: Rank | None) -> str:
    return text if rank is None or not rank.value else f"{rank.value}{text}{END * 2}"


def explain(grid: Grid, style: Style) -> list[str]:
    """What stands below a table: its unit, and what its warnings mean."""
    unit, _ = choose_unit(grid)
    warned = style.warnings and any(cell and is_suspect(cell) for row in grid.rows for cell in row.cells)
    return [f"Times are in {unit_to_english(unit)}s ({unit}).", *([WARNING_LEGEND] if warned else [])]


# What has a meaning in Markdown, or as a link or a mention on GitHub. What others are escaped with comes first.
_ACTIVE = {
    "\\": "\\\\",
    "&": "&amp;",
    "#": "\\#",
    **{mark: f"\\{mark}" for mark in "|*_`<[>~$"},
    "@": "&#64;",
    "://": "&#58;//",
    "www.": "www&#46;",
}
# What begins a list or a rule where it comes first.
_LEADING = re.compile(r"^(\d*)([-+.)])(?=[\s-]|$)")


def markdown_row(cells: Sequence[str]) -> str:
    """A line of a table, of cells that are Markdown already.

    >>> markdown_row(["a", "---:"])
    '| a | ---: |'
    """
    return f"| {' | '.join(cells)} |"


def escape_markdown(text: str | None) -> str:
    """Text of other people that is shown to the letter: it cannot end its cell, turn into markup or become a link.

    >>> print(escape_markdown("a|b\\nc"), escape_markdown("1. see https://example.org"))
    a\\|b<br>c 1\\. see https&#58;//example.org
    """
    return "<br>".join(_escape_line(printable(line.expandtabs())) for line in (text or "").splitlines())


def _escape_line(line: str) -> str:
    for mark, harmless in _ACTIVE.items():
        line = line.replace(mark, harmless)
    return _LEADING.sub(r"\1\\\2", line)


FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r", "\n", "'")


def guard(text: str) -> str:
    """A text that no spreadsheet takes for a formula.

    >>> guard("=1+1"), guard("'quoted'"), guard("x = 1"), guard("a;=1")
    ("'=1+1", "''quoted'", 'x = 1', "a;'=1")
    """
    text = _INNER_FORMULA.sub(r"\1'", text)
    return f"'{text}" if text.startswith(FORMULA_STARTS) else text


# Quotes in a text are doubled: those before a formula may be read as an empty cell in quotes.
_INNER_FORMULA = re.compile(r"""([;\n])(?=["']*[-=+@]|')""")

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
        env = [escape_markdown(name_env(row.env))] if several else []
        keys = [str(row.num_threads), *env, escape_markdown(row.name)]
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
        values = {"label": grid.label, **_to_json_summary_row(row, column, cell)}
        writer.writerow({name: guard(value) if isinstance(value, str) else value for name, value in values.items()})
    return out.getvalue()


def export_dict(grids: Sequence[Grid]) -> dict[str, Any]:
    """Plain values for JSON: a list of results for each label."""
    return {
        **begin_document("compare"),
        "tables": [
            {
                "label": grid.label,
                "results": [_to_json_summary_row(row, column, cell) for _, row, column, cell in _cells([grid])],
            }
            for grid in grids
        ],
    }


def _to_json_summary_row(row: GridRow, column: str | None, cell: Summary) -> dict[str, Any]:
    keys = {"num_threads": row.num_threads, "env": row.env, "name": row.name, "description": column}
    return {**keys, **to_json_summary(cell)}


def to_json_summary(summary: Summary) -> dict[str, Any]:
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


def to_json_caveat(caveat: Caveat) -> dict[str, Any]:
    return {"kind": caveat.kind, **dataclasses.asdict(caveat)}


def _cells(grids: Sequence[Grid]) -> Iterator[tuple[Grid, GridRow, str | None, Summary]]:
    for grid in grids:
        for row in grid.rows:
            for column, cell in zip(grid.columns, row.cells, strict=True):
                if cell is not None:
                    yield grid, row, column, cell
