"""Opening a file as a store: what is no store is recognised before SQLite touches it, and nothing in it is run.

A new store is made under another name and put in place when it is complete, so that nobody ever sees half of one.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import secrets
import sqlite3
from collections.abc import Iterator
from pathlib import Path

from torchmark.errors import StoreError
from torchmark.files import WITHOUT_LOCKS
from torchmark.store import schema
from torchmark.store.database import Database, explaining

FOLDER = ".torchmark"
# How long to wait for other processes that write; each takes some milliseconds for an outcome.
BUSY_TIMEOUT_S = 30.0
# Files up to this size are looked through before anything is added to them, which takes some hundredths of a second.
SMALL_ENOUGH_TO_CHECK = 64 << 20

_MAGIC = b"SQLite format 3\0"
_HEADER_SIZE = 100


def open_database(path: Path, *, create: bool, read_only: bool) -> Database:
    """Open a store. See `open_store`."""
    path = Path(os.path.realpath(path))
    if create and not read_only:
        _make_sure_of(path)
    check_header(path)
    writable = os.access(path, os.W_OK) and os.access(path.parent, os.W_OK)
    if not read_only and not writable:
        raise StoreError(
            f"{path}: It cannot be written. Give yourself the right to write the file and its folder, or choose "
            "another file with --store."
        )
    with explaining(path):
        connection = _connect(path, _choose_mode(path, writable))
        try:
            connection = _prepare(connection, path, read_only=read_only)
        except BaseException:
            connection.close()
            raise
    return Database(path, connection, writable=not read_only)


def check_header(path: Path) -> None:
    """Refuse what is no store of a version that is known here, from its first bytes."""
    try:
        with path.open("rb") as file:
            header = file.read(_HEADER_SIZE)
    except FileNotFoundError as error:
        raise StoreError(
            f"There is no store at {path}. Name one with --store, or make one with torchmark run."
        ) from error
    except OSError as error:
        raise StoreError(f"{path}: It cannot be read: {error.strerror}.") from error
    if not header:
        raise StoreError(f"{path}: It is empty: nothing has been saved there.")
    if len(header) < _HEADER_SIZE or not header.startswith(_MAGIC) or _number(header, 68) != schema.APPLICATION_ID:
        raise _refuse(path)
    check_version(path, _number(header, 60))


def check_version(path: Path, version: int) -> None:
    """Refuse what a newer program has written."""
    if version > len(schema.STEPS):
        raise StoreError(
            f"{path}: It was written by a newer torchmark: its version is {version}, this torchmark knows "
            f"{len(schema.STEPS)}. Use that one, or choose another file with --store."
        )
    if version < 1:
        raise _refuse(path)


def _refuse(path: Path) -> StoreError:
    return StoreError(f"{path}: This is no store of torchmark's. It was left as it is; choose another with --store.")


def _number(header: bytes, offset: int) -> int:
    return int.from_bytes(header[offset : offset + 4], "big")


def _choose_mode(path: Path, writable: bool) -> str:
    """How to open it. Whoever only reads still has to write beside it, to keep out of the way of those who write."""
    if writable:
        return "mode=rw"
    log = Path(f"{path}-wal")
    # Nobody is writing: then it may be taken for a file that does not change, and nothing has to be left beside it.
    unchanging = not log.exists() or log.stat().st_size == 0
    return "mode=ro&immutable=1" if unchanging else "mode=ro"


def _connect(path: Path, mode: str) -> sqlite3.Connection:
    connection = sqlite3.connect(f"{path.as_uri()}?{mode}", uri=True, isolation_level=None, timeout=BUSY_TIMEOUT_S)
    # Before anything is read: nothing that a stranger has put into the schema may be called, and pages are looked at
    # more closely.
    for setting in ("trusted_schema = OFF", "cell_size_check = ON", "foreign_keys = ON"):
        connection.execute(f"PRAGMA {setting}")
    return connection


def _prepare(connection: sqlite3.Connection, path: Path, *, read_only: bool) -> sqlite3.Connection:
    """Check what is in it, and bring it up to date: where it is only read, in a copy in memory."""
    version = schema.read_version(connection)
    check_version(path, version)
    if schema.read_objects(connection) != schema.expect_objects(schema.STEPS[:version]):
        raise _refuse(path)
    if read_only:
        if version < len(schema.STEPS):
            connection = _copy(connection)
            schema.migrate(connection, schema.STEPS)
        connection.execute("PRAGMA query_only = ON")
        return connection
    if path.stat().st_size <= SMALL_ENOUGH_TO_CHECK:
        found = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
        if found != "ok":
            raise sqlite3.DatabaseError("malformed")
    connection.execute("PRAGMA journal_mode = WAL")
    # What is said to be saved survives a power cut too. An outcome takes longer than this.
    connection.execute("PRAGMA synchronous = FULL")
    schema.migrate(connection, schema.STEPS)
    return connection


def _copy(connection: sqlite3.Connection) -> sqlite3.Connection:
    copy = sqlite3.connect(":memory:", isolation_level=None)
    with contextlib.closing(connection):
        connection.backup(copy)
    for setting in ("trusted_schema = OFF", "foreign_keys = ON"):
        copy.execute(f"PRAGMA {setting}")
    return copy


def _make_sure_of(path: Path) -> None:
    """Make a new store, in a folder of its own if need be, unless there is a file with something in it."""
    try:
        _make_folder(path.parent)
        while not path.exists() or path.stat().st_size == 0:
            with _hold(path) as mine:
                if mine:
                    _put_new_store(path)
    except OSError as error:
        raise StoreError(
            f"{path}: It cannot be made: {error.strerror}. Choose another file with --store, or make room for it."
        ) from error


def _make_folder(folder: Path) -> None:
    if not folder.is_dir():
        folder.mkdir(parents=True, exist_ok=True)
        if folder.name == FOLDER:
            # Results are not committed by accident.
            (folder / ".gitignore").write_text("*\n")


@contextlib.contextmanager
def _hold(path: Path) -> Iterator[bool]:
    """Keep others from making a store of the same empty file; yields whether it is still there and still empty."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        except OSError as error:
            # Without locks, two that make the same store at the same time are not kept apart.
            if error.errno not in WITHOUT_LOCKS:
                raise
        held = os.fstat(descriptor)
        yield held.st_size == 0 and os.path.samestat(held, path.stat())
    finally:
        os.close(descriptor)


def _put_new_store(path: Path) -> None:
    new = path.with_name(f".{path.name}-{os.getpid()}-{secrets.token_hex(4)}")
    try:
        with explaining(path), contextlib.closing(sqlite3.connect(new, isolation_level=None)) as connection:
            # So that a file can shrink when runs are removed. Once there is anything in a file it is too late for that.
            connection.execute("PRAGMA auto_vacuum = INCREMENTAL")
            connection.execute(f"PRAGMA application_id = {schema.APPLICATION_ID}")
            connection.execute("PRAGMA journal_mode = WAL")
            # It is written to the disk as a whole, below.
            connection.execute("PRAGMA synchronous = OFF")
            schema.migrate(connection, schema.STEPS)
        _force_to_disk(new)
        os.replace(new, path)
        _force_to_disk(path.parent)
    finally:
        for suffix in ("", "-wal", "-shm", "-journal"):
            with contextlib.suppress(FileNotFoundError):
                os.unlink(f"{new}{suffix}")


def _force_to_disk(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
