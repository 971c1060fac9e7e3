"""CSV: a line for each case in each target, also for those that failed. Numbers read back exactly.

Spreadsheets run a text that begins like a formula. Such a text has an apostrophe in front of it, also behind a
semicolon or the end of a line within a text: where semicolons separate cells, a new cell begins there. So has a text
that begins with an apostrophe itself: whoever drops one apostrophe at each of these places has what was there.
"""

from __future__ import annotations

from typing import Any

from torchmark.model.plan import Metric
from torchmark.model.run import Run
from torchmark.model.summary import CaseSummary
from torchmark.report.formats.entries import list_entries
from torchmark.report.formats.texts import plain_compiling, plain_counts, plain_nodes
from torchmark.report.markdown import guard
from torchmark.report.printable import printable

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
    nodes = ("nodes",) if any(entry.summary.nodes for entry in entries) else ()
    columns = (*COLUMNS, *nodes)
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
        **plain_counts(summary),
        "spread": counts.spread if counts else None,
        **plain_compiling(wall.compiling if wall else None),
        "missing": " ".join(metric.value for metric in summary.missing),
        **plain_nodes(summary),
    }
    if wall is not None:
        row |= _describe_times(summary)
    for metric in Metric:
        failures = [failure for failed, failure in summary.failures if failed is metric]
        row[f"{metric.value}_failure"] = "\n".join(f"{f.kind.value}: {f.message}" for f in failures)
    return row


def _describe_times(summary: CaseSummary) -> dict[str, Any]:
    wall = summary.wall
    assert wall is not None
    times, interval = wall.times, wall.interval
    return {
        "samples": times.samples,
        "median_s": times.median,
        "low_s": interval.low if interval else None,
        "high_s": interval.high if interval else None,
        "mean_s": times.mean,
        "p25_s": times.p25,
        "p75_s": times.p75,
        "min_s": times.minimum,
        "max_s": times.maximum,
        "std_s": times.std,
    }
