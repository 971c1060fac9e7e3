"""The table of a run's results: one line for each case, and what compiling costs."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from typing import TypeVar

from torchmark.model.outcome import CompileCosts
from torchmark.model.plan import AutogradMode, Metric, Plan, Target
from torchmark.model.run import CaseSummary, RunInfo, WallSummary
from torchmark.model.task import Times
from torchmark.report.caveats import explain_environments, explain_marks, find_marks
from torchmark.report.text.failures import join_reason, list_failures
from torchmark.report.text.names import Variants, explain_short_words, name_target
from torchmark.report.text.run_summary import render_footer
from torchmark.report.text.table import INDENT, TextColumn, TextRow, TextTable
from torchmark.report.text.terminal import BOLD, LEAST_WIDTH, RED, count, measure, one_line, paint, printable, wrap
from torchmark.report.text.units import format_allocations, format_share_cell, format_time, format_time_cell
from torchmark.stats.distribution import quantile

HEADS = ("guards, call", "first compile", "from cache", "graphs", "breaks")
# Heads for terminals without much room.
SHORT_HEADS = ("guards", "first", "cached", "graphs", "breaks")
LEAST_COMPILE_NAME = 36
TITLE = "torch.compile"


def render_compile_costs(summaries: Sequence[CaseSummary], width: int) -> list[str]:
    """The table with its explanation; nothing where nothing was compiled."""
    compiled = [(summary, summary.wall.compiling) for summary in summaries if summary.wall and summary.wall.compiling]
    if not compiled:
        return []
    names = _name(compiled, several=len({summary.target for summary in summaries}) > 1)
    heads = HEADS if width - sum(map(len, HEADS)) - 2 * len(HEADS) >= LEAST_COMPILE_NAME else SHORT_HEADS
    rows = [
        TextRow({TITLE: name, **dict(zip(heads, _fill(costs), strict=True))})
        for name, (_, costs) in zip(names, compiled, strict=True)
    ]
    columns = TextColumn(TITLE, left=True, least=LEAST_COMPILE_NAME // 2), *map(TextColumn, heads)
    lines = TextTable(columns, rows, width, name=TITLE, gives_way=reversed(heads)).lines()
    for i, text in _describe_breaks([costs for _, costs in compiled]):
        lines += [INDENT + line for line in join_reason(names[i], text, width - len(INDENT))]
    text = "Besides the steady time above: guards and the way in and out of each call; compiling with an empty cache, "
    return [*lines, *wrap(f"{text}and in another process with a filled one.", width)]


def _name(compiled: Sequence[tuple[CaseSummary, CompileCosts]], *, several: bool) -> list[str]:
    """What stands in the table's corner need not be said again in every line."""
    variants = Variants(summary.case for summary, _ in compiled)
    names = [variants.name(summary.case).replace(f", {TITLE}", "", 1) for summary, _ in compiled]
    targets = [f" ({name_target(summary.target)})" if several else "" for summary, _ in compiled]
    return [name + target for name, target in zip(names, targets, strict=True)]


def _fill(costs: CompileCosts) -> tuple[str, ...]:
    return (
        format_time_cell(quantile(sorted(costs.call.per_run), 0.5)) if costs.call.per_run else "",
        format_time_cell(costs.cold_s),
        format_time_cell(costs.warm_s) if costs.warm.cache_hits else "no cache",
        str(costs.graphs),
        str(costs.graph_breaks),
    )


def _describe_breaks(all_costs: Sequence[CompileCosts]) -> list[tuple[int, str]]:
    """What broke graphs and what was not compiled at all, of the first few cases that had it."""
    told = []
    for i, costs in enumerate(all_costs):
        texts = list(map(printable, costs.cold.breaks))
        if costs.cold.abandoned:
            texts.append(f"{count(costs.cold.abandoned, 'function')} left to the interpreter")
        if texts:
            told.append((i, "; ".join(texts)))
    return told[:5]


def describe_compile_costs(costs: CompileCosts) -> str:
    """A line for each cost, then what was compiled and what was not; nothing at the end."""
    rows = list_compile_costs(costs)
    width = max(len(name) for name, _ in rows)
    lines = [f"  {name:<{width}}  {text}" for name, text in rows]
    return "\n".join([*lines, *(f"    break: {text}" for text in costs.cold.breaks)])


def list_compile_costs(costs: CompileCosts) -> tuple[tuple[str, str], ...]:
    # Back ends other than Inductor keep nothing, and Inductor may refuse to.
    again, cached = ("from cache", "") if costs.warm.cache_hits else ("again", " (nothing was found in the cache)")
    breaks = count(costs.graph_breaks, "break") if costs.graph_breaks else "no breaks"
    left = f", {count(costs.cold.abandoned, 'function')} left to the interpreter" if costs.cold.abandoned else ""
    return (
        ("steady call", _median(costs.steady)),
        ("guards and call", _median(costs.call)),
        ("compile, empty cache", format_time(costs.cold_s)),
        (f"compile, {again}", format_time(costs.warm_s) + cached),
        ("graphs", f"{costs.graphs}, {breaks}{left}"),
    )


def _median(times: Times) -> str:
    return format_time(quantile(sorted(times.per_run), 0.5))


FAILED = "failed"
MISSING = "-"
NAME, MARKS, STATEMENT = "name", "marks", "statement"

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
    failed = {metric for metric, _ in summary.failures}
    cells = dict.fromkeys(COLUMNS, "")
    for column, metric in (("time", Metric.WALL), ("instructions", Metric.COUNT)):
        cells[column] = FAILED if metric in failed else MISSING if metric in summary.missing else ""
    if (wall := summary.wall) is not None:
        cells["time"] = format_time_cell(wall.times.median)
        if (margin := find_margin(wall)) is not None:
            cells["±"] = "±" + format_share_cell(margin)
    if (counted := summary.count) is not None:
        cells["instructions"] = f"{counted.instructions:,.0f}"
        cells["spread"] = "" if counted.spread is None else format_share_cell(counted.spread)
        cells["mallocs"] = format_allocations(counted.allocations)
        cells["tensors"] = format_allocations(counted.tensor_allocations)
    return cells


