from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.processes import is_alive, wait_until
from torchmark.api import flames
from torchmark.api.flames import find_py_spy, sample
from torchmark.errors import SetupError
from torchmark.model.job import PairedSide, Place
from torchmark.model.outcome import Failure, FailureKind
from torchmark.processes import _SCRATCH


def make_py_spy(folder: Path, script: str) -> None:
    file = folder / "py-spy"
    file.write_text(f"#!/bin/sh\n{script}\n")
    file.chmod(0o755)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where alone py-spy is looked for."""
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    return tmp_path


def take(folder: Path, **options: float) -> str | Failure:
    part = PairedSide("x + 1", "x = 1", Place(str(folder)))
    environ = {"PATH": "/usr/bin:/bin"}
    seconds = options.get("seconds", 1.0)
    return sample("pass", part, "python", seconds=seconds, rate=100, native=True, environ=environ)


# The sixth to last argument names the file that it is to write.
WRITE = 'while [ "$1" != --output ]; do shift; done; '


def test_what_it_wrote_is_given(folder: Path) -> None:
    make_py_spy(folder, WRITE + 'echo "_torchmark_measure (x.py:1) 3" > "$2"')
    assert take(folder) == "_torchmark_measure (x.py:1) 3\n"


def test_an_error_of_the_statement_is_the_statements_own(folder: Path) -> None:
    make_py_spy(folder, 'printf "Traceback (most recent call last):\\nNameError: y\\npy-spy> Stopped\\n" >&2; exit 1')
    failure = take(folder)
    assert isinstance(failure, Failure)
    assert (failure.kind, failure.message) == (FailureKind.RAISED, "NameError: y")


@pytest.mark.parametrize("text", ["Permission denied (os error 13)", "Operation not permitted", "ptrace failed"])
def test_a_system_that_does_not_let_it_look_is_told_with_what_helps(folder: Path, text: str) -> None:
    make_py_spy(folder, f'echo "Error: {text}" >&2; exit 1')
    with pytest.raises(SetupError, match="SYS_PTRACE"):
        take(folder)


def test_seeing_nothing_is_a_failure(folder: Path) -> None:
    make_py_spy(folder, 'echo "Error: No child process" >&2; exit 1')
    failure = take(folder)
    assert isinstance(failure, Failure)
    assert failure.kind is FailureKind.NO_RESULT
    assert "No child process" in failure.message


def test_one_that_never_ends_is_given_up(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flames, "STARTING_S", 0.1)
    make_py_spy(folder, "exec sleep 60")
    failure = take(folder, seconds=0.05)
    assert isinstance(failure, Failure)
    assert failure.kind is FailureKind.TIMED_OUT


def test_without_py_spy_it_is_said_what_to_install(folder: Path) -> None:
    with pytest.raises(SetupError, match=r"torchmark\[flame\]"):
        find_py_spy({"PATH": str(folder)})


# py-spy starts the process that it looks at, and tells its number here.
START = 'sleep 1000 & echo $$ $! > "{pids}"; wait'
PROGRAM = """
import sys
from pathlib import Path
from torchmark.model.job import PairedSide
from torchmark.model.job import Place
from torchmark.api import flames
folder = sys.argv[1]
flames.find_py_spy = lambda environ: folder + "/py-spy"
part = PairedSide("x + 1", "x = 1", Place(folder))
flames.sample("pass", part, "python", seconds=1.0, rate=100, native=True, environ={"PATH": "/usr/bin:/bin"})
"""


def read_pids(folder: Path) -> list[int]:
    file = folder / "pids"
    wait_until(lambda: file.exists() and file.read_text().endswith("\n"))
    return [int(pid) for pid in file.read_text().split()]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
def test_py_spy_and_what_it_looks_at_end_with_the_program(tmp_path: Path, number: signal.Signals) -> None:
    make_py_spy(tmp_path, START.format(pids=tmp_path / "pids"))
    temp = tmp_path / "temp"
    temp.mkdir()
    environ = {**os.environ, "TMPDIR": str(temp)}
    command = [sys.executable, "-c", PROGRAM, str(tmp_path)]
    with subprocess.Popen(command, env=environ, stderr=subprocess.DEVNULL) as program:
        pids = read_pids(tmp_path)
        # By its name, a later run would find and remove it.
        assert [_SCRATCH.match(path.name) is not None for path in temp.iterdir()] == [True]
        program.send_signal(number)
    wait_until(lambda: not any(map(is_alive, pids)))
    wait_until(lambda: not list(temp.iterdir()))


def test_what_py_spy_looks_at_ends_when_time_is_up(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flames, "STARTING_S", 0.5)
    make_py_spy(folder, START.format(pids=folder / "pids"))
    failure = take(folder, seconds=0.05)
    assert isinstance(failure, Failure)
    assert failure.kind is FailureKind.TIMED_OUT
    wait_until(lambda: not any(map(is_alive, read_pids(folder))))
