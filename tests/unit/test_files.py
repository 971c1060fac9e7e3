from __future__ import annotations

import errno
import fcntl
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.strangers import give_away
from torchmark import files
from torchmark.errors import SetupError
from torchmark.files import Hold, find_fault, is_ours, list_holders, open_lock, try_lock, write_whole, writing_to_cache


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = tmp_path / "cache"
    path.mkdir(mode=0o700)
    return path


def test_what_only_this_user_can_write_is_ours(folder: Path) -> None:
    (folder / "file").touch(0o644)
    assert is_ours(folder)
    assert is_ours(folder / "file")
    assert find_fault(folder) is None
    assert find_fault(folder / "not" / "there") is None


def test_what_belongs_to_another_user_is_not_ours(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    give_away(folder, monkeypatch)
    assert not is_ours(folder)
    assert "belongs to another user" in (find_fault(folder) or "")
    assert "belongs to another user" in (find_fault(folder / "below") or "")


def test_another_user_is_told_apart_without_the_rights_of_root(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "ROOT", -1)
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    assert not is_ours(folder)
    assert "belongs to another user" in (find_fault(folder) or "")


@pytest.mark.parametrize("mode", [0o777, 0o707, 0o1777])
def test_what_everybody_may_write_is_not_ours(folder: Path, mode: int) -> None:
    folder.chmod(mode)
    assert not is_ours(folder)
    assert "may write to" in (find_fault(folder) or "")


def test_what_a_group_may_write_is_ours_only_if_nobody_else_is_in_it(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder.chmod(0o770)
    monkeypatch.setattr(files, "_has_no_other_members", lambda group, user: True)
    assert is_ours(folder)
    monkeypatch.setattr(files, "_has_no_other_members", lambda group, user: False)
    assert not is_ours(folder)
    assert "chmod go-w" in (find_fault(folder) or "")


def test_a_folder_that_others_could_replace_is_not_trusted_unless_its_parent_is_sticky(folder: Path) -> None:
    folder.parent.chmod(0o777)
    assert f"every user may write to {folder.parent}" in (find_fault(folder) or "")
    folder.parent.chmod(0o1777)
    assert find_fault(folder) is None


def test_a_link_is_not_a_file_of_ours_and_a_folder_is_judged_by_what_a_link_to_it_leads_to(folder: Path) -> None:
    (folder / "file").touch(0o644)
    (folder / "link").symlink_to(folder / "file")
    assert not is_ours(folder / "link")
    away = folder.parent / "away"
    away.symlink_to(folder)
    assert find_fault(away) is None
    folder.chmod(0o777)
    assert find_fault(away) is not None


HOLDER = "import fcntl, sys; f = open(sys.argv[1], 'r+'); fcntl.flock(f, fcntl.LOCK_EX); print(flush=True); input()"


@pytest.fixture
def lock(tmp_path: Path) -> Iterator[int]:
    descriptor = open_lock(tmp_path / "lock")
    yield descriptor
    os.close(descriptor)


def test_a_file_is_locked_by_one_at_a_time_and_who_that_is_can_be_told(lock: int, tmp_path: Path) -> None:
    command = [sys.executable, "-c", HOLDER, str(tmp_path / "lock")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout is not None
        other.stdout.readline()
        assert try_lock(lock, shared=True) is Hold.BUSY
        assert list_holders(lock) == [other.pid]
        other.communicate("\n")
    assert try_lock(lock) is Hold.HELD
    # Nobody waits for himself.
    assert list_holders(lock) == []


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "lock").symlink_to(tmp_path / "made by us")
    with pytest.raises(OSError, match="symbolic"):
        open_lock(tmp_path / "lock")
    assert not (tmp_path / "made by us").exists()


def test_a_file_of_another_user_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "lock").touch(0o600)
    give_away(tmp_path / "lock", monkeypatch)
    with pytest.raises(PermissionError):
        open_lock(tmp_path / "lock")


@pytest.mark.parametrize("number", [errno.ENOLCK, errno.ENOTSUP, errno.ENOSYS])
def test_a_file_system_without_locks_is_told_apart_from_a_lock_that_is_held(
    lock: int, number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(fcntl, "flock", refuse)
    assert try_lock(lock) is Hold.IMPOSSIBLE


def test_a_file_that_cannot_be_written_whole_stays_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "results"
    write_whole(path, b"before")
    path.chmod(0o640)
    write_whole(path, b"between")
    assert (path.read_bytes(), path.stat().st_mode & 0o777) == (b"between", 0o640)
    write_whole(path, b"after", mode=0o755)
    assert (path.read_bytes(), path.stat().st_mode & 0o777) == (b"after", 0o755)

    def fail(_: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("os.fsync", fail)
    with pytest.raises(OSError, match="space"):
        write_whole(path, b"lost")
    assert [(one.name, one.read_bytes()) for one in tmp_path.iterdir()] == [("results", b"after")]


def test_a_file_that_cannot_be_put_in_place_leaves_nothing_behind(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    with pytest.raises(OSError, match="directory"):
        write_whole(folder, b"content")
    assert list(tmp_path.iterdir()) == [folder]


def test_a_cache_that_cannot_be_written_is_told_with_what_to_try(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with (
        pytest.raises(SetupError, match=r"cannot be written: Not a directory.*TORCHMARK_CACHE"),
        writing_to_cache(tmp_path),
    ):
        (tmp_path / "file" / "folder").mkdir()
    own = SetupError("No.", missing="x", advice="Try.")
    with pytest.raises(SetupError) as raised, writing_to_cache(tmp_path):
        raise own
    assert raised.value is own
