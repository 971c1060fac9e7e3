from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest

from tests.strangers import give_away
from torchmark.runner import folders
from torchmark.runner.folders import TAG, cache_folder, locate_cache, lock_folder, make_scratch, sweep


@pytest.fixture(autouse=True)
def nothing_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folders, "_told", set())
    monkeypatch.setattr(folders, "_private", {})


@pytest.mark.parametrize(
    ("environ", "expected"),
    [
        ({"HOME": "/home/me"}, "/home/me/.cache/torchmark"),
        ({"HOME": "/home/me", "XDG_CACHE_HOME": "/caches"}, "/caches/torchmark"),
        ({"HOME": "/home/me", "XDG_CACHE_HOME": "relative"}, "/home/me/.cache/torchmark"),
        ({"HOME": "/home/me", "XDG_CACHE_HOME": ""}, "/home/me/.cache/torchmark"),
        ({"HOME": "/home/me", "XDG_CACHE_HOME": "/caches", "TORCHMARK_CACHE": "/mine"}, "/mine"),
    ],
)
def test_the_cache_follows_the_convention(environ: dict[str, str], expected: str) -> None:
    assert locate_cache(environ) == Path(expected)


def test_scratch_folders_of_the_dead_are_swept_and_no_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    mine = make_scratch()
    (mine / "file").touch()
    gone = subprocess.Popen(["true"])
    gone.wait()
    here = os.stat("/proc/self/ns/pid").st_ino
    dead = tmp_path / f"torchmark-{gone.pid}-1-{here}-abc"
    reused = tmp_path / f"torchmark-{os.getpid()}-1-{here}-abc"
    contained = tmp_path / f"torchmark-{gone.pid}-1-{here + 1}-abc"
    foreign = tmp_path / "torchmark-notes"
    for folder in (dead, reused, contained, foreign):
        folder.mkdir()
        (folder / "file").touch()
    sweep(tmp_path)
    assert sorted(tmp_path.iterdir()) == sorted([mine, contained, foreign])


@pytest.mark.parametrize("home", ["", "relative", None])
def test_without_a_usable_home_in_the_environment_that_of_the_password_database_counts(
    home: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    entry = pwd.struct_passwd(("me", "x", os.geteuid(), 0, "", str(tmp_path), ""))
    monkeypatch.setattr(pwd, "getpwuid", lambda _: entry)
    assert locate_cache({} if home is None else {"HOME": home}) == tmp_path / ".cache/torchmark"


def test_without_any_home_nothing_is_kept_and_that_is_told(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refuse(_: int) -> None:
        raise KeyError

    monkeypatch.setattr(pwd, "getpwuid", refuse)
    folder = cache_folder({"HOME": "relative"})
    assert folder.is_relative_to(tempfile.gettempdir())
    assert "TORCHMARK_CACHE" in capsys.readouterr().err
    shutil.rmtree(folder)


def test_a_folder_that_is_new_or_empty_is_the_cache_and_stays_so(tmp_path: Path) -> None:
    for folder in (tmp_path / "new" / "one", tmp_path / "empty"):
        if folder.name == "empty":
            folder.mkdir()
        environ = {"TORCHMARK_CACHE": str(folder)}
        assert cache_folder(environ) == folder
        assert (folder / TAG).read_text().startswith("Signature: 8a477f597d28d172789f06886806bc55\n")
        assert folder.stat().st_mode & 0o077 == 0 or folder.name == "empty"
        (folder / "of the user").touch()
        assert cache_folder(environ) == folder


@pytest.mark.parametrize("names", [["thesis.tex"], ["models", "snippets"], ["CACHEDIR.TAG"], ["models.lock", "notes"]])
def test_in_a_folder_with_other_things_the_cache_is_a_folder_of_its_own(tmp_path: Path, names: list[str]) -> None:
    for name in names:
        (tmp_path / name).write_text("Signature: of another program")
    assert cache_folder({"TORCHMARK_CACHE": str(tmp_path)}) == tmp_path / "torchmark"


@pytest.mark.parametrize("name", ["models.lock", f"watched-{'0a' * 8}.so", f"lowering-{'0a' * 8}"])
def test_a_cache_of_an_earlier_version_is_found_again(tmp_path: Path, name: str) -> None:
    (tmp_path / name).touch()
    (tmp_path / "snippets").mkdir()
    assert cache_folder({"TORCHMARK_CACHE": str(tmp_path)}) == tmp_path


@pytest.mark.parametrize("fault", ["owner", "mode", "owner of a folder below"])
def test_a_cache_that_others_can_write_is_not_used_and_that_is_told_once(
    tmp_path: Path, fault: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    cache = tmp_path / "cache"
    environ = {"TORCHMARK_CACHE": str(cache)}
    assert cache_folder(environ) == cache
    (cache / "snippets").mkdir()
    if fault == "mode":
        cache.chmod(0o777)
    else:
        give_away(cache if fault == "owner" else cache / "snippets", monkeypatch)
    private = cache_folder(environ)
    assert private != cache
    assert private.stat().st_mode & 0o077 == 0
    assert cache_folder(environ) == private
    told = capsys.readouterr().err
    assert told.count("\n") == 1
    assert f"The cache {cache} is not used" in told
    assert "name a folder of your own in TORCHMARK_CACHE" in told
    folders._remove_private(private, os.getpid() + 1)
    assert private.exists()
    folders._remove_private(private, os.getpid())
    assert not private.exists()


def test_locks_lie_in_a_folder_that_nobody_else_can_look_into(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    folder = lock_folder()
    assert folder == tmp_path / f"torchmark-{os.geteuid()}"
    assert folder is not None
    assert folder.stat().st_mode & 0o077 == 0
    assert lock_folder() == folder


@pytest.mark.parametrize("trap", ["link", "open", "file"])
def test_a_folder_for_locks_that_somebody_else_has_made_is_not_used(
    trap: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    temporary, runtime = tmp_path / "tmp", tmp_path / "run"
    temporary.mkdir()
    runtime.mkdir(mode=0o700)
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    monkeypatch.delenv("XDG_RUNTIME_DIR")
    path = temporary / f"torchmark-{os.geteuid()}"
    if trap == "link":
        path.symlink_to(runtime)
    elif trap == "open":
        path.mkdir()
        path.chmod(0o777)
    else:
        path.touch()
    assert lock_folder() is None
    assert str(path) in capsys.readouterr().err
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(runtime))
    assert lock_folder() == runtime / "torchmark"
    runtime.chmod(0o777)
    assert lock_folder() is None
