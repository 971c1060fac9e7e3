"""Results as fragments of HTML, for notebooks and for pages."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence

from torchmark.analysis.summarise import find_median_interval, summarise
from torchmark.model.judgement import CaseJudgement, Side, TimeEvidence
from torchmark.model.task import TaskSpec, Times
from torchmark.report.caveats import describe_caveat
from torchmark.report.html.templates import fill_template
from torchmark.report.plots.comparison import draw_differences, draw_stages, stack_sides
from torchmark.report.plots.samples import Strip, draw_distributions
from torchmark.report.plots.svg import Markup, colour
from torchmark.report.text.counts import (
    NOISY,
    UNKNOWN_FILE,
    VARIES,
    CountRow,
    FunctionRow,
    format_few,
    format_part,
    name_environment,
)
from torchmark.report.text.names import name_case
from torchmark.report.text.terminal import count
from torchmark.report.text.units import choose_scale, format_time
from torchmark.report.text.verdict_reasons import describe_facts, describe_verdict

# As many functions as a person reads through; the rest is added up.
MOST_FUNCTIONS = 15

Cells = tuple[str, ...]


@dataclasses.dataclass(frozen=True)
class NotebookTable:
    """Heads and rows; all columns but the last hold numbers."""

    heads: Cells
    rows: tuple[Cells, ...]
    foot: tuple[Cells, ...] = ()


@dataclasses.dataclass(frozen=True)
class NotebookPanel:
    """All that a fragment can show, from top to bottom; what is empty is left out."""

    title: str = ""
    setup: str = ""
    facts: tuple[tuple[str, str], ...] = ()
    table: NotebookTable | None = None
    legend: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    failures: tuple[str, ...] = ()


def render_panel(panel: NotebookPanel) -> str:
    return fill_template("panel.html", vars(panel))


def render_counts_panel(
    spec: TaskSpec | None, row: CountRow, functions: Sequence[FunctionRow], notes: Sequence[str] = ()
) -> NotebookPanel:
    """What a statement costs in instructions, and which functions cost most. `spec` is None where it stands above."""
    ordered = sorted(functions, key=lambda one: (-one.exclusive, one.name))
    shown, rest = ordered[:MOST_FUNCTIONS], ordered[MOST_FUNCTIONS:]
    total = sum(one.exclusive for one in functions)
    others = sum(one.exclusive for one in rest)
    foot = [(f"{others:,.1f}", format_part(others, total), "", count_more(len(rest)))] if rest else []
    table = NotebookTable(
        ("self", "share", "with callees", "function"),
        tuple(
            (
                f"{one.exclusive:,.1f}",
                format_part(one.exclusive, total),
                f"{one.inclusive:,.1f}",
                _name(one.name, one.noisy),
            )
            for one in shown
        ),
        (*foot, (f"{total:,.1f}", format_part(total, total), "", "total")),
    )
    return NotebookPanel(
        title=spec.title if spec else "",
        setup=spec.setup_str() if spec else "",
        facts=tuple(_count_facts(row)),
        table=table if functions else None,
        legend=("Instructions per run.", *([VARIES] if any(one.noisy for one in shown) else [])),
        notes=tuple(notes),
    )


def _count_facts(row: CountRow) -> list[tuple[str, str]]:
    facts = [("instructions", f"{row.instructions:,.1f} per run, {count(row.number, 'run')} counted")]
    if row.baseline is not None:
        net, share = row.instructions - row.baseline, format_part(row.baseline, row.instructions)
        facts.append(("without the loop", f"{net:,.1f} per run; the empty loop is {share}"))
    if row.layouts > 1 and row.spread is not None:
        facts.append(("memory layouts", f"median of {row.layouts}, which differ by {row.spread:.1%}"))
    elif row.layouts == 1:
        facts.append(("memory layouts", "1"))
    for name, number in (("allocations", row.allocations), ("tensor allocations", row.tensor_allocations)):
        if number is not None:
            facts.append((name, f"{format_few(number)} per run"))
    if row.cycles is not None:
        facts.append(("estimated cycles", f"{row.cycles:,.0f} per run"))
    facts.append(("threads", str(row.threads)))
    if row.environment is not None:
        facts.append(("environment", name_environment(row.environment)))
    return facts


def render_functions_panel(
    rows: Sequence[tuple[int, str, bool]], *, inclusive: bool, truncate: bool = True
) -> NotebookPanel:
    """Counts by function in their order, each with whether it is noisy; of a long table those that weigh most.

    Of inclusive counts there is no total and no share: what a function calls is counted again.
    """
    weighed = sorted(range(len(rows)), key=lambda i: -abs(rows[i][0]))
    kept = sorted(weighed[:MOST_FUNCTIONS] if truncate else weighed)
    total = sum(n for n, _, _ in rows)
    # Of a difference, nothing is a share.
    with_share = not inclusive and all(n >= 0 for n, _, _ in rows) and total > 0
    is_difference = any(n < 0 for n, _, _ in rows)

    def cells(n: int, name: str) -> Cells:
        number = f"{n:+,}" if is_difference else f"{n:,}"
        return (number, format_part(n, total), name) if with_share else (number, name)

    shown = tuple(cells(n, _name(name, noisy)) for n, name, noisy in (rows[i] for i in kept))
    left = len(rows) - len(kept)
    foot: list[Cells] = []
    if left:
        others = total - sum(rows[i][0] for i in kept)
        foot.append(("", count_more(left)) if inclusive else cells(others, count_more(left)))
    if not inclusive:
        foot.append(cells(total, "total"))
    heads = ("instructions", "share", "function") if with_share else ("instructions", "function")
    noisy = any(rows[i][2] for i in kept)
    meaning = "With what each function calls." if inclusive else ""
    legend = tuple(text for text in (meaning, VARIES if noisy else "") if text)
    return NotebookPanel(table=NotebookTable(heads, shown, tuple(foot)), legend=legend)


def count_more(n: int) -> str:
    """How many functions are not listed.

    >>> count_more(1), count_more(20)
    ('1 more function', '20 more functions')
    """
    return count(n, "more function")


def render_input_panel(title: str, measured: Sequence[tuple[str, Times]], failure: str | None = None) -> NotebookPanel:
    """The statements on one input: median, interval, and how many times as long as the first."""
    first = None
    rows = []
    for stmt, times in measured:
        per_run = times.per_run
        median = summarise(per_run).median if per_run else None
        first = median if first is None else first
        ratio = f"{median / first:.2f}x" if median is not None and first else ""
        rows.append(("" if median is None else format_time(median), _interval(per_run), ratio, stmt))
    heads = ("median", "95 % interval", "to the first", "statement")
    table = NotebookTable(heads, tuple(rows)) if rows else None
    return NotebookPanel(title=title, table=table, failures=(failure,) if failure else ())


def _interval(per_run: Sequence[float]) -> str:
    interval = find_median_interval(per_run, 0.95)
    if interval is None:
        return ""
    scale = choose_scale(interval.high)
    return f"{scale.show(interval.low)} to {scale.show(interval.high)} {scale.unit}"


def _name(name: str, noisy: bool) -> str:
    return (NOISY if noisy else "") + name.removeprefix(UNKNOWN_FILE)


def render_judgement(judgement: CaseJudgement) -> str:
    values = {
        "name": name_case(judgement.case),
        "verdict": describe_verdict(judgement),
        "colour": colour(judgement.verdict),
        "facts": describe_facts(judgement),
        "drawings": tuple(draw_evidence(judgement)),
        "notes": [describe_caveat(caveat, "python") for caveat in judgement.caveats],
    }
    return fill_template("judgement.html", values)


def draw_evidence(judgement: CaseJudgement) -> Iterator[Markup]:
    name, time = name_case(judgement.case), judgement.time
    if time is not None:
        yield draw_differences(time, name=f"{name}: difference in time by layout of memory")
        if (strips := strip_sides(time)) is not None:
            yield draw_distributions(strips, name=f"{name}: times of both sides, one for each visit")
    if judgement.explanation is not None:
        yield draw_stages(stack_sides(judgement.explanation), name=f"{name}: instructions by stage")


def strip_sides(time: TimeEvidence) -> tuple[Strip, Strip] | None:
    """The times of both sides, visit by visit; None where these were not kept."""
    base_s = [seconds for layout in time.visits for seconds in layout.base_s]
    head_s = [seconds for layout in time.visits for seconds in layout.head_s]
    return (Strip(Side.BASE.value, base_s), Strip(Side.HEAD.value, head_s)) if base_s and head_s else None
