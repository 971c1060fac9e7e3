"""Locks on files, which the system releases for processes that are gone."""

from __future__ import annotations

import enum
import errno
import fcntl
import os
from pathlib import Path

from torchmark.model.trust import is_ours_by

# What file systems without locks say: NFS without its lock daemon, Lustre without -o flock, some of FUSE.
WITHOUT_LOCKS = frozenset({errno.ENOLCK, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS})


class Hold(enum.Enum):
    """What came of trying to lock a file."""

    HELD = enum.auto()
    BUSY = enum.auto()
    """Another process holds it."""
    IMPOSSIBLE = enum.auto()
    """The file system has no locks: nobody can hold it."""


def open_lock(path: str | os.PathLike[str]) -> int:
    """A descriptor of a file to lock, which is made if need be. OSError if it is a link, or another user's."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    if not is_ours_by(os.fstat(descriptor)):
        os.close(descriptor)
        raise PermissionError(errno.EPERM, "Other users may write to it", str(path))
    return descriptor


def try_lock(descriptor: int, kind: int) -> Hold:
    """Lock a file without waiting; `kind` is `fcntl.LOCK_SH` or `fcntl.LOCK_EX`. Never raises."""
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return Hold.BUSY
    except OSError:
        return Hold.IMPOSSIBLE
    return Hold.HELD


def list_holders(descriptor: int, root: Path = Path("/")) -> list[int]:
    """The numbers of the other living processes that have locked this file, as far as the system tells."""
    status = os.fstat(descriptor)
    file = f"{os.major(status.st_dev):02x}:{os.minor(status.st_dev):02x}:{status.st_ino}"
    try:
        lines = (root / "proc/locks").read_text().splitlines()
    except OSError:
        return []
    # Such as "1: FLOCK  ADVISORY  WRITE 1234 00:2d:5678 0 EOF".
    rows = [line.split() for line in lines]
    pids = {int(row[4]) for row in rows if len(row) > 5 and row[1] == "FLOCK" and row[5] == file}
    return sorted(pid for pid in pids if pid != os.getpid() and (root / f"proc/{pid}").exists())
