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
from torchmark.model.locks import Hold, list_holders, open_lock, try_lock

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
        assert try_lock(lock, fcntl.LOCK_SH) is Hold.BUSY
        assert list_holders(lock) == [other.pid]
        other.communicate("\n")
    assert try_lock(lock, fcntl.LOCK_EX) is Hold.HELD
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
    assert try_lock(lock, fcntl.LOCK_EX) is Hold.IMPOSSIBLE
