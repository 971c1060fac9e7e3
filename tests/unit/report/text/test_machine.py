"""What a self-test tells."""

from __future__ import annotations

import io
import json

import pytest
from rich.console import Console

from torchmark.analysis.verdict.sequential import summarise_trials
from torchmark.model.environment import Finding, FindingStatus, Machine
from torchmark.model.gate import Trial
from torchmark.model.judgement import Verdict
from torchmark.report.as_json import to_json_findings, to_json_selftest
from torchmark.report.text.machine import print_findings, render_selftest

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
    data = to_json_findings(Machine("Linux", "CPython"), FINDINGS)
    assert json.loads(json.dumps(data)) == data
    assert data["findings"][0]["status"] == "problem"
    assert data["machine"]["valgrind"] is None


TRIALS = [
    *[Trial(0.0, Verdict.SAME, ratio, 0.5) for ratio in (-0.002, -0.001, 0.0, 0.001, 0.002)],
    *[Trial(1e-8, Verdict.UNDECIDED, 0.01, 1.0)] * 3,
    *[Trial(5e-8, Verdict.SLOWER, 0.05, 0.75)] * 4,
]


@pytest.mark.parametrize("width", [40, 80, 200])
def test_false_alarms_power_and_the_floor_are_told_within_the_width(width: int) -> None:
    text = render_selftest(summarise_trials(TRIALS), "torch.add(x, y)", 1e-6, width)
    assert max(map(len, text.splitlines())) <= width
    words = " ".join(text.split())
    assert "0 false alarms in 5 trials" in words
    assert "10.0 ns 0 of 3 0% 1.00" in words
    assert "50.0 ns 4 of 4 100% 0.75" in words
    assert "found four times in five: 50.0 ns (5.0 %)" in words
    # Quartiles are 0.2 % apart, which is 0.148 % of a standard deviation, twice which is below the smallest floor.
    assert "spread by 0.1 %" in words
    assert "below 0.3 %" in words


def test_where_nothing_is_found_that_is_said() -> None:
    assert "None of these slowdowns" in render_selftest(summarise_trials(TRIALS[:8]), "f()", 1e-6, 80)


def test_programs_get_the_same_numbers() -> None:
    plain = json.loads(json.dumps(to_json_selftest(summarise_trials(TRIALS), 1e-6), allow_nan=False))
    assert (plain["trials"], plain["false_alarms"], plain["same"]) == (5, 0, 5)
    assert [power["found"] for power in plain["powers"]] == [0, 4]
    assert plain["smallest_seen_s"] == 5e-8
