from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.strangers import give_away
from torchmark.callgrind.command import (
    WATCHED,
    ask_version,
    build_library,
    callgrind_command,
    find_compiler,
    find_valgrind,
)
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


def make_compiler(folder: Path, last: str) -> dict[str, str]:
    """A program that writes where compilers put what they need in between, makes its output, and ends as it is told."""
    program = folder / "compiler"
    program.write_text(
        f'#!/bin/sh\ntouch "$TMPDIR/cc1.s"\nwhile [ "$1" != -o ]; do shift; done\necho x > "$2"\n{last}\n'
    )
    program.chmod(0o755)
    temporary = folder / "temporary"
    temporary.mkdir()
    return {"PATH": os.defpath, "CC": str(program), "TMPDIR": str(temporary)}


def test_a_library_is_compiled_once_and_nothing_else_is_left(tmp_path: Path) -> None:
    environ = make_compiler(tmp_path, "exit 0")
    library = build_library(tmp_path / "cache", environ)
    assert library.read_bytes().startswith(b"x\n")
    assert os.access(library, os.X_OK)
    assert list((tmp_path / "cache").iterdir()) == [library]
    assert not any((tmp_path / "temporary").iterdir())
    (tmp_path / "compiler").unlink()
    assert build_library(tmp_path / "cache", environ) == library


@pytest.mark.parametrize("last", ["echo no room >&2; exit 1", "echo no room >&2; kill -9 $$"])
def test_a_compiler_that_fails_or_is_killed_leaves_nothing(tmp_path: Path, last: str) -> None:
    environ = make_compiler(tmp_path, last)
    with pytest.raises(SetupError, match="cannot compile its library for counting: no room"):
        build_library(tmp_path / "cache", environ, WATCHED)
    assert not any((tmp_path / "cache").iterdir())
    assert not any((tmp_path / "temporary").iterdir())


@pytest.mark.parametrize("damage", ["torn", "changed", "empty", "open to others", "link"])
def test_a_library_that_is_not_as_it_was_compiled_is_compiled_anew(tmp_path: Path, damage: str) -> None:
    environ = make_compiler(tmp_path, "exit 0")
    library = build_library(tmp_path / "cache", environ)
    good = library.read_bytes()
    if damage == "open to others":
        library.chmod(0o777)
    elif damage == "link":
        library.rename(tmp_path / "elsewhere")
        library.symlink_to(tmp_path / "elsewhere")
    else:
        library.write_bytes({"torn": good[:1], "changed": b"y" + good[1:], "empty": b""}[damage])
    assert build_library(tmp_path / "cache", environ) == library
    assert library.read_bytes() == good
    assert not library.is_symlink()
    assert library.stat().st_mode & 0o777 == 0o755


def test_a_library_of_another_user_is_compiled_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    environ = make_compiler(tmp_path, "exit 0")
    library = build_library(tmp_path / "cache", environ)
    before = library.stat().st_ino
    give_away(library, monkeypatch)
    assert build_library(tmp_path / "cache", environ).stat().st_ino != before
