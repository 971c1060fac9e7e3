"""Runs as CSV, Markdown and JSON tables.

Apart from `programs.py`: these formats are torchmark's own.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from torchmark.model.plan import Metric
from torchmark.model.run import CaseSummary, Run
from torchmark.report.formats.entries import list_entries, to_json_compiling, to_json_counts, to_json_nodes
from torchmark.report.text.grid import escape_markdown, guard, markdown_row, to_json_summary
from torchmark.report.text.terminal import one_line, printable
from torchmark.report.text.units import format_range, format_time

COLUMNS = (
    "suite", "label", "runtime", "autograd", "language", "threads", "target",
    "samples", "median_s", "low_s", "high_s", "mean_s", "p25_s", "p75_s", "min_s", "max_s", "std_s",
    "instructions", "spread", "allocations", "tensor_allocations",
    "compile_cold_s", "compile_warm_s", "graphs", "graph_breaks",
    "wall_failure", "count_failure", "missing",
)  # fmt: skip
# What separates cells, by the program's language or where the user says so.
_QUOTED = frozenset(',;\t|"\n\r')


def write_csv(run: Run) -> str:
    """A header and a line for each case in each target; `low_s` and `high_s` bound the median.

    `nodes` is there only for a run that several machines took part in.
    """
    entries = list_entries(run)
    columns = (*COLUMNS, "nodes") if any(entry.summary.nodes for entry in entries) else COLUMNS
    rows = (_write_row(entry.summary) for entry in entries)
    lines = [",".join(columns), *(",".join(_write_cell(row.get(name)) for name in columns) for row in rows)]
    return "\n".join([*lines, ""])


def _write_cell(value: str | float | None) -> str:
    if not isinstance(value, str):
        return "" if value is None else repr(value)
    # Lines of a failure's message stay apart; all else that cannot be seen becomes blanks.
    text = guard("\n".join(map(printable, value.split("\n"))))
    return '"{}"'.format(text.replace('"', '""')) if _QUOTED & set(text) else text


def _write_row(summary: CaseSummary) -> dict[str, Any]:
    case, counts, wall = summary.case, summary.count, summary.wall
    row: dict[str, Any] = {
        "suite": case.suite,
        "label": " / ".join(case.label),
        **case.autolabels.as_dict,
        "threads": case.args.num_threads,
        "target": summary.target.name,
        **to_json_counts(summary),
        "spread": counts.spread if counts else None,
        **to_json_compiling(wall.compiling if wall else None),
        "missing": " ".join(metric.value for metric in summary.missing),
        **to_json_nodes(summary),
    }
    if wall is not None:
        low, high = (wall.interval.low, wall.interval.high) if wall.interval else (None, None)
        row |= {**to_json_summary(wall.times), "low_s": low, "high_s": high}
    for metric in Metric:
        failures = [failure for failed, failure in summary.failures if failed is metric]
        row[f"{metric.value}_failure"] = "\n".join(f"{f.kind.value}: {f.message}" for f in failures)
    return row


NOTHING = "–"


class _Column(NamedTuple):
    """A heading, its alignment, and what stands in a row, as Markdown; None is nothing to say."""

    heading: str
    alignment: str
    write: Callable[[CaseSummary], str | None]


def write_markdown(run: Run) -> str:
    """The columns of what was asked for, and of what is not the same for all."""
    summaries = [entry.summary for entry in list_entries(run)]
    metrics = run.plan.sampling.metrics
    columns = [*_name_columns(summaries), *(c for metric in metrics for c in RESULTS[metric]), _NODES, _NOTES]
    table = [[column.write(summary) for summary in summaries] for column in columns]
    shown = [
        (column, cells)
        for column, cells in zip(columns, table, strict=True)
        if any(cells) or any(column in RESULTS[metric][:1] for metric in metrics)
    ]
    lines = [
        markdown_row([column.heading for column, _ in shown]),
        markdown_row([column.alignment for column, _ in shown]),
        *(markdown_row([cells[i] or NOTHING for _, cells in shown]) for i in range(len(summaries))),
    ]
    return "\n".join([*lines, ""])


def _name_columns(summaries: list[CaseSummary]) -> list[_Column]:
    """The label always; what else tells cases apart only where it does, or where there is but one case."""

    def label(name: str) -> Callable[[CaseSummary], str]:
        return lambda summary: escape_markdown(summary.case.autolabels.as_dict[name])

    candidates = [
        *(_Column(name, "---", label(name)) for name in ("runtime", "autograd", "language")),
        _Column("threads", "---:", lambda summary: str(summary.case.args.num_threads)),
        _Column("target", "---", lambda summary: escape_markdown(summary.target.name)),
    ]
    telling = [column for column in candidates if len({column.write(summary) for summary in summaries}) > 1]
    return [_Column("benchmark", "---", lambda s: escape_markdown(" / ".join(s.case.label))), *telling]


def _format_interval(summary: CaseSummary) -> str | None:
    interval = summary.wall.interval if summary.wall else None
    return format_range(interval.low, interval.high) if interval else None


def _format_compiling(summary: CaseSummary) -> str | None:
    costs = summary.wall.compiling if summary.wall else None
    return f"{format_time(costs.cold_s)}, {format_time(costs.warm_s)}" if costs else None


def _format_spread(summary: CaseSummary) -> str | None:
    spread = summary.count.spread if summary.count else None
    return None if spread is None else f"{spread:.2%}"


def _format_notes(summary: CaseSummary) -> str | None:
    failures = [f"{metric.value} failed: {one_line(failure.message)}" for metric, failure in summary.failures]
    # Some rounds may be there.
    parts = {Metric.WALL: summary.wall, Metric.COUNT: summary.count}
    begun = {metric for metric, _ in summary.failures} | {metric for metric, part in parts.items() if part}
    missing = [f"{metric.value} {'incomplete' if metric in begun else 'missing'}" for metric in summary.missing]
    return escape_markdown("\n".join([*failures, *missing])) or None


RESULTS = {
    Metric.WALL: (
        _Column("time", "---:", lambda s: format_time(s.wall.times.median) if s.wall else None),
        _Column("95 % interval", "---:", _format_interval),
        _Column("compile (empty cache, again)", "---:", _format_compiling),
    ),
    Metric.COUNT: (
        _Column("instructions", "---:", lambda s: f"{s.count.instructions:,.0f}" if s.count else None),
        _Column("spread", "---:", _format_spread),
    ),
}
_NODES = _Column("nodes", "---", lambda s: escape_markdown(to_json_nodes(s).get("nodes", "")))
_NOTES = _Column("notes", "---", _format_notes)
