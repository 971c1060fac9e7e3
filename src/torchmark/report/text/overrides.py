"""What overrides cost, as tables by call and type and as findings."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

from torchmark.analysis.overrides import CLASSIC, PLAIN, Expectation, Extreme, OverrideFinding, OverrideRow
from torchmark.analysis.verdict.explain import (
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
from torchmark.model.run import Run, RunInfo
from torchmark.report.caveats import explain_environments, explain_marks, find_marks
from torchmark.report.text.failures import list_failures
from torchmark.report.text.run_summary import describe_run, render_footer
from torchmark.report.text.run_table import FAILED, MISSING, find_margin
from torchmark.report.text.table import INDENT, TextColumn, TextRow, TextTable
from torchmark.report.text.terminal import count, printable, wrap
from torchmark.report.text.units import format_share_cell, format_time

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
NAME, MARKS = "name", "marks"
# Less than half an instruction is shown as none.
VISIBLE = 0.5


def render_costs(rows: Sequence[OverrideRow], width: int, *, colour: bool = False) -> list[str]:
    """Times in microseconds and instructions of a call, and how many of each it has more than with plain Tensors."""
    shown = [row for row in rows if row.summary.wall or row.summary.count or not row.summary.failures]
    cells = [{**_fill(row), MARKS: find_marks(row.summary)} for row in shown]
    heads = [head for head in HEADS if any(one[head] for one in cells)]
    marks = [TextColumn(MARKS, "", gap=1, left=True)] if any(one[MARKS] for one in cells) else []
    return _lay_out(shown, cells, heads, width, marks=marks, colour=colour).lines() if shown else []


def _lay_out(
    rows: Sequence[OverrideRow],
    cells: Sequence[Mapping[str, str]],
    heads: Sequence[str],
    width: int,
    *,
    marks: Sequence[TextColumn] = (),
    colour: bool,
) -> TextTable:
    """Rows by call: a heading with the statement, and below it a line a type."""
    name = TextColumn(NAME, "", left=True, least=LEAST_NAME, wide=LEAST_NAME)
    columns = [name, *(TextColumn(head, gap=1) for head in heads), *marks]
    texts = [
        TextRow({NAME: INDENT + printable(row.operands), **one}, heading=f"{row.call}: {format_stmt(row)}")
        for row, one in zip(rows, cells, strict=True)
    ]
    return TextTable(columns, texts, width, name=NAME, gives_way=DISPENSABLE, colour=colour)


def _fill(row: OverrideRow) -> dict[str, str]:
    summary, overhead = row.summary, row.overhead
    cells = dict.fromkeys(HEADS, "")
    failed = {metric for metric, _ in summary.failures}
    for head, metric in (("median", Metric.WALL), ("instr", Metric.COUNT)):
        cells[head] = FAILED if metric in failed else MISSING if metric in summary.missing else ""
    if (wall := summary.wall) is not None:
        times = wall.times
        cells["min"], cells["median"] = format_us(times.minimum), format_us(times.median)
        cells["std"] = "" if times.std is None else format_us(times.std)
        cells["±"] = "" if (margin := find_margin(wall)) is None else format_share_cell(margin)
    if summary.count is not None:
        cells["instr"] = f"{summary.count.instructions:,.0f}"
    if overhead is not None:
        cells["+ns"] = "" if overhead.seconds is None else format_more(overhead.seconds / 1e-9)
        cells["+instr"] = "" if overhead.instructions is None else format_more(overhead.instructions)
    return cells


def format_us(seconds: float) -> str:
    """Microseconds without their unit; three decimals are nanoseconds.

    >>> format_us(1.2344e-6), format_us(123.4e-6)
    ('1.234', '123.4')
    """
    us = seconds / MICROSECOND
    return f"{us:.3f}" if us < 100 else f"{us:,.1f}"


def format_more(number: float) -> str:
    """A difference as a whole number with its sign.

    >>> format_more(1234.5), format_more(-0.2)
    ('+1,234', '0')
    """
    return f"{number:+,.0f}" if abs(number) >= VISIBLE else "0"


def render_stages(rows: Sequence[OverrideRow], width: int, *, colour: bool = False) -> list[str]:
    """The instructions that calls have more than with plain Tensors, by stage; each line adds up to `+instr`.

    Where there is little room, the stages in which there is least are one column.
    """
    shown = [row for row in rows if row.overhead is not None and row.overhead.explanation is not None]
    weights = {stage: sum(abs(_deltas(row)[stage]) for row in shown) for stage in STAGES}
    stages = [stage for stage in STAGES if weights[stage] >= VISIBLE]
    merged: list[str] = []
    while True:
        cells = [_fill_stages(row, stages, merged) for row in shown]
        table = _lay_out(shown, cells, list(cells[0]) if cells else [], width, colour=colour)
        if len(stages) < 2 or not table.is_cramped:
            return table.lines() if shown else []
        # Two at least, or the column could have kept its name.
        for _ in range(1 if merged else 2):
            stages.remove(least := min(stages, key=lambda stage: weights[stage]))
            merged.append(least)


def _fill_stages(row: OverrideRow, stages: Sequence[str], merged: Sequence[str]) -> dict[str, str]:
    deltas = _deltas(row)
    cells = {SHORT_STAGES[stage]: format_more(deltas[stage]) for stage in stages}
    return {**cells, REST: format_more(sum(deltas[stage] for stage in merged))} if merged else cells


def _deltas(row: OverrideRow) -> dict[str, float]:
    assert row.overhead is not None
    assert row.overhead.explanation is not None
    return {stage.stage: stage.delta for stage in row.overhead.explanation.stages}


def format_stmt(row: OverrideRow) -> str:
    return printable(" ".join(line.strip() for line in row.case.args.stmt.splitlines()))


LEAST_WIDTH = 60
# What `torch.tensor`, which makes plain Tensors, has always been called in these lines.
MAKER_OF_PLAIN = "tensor"


def render_overrides(
    run: Run,
    rows: Sequence[OverrideRow],
    findings: Sequence[OverrideFinding],
    width: int,
    *,
    colour: bool = False,
    shown: RunInfo | None = None,
    store: str = "",
) -> str:
    """All of it. `shown` is the run as commands that are proposed may call it, `store` where it is kept."""
    width = max(width, LEAST_WIDTH)
    summaries = [row.summary for row in rows]
    stages = render_stages(rows, width, colour=colour)
    long = [f"{short} is {stage}" for stage, short in SHORT_STAGES.items() if short in ("interp", "t_func", "alloc")]
    parts = [
        [describe_run(run, width)],
        render_costs(rows, width, colour=colour),
        list(_explain_costs(run, rows, width)),
        [*wrap("The instructions that are more than with plain Tensors, by stage of the call:", width), "", *stages]
        if stages
        else [],
        wrap(f"{', '.join(long)}. Functions by stage are in the JSON.", width) if stages else [],
        [line for finding in findings for line in wrap(describe_finding(finding), width, 2)],
        list_classic_lines(rows),
        list_failures(summaries, run.plan, width),
        render_footer(summaries, run.plan, width, shown, store),
    ]
    return "\n\n".join("\n".join(part) for part in parts if part)


def _explain_costs(run: Run, rows: Sequence[OverrideRow], width: int) -> Iterator[str]:
    sampling, summaries, texts = run.plan.sampling, [row.summary for row in rows], []
    if any(summary.wall for summary in summaries):
        blocks = count(sampling.blocks or 0, "block")
        texts.append(
            f"Times are microseconds per call, of {blocks} of {sampling.number:,} calls each; std is the standard "
            "deviation of blocks, ± the 95 % interval of the median."
        )
    if any(summary.count for summary in summaries):
        texts.append("Instructions are per call, with those of the empty loop.")
    if any(row.overhead for row in rows):
        texts.append("What has a plus sign is more than with plain Tensors; times between minima.")
    yield from wrap(" ".join(texts), width)
    yield from explain_marks(summaries, width)
    yield from explain_environments(summaries, width)


def describe_finding(finding: OverrideFinding) -> str:
    """A finding as a sentence that begins with whether it is met."""
    return f"{'Met' if finding.is_met else 'Not met'}: {_WORDS[finding.expectation](finding)}"


def _describe_cheapest(finding: OverrideFinding) -> str:
    closest = f"{_name_type(finding.least)}, with {finding.least.value:+,.0f} instructions"
    if finding.is_met:
        return f"plain Tensors are cheapest in every call. Closest is {closest}."
    exceptions = f"{finding.of - finding.met} of {finding.of} cases"
    return f"plain Tensors are cheapest, except in {exceptions}; closest is {closest}."


def _describe_nothing(finding: OverrideFinding) -> str:
    most = finding.most
    return (
        "overrides cost plain Tensors next to nothing. Functions for them take at most "
        f"{most.value:,.0f} instructions of a call ({most.row.call}); expected are less than {finding.limit:,.0f}."
    )


def _describe_limit(finding: OverrideFinding, whom: str, expected: str) -> str:
    least, most = finding.least, finding.most
    pay = f"{_time(least)} to {_time(most)} more ({_name_type(least)}; {_name_type(most)})"
    if finding.of == 1:
        pay = f"{_time(most)} more ({_name_type(most)})"
    return (
        f"{whom} pay {pay}. Expected is {expected}, less than {format_time(finding.limit)}: "
        f"{finding.met} of {count(finding.of, 'case')}."
    )


def _describe_order(finding: OverrideFinding) -> str:
    names = ", ".join(f"{one.row.operands} ({_time(one)})" for one in finding.order)
    return f"the overhead of torch.add should grow from Tensor to subclasses to Tensor-likes. It grows so: {names}."


_WORDS = {
    Expectation.PLAIN_IS_CHEAPEST: _describe_cheapest,
    Expectation.NOTHING_FOR_PLAIN: _describe_nothing,
    Expectation.SMALL_FOR_SUBCLASSES: lambda finding: _describe_limit(finding, "subclasses of Tensor", "little"),
    Expectation.COUPLE_FOR_TENSOR_LIKES: lambda finding: _describe_limit(finding, "Tensor-likes", "a couple of us"),
    Expectation.ORDER: _describe_order,
}


def _name_type(extreme: Extreme) -> str:
    return f"{extreme.row.call} / {extreme.row.operands}"


def _time(extreme: Extreme) -> str:
    return format_time(extreme.value) if extreme.value else "0"


def list_classic_lines(rows: Sequence[OverrideRow]) -> list[str]:
    """The lines that reports on a change have always had, word for word."""
    found = [(row, row.summary.wall.times) for row in rows if row.has(CLASSIC) and row.summary.wall is not None]
    return [
        f"Type {MAKER_OF_PLAIN if row.has(PLAIN) else row.operands} had a minimum time of "
        f"{times.minimum / MICROSECOND:.6g} us and a standard deviation of "
        f"{(math.nan if times.std is None else times.std) / MICROSECOND:.6g} us."
        for row, times in found
    ]


def describe_bundle(output: str, size: int, drawn: int, slower: int) -> str:
    """What is in the ZIP of a comparison, of so many bytes; `drawn` of those that became slower have graphs."""
    graphs = f", with flame graphs of {drawn} of {count(slower, 'case')} that became slower" if slower else ""
    return f"{output} ({size / 1e6:.1f} MB) has the page, the tables and the raw results{graphs}."
