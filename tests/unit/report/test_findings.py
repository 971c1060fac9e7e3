from __future__ import annotations

import io
import json

from rich.console import Console

from torchmark.model.machine import Finding, FindingStatus, Machine
from torchmark.report.text.machine import plain_findings, print_findings

FINDINGS = (
    Finding("cores", FindingStatus.PROBLEM, "1 of 8 usable", "Allow a second one."),
    Finding("[bold]torch", FindingStatus.GOOD, "2.13.0 [red]x"),
)


def test_findings_fit_into_eighty_columns_and_keep_their_brackets() -> None:
    out = io.StringIO()
    print_findings(FINDINGS, Console(file=out, width=80))
    lines = out.getvalue().splitlines()
    assert max(map(len, lines)) <= 80
    assert lines[0].split() == ["problem", "cores", "1", "of", "8", "usable"]
    assert "Allow a second one." in lines[1]
    assert "[bold]torch" in lines[2]
    assert "[red]x" in lines[2]
    assert lines[-1] == "1 problem."


def test_plain_findings_survive_json() -> None:
    data = plain_findings(Machine("Linux", "CPython"), FINDINGS)
    assert json.loads(json.dumps(data)) == data
    assert data["findings"][0]["status"] == "problem"
    assert data["machine"]["valgrind"] is None
