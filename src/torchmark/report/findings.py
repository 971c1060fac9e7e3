"""A machine's findings for people and for programs."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from torchmark.model.machine import Finding, Machine, Status
from torchmark.report.printable import count

SCHEMA = "torchmark.doctor"
SCHEMA_VERSION = 1

_MARKS = {
    Status.GOOD: ("ok", "green"),
    Status.NOTE: ("note", "yellow"),
    Status.PROBLEM: ("problem", "bold red"),
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
    problems = sum(finding.status is Status.PROBLEM for finding in findings)
    console.print(Text(f"\n{count(problems, 'problem')}." if problems else "\nNo problems."))


def plain_findings(machine: Machine, findings: Sequence[Finding]) -> dict[str, Any]:
    """Findings and the facts behind them, as plain values for JSON."""
    return {
        "schema": SCHEMA,
        "schema_version": SCHEMA_VERSION,
        "findings": [{**dataclasses.asdict(f), "status": f.status.value} for f in findings],
        "machine": dataclasses.asdict(machine),
    }
