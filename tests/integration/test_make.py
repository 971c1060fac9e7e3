"""What `make` says when a machine lacks something. Setting up for real is what runs these tests."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def make(folder: Path, python: str) -> subprocess.CompletedProcess[str]:
    for name in ("Makefile", "pyproject.toml", "constraints.txt"):
        shutil.copy(ROOT / name, folder)
    return make_again(folder, python)


def make_again(folder: Path, python: str) -> subprocess.CompletedProcess[str]:
    # Without what an outer make, which may be running these tests, hands down to an inner one.
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS"))}
    command = ["make", "test", f"PYTHON={python}"]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)


def fake_python(folder: Path, refuses: str) -> str:
    """An interpreter that fails wherever its arguments contain a text."""
    file = folder / "fake-python"
    file.write_text(f'#!/bin/sh\ncase "$*" in *"{refuses}"*) exit 1;; esac\nexit 0\n')
    file.chmod(0o755)
    return str(file)


@pytest.mark.parametrize(
    ("refuses", "message"),
    [("version_info", "needs Python 3.10 or newer"), ("ensurepip", "apt-get install python3-venv")],
)
def test_an_unfit_python_is_told_with_what_to_install(tmp_path: Path, refuses: str, message: str) -> None:
    done = make(tmp_path, fake_python(tmp_path, refuses))
    assert done.returncode != 0
    assert message in done.stderr


def test_no_python_at_all_is_told_with_what_to_install(tmp_path: Path) -> None:
    done = make(tmp_path, "/nowhere/python3")
    assert done.returncode != 0
    assert "apt-get install python3" in done.stderr


def test_nothing_is_set_up_twice(tmp_path: Path) -> None:
    # An interpreter whose environments are a copy of itself, and to which every command is fine.
    python = tmp_path / "fake-python"
    python.write_text('#!/bin/sh\ncase "$*" in *"-m venv"*) mkdir -p .venv/bin; cp "$0" .venv/bin/python;; esac\n')
    python.chmod(0o755)
    first = make(tmp_path, str(python))
    assert first.returncode == 0, first.stderr
    assert "Creating .venv" in first.stdout
    assert "Installing" in first.stdout
    second = make_again(tmp_path, str(python))
    assert (second.returncode, second.stdout) == (0, "")
    (tmp_path / "constraints.txt").touch()
    third = make_again(tmp_path, str(python))
    assert "Creating" not in third.stdout
    assert "Installing" in third.stdout
    (tmp_path / ".venv/bin/python").unlink()
    fourth = make_again(tmp_path, str(python))
    assert "Creating .venv" in fourth.stdout
    assert "Installing" in fourth.stdout


PACKAGES = "valgrind gcc libc6-dev g++ clang libtorch-dev python3-torch python3-venv chromium chromium-driver"


def make_tools(folder: Path, user: int, target: str = "tools") -> subprocess.CompletedProcess[str]:
    """`make tools` on a machine that has nothing but `id` and an `apt-get` that says what it is asked for."""
    programs = folder / "bin"
    programs.mkdir()
    for name, text in (("id", f"echo {user}"), ("apt-get", 'echo "apt-get $*" >&2')):
        (programs / name).write_text(f"#!/bin/sh\n{text}\n")
        (programs / name).chmod(0o755)
    shutil.copy(ROOT / "Makefile", folder)
    make = shutil.which("make")
    assert make is not None
    command = [make, target, "OTHER_PYTHON=/nowhere/python3", "OTHER_HEADER=/nowhere/torch.h"]
    return subprocess.run(command, cwd=folder, env={"PATH": str(programs)}, capture_output=True, text=True)


def test_what_the_tests_need_of_the_system_is_told_to_a_user(tmp_path: Path) -> None:
    done = make_tools(tmp_path, user=1000)
    assert done.returncode != 0
    assert f"apt-get install {PACKAGES}\n" in done.stderr


def test_what_the_tests_need_of_the_system_is_installed_by_root(tmp_path: Path) -> None:
    done = make_tools(tmp_path, user=0)
    assert done.returncode == 0
    assert f"Installing what the tests need of the system: {PACKAGES}\n" in done.stdout
    update, install = done.stderr.splitlines()
    assert update.startswith("apt-get update")
    assert install.endswith(PACKAGES)


def test_what_benchmarks_need_of_the_system_is_told_to_a_user(tmp_path: Path) -> None:
    done = make_tools(tmp_path, user=1000, target="bench-tools")
    assert done.returncode != 0
    assert "the benchmarks need more" in done.stderr
    assert "apt-get install valgrind gcc libc6-dev g++\n" in done.stderr
