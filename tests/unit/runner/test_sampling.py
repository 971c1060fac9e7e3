from __future__ import annotations

import sys
from pathlib import Path

import pytest

from torchmark.errors import SetupError
from torchmark.model.bout import Part
from torchmark.model.job import Place
from torchmark.model.outcome import Failure, FailureKind
from torchmark.runner import sampling
from torchmark.runner.sampling import Sampled, find_py_spy, sample


def make_py_spy(folder: Path, script: str) -> None:
    file = folder / "py-spy"
    file.write_text(f"#!/bin/sh\n{script}\n")
    file.chmod(0o755)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where alone py-spy is looked for."""
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    return tmp_path


def take(folder: Path, **options: float) -> Sampled | Failure:
    part = Part("x + 1", "x = 1", Place(str(folder)))
    environ = {"PATH": "/usr/bin:/bin"}
    seconds = options.get("seconds", 1.0)
    return sample("pass", part, "python", seconds=seconds, rate=100, native=True, environ=environ)


# The sixth to last argument names the file that it is to write.
WRITE = 'while [ "$1" != --output ]; do shift; done; '


def test_what_it_wrote_is_given(folder: Path) -> None:
    make_py_spy(folder, WRITE + 'echo "_torchmark_measure (x.py:1) 3" > "$2"')
    assert take(folder) == Sampled("_torchmark_measure (x.py:1) 3\n", 1.0)


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
    monkeypatch.setattr(sampling, "STARTING_S", 0.1)
    make_py_spy(folder, "exec sleep 60")
    failure = take(folder, seconds=0.05)
    assert isinstance(failure, Failure)
    assert failure.kind is FailureKind.TIMED_OUT


def test_without_py_spy_it_is_said_what_to_install(folder: Path) -> None:
    with pytest.raises(SetupError, match=r"torchmark\[flame\]"):
        find_py_spy({"PATH": str(folder)})
