"""Two environments made as alike as they can be."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import venv
from collections.abc import Iterator
from pathlib import Path

import pytest

from torchmark.model.plan import Target
from torchmark.runner.paired_workers import Aliases, shadow

SITE = Path("lib") / f"python{sys.version_info[0]}.{sys.version_info[1]}" / "site-packages"
SHOW = "import sys, package; print(sys.prefix); print(package.__file__)"


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("short") / "env"
    venv.EnvBuilder(symlinks=True).create(home)
    package = home / SITE / "package"
    (package / "lib").mkdir(parents=True)
    (package / "__init__.py").write_text("value = 'base'\n")
    for name in ("libsame.so", "libother.so.1", "notes.txt"):
        (package / "lib" / name).write_text(name)
    return home


@pytest.fixture
def head(base: Path, tmp_path: Path) -> Path:
    home = tmp_path / "a_longer_name" / "env"
    shutil.copytree(base, home, symlinks=True)
    (home / SITE / "package/__init__.py").write_text("value = 'head'\n")
    (home / SITE / "package/lib/libother.so.1").write_text("another library")
    return home


@pytest.fixture
def aliases() -> Iterator[Aliases]:
    made = Aliases()
    yield made
    made.close()


def run(python: str, code: str) -> list[str]:
    return subprocess.run([python, "-c", code], capture_output=True, text=True, check=True).stdout.splitlines()


def test_both_are_what_they_were_under_names_of_one_length(aliases: Aliases, base: Path, head: Path) -> None:
    pythons = aliases.give([str(home / "bin/python") for home in (base, head)])
    assert len(pythons[0]) == len(pythons[1])
    for python, value in zip(pythons, ("base", "head"), strict=True):
        prefix, file = run(python, SHOW)
        assert prefix == str(Path(python).parents[1])
        assert file.startswith(prefix)
        assert run(python, "import package; print(package.value)") == [value]


def test_equal_libraries_are_one_file_and_others_are_not(aliases: Aliases, base: Path, head: Path) -> None:
    _, python = aliases.give([str(home / "bin/python") for home in (base, head)])
    lib = Path(python).parents[1] / SITE / "package/lib"
    assert os.path.samefile(lib / "libsame.so", base / SITE / "package/lib/libsame.so")
    assert os.path.samefile(lib / "libother.so.1", head / SITE / "package/lib/libother.so.1")
    # What is no library stays the side's own, equal or not.
    assert os.path.samefile(lib / "notes.txt", head / SITE / "package/lib/notes.txt")


def test_an_environment_is_its_own_neighbour(aliases: Aliases, base: Path) -> None:
    pythons = aliases.give([str(base / "bin/python")] * 2)
    assert [run(python, "import package; print(package.value)") for python in pythons] == [["base"], ["base"]]


def test_interpreters_that_are_no_virtual_environments_keep_their_names(aliases: Aliases, base: Path) -> None:
    given = [str(base / "bin/python"), "/usr/bin/python3"]
    assert aliases.give(given) == given


def test_nothing_is_left_behind(base: Path) -> None:
    aliases = Aliases()
    python = Path(aliases.give([str(base / "bin/python")] * 2)[0])
    assert python.exists()
    aliases.close()
    assert not python.parents[2].exists()
    assert (base / SITE / "package/__init__.py").exists()
    aliases.close()


def test_folders_without_replaced_files_are_links_as_a_whole(tmp_path: Path) -> None:
    home = tmp_path / "home"
    (home / "a/b").mkdir(parents=True)
    (home / "c").mkdir()
    (home / "a/b/x").write_text("old")
    (home / "a/y").write_text("y")
    (tmp_path / "x").write_text("new")
    shadow(home, tmp_path / "into", {Path("a/b/x"): tmp_path / "x"})
    into = tmp_path / "into"
    assert (into / "a/b/x").read_text() == "new"
    assert (into / "a/y").read_text() == "y"
    assert (into / "c").is_symlink()
    assert not (into / "a").is_symlink()
    shadow(home, tmp_path / "plain", {})
    assert sorted(path.name for path in (tmp_path / "plain").iterdir()) == ["a", "c"]


def test_targets_that_name_their_interpreters_get_other_names(aliases: Aliases, base: Path, head: Path) -> None:
    targets = [Target(name, str(home / "bin/python")) for name, home in (("a", base), ("b", head))]
    given = aliases.give_targets(targets, os.environ)
    assert list(given) == targets
    assert len({len(python) for python in given.values()}) == 1


def test_others_do_not(aliases: Aliases, base: Path) -> None:
    named = Target("a", str(base / "bin/python"))
    assert aliases.give_targets([Target(), named], os.environ) == {}
    assert aliases.give_targets([named], os.environ) == {}


def test_folders_are_listed_in_the_same_order_on_both_sides(aliases: Aliases, base: Path, head: Path) -> None:
    pythons = aliases.give([str(home / "bin/python") for home in (base, head)])
    listed = [os.listdir(Path(python).parents[1] / SITE / "package/lib") for python in pythons]
    assert listed[0] == listed[1]