def make_rows(summaries: Sequence[CaseSummary], targets: Sequence[Target], *, short: bool = False) -> list[TextRow]:
    """Rows by what their labels begin with. Environments are blocks within each variant, as close as can be."""
    variants = Variants(summary.case for summary in summaries)
    rows: list[TextRow] = []
    last: tuple[int, ...] = ()
    for place, summary in _order(summaries, targets, variants):
        case, heading, leaf, above = summary.case, variants.heading(summary.case), variants.leaf(summary.case), ""
        if len(targets) > 1:
            # Below the case's name, the environment is told once for each block.
            above = ": ".join(filter(None, (leaf, " ".join(variants.kind(case))))) if place[:-1] != last[:-1] else ""
            name = f"{INDENT}({name_target(summary.target)})" if place != last else ""
            words = variants.language(case, short=short)
        else:
            name, words = leaf if place[:2] != last[:2] else "", variants.words(case, short=short)
        indent = INDENT if heading else ""
        stmt = printable(one_line(case.args.stmt.strip()))
        cells = {NAME: name and indent + name, **fill_cells(summary), MARKS: find_marks(summary), STATEMENT: stmt}
        rows.append(TextRow(cells, heading=heading, above=above and indent + above, aside=" ".join(words)))
        last = place
    return rows


def _order(
    summaries: Sequence[CaseSummary], targets: Sequence[Target], variants: Variants
) -> list[tuple[tuple[int, ...], CaseSummary]]:
    """Summaries with their places: of heading, label, runtime, autograd, threads and environment."""
    places = {target: i for i, target in enumerate(targets)}
    headings = _number(variants.heading(summary.case) for summary in summaries)
    labels = _number((summary.case.suite, summary.case.label) for summary in summaries)
    runtimes = _number(summary.case.autolabels.as_dict["runtime"] for summary in summaries)

    def position(summary: CaseSummary) -> tuple[int, ...]:
        case = summary.case
        variant = runtimes[case.autolabels.as_dict["runtime"]], list(AutogradMode).index(case.autolabels.autograd)
        heading, label = headings[variants.heading(case)], labels[case.suite, case.label]
        return heading, label, *variant, case.args.num_threads, places.get(summary.target, len(places))

    return sorted(((position(summary), summary) for summary in summaries), key=lambda placed: placed[0])


def _number(values: Iterable[T]) -> dict[T, int]:
    return {value: i for i, value in enumerate(dict.fromkeys(values))}


# Names have at least this much room; columns of numbers give way.
LEAST_NAME = 16
# In which order they do.
DISPENSABLE = ("tensors", "mallocs", "spread", "±")
# Statements are shown where there is so much room for them.
LEAST_STATEMENT = 20
# The heads of the columns are told again below a table that is higher than most terminals.
TALL = 40


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
    parts = [_render_table(shown, plan, width, colour), list(_explain(shown, plan, width))] if shown else []
    parts.append(render_compile_costs(shown, width))
    if any(summary.failures for summary in summaries):
        heading, *failures = list_failures(summaries, plan, width)
        parts.append([paint(heading, RED + BOLD, colour), *failures])
    parts.append(render_footer(summaries, plan, width, run, store))
    return "\n\n".join("\n".join(part) for part in parts if part)


def _render_table(summaries: Sequence[CaseSummary], plan: Plan, width: int, colour: bool) -> list[str]:
    words: list[str] = []
    table = _lay_out(make_rows(summaries, plan.targets), plan, width, colour)
    if table.is_tight:
        rows = make_rows(summaries, plan.targets, short=True)
        table = _lay_out(rows, plan, width, colour)
        words = [word for row in rows for word in row.aside.split()]
    lines = table.lines()
    if len(lines) > TALL:
        lines.append(lines[0])
    lines += wrap(explain_short_words(words), width)
    if table.left_out:
        lines += wrap(f"A wider terminal shows {', '.join(reversed(table.left_out))} too.", width)
    return lines


def _lay_out(rows: Sequence[TextRow], plan: Plan, width: int, colour: bool) -> TextTable:
    # What only qualifies others is left out where there is nothing to say.
    columns = [
        TextColumn(key, gap=1 if key in (*QUALIFYING, "tensors") else 2)
        for key, metric in COLUMNS.items()
        if metric in plan.sampling.metrics and (key not in QUALIFYING or any(row.cells[key] for row in rows))
    ]
    if any(row.cells[MARKS] for row in rows):
        columns.append(TextColumn(MARKS, "", gap=1, left=True))
    # Names without a heading have as much room as if they were indented below one.
    names = [row.cells[NAME] if row.heading and row.cells[NAME] else INDENT + row.cells[NAME] for row in rows]
    wide = max(measure(f"{name} {row.aside}".rstrip()) for name, row in zip(names, rows, strict=True))
    columns.insert(0, TextColumn(NAME, "", left=True, least=LEAST_NAME, wide=wide))
    columns.append(TextColumn(STATEMENT, left=True, least=LEAST_STATEMENT, spare=True))
    return TextTable(columns, rows, width, name=NAME, gives_way=DISPENSABLE, colour=colour)


def _explain(summaries: Sequence[CaseSummary], plan: Plan, width: int) -> Iterator[str]:
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
