"""What the command makes of counts, which are made up here."""

from __future__ import annotations

import dataclasses

import pytest

from tests.sample_runs import ENVIRONMENT, tally
from torchmark import TaskSpec
from torchmark.api.callgrind_stats import CallgrindStats, make_stats
from torchmark.cli.commands.cmd_count import _print_counts

ELSEWHERE = dataclasses.replace(ENVIRONMENT, native_capability="AVX512", valgrind="valgrind-3.19.0")


def make_counted(stmt: str, *totals: int) -> CallgrindStats:
    return make_stats(TaskSpec(stmt, ""), tally(100, *totals), ELSEWHERE)


def test_a_note_on_the_machine_is_given_once_and_one_on_a_statement_with_its_name(
    capsys: pytest.CaptureFixture[str],
) -> None:
    results = [make_counted("x * 2", 1000, 1000, 1001), make_counted("x + x", 1000, 1100, 1200)]
    _print_counts(results, None)
    notes = [line for line in capsys.readouterr().out.splitlines() if line.startswith("NOTE: ")]
    assert len([line for line in notes if "AVX512" in line]) == 1
    assert notes[0].startswith("NOTE: torch uses AVX512")
    assert [line.partition(": ")[2].partition(":")[0] for line in notes[1:]] == ["x + x"]
