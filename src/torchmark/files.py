"""Files, folders and locks: files that appear whole, the cache, the lock of the machine, and which may be used.

Those may be used that only this user, or root, can have written, and that are whole. Everything that is
loaded or run from the cache is asked about here first. The system releases a lock when its process is gone.
"""

from __future__ import annotations

import atexit
import contextlib
import enum
import errno
import fcntl
import functools
import grp
import hashlib
import os
import pwd
import re
import secrets
import shutil
import stat
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import BinaryIO

from torchmark.errors import SetupError, StoreError, UsageError
from torchmark.processes import make_scratch

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


# Where descriptors that are open already have names: the shell's <(...) gives such a name.
_OPEN_ALREADY = ("/dev/fd/", "/dev/stdin", "/proc/self/fd/")


def open_document(file: str) -> BinaryIO:
    """What a user names to be read. A pipe that nobody may ever write to, or a device, is not waited for."""
    try:
        descriptor = os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise UsageError(f"{file!r} cannot be opened: {reason}.") from error
    mode = os.fstat(descriptor).st_mode
    if stat.S_ISREG(mode) or (stat.S_ISFIFO(mode) and file.startswith(_OPEN_ALREADY)):
        os.set_blocking(descriptor, True)
        return open(descriptor, "rb")
    os.close(descriptor)
    if stat.S_ISDIR(mode):
        raise StoreError("It cannot be read: it is a folder.")
    raise StoreError("It is not an ordinary file. If you mean it, copy it into one first")


def force_to_disk(path: str | os.PathLike[str]) -> None:
    """Have the content of a file, or the names in a folder, survive a power cut: before a file gets its name, say."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def name_draft(path: Path) -> Path:
    """A name in the same folder that no other process has chosen; short, as that of the file may be the longest."""
    return path.with_name(f".{secrets.token_hex(8)}.part")


def put_in_place(draft: str | os.PathLike[str], path: Path, *, durable: bool = False) -> None:
    """Give what is complete its name, in one step, in place of what had it; `durable` is for what a power cut may meet.

    Several processes may do the same: the content of the last one stays.
    """
    if durable:
        force_to_disk(draft)
    os.replace(draft, path)
    if durable:
        force_to_disk(path.parent)


def write_whole(path: Path, content: bytes, *, mode: int | None = None) -> None:
    """Write a file that appears when it is complete; until then, what was there stays. By default it keeps its mode."""
    draft = name_draft(path)
    try:
        with draft.open("xb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        if mode is None and path.exists():
            mode = path.stat().st_mode & 0o7777
        if mode is not None:
            draft.chmod(mode)
        put_in_place(draft, path)
    except BaseException:
        with contextlib.suppress(OSError):
            draft.unlink()
        raise


def make_private_folder(folder: Path) -> None:
    """A folder of this user's alone, and those around it; one that is there stays as it is."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)


@contextlib.contextmanager
def writing_to_cache(folder: Path) -> Iterator[None]:
    """Within this, an error of the system is a SetupError that says which folder it is and how to choose another."""
    try:
        yield
    except SetupError:
        raise
    except OSError as error:
        raise SetupError(
            f"The cache {folder} cannot be written: {error.strerror}.",
            missing="cache",
            advice="Name another folder in TORCHMARK_CACHE.",
        ) from error


def find_command(wanted: Sequence[str], names: Sequence[str], environ: Mapping[str, str]) -> list[str] | None:
    """A program as a command: the one that is wanted, with its arguments, or the first of these names that is found."""
    for first, *rest in [wanted] if wanted else [[name] for name in names]:
        found = shutil.which(first, path=environ.get("PATH", os.defpath))
        if found is not None:
            return [found, *rest]
    return None


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


