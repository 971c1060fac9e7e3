"""Overrides as tables: what each call costs by type, and in which stage of a call the overhead is. 80 columns do."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence

from torchmark.analysis.overrides import OverrideRow
from torchmark.analysis.stages import (
    ALLOCATION,
    AUTOGRAD,
    DISPATCHER,
    INTERPRETER,
    KERNEL,
    OTHER,
    OVERRIDES,
    PARSING,
    STAGES,
    TEARDOWN,
    TORCHSCRIPT,
)
from torchmark.model.plan import Metric
from torchmark.report.cells import cut, measure, pad
from torchmark.report.marks import find_marks
from torchmark.report.printable import printable
from torchmark.report.rows import FAILED, MISSING
from torchmark.report.units import show_share

INDENT = "  "
BOLD, END = "\033[1m", "\033[0m"
# Names have at least this much room; what is longer stands on a line of its own.
LEAST_NAME = 22
MICROSECOND = 1e-6

HEADS = ("min", "std", "median", "±", "instr", "+ns", "+instr")
# Which columns give way where there is little room, the first one first.
DISPENSABLE = ("±", "std", "median")

SHORT_STAGES = {
    INTERPRETER: "interp",
    PARSING: "parsing",
    OVERRIDES: "t_func",
    TORCHSCRIPT: "script",
    DISPATCHER: "dispatch",
    AUTOGRAD: "autograd",
    ALLOCATION: "alloc",
    KERNEL: "kernel",
    TEARDOWN: "teardown",
    OTHER: "other",
}
REST = "rest"
# Less than half an instruction is shown as none.
VISIBLE = 0.5

Cells = Mapping[str, str]


def tabulate_costs(rows: Sequence[OverrideRow], width: int, *, colour: bool = False) -> list[str]:
    """Times in microseconds and instructions of a call, and how many of each it has more than with plain Tensors."""
    shown = [row for row in rows if row.summary.wall or row.summary.count or not row.summary.failures]
    heads = [head for head in HEADS if any(_fill(row)[head] for row in shown)]
    marks = max((len(find_marks(row.summary)) for row in shown), default=0)
    width -= marks + 1 if marks else 0
    for head in DISPENSABLE:
        if head in heads and _room(shown, heads, _fill, width) < LEAST_NAME:
            heads.remove(head)
    return list(_Table(shown, heads, _fill, width, colour).lines(lambda row: " " + find_marks(row.summary)))


def _fill(row: OverrideRow) -> dict[str, str]:
    summary, overhead = row.summary, row.overhead
    cells = dict.fromkeys(HEADS, "")
    failed = {metric for metric, _ in summary.failures}
    for head, metric in (("median", Metric.WALL), ("instr", Metric.COUNT)):
        cells[head] = FAILED if metric in failed else MISSING if metric in summary.missing else ""
    if (wall := summary.wall) is not None:
        times = wall.times
        cells["min"], cells["median"] = show_us(times.minimum), show_us(times.median)
        cells["std"] = "" if times.std is None else show_us(times.std)
        if wall.interval is not None and times.median > 0:
            farther = max(wall.interval.high - times.median, times.median - wall.interval.low)
            cells["±"] = show_share(farther / times.median)
    if summary.count is not None:
        cells["instr"] = f"{summary.count.instructions:,.0f}"
    if overhead is not None:
        cells["+ns"] = "" if overhead.seconds is None else show_more(overhead.seconds / 1e-9)
        cells["+instr"] = "" if overhead.instructions is None else show_more(overhead.instructions)
    return cells


def show_us(seconds: float) -> str:
    """Microseconds without their unit; three decimals are nanoseconds.

    >>> show_us(1.2344e-6), show_us(123.4e-6)
    ('1.234', '123.4')
    """
    us = seconds / MICROSECOND
    return f"{us:.3f}" if us < 100 else f"{us:,.1f}"


def show_more(number: float) -> str:
    """A difference as a whole number with its sign.

    >>> show_more(1234.5), show_more(-0.2)
    ('+1,234', '0')
    """
    return f"{number:+,.0f}" if abs(number) >= VISIBLE else "0"


def tabulate_stages(rows: Sequence[OverrideRow], width: int, *, colour: bool = False) -> list[str]:
    """The instructions that calls have more than with plain Tensors, by stage; each line adds up to `+instr`.

    Where there is little room, the stages in which there is least are one column.
    """
    shown = [row for row in rows if row.overhead is not None and row.overhead.explanation is not None]
    weights = {stage: sum(abs(_deltas(row)[stage]) for row in shown) for stage in STAGES}
    stages = [stage for stage in STAGES if weights[stage] >= VISIBLE]
    merged: list[str] = []

    def fill(row: OverrideRow) -> dict[str, str]:
        deltas = _deltas(row)
        cells = {SHORT_STAGES[stage]: show_more(deltas[stage]) for stage in stages}
        return {**cells, REST: show_more(sum(deltas[stage] for stage in merged))}

    def heads() -> list[str]:
        return [*(SHORT_STAGES[stage] for stage in stages), *([REST] if merged else [])]

    while len(stages) > 1 and _room(shown, heads(), fill, width) < LEAST_NAME:
        # Two at least, or the column could have kept its name.
        for _ in range(1 if merged else 2):
            stages.remove(least := min(stages, key=lambda stage: weights[stage]))
            merged.append(least)
    return list(_Table(shown, heads(), fill, width, colour).lines())


def _deltas(row: OverrideRow) -> dict[str, float]:
    assert row.overhead is not None
    assert row.overhead.explanation is not None
    return {stage.stage: stage.delta for stage in row.overhead.explanation.stages}


def _room(rows: Sequence[OverrideRow], heads: Sequence[str], fill: Callable[[OverrideRow], Cells], width: int) -> int:
    """What columns leave for names."""
    return width - sum(_size(rows, head, fill) + 1 for head in heads)


def _size(rows: Sequence[OverrideRow], head: str, fill: Callable[[OverrideRow], Cells]) -> int:
    return max(len(head), *(measure(fill(row)[head]) for row in rows), 0)


class _Table:
    """Rows by call: a heading with the statement, and below it a line a type."""

    def __init__(
        self,
        rows: Sequence[OverrideRow],
        heads: Sequence[str],
        fill: Callable[[OverrideRow], Cells],
        width: int,
        colour: bool,
    ) -> None:
        self._rows, self._fill, self._width, self._colour = rows, fill, width, colour
        self._sizes = {head: _size(rows, head, fill) for head in heads}
        names = max((measure(INDENT + _name(row)) for row in rows), default=0)
        self._room = min(max(_room(rows, heads, fill, width), 1), max(names, LEAST_NAME))

    def lines(self, mark: Callable[[OverrideRow], str] = lambda row: "") -> Iterator[str]:
        """All of it; `mark` stands behind a line."""
        if not self._rows:
            return
        yield self._paint(self._join("", {head: head for head in self._sizes}))
        for _, group in itertools.groupby(self._rows, key=lambda row: row.call):
            of_call = list(group)
            yield self._paint(cut(f"{of_call[0].call}: {show_stmt(of_call[0])}", self._width))
            for row in of_call:
                name = INDENT + _name(row)
                if measure(name) > self._room:
                    yield cut(name, self._width)
                    name = ""
                yield (self._join(name, self._fill(row)) + mark(row)).rstrip()

    def _join(self, name: str, cells: Cells) -> str:
        numbers = "".join(" " + pad(cells[head], size, right=True) for head, size in self._sizes.items())
        return pad(name, self._room) + numbers

    def _paint(self, text: str) -> str:
        return f"{BOLD}{text}{END}" if self._colour else text


def _name(row: OverrideRow) -> str:
    return printable(row.operands)


def show_stmt(row: OverrideRow) -> str:
    """The statement on a line."""
    return printable(" ".join(line.strip() for line in row.case.args.stmt.splitlines()))
