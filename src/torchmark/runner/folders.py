"""Folders for caches and locks, the lock that runs on a machine share, and notices given once."""

from __future__ import annotations

import atexit
import contextlib
import fcntl
import os
import pwd
import re
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from torchmark.errors import SetupError
from torchmark.files import Hold, find_fault, is_ours, list_holders, open_lock, open_plain, try_lock
from torchmark.processes import make_scratch as make_scratch

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
        folder.parent.mkdir(parents=True, exist_ok=True)
        folder.mkdir(mode=0o700, exist_ok=True)
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
        if not self._works:
            return True
        gate, room = self._descriptors
        if try_lock(gate, fcntl.LOCK_SH) is Hold.BUSY:
            return self._is_given_up(gate)
        self._shares = self._shares or try_lock(room, fcntl.LOCK_SH) is not Hold.BUSY
        _release(gate)
        return self._note_success() if self._shares else self._is_given_up(room)

    def claim(self) -> bool:
        """Whether the machine is this run's alone, until `leave`. Once asked for, others begin nothing more."""
        if not self._works:
            return True
        for descriptor in self._descriptors:
            if try_lock(descriptor, fcntl.LOCK_EX) is Hold.BUSY:
                return self._is_given_up(descriptor)
        return self._note_success()

    def leave(self) -> None:
        """Let the others work."""
        self._shares = False
        for descriptor in self._descriptors:
            _release(descriptor)

    def close(self) -> None:
        """Be no part of it any more."""
        while self._descriptors:
            os.close(self._descriptors.pop())

    @property
    def _works(self) -> bool:
        return len(self._descriptors) == 2

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


def _release(descriptor: int) -> None:
    with contextlib.suppress(OSError):
        fcntl.flock(descriptor, fcntl.LOCK_UN)
