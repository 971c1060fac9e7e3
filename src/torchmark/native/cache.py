"""Compiled snippets on disk, found by what they were made of, shared by all processes of a user.

A snippet's library is the file `<key>.so`. The snippets of one library are links to one file. An entry appears in one
step, complete, or not at all; behind the library it carries the state of every header it was made from, and a checksum.
So there is nothing that two writers, a reader and a crash could disagree about.
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import os
import re
import shutil
import struct
import tempfile
import time
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from torchmark.errors import UsageError
from torchmark.files import (
    Hold,
    is_ours,
    is_ours_by,
    make_private_folder,
    open_lock,
    put_in_place,
    try_lock,
    writing_to_cache,
)

DEFAULT_LIMIT_BYTES = 2 * 1024**3
# When an entry was last used is noted no more often than this.
TOUCH_INTERVAL_S = 3600.0
# Between making a folder and locking it lie microseconds.
LONGEST_BIRTH_S = 600.0
# How late it is noticed that another process is done.
LOOKING_INTERVAL_S = 0.05
# Without locks nobody can tell whether a folder is still worked in. A compiler is ended after a quarter of an hour.
LONGEST_WORK_S = 24 * 3600.0

_MAGIC = b"torchmark-lib-1\n"
# Checksum of all before it, and the length of the list of headers.
_TRAILER = struct.Struct(f">32sQ{len(_MAGIC)}s")
# The names that entries have. Nothing else in the folder is ever removed.
_ENTRY, _PRELUDE, _LOCK = (re.compile(rf"[0-9a-f]{{32}}\.{suffix}") for suffix in ("so", "prelude", "lock"))
_WORKSHOP = re.compile(r"(making|new)-[a-z0-9_]{8}")
_UNITS = {"": 1, "K": 1024, "M": 1024**2, "G": 1024**3, "T": 1024**4}

Headers = Mapping[str, tuple[int, int]]
"""The size and the time of the last change, in nanoseconds, of each header."""


PRELUDE = "prelude.h"
_PRELUDE_FILES = (PRELUDE, f"{PRELUDE}.gch", "headers")


class Prelude(NamedTuple):
    """The beginning of a file, compiled before: `header` lies beside its compiled form."""

    header: Path
    headers: Headers


@dataclasses.dataclass(frozen=True)
class CacheState:
    """What is in the cache, and how much may be. `folder` is all of torchmark's cache, of which snippets are a part."""

    folder: str
    snippets: int
    libraries: int
    preludes: int
    size_bytes: int
    limit_bytes: int


