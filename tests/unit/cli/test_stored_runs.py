"""The commands that list, remove and take in runs."""

from __future__ import annotations

import io
import json
import shutil
from pathlib import Path

import pytest

from tests.in_process import Program
from tests.stored_runs import GOLDEN, INFO
from torchmark.cli import cmd_rm

DOCUMENT = str(GOLDEN / "run_v1.json")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a store where commands look for it."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("TORCHMARK_STORE", raising=False)
    (tmp_path / ".torchmark").mkdir()
    shutil.copy(GOLDEN / "store_v1.db", tmp_path / ".torchmark" / "results.db")
    return tmp_path


def test_runs_lists_what_is_there(folder: Path, program: Program) -> None:
    done = program("runs")
    assert done.returncode == 0
    assert INFO.id[:8] in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 80


def test_runs_as_json(folder: Path, program: Program) -> None:
    (run,) = json.loads(program("runs", "--json", "-").stdout)["runs"]
    assert run["id"] == INFO.id
    assert (run["state"], run["cases"], run["outcomes"], run["orders"]) == ("stopped", 3, 6, 12)


def test_no_store_is_told(tmp_path: Path, program: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORCHMARK_STORE", str(tmp_path / "no.db"))
    for command in (["runs"], ["rm", "@", "--yes"]):
        done = program(*command)
        assert done.returncode == 4
        assert "There is no store at" in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_rm_asks_somebody(folder: Path, program: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO())
    done = program("rm", "before")
    assert done.returncode == 2
    assert "--yes" in done.stderr
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    for answer, code in ((False, cmd_rm.KEPT), (True, 0)):
        monkeypatch.setattr("click.confirm", lambda _, answer=answer: answer)
        assert program("rm", "before").returncode == code
    assert "no runs" in program("runs").stdout


def test_rm_removes_each_run_once(folder: Path, program: Program) -> None:
    assert program("rm", "before", "@", INFO.id[:6], "--yes").stdout == "Removed 1 run.\n"
    done = program("rm", "before", "--yes")
    assert done.returncode == 2
    assert "no runs in the store yet" in done.stderr


def test_import_takes_in_a_document_once(tmp_path: Path, program: Program) -> None:
    store = ["--store", str(tmp_path / "results.db")]
    assert program("import", DOCUMENT, *store).stdout == "Took in 'before' (018bcfe5) with 6 results.\n"
    again = program("import", DOCUMENT, *store)
    assert again.returncode == 2
    assert "in the store already" in again.stderr


@pytest.mark.parametrize(
    ("content", "told"),
    [(b"{", "no JSON"), (b"\xff\xfe\xff", "no JSON"), (b"[" * 100_000, "no JSON"), (b"[]", r"no torchmark.run")],
)
def test_import_keeps_nothing_of_what_is_wrong(content: bytes, told: str, tmp_path: Path, program: Program) -> None:
    (tmp_path / "run.json").write_bytes(content)
    done = program("import", str(tmp_path / "run.json"), "--store", str(tmp_path / "results.db"))
    assert done.returncode == 4
    assert told in done.stderr
    assert "run.json" in done.stderr
    assert not (tmp_path / "results.db").exists()
