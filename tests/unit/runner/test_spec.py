from __future__ import annotations

import importlib
import os
import sys
from pathlib import Path

import pytest

from torchmark.errors import SetupError, UsageError
from torchmark.runner.spec import WorkerSpec, find_interpreter, other_worker, own_worker, visible_path


def test_a_script_in_between_is_seen_through(tmp_path: Path) -> None:
    shim = tmp_path / "python"
    shim.write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    shim.chmod(0o755)
    assert find_interpreter(str(shim), {"PATH": "/bin"}) == sys.executable


def test_a_relative_path_is_seen_from_where_the_user_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "python").symlink_to(sys.executable)
    monkeypatch.chdir(tmp_path)
    assert os.path.samefile(find_interpreter("./python", {"PATH": "/bin"}), sys.executable)


NAME_ANOTHER = "Name a Python 3.9 or newer that has torch."


def test_a_program_that_is_not_a_python_is_a_usage_error_and_a_setup_error(tmp_path: Path) -> None:
    other = tmp_path / "python"
    with pytest.raises(UsageError) as missing:
        find_interpreter(str(other), {"PATH": "/bin"})
    assert str(missing.value) == f"{other} is not a Python interpreter: there is no such program. {NAME_ANOTHER}"
    assert missing.value.exit_code == 2
    other.write_text("#!/bin/sh\necho I am a teapot. >&2; exit 1\n")
    with pytest.raises(SetupError, match=r"it is not a file that can be run. Name"):
        find_interpreter(str(other), {"PATH": "/bin"})
    other.chmod(0o755)
    with pytest.raises(SetupError) as failing:
        find_interpreter(str(other), {"PATH": "/bin"})
    assert str(failing.value) == f"{other} is not a Python interpreter: I am a teapot. {NAME_ANOTHER}"


def test_workers_of_a_kind_are_the_same_whatever_the_path_of_modules(monkeypatch: pytest.MonkeyPatch) -> None:
    one = own_worker({"PATH": "/bin", "OMP_NUM_THREADS": "2"})
    monkeypatch.syspath_prepend("/somewhere/else")
    assert own_worker({"PATH": "/bin", "OMP_NUM_THREADS": "2", "EDITOR": "vi"}) == one
    assert own_worker({"PATH": "/bin", "OMP_NUM_THREADS": "3"}) != one
    assert own_worker({"PATH": "/bin", "OMP_NUM_THREADS": "2"}, counting=False) != one
    assert other_worker(sys.executable, {"PATH": "/bin", "OMP_NUM_THREADS": "2"}, {}) != one


def test_another_interpreter_gets_no_path_of_ours() -> None:
    assert other_worker("/usr/bin/python3", {}, {"A": "1"}) == WorkerSpec(
        "/usr/bin/python3",
        (("A", "1"), ("OMP_WAIT_POLICY", "passive"), ("OPENBLAS_NUM_THREADS", "1"), ("PYTHONHASHSEED", "0")),
    )


def test_the_visible_path_holds_in_any_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", ["", "relative", "/absolute", b"/bytes", None, 7])
    assert visible_path() == [str(tmp_path), str(tmp_path / "relative"), "/absolute", "/bytes"]


def test_a_worker_is_told_where_torch_is_only_if_it_is_nowhere_where_things_are_installed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "a file of the program").touch()
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    assert own_worker({}).sys_path is None
    (tmp_path / "torch").mkdir()
    (tmp_path / "torch" / "__init__.py").touch()
    importlib.invalidate_caches()
    assert own_worker({}).sys_path == tuple(visible_path())


def test_a_program_without_a_python_of_its_own_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "")
    with pytest.raises(SetupError, match="does not know its own Python"):
        own_worker({})
