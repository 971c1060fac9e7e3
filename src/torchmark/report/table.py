"""A grid of results as a text table, in the layout that torch.utils.benchmark users know."""

from __future__ import annotations

import dataclasses
import enum
import itertools
from collections.abc import Sequence

from torchmark.analysis.arrange import Grid, Row, has_several_envs, name_env
from torchmark.analysis.doubt import is_suspect
from torchmark.model.summary import Summary
from torchmark.report.printable import one_line
from torchmark.report.units import count_integer_digits, select_unit, trim_sigfig, unit_to_english

BEST = "\033[92m"
GOOD = "\033[34m"
BAD = "\033[2m\033[91m"
VERY_BAD = "\033[31m"
BOLD = "\033[1m"
TERMINATE = "\033[0m"

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

    BEST = BEST + BOLD
    GOOD = GOOD + BOLD
    PLAIN = ""
    BAD = BAD
    VERY_BAD = VERY_BAD + BOLD


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
    if value >= best * 2:
        return Rank.BAD
    return Rank.PLAIN


def choose_unit(grid: Grid) -> tuple[str, float]:
    """One unit for all cells: the one in which the smallest median reads best."""
    medians = [cell.median for row in grid.rows for cell in row.cells if cell is not None]
    return select_unit(min(medians, default=1.0))


def rank_cells(grid: Grid, colour: Colorize) -> list[list[Rank | None]]:
    """How each cell compares with the best of its row, or of its column among the same thread count.

    None for a missing cell, and for all of them without colour.
    """
    return [[_rank_cell(grid, row, j, colour) for j in range(len(grid.columns))] for row in grid.rows]


def _rank_cell(grid: Grid, row: Row, j: int, colour: Colorize) -> Rank | None:
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
    decimals = 1
    if style.trim:
        decimals = min((max(c.significant_figures - d, 0) for c, d in zip(measured, digits, strict=True)), default=0)
    width = max(digits, default=0) + decimals + (1 if decimals else 0)
    warning_width = WARNING_WIDTH if style.warnings and any(map(is_suspect, measured)) else 0

    def show(cell: Summary | None) -> str:
        if cell is None:
            return " " * (len(f"{1:>{width}.{decimals}f}") + warning_width)
        value = cell.median / scale
        if style.trim:
            value = trim_sigfig(value, cell.significant_figures)
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
    return text if rank is None or not rank.value else f"{rank.value}{text}{TERMINATE * 2}"


def explain(grid: Grid, style: Style) -> list[str]:
    """What stands below a table: its unit, and what its warnings mean."""
    unit, _ = choose_unit(grid)
    lines = [f"Times are in {unit_to_english(unit)}s ({unit})."]
    if style.warnings and any(cell and is_suspect(cell) for row in grid.rows for cell in row.cells):
        lines.append(WARNING_LEGEND)
    return lines
