"""Files that may be used: those that only this user, or root, can have written, and that are whole; and locks on files.

Everything that is loaded or run from the cache is asked about here first. The system releases a lock when its process
is gone.
"""

from __future__ import annotations

import enum
import errno
import fcntl
import functools
import grp
import hashlib
import os
import pwd
import stat
from pathlib import Path
from typing import BinaryIO

ROOT = 0
# What file systems without locks say: NFS without its lock daemon, Lustre without -o flock, some of FUSE.
WITHOUT_LOCKS = frozenset({errno.ENOLCK, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS})

_MAGIC = b"torchmark-sum-1\n"
_DIGEST_SIZE = hashlib.sha256().digest_size


def is_ours(path: str | os.PathLike[str]) -> bool:
    """Whether this is a file or a folder, not a link to one, that nobody else can have written.

    That the folders around it are safe is a matter of `find_fault`.
    """
    try:
        status = os.lstat(path)
    except OSError:
        return False
    return is_ours_by(status)


def is_ours_by(status: os.stat_result) -> bool:
    """The same, of what `os.lstat` or `os.fstat` says."""
    is_plain = stat.S_ISREG(status.st_mode) or stat.S_ISDIR(status.st_mode)
    return is_plain and status.st_uid in (os.geteuid(), ROOT) and not _is_open_to_others(status)


def find_fault(folder: Path) -> str | None:
    """Why a folder cannot be trusted, in words that follow "because"; None if it can, or if it is not there yet.

    The folders around it count as well: whoever can rename it can replace it. Of these, one that a group may write is
    accepted. Many systems make home folders like that, and each file is looked at again before it is used.
    """
    for path in dict.fromkeys((folder.absolute(), Path(os.path.realpath(folder)))):
        for place in (path, *path.parents):
            try:
                status = os.lstat(place)
            except OSError:
                continue
            fault = _find_own_fault(place, status) if place == path else _find_fault_around(place, status)
            if fault is not None:
                return fault
    return None


def _find_own_fault(folder: Path, status: os.stat_result) -> str | None:
    if status.st_uid not in (os.geteuid(), ROOT):
        return _describe_owner(folder, status.st_uid)
    if stat.S_ISDIR(status.st_mode) and _is_open_to_others(status):
        return f"other users may write to {folder} (chmod go-w would end that)"
    return None


def _find_fault_around(folder: Path, status: os.stat_result) -> str | None:
    # In a container without root's rights, the folders of the system belong to a user that it does not know.
    if status.st_uid not in (os.geteuid(), ROOT, os.lstat("/").st_uid):
        return _describe_owner(folder, status.st_uid)
    # In a sticky folder, such as /tmp, only the owner of a folder can rename it.
    if stat.S_ISDIR(status.st_mode) and status.st_mode & stat.S_IWOTH and not status.st_mode & stat.S_ISVTX:
        return f"every user may write to {folder}"
    return None


def _describe_owner(folder: Path, user: int) -> str:
    return f"{folder} belongs to another user ({_find_name(user) or user})"


def _is_open_to_others(status: os.stat_result) -> bool:
    if status.st_mode & stat.S_IWOTH:
        return True
    return bool(status.st_mode & stat.S_IWGRP) and not _has_no_other_members(status.st_gid, os.geteuid())


@functools.cache
def _has_no_other_members(group: int, user: int) -> bool:
    """Whether this is the user's private group, as most Linux systems make one for each user."""
    try:
        entry = grp.getgrgid(group)
    except KeyError:
        return False
    name = _find_name(user)
    return entry.gr_name == name and set(entry.gr_mem) <= {name}


def _find_name(user: int) -> str | None:
    try:
        return pwd.getpwuid(user).pw_name
    except KeyError:
        return None


def add_checksum(content: bytes) -> bytes:
    """The content with a checksum behind it. The loader of shared libraries does not look there."""
    return content + hashlib.sha256(content).digest() + _MAGIC


def has_checksum(content: bytes) -> bool:
    """Whether all of it is there, as it was written.

    >>> has_checksum(add_checksum(b"library")), has_checksum(add_checksum(b"library")[:-1]), has_checksum(b"library")
    (True, False, False)
    """
    body, digest = content[: -len(_MAGIC) - _DIGEST_SIZE], content[-len(_MAGIC) - _DIGEST_SIZE : -len(_MAGIC)]
    return content.endswith(_MAGIC) and hashlib.sha256(body).digest() == digest


def open_plain(path: Path) -> BinaryIO:
    """Open an ordinary file. Links are not followed, and nothing else is waited for or read."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    mode = os.fstat(descriptor).st_mode
    if not stat.S_ISREG(mode):
        os.close(descriptor)
        number = errno.EISDIR if stat.S_ISDIR(mode) else errno.EINVAL
        raise OSError(number, os.strerror(number) if stat.S_ISDIR(mode) else "it is not an ordinary file")
    return os.fdopen(descriptor, "rb")


def force_to_disk(path: str | os.PathLike[str]) -> None:
    """Have the content of a file, or the names in a folder, survive a power cut: before a file gets its name, say."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


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
