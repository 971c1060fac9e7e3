"""Standard streams that are closed or full, and an interrupt before anything is loaded."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.stored_runs import make_run
from torchmark.store.runs import open_store


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("streams")
    with open_store(folder / "results.db", create=True) as store:
        store.add(make_run())
    return folder


def shell(folder: Path, arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        f"{sys.executable} -m torchmark {arguments}",
        shell=True,
        capture_output=True,
        text=True,
        cwd=folder,
        env={**os.environ, "TORCHMARK_STORE": str(folder / "results.db"), **variables},
    )


@pytest.mark.parametrize("command", ["show", "runs", "--help", "history"])
def test_text_for_people_is_dropped_where_standard_output_is_closed(folder: Path, command: str) -> None:
    done = shell(folder, f"{command} >&-")
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("command", ["show --json -", "export", "export --format csv", "history --html -"])
def test_data_for_a_closed_standard_output_is_refused(folder: Path, command: str) -> None:
    done = shell(folder, f"{command} >&-")
    assert done.returncode == 4
    assert done.stderr.startswith("torchmark: Cannot write ")
    assert done.stderr.count("\n") == 1


def test_a_closed_standard_input_is_told(folder: Path) -> None:
    done = shell(folder, "import - <&-")
    assert done.returncode == 4
    assert done.stderr == "torchmark: <stdin>: Standard input is closed.\n"


def test_all_streams_may_be_closed(folder: Path) -> None:
    assert shell(folder, "show <&- >&- 2>&-").returncode == 0
    assert shell(folder, "show nonsense <&- >&- 2>&-").returncode == 2


@pytest.mark.parametrize(
    ("command", "code"), [("show nonsense", 2), ("nonsense", 2), ("import no.json", 2), ("import -", 4), ("show", 0)]
)
def test_the_exit_code_does_not_depend_on_who_can_read_the_message(folder: Path, command: str, code: int) -> None:
    for stderr in ("/dev/full", "/dev/null"):
        assert shell(folder, f"{command} </dev/null 2>{stderr}").returncode == code


def test_a_full_disk_is_told_once(folder: Path) -> None:
    done = shell(folder, "show --json - >/dev/full")
    assert done.returncode == 4
    assert done.stderr == "torchmark: Cannot write JSON to standard output: No space left on device.\n"


def test_an_interrupt_while_modules_are_imported_is_no_traceback(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "click.py").write_text("raise KeyboardInterrupt\n")
    done = shell(folder, "show", PYTHONPATH=str(tmp_path))
    assert done.returncode == 130
    assert done.stderr == "torchmark: interrupted\n"
