from __future__ import annotations

from pathlib import Path

import pytest

from tests.made_contrasts import count_functions, run_of
from tests.sample_runs import ADD, COUNT, FAILING, ODD
from torchmark.analysis.verdict.stored import compare_runs, identify
from torchmark.api.stored_sides import find_sides
from torchmark.callgrind.profiles import standardise
from torchmark.cli.gate_options import GateOptions, load_functions
from torchmark.cli.main import main
from torchmark.model.gate import Policy
from torchmark.store.runs import open_store

BEFORE, AFTER = count_functions(400, 1000), count_functions(400, 6000)


@pytest.mark.parametrize("batch", [1, 2, 20])
def test_functions_are_loaded_of_what_changed_or_is_not_as_accepted_however_many_at_a_time(
    batch: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("torchmark.api.stored_sides.BATCH", batch)
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
