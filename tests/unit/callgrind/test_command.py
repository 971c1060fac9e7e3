from __future__ import annotations

from pathlib import Path

import pytest

from torchmark.callgrind.command import ask_version, callgrind_command, find_compiler, find_valgrind
from torchmark.errors import SetupError


def executable(path: Path, text: str = "#!/bin/sh\n") -> Path:
    path.write_text(text)
    path.chmod(0o755)
    return path


def test_valgrind_is_found_on_the_path(tmp_path: Path) -> None:
    program = executable(tmp_path / "valgrind", "#!/bin/sh\necho valgrind-3.99\n")
    assert find_valgrind(str(tmp_path), "linux", "x86_64") == str(program)
    assert ask_version(str(program)) == "valgrind-3.99"


def test_missing_valgrind_is_one_sentence_with_what_to_install(tmp_path: Path) -> None:
    with pytest.raises(SetupError, match=r"Missing: valgrind\. Install it .*apt-get install valgrind") as caught:
        find_valgrind(str(tmp_path), "linux", "x86_64")
    assert caught.value.missing == "valgrind"
    assert isinstance(caught.value, OSError)


@pytest.mark.parametrize(("system", "processor"), [("darwin", "arm64"), ("win32", "AMD64"), ("linux", "riscv64")])
def test_a_platform_without_valgrind_is_told_what_to_use_instead(system: str, processor: str) -> None:
    with pytest.raises(SetupError, match=r"Valgrind is not supported on this platform.*wall time"):
        find_valgrind(None, system, processor)


def test_a_valgrind_that_does_not_run_has_no_version() -> None:
    assert ask_version("/nowhere/valgrind") is None


def test_files_go_where_they_are_wanted_whatever_the_folder_is_called() -> None:
    command = callgrind_command("/bin/valgrind", "/tmp/100%p")
    assert "--callgrind-out-file=/tmp/100%%p/%p" in command
    assert "--instr-atstart=no" in command
    assert not any("sim" in option for option in command)
    assert {"--cache-sim=yes", "--branch-sim=yes"} <= set(callgrind_command("valgrind", "/tmp", simulate=True))


def test_the_users_compiler_comes_first_and_may_have_arguments(tmp_path: Path) -> None:
    mine = executable(tmp_path / "mycc")
    assert find_compiler({"PATH": str(tmp_path), "CC": "mycc -m64"}) == [str(mine), "-m64"]
    clang = executable(tmp_path / "clang")
    assert find_compiler({"PATH": str(tmp_path)}) == [str(clang)]


@pytest.mark.parametrize("environ", [{}, {"CC": "icc"}])
def test_no_compiler_is_one_sentence_with_what_to_install(tmp_path: Path, environ: dict[str, str]) -> None:
    with pytest.raises(SetupError, match=r"There is no C compiler .*apt-get install gcc"):
        find_compiler({"PATH": str(tmp_path), **environ})
