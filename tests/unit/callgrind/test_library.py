from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.strangers import give_away
from torchmark.callgrind.command import WATCHED, build_library
from torchmark.errors import SetupError


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
