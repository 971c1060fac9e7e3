from __future__ import annotations

from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from tests.made_contrasts import count_functions, environment, evidence, judgement
from tests.sample_runs import ADD
from torchmark.analysis.verdict.stored import CountedCase, identify
from torchmark.cli.gate_options import DEFAULT_LEDGER, GateOptions, apply_gate, gate_options
from torchmark.model.gate import FailOn, Policy
from torchmark.model.judgement import Verdict

SLOWER = Policy(frozenset({FailOn.SLOWER}))


def read(*arguments: str) -> GateOptions:
    seen: list[GateOptions] = []

    @click.command()
    @gate_options
    def command(gate: GateOptions) -> None:
        seen.append(gate)

    CliRunner().invoke(command, arguments, catch_exceptions=False)
    return seen[0]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("GITHUB_STEP_SUMMARY", raising=False)


def test_nothing_stops_by_default_and_a_ledger_is_used_where_there_is_one() -> None:
    assert read() == GateOptions(Policy())
    DEFAULT_LEDGER.mkdir()
    assert read() == GateOptions(Policy(), DEFAULT_LEDGER)


def test_a_limit_or_a_ledger_stops_what_is_slower_unless_something_else_is_said(tmp_path: Path) -> None:
    assert read("--limit", "Ir:0").policy.fail_on == {FailOn.SLOWER}
    assert read("--ledger", str(tmp_path)).policy == SLOWER
    assert read("--limit", "Ir:0", "--fail-on", "failed").policy.fail_on == {FailOn.FAILED}


def test_cases_without_a_count_or_an_entry_are_held_against_base() -> None:
    slower = judgement(Verdict.SLOWER, count=evidence(10, 20))
    assert apply_gate([slower], {}, GateOptions(SLOWER)).exit_code == 3
    DEFAULT_LEDGER.mkdir()
    counted = {identify(ADD): CountedCase(count_functions(1, 1), environment())}
    assert apply_gate([slower], counted, GateOptions(SLOWER, DEFAULT_LEDGER)).exit_code == 3
    assert apply_gate([], {}, GateOptions(Policy(frozenset(FailOn))), missing=[ADD]).exit_code == 3