class Cache:
    """A folder of compiled snippets, with a bound on its size."""

    def __init__(
        self, folder: Path, limit_bytes: int = DEFAULT_LIMIT_BYTES, *, holds: Callable[[Path], bool] | None = None
    ) -> None:
        """`holds` tells whether a library can be used; by default, whether it has the seal of this cache."""
        self.folder = folder
        self.limit_bytes = limit_bytes
        self._holds = holds or (lambda path: _holds(path.read_bytes()))
        self._verdicts: dict[tuple[int, int, int], bool] = {}

    def find(self, key: str) -> Path | None:
        """The library with this snippet; None if there is none, or none that still holds."""
        path = self.path(key)
        try:
            status = path.lstat()
            if not self._judge(status, lambda: is_ours_by(status) and self._holds(path)):
                return None
            if time.time() - status.st_mtime > TOUCH_INTERVAL_S:
                with contextlib.suppress(OSError):
                    os.utime(path)
        except OSError:
            return None
        return path

    def _judge(self, status: os.stat_result, holds: Callable[[], bool]) -> bool:
        """Whether a file can be used. Each is looked at once: one library serves many snippets."""
        identity = (status.st_ino, status.st_size, status.st_ctime_ns)
        if identity not in self._verdicts:
            self._verdicts[identity] = holds()
        return self._verdicts[identity]

    def publish(self, library: Path, headers: Headers, keys: Sequence[str]) -> None:
        with self.workshop() as folder:
            sealed = folder / "library.so"
            sealed.write_bytes(_seal(library.read_bytes(), headers))
            sealed.chmod(0o755)
            for key in keys:
                link = folder / f"{key}.so"
                try:
                    os.link(sealed, link)
                except OSError:
                    # Some file systems have no links.
                    shutil.copy2(sealed, link)
                put_in_place(link, self.path(key))

    @contextlib.contextmanager
    def workshop(self) -> Iterator[Path]:
        """A folder beside the entries to make one in. If this process dies, the next one removes it."""
        with contextlib.ExitStack() as stack:
            with writing_to_cache(self.folder):
                make_private_folder(self.folder)
                self._sweep()
                new = Path(tempfile.mkdtemp(prefix="new-", dir=self.folder))
                stack.callback(shutil.rmtree, new, ignore_errors=True)
                # Held as long as this process lives, and released by the kernel whatever ends it.
                owner = open_lock(new / "owner")
                stack.callback(os.close, owner)
                try_lock(owner)
                # Under a name that others look at only now, when it is locked.
                path = self.folder / new.name.replace("new-", "making-")
                put_in_place(new, path)
                stack.callback(shutil.rmtree, path, ignore_errors=True)
            yield path

    @contextlib.contextmanager
    def turn(self, name: str, hurry: Callable[[], bool] = lambda: False) -> Iterator[None]:
        """Wait while another process makes the same, unless in a hurry.

        Only to save work: nothing breaks without it.
        """
        path = self.folder / f"{name}.lock"
        with contextlib.ExitStack() as stack:
            with contextlib.suppress(OSError):
                make_private_folder(self.folder)
                file = open_lock(path)
                stack.callback(os.close, file)
                while try_lock(file) is Hold.BUSY and not hurry():
                    time.sleep(LOOKING_INTERVAL_S)
                # Whoever waits on it has the file open, and goes on when we let go.
                stack.callback(path.unlink, missing_ok=True)
            yield

    def evict(self, spared: Sequence[Path] = ()) -> None:
        """Remove the libraries that were not used for longest, until the rest is within the bound."""
        kept = {path.stat().st_ino for path in spared if path.exists()}
        libraries = self._libraries()
        size = sum(library.size_bytes for library in libraries)
        for library in sorted(libraries, key=lambda one: one.used):
            if size <= self.limit_bytes:
                return
            if library.inode not in kept:
                size -= library.size_bytes
                library.remove()

    def measure(self) -> CacheState:
        libraries = self._libraries()
        preludes = [library for library in libraries if library.is_prelude]
        return CacheState(
            folder=str(self.folder.parent),
            snippets=sum(len(library.paths) for library in libraries) - len(preludes),
            libraries=len(libraries) - len(preludes),
            preludes=len(preludes),
            size_bytes=sum(library.size_bytes for library in libraries),
            limit_bytes=self.limit_bytes,
        )

    def clear(self) -> CacheState:
        """Remove every entry; what others are making right now stays. Says what there was."""
        state = self.measure()
        self._sweep()
        for library in self._libraries():
            library.remove()
        return state

    def find_prelude(self, name: str) -> Prelude | None:
        """The compiled prelude of this name, if it still holds."""
        folder = self._prelude_folder(name)
        try:
            if not all(is_ours(one) for one in (folder, *(folder / name for name in _PRELUDE_FILES))):
                return None
            content = (folder / "headers").read_bytes()
            if not self._judge((folder / "headers").stat(), lambda: _holds(content)):
                return None
            os.utime(folder)
            return Prelude(folder / PRELUDE, dict(_each_header(content)))
        except OSError:
            return None

    def begin_prelude(self, name: str, text: str) -> Path:
        """Where a prelude is to be compiled: its name goes into what is made of it. Nobody finds it yet."""
        folder = self._prelude_folder(name)
        make_private_folder(folder)
        (folder / "headers").unlink(missing_ok=True)
        (folder / PRELUDE).write_text(text)
        return folder / PRELUDE

    def publish_prelude(self, name: str, compiled: Path, headers: Headers) -> None:
        """Put the compiled form in place, and last what makes it found."""
        folder = self._prelude_folder(name)
        # It has no checksum: it is large, and compilers map it into memory.
        put_in_place(compiled, folder / f"{PRELUDE}.gch", durable=True)
        listed = compiled.with_name("headers")
        listed.write_bytes(_seal(b"", headers))
        put_in_place(listed, folder / "headers")

    def _prelude_folder(self, name: str) -> Path:
        return self.folder / f"{name}.prelude"

    def path(self, key: str) -> Path:
        return self.folder / f"{key}.so"

    def _libraries(self) -> list[_Library]:
        libraries: dict[int, _Library] = {}
        for path in (*self._list(_ENTRY), *self._list(_PRELUDE)):
            # Another process may remove it meanwhile.
            with contextlib.suppress(OSError):
                status = path.lstat()
                files = [*path.iterdir()] if path.suffix == ".prelude" else [path]
                new = _Library(status.st_ino, sum(file.lstat().st_size for file in files), status.st_mtime, [])
                libraries.setdefault(status.st_ino, new).paths.append(path)
        return list(libraries.values())

    def _list(self, names: re.Pattern[str]) -> list[Path]:
        try:
            return [path for path in self.folder.iterdir() if names.fullmatch(path.name)]
        except OSError:
            return []

    def _sweep(self) -> None:
        """Remove what processes that are gone were making."""
        for path in self._list(_WORKSHOP):
            with contextlib.suppress(OSError):
                longest_s = LONGEST_BIRTH_S if path.name.startswith("new-") else _find_longest_work(path)
                if longest_s is not None and time.time() - path.lstat().st_mtime >= longest_s:
                    shutil.rmtree(path, ignore_errors=True)
        for path in self._list(_LOCK):
            with contextlib.suppress(OSError), _opened(path) as lock:
                if try_lock(lock) is Hold.HELD:
                    path.unlink()


