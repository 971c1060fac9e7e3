"""The rows of a table of results: what stands in the columns of numbers, and how names get along with little room."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Hashable, Iterable, Sequence
from typing import TypeVar

from torchmark.model.case import AutogradMode
from torchmark.model.plan import Metric, Target
from torchmark.model.summary import CaseSummary, WallSummary
from torchmark.report.cells import cut, cut_middle, measure, pad
from torchmark.report.marks import find_marks
from torchmark.report.printable import one_line, printable
from torchmark.report.units import show_allocations, show_share, show_time
from torchmark.report.variants import Variants, name_target

FAILED = "failed"
MISSING = "-"
INDENT = "  "

T = TypeVar("T", bound=Hashable)

# What qualifies the number before it.
QUALIFYING = ("±", "spread")
# The columns, in their order, with the metric they belong to.
COLUMNS = {
    "time": Metric.WALL,
    "±": Metric.WALL,
    "instructions": Metric.COUNT,
    "spread": Metric.COUNT,
    "mallocs": Metric.COUNT,
    "tensors": Metric.COUNT,
}


def find_margin(wall: WallSummary) -> float | None:
    """How far the farther end of the interval is from the median, as a share of it; None where there is none."""
    median = wall.times.median
    if wall.interval is None or median <= 0:
        return None
    return max(wall.interval.high - median, median - wall.interval.low) / median


def fill_cells(summary: CaseSummary) -> dict[str, str]:
    """The text of each column."""
    failed = {metric for metric, _ in summary.failures}
    cells = dict.fromkeys(COLUMNS, "")
    for column, metric in (("time", Metric.WALL), ("instructions", Metric.COUNT)):
        cells[column] = FAILED if metric in failed else MISSING if metric in summary.missing else ""
    if (wall := summary.wall) is not None:
        cells["time"] = show_time(wall.times.median)
        if (margin := find_margin(wall)) is not None:
            cells["±"] = "±" + show_share(margin)
    if (counted := summary.count) is not None:
        cells["instructions"] = f"{counted.instructions:,.0f}"
        cells["spread"] = "" if counted.spread is None else show_share(counted.spread)
        cells["mallocs"] = show_allocations(counted.allocations)
        cells["tensors"] = show_allocations(counted.tensor_allocations)
    return cells


@dataclasses.dataclass(frozen=True)
class Row:
    """A case in one environment."""

    heading: str
    above: str
    """A line of its own before the row."""
    leaf: str
    """Empty where it is that of the row above."""
    words: tuple[str, ...]
    short_words: tuple[str, ...]
    cells: dict[str, str]
    marks: str
    stmt: str

    def variant(self, *, short: bool) -> str:
        """How the case differs from others of its label."""
        return " ".join(self.short_words if short else self.words)

    def room(self, *, short: bool) -> int:
        """Columns that the name takes on a single line."""
        return measure(" ".join(filter(None, (INDENT + self.leaf, self.variant(short=short)))))


def make_rows(summaries: Sequence[CaseSummary], targets: Sequence[Target]) -> list[Row]:
    """Rows by what their labels begin with. Environments are blocks within each variant, as close as can be."""
    variants = Variants(summary.case for summary in summaries)
    places = {target: i for i, target in enumerate(targets)}
    headings = _number(variants.heading(summary.case) for summary in summaries)
    labels = _number((summary.case.suite, summary.case.label) for summary in summaries)
    runtimes = _number(summary.case.autolabels.as_dict["runtime"] for summary in summaries)
    modes = list(AutogradMode)

    def position(summary: CaseSummary) -> tuple[int, ...]:
        case = summary.case
        variant = runtimes[case.autolabels.as_dict["runtime"]], modes.index(case.autolabels.autograd)
        heading, label = headings[variants.heading(case)], labels[case.suite, case.label]
        return heading, label, *variant, case.args.num_threads, places.get(summary.target, len(places))

    rows: list[Row] = []
    last: tuple[int, ...] = ()
    for place, block in itertools.groupby(sorted(summaries, key=position), key=position):
        for i, summary in enumerate(block):
            if len(targets) > 1:
                rows.append(_make_block_row(summary, variants, first=i == 0, anew=place[:-1] != last[:-1]))
            else:
                rows.append(_make_row(summary, variants, anew=place[:2] != last[:2]))
            last = place
    return rows


def _number(values: Iterable[T]) -> dict[T, int]:
    return {value: i for i, value in enumerate(dict.fromkeys(values))}


def _make_row(summary: CaseSummary, variants: Variants, *, anew: bool) -> Row:
    case = summary.case
    return Row(
        heading=variants.heading(case),
        above="",
        leaf=variants.leaf(case) if anew else "",
        words=variants.words(case),
        short_words=variants.words(case, short=True),
        cells=fill_cells(summary),
        marks=find_marks(summary),
        stmt=printable(one_line(case.args.stmt.strip())),
    )


def _make_block_row(summary: CaseSummary, variants: Variants, *, first: bool, anew: bool) -> Row:
    """A row below its case's name, in a block of those in the same environment."""
    case, kind = summary.case, variants.kind(summary.case)
    return dataclasses.replace(
        _make_row(summary, variants, anew=anew),
        above=variants.leaf(case) + (f": {' '.join(kind)}" if kind else "") if anew else "",
        leaf=f"{INDENT}({name_target(summary.target)})" if first else "",
        words=variants.language(case),
        short_words=variants.language(case, short=True),
    )


def place_name(row: Row, room: int, width: int, *, short: bool) -> tuple[list[str], str]:
    """Lines for what does not fit beside the rest, and what stands before the numbers, exactly as wide as the room."""
    indent, variant = INDENT if row.heading else "", row.variant(short=short)
    lines = [cut(indent + row.above, width)] if row.above else []
    if row.leaf and measure(indent + " ".join(filter(None, (row.leaf, variant)))) <= room:
        # The variant stands at the right, next to the numbers.
        return lines, pad(indent + row.leaf, room - measure(variant)) + variant
    if row.leaf:
        lines.append(cut(indent + row.leaf, width))
    return lines, pad(cut_middle(variant, room), room, right=True)
