from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest

from tests.made_contrasts import count_functions, run_of
from tests.sample_runs import ADD, COUNT, FAILING, FAILURE, ODD, WALL, times
from torchmark.cli.main import main
from torchmark.store.ledger import read_entry
from torchmark.store.runs import open_store

LEDGER = Path("torchmark-ledger")
FIRST, SECOND = count_functions(400, 1000), count_functions(400, 2000)


@pytest.fixture(autouse=True)
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("TORCHMARK_STORE", raising=False)
    older = run_of({(ADD, COUNT, 0): FIRST}, "older")
    newer = run_of({(ADD, COUNT, 0): SECOND, (ODD, COUNT, 0): SECOND, (FAILING, COUNT, 0): FAILURE}, "newer")
    with open_store(Path(".torchmark/results.db"), create=True) as opened:
        opened.add(older)
        opened.add(dataclasses.replace(newer, info=dataclasses.replace(newer.info, created=1.8e9)))


def test_the_newest_count_of_a_case_is_accepted_with_the_reason(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["accept", "Pointwise / add, Python", "--why", " It does\nmore. "]) == 0
    entry = read_entry(LEDGER, ADD)
    assert entry is not None
    assert (entry.total, entry.why) == (2400, "It does more.")
    out = capsys.readouterr().out
    assert "Accepted Pointwise / add, Python: 24 instructions, in torchmark-ledger/" in out
    assert "Commit the folder torchmark-ledger, so that" in out


def test_another_run_can_be_named() -> None:
    assert main(["accept", "add", "--why", "x", "--run", "older", "--ledger", "ours"]) == 0
    entry = read_entry(Path("ours"), ADD)
    assert entry is not None
    assert entry.total == 1400
    assert not LEDGER.exists()


def test_all_are_accepted_where_that_is_said() -> None:
    assert main(["accept", "--all", "--why", "The first."]) == 0
    assert len(list(LEDGER.glob("*.json"))) == 2
    assert all(json.loads(path.read_text())["why"] == "The first." for path in LEDGER.iterdir())


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["add", "--why", "  "], "--why is empty"),
        (["add"], "Missing option '--why'"),
        (["--why", "x"], "Say which case"),
        (["1 or 2", "--why", "x"], "means 2 cases"),
        (["fails", "--why", "x"], "None of 2 cases is selected"),
        (["ad_", "--why", "x"], "None of 2 cases is selected"),
        (["add", "--why", "x", "--run", "none"], "no run 'none'"),
        (["add", "--why", "x", "--env", "other"], "no environment 'other'"),
    ],
)
def test_what_is_not_clear_is_refused_and_nothing_is_written(
    arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["accept", *arguments]) == 2
    assert words in capsys.readouterr().err
    assert not LEDGER.exists()


def test_a_run_without_counts_has_nothing_to_accept(capsys: pytest.CaptureFixture[str]) -> None:
    timed = run_of({(ADD, WALL, 0): times(10, 1.0)}, "timed")
    with open_store(Path(".torchmark/results.db")) as opened:
        opened.add(timed)
    assert main(["accept", "add", "--why", "x", "--run", "timed"]) == 2
    assert "Nothing was counted" in capsys.readouterr().err