class _Library(NamedTuple):
    inode: int
    size_bytes: int
    used: float
    paths: list[Path]

    @property
    def is_prelude(self) -> bool:
        return self.paths[0].suffix == ".prelude"

    def remove(self) -> None:
        for path in self.paths:
            with contextlib.suppress(OSError):
                if self.is_prelude:
                    for name in _PRELUDE_FILES:
                        (path / name).unlink(missing_ok=True)
                    path.rmdir()
                else:
                    path.unlink(missing_ok=True)


def parse_size(text: str) -> int:
    """A size in bytes, from a number with K, M, G or T behind it or without.

    >>> parse_size("500M"), parse_size("2 GiB")
    (524288000, 2147483648)
    """
    stripped = text.strip().upper().removesuffix("B").removesuffix("I")
    unit = stripped[-1:] if stripped[-1:] in _UNITS and stripped else ""
    try:
        size = float(stripped[: len(stripped) - len(unit)]) * _UNITS[unit]
        if not 0 <= size < float("inf"):
            raise ValueError
        return int(size)
    except ValueError:
        raise UsageError(f"{text!r} is not a size, such as 500M or 2G.") from None


def note_headers(paths: Sequence[str], started_ns: int) -> dict[str, tuple[int, int]]:
    """The state of headers that were read since `started_ns`. One that changed since then never fits again.

    One from the future, as after the clock was set back, did not change since then.
    """
    now_ns = time.time_ns()
    states: dict[str, tuple[int, int]] = {}
    for path in paths:
        try:
            status = os.stat(path)
        except OSError:
            states[path] = (-1, -1)
            continue
        changed_ns = status.st_mtime_ns
        states[path] = (status.st_size, -1 if started_ns <= changed_ns <= now_ns else changed_ns)
    return states


def _seal(library: bytes, headers: Headers) -> bytes:
    """The library and, where the loader does not look, its headers and a checksum."""
    lines = (f"{size} {changed} {path}" for path, (size, changed) in headers.items())
    listed = zlib.compress("\0".join(lines).encode(errors="surrogateescape"), 1)
    checksum = hashlib.sha256(library + listed).digest()
    return library + listed + _TRAILER.pack(checksum, len(listed), _MAGIC)


def _holds(content: bytes) -> bool:
    """Whether this is a whole entry, and its headers are as they were."""
    body, trailer = content[: -_TRAILER.size], content[-_TRAILER.size :]
    if len(trailer) != _TRAILER.size:
        return False
    checksum, _, magic = _TRAILER.unpack(trailer)
    if magic != _MAGIC or hashlib.sha256(body).digest() != checksum:
        return False
    try:
        for path, state in _each_header(content):
            status = os.stat(path)
            if (status.st_size, status.st_mtime_ns) != state:
                return False
    except (OSError, ValueError, OverflowError, zlib.error):
        # A header is gone; or the list was not written by this version.
        return False
    return True


def _each_header(content: bytes) -> Iterator[tuple[str, tuple[int, int]]]:
    """One after the other.

    To keep thousands of them would set off Python's garbage collector, which with torch in memory takes longer than all
    the rest.
    """
    body = content[: -_TRAILER.size]
    _, length, _ = _TRAILER.unpack(content[-_TRAILER.size :])
    listed = zlib.decompress(body[len(body) - length :]).decode(errors="surrogateescape")
    for line in listed.split("\0") if listed else ():
        size, changed, path = line.split(" ", 2)
        yield path, (int(size), int(changed))


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[int]:
    descriptor = os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _find_longest_work(workshop: Path) -> float | None:
    """How old a folder has to be for nobody to be at work there; None if somebody is."""
    try:
        with _opened(workshop / "owner") as owner:
            held = try_lock(owner)
    except FileNotFoundError:
        # It had one when it got this name: whoever was removing it has not come to the end.
        return 0.0
    return {Hold.HELD: 0.0, Hold.BUSY: None, Hold.IMPOSSIBLE: LONGEST_WORK_S}[held]
