"""`torchmark history` over stores of many runs."""

from __future__ import annotations

import dataclasses
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.in_process import Program
from tests.made_histories import ADD, TIMED, make_day, make_days
from torchmark.cli.startup import COMMANDS
from torchmark.model.run import Run
from torchmark.store.runs import open_store

NEW_TORCH = dataclasses.replace(TIMED, torch_version="2.14.0")
LEVELS = [1.0] * 20 + [1.1] * 20
COUNTS = [5000] * 20 + [5600] * 20


def keep(path: Path, runs: list[Run]) -> None:
    with open_store(path, create=True) as store:
        for run in runs:
            store.add(run)


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Forty days; on the twenty-first there is another torch, with which `add` takes longer."""
    path = tmp_path / "results.db"
    keep(path, make_days(LEVELS, COUNTS, others=[1.0] * 40, environments={20: NEW_TORCH}))
    monkeypatch.setenv("TORCHMARK_STORE", str(path))
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setitem(COMMANDS, "history", "Show cases over all runs.")
    return path


@pytest.mark.usefixtures("store")
def test_a_change_is_shown_with_its_run_its_size_and_its_reason(program: Program) -> None:
    done = program("history", "add")
    assert done.returncode == 0, done.stderr
    assert "Pointwise / add, Python\n" in done.stdout
    assert " day-20: instructions +600 (+12.0 %), confirmed: counts are exact." in done.stdout
    assert "torch 2.13.0 → 2.14.0." in done.stdout
    assert "Pointwise / mul" not in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 80


@pytest.mark.usefixtures("store")
@pytest.mark.parametrize("arguments", [["Pointwise / add, Python"], ["-k", "add"], ["Pointwise", "-k", "add"]])
def test_cases_are_chosen_by_name_and_by_expression(program: Program, arguments: list[str]) -> None:
    data = json.loads(program("history", *arguments, "--json", "-").stdout)
    assert (data["schema"], data["schema_version"]) == ("torchmark.history", 1)
    assert [one["key"] for one in data["histories"]] == [ADD.key]


@pytest.mark.usefixtures("store")
def test_all_cases_are_shown_where_none_is_named(program: Program) -> None:
    assert "4 cases in 40 runs: something changed in 1 of them." in program("history").stdout


@pytest.mark.usefixtures("store")
def test_the_newest_runs_against_an_older_anchor(program: Program) -> None:
    out = program("history", "add", "--limit", "5", "--anchor", "day-3", "--metric", "wall").stdout
    assert " against day-3, 5 runs\n" in out
    assert "nothing changed" in out
    assert "instructions" not in out


@pytest.mark.usefixtures("store")
def test_cases_that_are_not_there_are_explained(program: Program) -> None:
    done = program("history", "ad_d")
    assert done.returncode == 1
    assert "None of 4 cases is selected by -k ad_d." in done.stderr
    done = program("history", "Pointwise / add, Pyhton")
    assert done.returncode == 1
    assert "None of 4 cases" in done.stderr


@pytest.mark.usefixtures("store")
@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["add and"], "add and"),
        (["add", "--anchor", "nobody"], "There is no run 'nobody'"),
        (["add", "--env", "new"], "There is no target 'new' in these runs."),
        (["add", "--limit", "0"], "--limit"),
        (["add", "--metric", "time"], "'time' is not one of wall, count"),
    ],
)
def test_what_cannot_be_meant_is_refused(program: Program, arguments: list[str], told: str) -> None:
    done = program("history", *arguments)
    assert done.returncode == 2
    assert told in done.stderr


@pytest.mark.usefixtures("store")
def test_no_store_and_no_runs_are_told(tmp_path: Path, program: Program) -> None:
    done = program("history", "--store", str(tmp_path / "none.db"))
    assert done.returncode == 4
    assert "There is no store at" in done.stderr
    keep(tmp_path / "empty.db", [])
    done = program("history", "--store", str(tmp_path / "empty.db"))
    assert done.returncode == 2
    assert "no runs in the store yet" in done.stderr


@pytest.mark.usefixtures("store")
def test_one_run_is_said_to_be_too_few(tmp_path: Path, program: Program) -> None:
    keep(tmp_path / "one.db", [make_day(0, {ADD: (1.0, 5000)})])
    done = program("history", "--store", str(tmp_path / "one.db"))
    assert done.returncode == 0
    assert "a history takes two" in done.stdout


def test_a_terminal_without_blocks_gets_ascii(store: Path) -> None:
    code = (
        "import sys; from torchmark.cli.commands.cmd_history import command; "
        "sys.exit(command.main(sys.argv[1:], standalone_mode=False))"
    )
    environ = {**os.environ, "PYTHONIOENCODING": "ascii", "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        [sys.executable, "-c", code, "add", "--store", str(store)], env=environ, capture_output=True, check=True
    )
    assert b"____________________####################\n" in done.stdout
    assert b"torch 2.13.0 -> 2.14.0." in done.stdout
    assert b"?" not in done.stdout
