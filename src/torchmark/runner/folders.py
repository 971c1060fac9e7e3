"""Where files are kept: a cache that stays, and scratch folders that go with their owner."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import stat
import tempfile
from collections.abc import Mapping
from pathlib import Path

from torchmark.errors import SetupError
from torchmark.model.owner import read_namespace, read_start

# Of Callgrind with all callers of everything, a few hundred megabytes have been seen.
LARGEST_FILE_BYTES = 1 << 30

_SCRATCH = re.compile(r"torchmark-(\d+)-(\d+)-(\d+)-")


def cache_folder(environ: Mapping[str, str]) -> Path:
    """Where compiled things are kept: `TORCHMARK_CACHE`, or `torchmark` in the user's folder for caches.

    >>> cache_folder({"XDG_CACHE_HOME": "/x"})
    PosixPath('/x/torchmark')
    """
    if environ.get("TORCHMARK_CACHE"):
        return Path(environ["TORCHMARK_CACHE"]).absolute()
    # The convention demands an absolute path and that others be ignored.
    base = Path(environ.get("XDG_CACHE_HOME") or "")
    if not base.is_absolute():
        try:
            base = Path(environ.get("HOME") or Path.home()) / ".cache"
        except RuntimeError as error:
            raise SetupError(
                "There is no home folder to keep a cache in.", missing="cache", advice="Name one in TORCHMARK_CACHE."
            ) from error
    return base / "torchmark"


def make_scratch() -> Path:
    """A new folder whose name tells its owner, after removing those whose owners are gone without a farewell.

    The name has the same length for every owner: a worker that is told it has the same heap then.
    """
    sweep(Path(tempfile.gettempdir()))
    pid = os.getpid()
    owner = f"{pid:010}-{read_start(pid) or 0:020}-{read_namespace() or 0:020}"
    return Path(tempfile.mkdtemp(prefix=f"torchmark-{owner}-"))


def read_plain_file(path: Path, most: int | None = None) -> str | None:
    """The beginning of a file, or all of it; None if it is too large, or not a plain file.

    Whoever runs a user's code may find anything there: a link to elsewhere, or a pipe that nobody writes to.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    with open(descriptor, errors="replace") as file:
        state = os.fstat(descriptor)
        if not stat.S_ISREG(state.st_mode) or (most is None and state.st_size > LARGEST_FILE_BYTES):
            return None
        return file.read(LARGEST_FILE_BYTES if most is None else most)


def sweep(parent: Path) -> None:
    """Remove scratch folders of ours that belong to no living process.

    A container that shares the folder numbers its processes itself: of those nothing is known here.
    """
    here = read_namespace()
    if here is None:
        return
    for path in parent.glob("torchmark-*-*-*-*"):
        match = _SCRATCH.match(path.name)
        with contextlib.suppress(OSError):
            if not match or int(match[3]) != here or path.stat().st_uid != os.getuid():
                continue
            if read_start(int(match[1])) != int(match[2]):
                shutil.rmtree(path, ignore_errors=True)
