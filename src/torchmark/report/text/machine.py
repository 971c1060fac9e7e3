"""The findings of `doctor` and the result of a self-test, as text and for JSON."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from torchmark.analysis.verdict.sequential import CONFIDENCE, Power, Trust, floor_for
from torchmark.model.environment import Finding, FindingStatus
from torchmark.report.text.table import TextColumn, TextRow, TextTable
from torchmark.report.text.terminal import count, wrap
from torchmark.report.text.units import format_share, format_time

_MARKS = {
    FindingStatus.GOOD: ("ok", "green"),
    FindingStatus.NOTE: ("note", "yellow"),
    FindingStatus.PROBLEM: ("problem", "bold red"),
}


def print_findings(findings: Sequence[Finding], console: Console) -> None:
    """A line a topic, advice below its fact, and a closing sentence."""
    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
    table.add_column(no_wrap=True)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for finding in findings:
        mark, style = _MARKS[finding.status]
        text = Text(finding.fact)
        if finding.advice:
            text.append(f"\n{finding.advice}", style="dim")
        table.add_row(Text(mark, style=style), Text(finding.topic), text)
    console.print(table)
    problems = sum(finding.status is FindingStatus.PROBLEM for finding in findings)
    console.print(Text(f"\n{count(problems, 'problem')}." if problems else "\nNo problems."))


def render_selftest(trust: Trust, stmt: str, run_s: float, width: int) -> str:
    lines = wrap(
        f"{stmt}, about {format_time(run_s)}, against itself: {count(trust.false_alarms, 'false alarm')} in "
        f"{count(trust.trials, 'trial')} (the true rate is below {format_share(trust.most_false)}, {CONFIDENCE:.0%} "
        f"confidence); the same in {trust.same}. Half of them took {trust.seconds:.2f} s or less.",
        width,
    )
    columns = TextColumn("slower by", wide=10), TextColumn("found", wide=9), *map(TextColumn, ("that is", "seconds"))
    lines += ["", *TextTable(columns, [_fill(power) for power in trust.powers], width).lines()]
    smallest = trust.smallest_seen_s
    seen = (
        f"The smallest slowdown that is found four times in five: {format_time(smallest)} "
        f"({format_share(smallest / run_s)})."
        if smallest is not None
        else "None of these slowdowns is found four times in five: is the machine busy?"
    )
    text = (
        f"Trials against itself spread by {format_share(trust.sd)}, so that `torchmark ab` calls nothing below "
        f"{format_share(floor_for(run_s, trust.sd))} a change of such a statement."
    )
    return "\n".join([*lines, "", *wrap(seen, width), *wrap(text, width)])


def _fill(power: Power) -> TextRow:
    cells = {"slower by": format_time(power.injected_s), "found": f"{power.found} of {power.trials}"}
    return TextRow({**cells, "that is": f"{power.share:.0%}", "seconds": f"{power.seconds:.2f}"})
