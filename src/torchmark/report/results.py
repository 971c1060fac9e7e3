"""The closing table of a run: a line a case, what to doubt, what failed, and what to do next."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence

from torchmark.model.plan import Plan
from torchmark.model.run import RunInfo
from torchmark.model.summary import CaseSummary
from torchmark.report.cells import cut, measure, pad, wrap
from torchmark.report.closing import close
from torchmark.report.failed import list_failures
from torchmark.report.firsts import render_compile_costs
from torchmark.report.marks import explain_environments, explain_marks
from torchmark.report.rows import COLUMNS, QUALIFYING, Row, make_rows, place_name
from torchmark.report.variants import explain_short_words

LEAST_WIDTH = 40
# Names have at least this much room; columns of numbers give way.
LEAST_NAME = 16
# In which order they do.
DISPENSABLE = ("tensors", "mallocs", "spread", "±")
# Statements are shown where there is so much room for them.
LEAST_STATEMENT = 20
GAP = "  "
# The heads of the columns are told again below a table that is higher than most terminals.
TALL = 40

BOLD, RED, END = "\033[1m", "\033[31m", "\033[0m"


def render_results(
    summaries: Sequence[CaseSummary],
    plan: Plan,
    width: int,
    *,
    colour: bool = False,
    run: RunInfo | None = None,
    store: str = "",
) -> str:
    """The table, and below it legend, notes, failures and a closing sentence.

    Cases of which nothing was measured because all of it failed are among the failures only. `store` is where the run
    is kept, if commands that are proposed have to say so.
    """
    width = max(width, LEAST_WIDTH)
    shown = [summary for summary in summaries if summary.wall or summary.count or not summary.failures]
    parts: list[list[str]] = []
    if shown:
        parts += [_render_table(shown, plan, width, colour), list(_explain(shown, plan, width))]
    parts.append(render_compile_costs(shown, width))
    failures = list_failures(summaries, plan, width)
    parts.append([_paint(failures[0], RED + BOLD, colour), *failures[1:]] if failures else [])
    parts.append(close(summaries, plan, width, run, store))
    return "\n\n".join("\n".join(part) for part in parts if part)


@dataclasses.dataclass(frozen=True)
class _Layout:
    columns: dict[str, int]
    """Widths of the columns of numbers."""
    marks: int
    room: int
    """Of names."""
    short: bool
    statement: int
    """Columns for statements; 0 where there are none."""
    left_out: tuple[str, ...]


def _lay_out(rows: Sequence[Row], plan: Plan, width: int) -> _Layout:
    wanted = [column for column, metric in COLUMNS.items() if metric in plan.sampling.metrics]
    # What only qualifies others is left out where there is nothing to say.
    wanted = [column for column in wanted if column not in QUALIFYING or any(row.cells[column] for row in rows)]
    sizes = {column: max(len(column), *(measure(row.cells[column]) for row in rows)) for column in wanted}
    marks = max(len(row.marks) for row in rows)
    left_out = []
    for column in DISPENSABLE:
        if column in sizes and width - _add_up(sizes, marks) < LEAST_NAME:
            del sizes[column]
            left_out.append(column)
    most = max(width - _add_up(sizes, marks), 0)
    short = max(row.room(short=False) for row in rows) > most
    room = min(max(row.room(short=short) for row in rows), most)
    rest = width - room - _add_up(sizes, marks) - len(GAP)
    return _Layout(sizes, marks, room, short, rest if rest >= LEAST_STATEMENT else 0, tuple(left_out))


def _add_up(sizes: dict[str, int], marks: int) -> int:
    return sum(len(_gap(column)) + size for column, size in sizes.items()) + (marks + 1 if marks else 0)


def _gap(column: str) -> str:
    """What qualifies the number before it is close to it."""
    return " " if column in (*QUALIFYING, "tensors") else GAP


def _render_table(summaries: Sequence[CaseSummary], plan: Plan, width: int, colour: bool) -> list[str]:
    rows = make_rows(summaries, plan.targets)
    layout = _lay_out(rows, plan, width)
    head = _join("", {column: column for column in layout.columns}, "", "statement", layout)
    lines, heading = [_paint(cut(head, width), BOLD, colour)], ""
    for row in rows:
        if row.heading != heading:
            heading = row.heading
            lines += [_paint(cut(heading, width), BOLD, colour)] if heading else []
        above, name = place_name(row, layout.room, width, short=layout.short)
        lines += [*above, cut(_join(name, row.cells, row.marks, row.stmt, layout), width)]
    if len(lines) > TALL:
        lines.append(lines[0])
    words = [word for row in rows for word in row.short_words] if layout.short else []
    lines += _explain_layout(words, layout, width)
    return lines


def _join(name: str, cells: dict[str, str], marks: str, stmt: str, layout: _Layout) -> str:
    texts = [pad(name, layout.room)]
    texts += [_gap(column) + pad(cells[column], size, right=True) for column, size in layout.columns.items()]
    if layout.marks:
        texts.append(" " + pad(marks, layout.marks))
    if layout.statement:
        texts.append(GAP + cut(stmt, layout.statement))
    return "".join(texts).rstrip()


def _paint(text: str, style: str, colour: bool) -> str:
    return f"{style}{text}{END}" if colour else text


def _explain_layout(words: Sequence[str], layout: _Layout, width: int) -> list[str]:
    texts = [explain_short_words(words)]
    if layout.left_out:
        texts.append(f"A wider terminal shows {', '.join(reversed(layout.left_out))} too.")
    return [line for text in texts if text for line in wrap(text, width)]


def _explain(summaries: Sequence[CaseSummary], plan: Plan, width: int) -> Iterator[str]:
    """What the numbers are, then what the marks mean."""
    texts = []
    if any(summary.wall for summary in summaries):
        rounds = ", widened to how far rounds differ" if plan.sampling.repeat > 1 else ""
        texts.append(f"Time is the median, ± the farther end of its 95 % interval{rounds}.")
    if any(summary.count for summary in summaries):
        layouts = len(plan.sampling.layouts)
        how = f", in the median of {layouts} memory layouts" if layouts > 1 else ""
        spread = "; spread is from the lowest to the highest" if layouts * plan.sampling.repeat > 1 else ""
        texts.append(f"Instructions and allocations are per run{how}{spread}.")
        if any(summary.count and summary.count.baseline for summary in summaries):
            texts.append("Python's have those of the empty loop in them.")
    yield from wrap(" ".join(texts), width)
    yield from explain_marks(summaries, width)
    yield from explain_environments(summaries, width)
