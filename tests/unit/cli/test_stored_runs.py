"""The commands that list, remove and take in runs."""

from __future__ import annotations

import io
import json
import os
import shutil
from pathlib import Path

import pytest

from tests.in_process import Program
from tests.store_writer import write_journal
from tests.stored_runs import GOLDEN, INFO
from torchmark.errors import ExitCode
from torchmark.store.runs import open_store

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
    for answer, code in ((False, ExitCode.FAILED), (True, 0)):
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


def test_import_waits_for_no_pipe_and_reads_no_device(tmp_path: Path, program: Program) -> None:
    os.mkfifo(tmp_path / "pipe")
    store = ["--store", str(tmp_path / "results.db")]
    for name, told in (
        (tmp_path / "pipe", "not an ordinary file"),
        ("/dev/zero", "not an ordinary file"),
        (tmp_path, "folder"),
    ):
        done = program("import", str(name), *store)
        assert done.returncode == 4
        assert told in done.stderr
    done = program("import", str(tmp_path / "none.json"), *store)
    assert done.returncode == 2
    assert "No such file" in done.stderr
    assert [one.name for one in tmp_path.iterdir()] == ["pipe"]


def test_import_takes_what_is_piped_into_it(tmp_path: Path, program: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    with open(DOCUMENT) as file:
        monkeypatch.setattr("sys.stdin", file)
        done = program("import", "-", "--store", str(tmp_path / "a.db"))
    assert done.returncode == 0
    reading, writing = os.pipe()
    os.write(writing, Path(DOCUMENT).read_bytes())
    os.close(writing)
    done = program("import", f"/dev/fd/{reading}", "--store", str(tmp_path / "b.db"))
    os.close(reading)
    assert done.returncode == 0
    with open("/dev/zero") as file:
        monkeypatch.setattr("sys.stdin", file)
        done = program("import", "-", "--store", str(tmp_path / "c.db"))
    assert done.returncode == 4
    assert "<stdin>: This is no JSON" in done.stderr
    monkeypatch.setattr("sys.stdin", None)
    done = program("import", "-", "--store", str(tmp_path / "c.db"))
    assert done.returncode == 4
    assert "Standard input is closed" in done.stderr


def test_what_an_earlier_store_has_left_is_told(folder: Path, program: Program) -> None:
    store = folder / ".torchmark" / "results.db"
    store.rename(f"{store}-wal")
    done = program("import", DOCUMENT)
    assert done.returncode == 0
    assert "Note: " in done.stderr
    (left,) = store.parent.glob("results.db-wal.left-*")
    assert str(left) in done.stderr
    assert program("runs").stderr == ""


READING = [
    ["runs"],
    ["show"],
    ["show", "--functions", "add"],
    ["compare", "before", "before"],
    ["report", "-o", "OUT/report.html"],
    ["history"],
    ["export"],
    ["accept", "--all", "--why", "x", "--ledger", "OUT/ledger"],
    ["run", "--resume", "--dry-run"],
    ["run", "--dry-run", "-k", "nothing"],
    ["rm", "nobody", "--yes"],
    ["merge", ".torchmark/results.db", "-o", "OUT/merged.db"],
]


@pytest.mark.parametrize("arguments", READING, ids=" ".join)
def test_a_command_that_only_reads_changes_nothing_and_carries_out_no_journal(
    arguments: list[str], folder: Path, program: Program, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = folder / ".torchmark" / "results.db"
    arguments = [one.replace("OUT", str(tmp_path_factory.mktemp("out"))) for one in arguments]
    with open_store(path) as writer:
        with writer._database.transaction():
            writer._database.change("UPDATE runs SET finished = 2000000000")
        kept = {suffix: Path(f"{path}{suffix}").read_bytes() for suffix in ("", "-wal")}
    for suffix, content in kept.items():
        Path(f"{path}{suffix}").write_bytes(content)
    before = look_at(path.parent)
    arguments += [] if arguments[0] == "merge" else ["--store", str(path)]
    done = program(*arguments)
    assert "damaged" not in done.stderr
    assert look_at(path.parent) == before
    victim = folder / "thesis.txt"
    victim.write_text("precious")
    write_journal(path, victim)
    before = look_at(path.parent)
    done = program(*arguments)
    assert done.returncode == 4
    assert "results.db-journal" in done.stderr
    assert victim.exists()
    assert look_at(path.parent) == before


def look_at(folder: Path) -> dict[str, tuple[bytes, int]]:
    return {one.name: (one.read_bytes(), one.stat().st_mtime_ns) for one in folder.iterdir()}
