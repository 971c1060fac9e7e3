from __future__ import annotations

from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from tests.made_contrasts import count_functions, environment, evidence, judgement, run_of
from tests.sample_runs import ADD, COUNT, FAILING, ODD
from torchmark.analysis.verdict.stored import CountedCase, compare_runs, identify
from torchmark.api.gate import DEFAULT_LEDGER, GateOptions, apply_gate
from torchmark.api.stored_results import find_sides, load_functions
from torchmark.callgrind.profiles import standardise
from torchmark.cli.gate_options import gate_options
from torchmark.cli.main import main
from torchmark.model.gate import FailOn, Policy
from torchmark.model.judgement import Verdict
from torchmark.store.runs import open_store

BEFORE, AFTER = count_functions(400, 1000), count_functions(400, 6000)


@pytest.mark.parametrize("batch", [1, 2, 20])
def test_functions_are_loaded_of_what_changed_or_is_not_as_accepted_however_many_at_a_time(
    batch: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("torchmark.api.stored_results.BATCH", batch)
    path, ledger = tmp_path / "results.db", tmp_path / "ledger"
    with open_store(path, create=True) as store:
        store.add(run_of({(case, COUNT, 0): BEFORE for case in (ADD, FAILING, ODD)}, "base"))
        store.add(run_of({(ADD, COUNT, 0): AFTER, (FAILING, COUNT, 0): BEFORE, (ODD, COUNT, 0): AFTER}, "head"))
    where = ["--store", str(path), "--ledger", str(ledger)]
    assert main(["accept", "add and python", "--why", "x", "--run", "head", *where]) == 0
    assert main(["accept", "--all", "fails", "--why", "x", "--run", "base", *where]) == 0
    with open_store(path, read_only=True) as store:
        base, head = find_sides(store, "base", "head")
        light = [store.load(side.info.id) for side in (base, head)]
        contrast = compare_runs(light[0], base.target, light[1], head.target, standardise)
        assert all(one.explanation is None for one in contrast.judgements)
        gate = GateOptions(Policy(), ledger)
        contrast, counts = load_functions(store, (base, head), contrast, light[1], gate)
    assert [one.case for one in contrast.judgements if one.explanation] == [ADD, ODD]
    assert set(counts) == {identify(case) for case in (ADD, FAILING, ODD)}
    assert all(counted.tally.profile is None for counted in counts.values())


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
    assert apply_gate([slower], {}, GateOptions(SLOWER), print).exit_code == 3
    DEFAULT_LEDGER.mkdir()
    counted = {identify(ADD): CountedCase(count_functions(1, 1), environment())}
    assert apply_gate([slower], counted, GateOptions(SLOWER, DEFAULT_LEDGER), print).exit_code == 3
    assert apply_gate([], {}, GateOptions(Policy(frozenset(FailOn))), print, missing=[ADD]).exit_code == 3