def try_lock(descriptor: int, *, shared: bool = False) -> Hold:
    """Lock a file without waiting: alone, or together with all that share it. Never raises."""
    try:
        fcntl.flock(descriptor, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
    except BlockingIOError:
        return Hold.BUSY
    except OSError:
        return Hold.IMPOSSIBLE
    return Hold.HELD


def await_lock(descriptor: int) -> None:
    """Wait until this process alone has locked a file. Where the file system has no locks, nobody is kept apart."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
    except OSError as error:
        if error.errno not in WITHOUT_LOCKS:
            raise


def release(descriptor: int) -> None:
    with contextlib.suppress(OSError):
        fcntl.flock(descriptor, fcntl.LOCK_UN)


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


_told: set[str] = set()


def warn_once(text: str) -> None:
    """Write a line, unless it has been written before. Nothing fails where it cannot be.

    Names of files are quoted in it, so what is not printable becomes a blank.
    """
    if text in _told or sys.stderr is None:
        return
    _told.add(text)
    with contextlib.suppress(OSError, ValueError):
        line = "".join(c if c.isprintable() else " " for c in text)
        # Perhaps a display stands in the last line of a terminal.
        sys.stderr.write(("\n" if sys.stderr.isatty() else "") + f"torchmark: {line}\n")
        sys.stderr.flush()


# Of Callgrind with all callers of everything, a few hundred megabytes have been seen.
LARGEST_FILE_BYTES = 1 << 30

SNIPPETS, SHIPPING, MODELS = "snippets", "shipping", "models"
NAME = "torchmark"
# The first line is what programs that make copies know a cache by: https://bford.info/cachedir/
TAG = "CACHEDIR.TAG"
TAG_TEXT = "Signature: 8a477f597d28d172789f06886806bc55\n# This folder is a cache of torchmark.\n"

# Names of what torchmark keeps in its cache beside the three folders. None of them is chosen by anybody else by chance.
_OWN = re.compile(r"(watched|frames)-[0-9a-f]{16}\.so|lowering-[0-9a-f]{16}|models\.lock|selftest\.json")
_LIBRARY = re.compile(r"(watched|frames)-[0-9a-f]{16}\.so")
_SCRIPTS = re.compile(r"lowering-[0-9a-f]{16}")
# Where a compiler that was killed was at work.
_UNFINISHED = re.compile(r"\.(watched|frames)-[a-z0-9_]{8}")

_private: dict[Path | None, Path] = {}
"""By the cache that is not used, the folder that takes its place in this process."""


def cache_folder(environ: Mapping[str, str]) -> Path:
    """The cache, made if it is not there. If it cannot be made, whoever writes to it is told."""
    folder = locate_cache(environ)
    with contextlib.suppress(OSError):
        make_private_folder(folder)
        if not (folder / TAG).exists():
            with open(folder / TAG, "x") as file:
                file.write(TAG_TEXT)
    return folder


def locate_cache(environ: Mapping[str, str]) -> Path:
    """Where the cache is or would be: `TORCHMARK_CACHE`, or `torchmark` in the user's folder for caches.

    Where others could have written to it, it is a folder of this process, which goes with it.

    >>> locate_cache({"XDG_CACHE_HOME": "/x"})
    PosixPath('/x/torchmark')
    """
    folder = _choose_cache(environ)
    if folder is None:
        warn_once("There is no home folder for a cache, so nothing is kept; name a folder in TORCHMARK_CACHE.")
        return _open_private(None)
    for place in (folder, *(folder / name for name in (SNIPPETS, SHIPPING, MODELS))):
        fault = find_fault(place)
        if fault is not None:
            warn_once(
                f"The cache {folder} is not used and nothing is kept, because {fault}; "
                "name a folder of your own in TORCHMARK_CACHE."
            )
            return _open_private(folder)
    return folder


def _choose_cache(environ: Mapping[str, str]) -> Path | None:
    if environ.get("TORCHMARK_CACHE"):
        folder = Path(environ["TORCHMARK_CACHE"]).absolute()
        return folder if _is_cache(folder) else folder / NAME
    # The convention demands an absolute path and that others be ignored.
    base = Path(environ.get("XDG_CACHE_HOME") or "")
    if base.is_absolute():
        return base / NAME
    home = _find_home(environ)
    return None if home is None else home / ".cache" / NAME


def _is_cache(folder: Path) -> bool:
    """Whether a folder is there for torchmark alone: it is new, empty, or one that torchmark has made."""
    try:
        names = set(os.listdir(folder))
        text = (folder / TAG).read_text(errors="replace") if TAG in names else None
    except OSError:
        return True
    if text == TAG_TEXT:
        return True
    known = {name for name in names if _OWN.fullmatch(name)}
    if not names - known <= {SNIPPETS, SHIPPING, MODELS, TAG}:
        return False
    # Empty, or from before there was a tag; or one whose tag another process has not finished, or could not.
    return (not names or bool(known)) if text is None else TAG_TEXT.startswith(text)


def _find_home(environ: Mapping[str, str]) -> Path | None:
    home = Path(environ.get("HOME") or "")
    if home.is_absolute():
        return home
    try:
        known = Path(pwd.getpwuid(os.geteuid()).pw_dir)
    except KeyError:
        return None
    return known if known.is_absolute() and known.is_dir() else None


def _open_private(instead_of: Path | None) -> Path:
    if instead_of not in _private or not _private[instead_of].is_dir():
        try:
            folder = _private[instead_of] = make_scratch()
        except OSError as error:
            raise SetupError(
                f"There is neither a cache nor a folder for temporary files: {error.strerror}.",
                missing="cache",
                advice="Name a folder of your own in TORCHMARK_CACHE.",
            ) from error
        atexit.register(_remove_private, folder, os.getpid())
    return _private[instead_of]


def _remove_private(folder: Path, owner: int) -> None:
    # A fork of this process leaves it alone.
    if os.getpid() == owner:
        shutil.rmtree(folder, ignore_errors=True)


def clear_tools(folder: Path) -> None:
    """Remove what counting has compiled for itself, and the scripts of compilers. They are made again when needed."""
    for path in sorted(folder.iterdir()) if folder.is_dir() else ():
        with contextlib.suppress(OSError):
            if _LIBRARY.fullmatch(path.name):
                path.unlink()
            elif _SCRIPTS.fullmatch(path.name) or _UNFINISHED.fullmatch(path.name):
                shutil.rmtree(path)


def lock_folder() -> Path | None:
    """A folder for files that processes of this user lock, on this machine; None if there is no safe one.

    The folder for temporary files comes first, because all processes of a user have it in common:
    `XDG_RUNTIME_DIR` is there for those of a login session, and not for services.
    """
    folders = [Path(tempfile.gettempdir(), f"{NAME}-{os.geteuid()}")]
    runtime = Path(os.environ.get("XDG_RUNTIME_DIR") or "")
    if runtime.is_absolute():
        folders.append(runtime / NAME)
    for folder in folders:
        with contextlib.suppress(OSError):
            folder.mkdir(mode=0o700, exist_ok=True)
        if is_ours(folder) and folder.is_dir() and os.access(folder, os.W_OK) and find_fault(folder) is None:
            return folder
    warn_once(
        f"Runs at the same time will not wait for each other, because {folders[0]} is not yours alone; "
        "remove it, or set TMPDIR to a folder of your own."
    )
    return None


def read_plain_file(path: Path, most: int | None = None) -> str | None:
    """The beginning of a file, or all of it; None if it is too large, or not a plain file.

    Whoever runs a user's code may find anything there: a link to elsewhere, or a pipe that nobody writes to.
    """
    try:
        with open_plain(path) as file:
            if most is None and os.fstat(file.fileno()).st_size > LARGEST_FILE_BYTES:
                return None
            return file.read(LARGEST_FILE_BYTES if most is None else most).decode(errors="replace")
    except OSError:
        return None


# Others are often done within a few seconds, of which nobody needs to be told.
TELLING_AFTER_S = 5.0
# A process that cannot be seen from here, as in another container, may hold a lock for as long as it times. Large
# suites take about this long. One that is dead may have left the lock to a process that it forked, for ever.
LONGEST_WAIT_FOR_UNSEEN_S = 3600.0


class MachineLock:
    """One run's part in it. Nothing here ever waits: whoever is refused asks again.

    Where files cannot be locked, nobody is kept from anything.
    """

    def __init__(self, folder: Path | None = None, tell: Callable[[str], None] = warn_once) -> None:
        self._descriptors: list[int] = []
        self._shares = False
        self._tell = tell
        self._refused_since: float | None = None
        folder = folder or lock_folder()
        if folder is None:
            return
        with contextlib.suppress(OSError):
            for name in ("gate", "room"):
                self._descriptors.append(open_lock(folder / name))

    def share(self) -> bool:
        """Whether work may begin that shares the machine; it then counts as under way until `leave`."""
        if len(self._descriptors) < 2:
            return True
        gate, room = self._descriptors
        if try_lock(gate, shared=True) is Hold.BUSY:
            return self._is_given_up(gate)
        self._shares = self._shares or try_lock(room, shared=True) is not Hold.BUSY
        release(gate)
        return self._note_success() if self._shares else self._is_given_up(room)

    def claim(self) -> bool:
        """Whether the machine is this run's alone, until `leave`. Once asked for, others begin nothing more."""
        if len(self._descriptors) < 2:
            return True
        for descriptor in self._descriptors:
            if try_lock(descriptor) is Hold.BUSY:
                return self._is_given_up(descriptor)
        return self._note_success()

    def leave(self) -> None:
        self._shares = False
        for descriptor in self._descriptors:
            release(descriptor)

    def close(self) -> None:
        while self._descriptors:
            os.close(self._descriptors.pop())

    def _note_success(self) -> bool:
        self._refused_since = None
        return True

    def _is_given_up(self, descriptor: int) -> bool:
        """Whether this run goes on although another one holds a lock. It says who that is, if it takes long."""
        now = time.monotonic()
        if self._refused_since is None:
            self._refused_since = now
        waited_s = now - self._refused_since
        if waited_s < TELLING_AFTER_S:
            return False
        if pids := list_holders(descriptor):
            who = "process " + ", ".join(map(str, pids))
            self._tell(f"Waiting for another run of torchmark on this machine ({who}).")
            return False
        if waited_s < LONGEST_WAIT_FOR_UNSEEN_S:
            self._tell("Waiting for another run of torchmark, which is in another container or has left a process.")
            return False
        self._tell(
            f"Not waiting any longer for a run of torchmark that has held the machine for {waited_s / 60:.0f} minutes "
            "and cannot be seen from here: times may be disturbed by it."
        )
        self.close()
        return True
