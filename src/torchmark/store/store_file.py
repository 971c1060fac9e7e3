"""Opening a file as a store, its layout, and the way from earlier layouts to the newest."""

from __future__ import annotations

import contextlib
import functools
import os
import shutil
import sqlite3
import stat
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from torchmark.errors import StoreError
from torchmark.files import await_lock, name_draft, open_plain, put_in_place
from torchmark.processes import name_scratch
from torchmark.store import database

# "tmrk", where SQLite and file(1) look for whose a file is.
APPLICATION_ID = 0x746D726B

Step = Callable[[sqlite3.Connection], None]
SchemaObject = tuple[str, str, str, "str | None"]

# Texts from outside are kept as JSON in ASCII: SQLite refuses some that Python can hold, such as names of files that
# are no UTF-8. `target` is the JSON of one, `name` of a subject the suite and the key of a case.
_VERSION_1 = (
    """CREATE TABLE runs (
    number INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    created REAL NOT NULL,
    finished REAL,
    info TEXT NOT NULL,
    targets TEXT NOT NULL,
    sampling TEXT NOT NULL,
    orders INTEGER NOT NULL,
    writer TEXT
)""",
    # A case by its name, in whatever run and however defined.
    "CREATE TABLE subjects (number INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE)",
    "CREATE TABLE definitions (hash TEXT PRIMARY KEY NOT NULL, body TEXT NOT NULL)",
    # No position: it is part of the plan no longer.
    """CREATE TABLE cases (
    run INTEGER NOT NULL REFERENCES runs ON DELETE CASCADE,
    subject INTEGER NOT NULL REFERENCES subjects,
    position INTEGER,
    definition TEXT NOT NULL REFERENCES definitions,
    tags TEXT NOT NULL,
    PRIMARY KEY (run, subject)
)""",
    "CREATE INDEX cases_by_subject ON cases (subject)",
    "CREATE INDEX cases_by_definition ON cases (definition)",
    "CREATE TABLE environments (number INTEGER PRIMARY KEY, body TEXT NOT NULL UNIQUE)",
    """CREATE TABLE outcomes (
    number INTEGER PRIMARY KEY,
    run INTEGER NOT NULL,
    subject INTEGER NOT NULL,
    target TEXT NOT NULL,
    metric TEXT NOT NULL,
    round INTEGER NOT NULL,
    planned INTEGER NOT NULL,
    failed INTEGER NOT NULL,
    began REAL NOT NULL,
    ended REAL NOT NULL,
    environment INTEGER REFERENCES environments,
    body TEXT NOT NULL,
    UNIQUE (run, subject, target, metric, round),
    FOREIGN KEY (run, subject) REFERENCES cases ON DELETE CASCADE
)""",
    "CREATE INDEX outcomes_by_run ON outcomes (run, planned, failed, environment)",
    "CREATE INDEX outcomes_by_age ON outcomes (subject, metric, ended DESC, began) WHERE failed = 0",
    "CREATE INDEX outcomes_by_environment ON outcomes (environment)",
    "CREATE TABLE activities (number INTEGER PRIMARY KEY, run INTEGER NOT NULL REFERENCES runs ON DELETE CASCADE, "
    "body TEXT NOT NULL)",
    "CREATE INDEX activities_by_run ON activities (run)",
    # What is large, compressed, by the hash of its content: many outcomes have the same.
    "CREATE TABLE blobs (hash TEXT PRIMARY KEY NOT NULL, body BLOB NOT NULL)",
    """CREATE TABLE parts (
    outcome INTEGER NOT NULL REFERENCES outcomes ON DELETE CASCADE,
    role TEXT NOT NULL,
    blob TEXT NOT NULL REFERENCES blobs,
    PRIMARY KEY (outcome, role)
)""",
    "CREATE INDEX parts_by_blob ON parts (blob)",
)


def _make_version_1(connection: sqlite3.Connection) -> None:
    for statement in _VERSION_1:
        connection.execute(statement)


# The step at place n leads from version n to version n + 1; version 0 is an empty file.
STEPS: tuple[Step, ...] = (_make_version_1,)
SCHEMA_VERSION = len(STEPS)


def read_version(connection: sqlite3.Connection) -> int:
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def migrate(connection: sqlite3.Connection, steps: tuple[Step, ...]) -> None:
    """Take all steps that are left to take, each in a transaction of its own."""
    while read_version(connection) < len(steps):
        with database.bracket(connection, "BEGIN IMMEDIATE"):
            # Another process may have taken it in the meantime.
            version = read_version(connection)
            if version < len(steps):
                steps[version](connection)
                connection.execute(f"PRAGMA user_version = {version + 1}")


# The tables that SQLite makes when it is asked to ANALYZE, as its versions of today and of the past define them.
_STATISTICS = {
    "sqlite_stat1": "tbl,idx,stat",
    "sqlite_stat2": "tbl,idx,sampleno,sample",
    "sqlite_stat3": "tbl,idx,neq,nlt,ndlt,sample",
    "sqlite_stat4": "tbl,idx,neq,nlt,ndlt,sample",
}
_STATISTICS_OBJECTS = frozenset(
    ("table", name, name, f"CREATE TABLE {name}({columns})") for name, columns in _STATISTICS.items()
)


def read_objects(connection: sqlite3.Connection) -> frozenset[SchemaObject]:
    """All that is defined in a file: tables, indices, and triggers and views if there are any.

    Statistics of SQLite's own do no harm, and are left out.
    """
    return frozenset(connection.execute("SELECT type, name, tbl_name, sql FROM sqlite_master")) - _STATISTICS_OBJECTS


@functools.cache
def expect_objects(steps: tuple[Step, ...]) -> frozenset[SchemaObject]:
    with contextlib.closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        migrate(connection, steps)
        return read_objects(connection)


FOLDER = ".torchmark"
# How long to wait for other processes that write; each takes some milliseconds for an outcome.
BUSY_TIMEOUT_S = 30.0
# Files up to this size are looked through before anything is added to them, which takes some hundredths of a second.
SMALL_ENOUGH_TO_CHECK = 64 << 20

# SQLite takes paths of up to 512 bytes, and needs room for what it adds to the name of a file.
LONGEST_PATH = 512 - len(database.JOURNAL)
# To copy a store that another process is writing to takes a second try only if that process starts its log anew
# meanwhile, which it does after some megabytes.
COPY_ATTEMPTS = 20
COPY_PAUSE_S = 0.05

_MAGIC = b"SQLite format 3\0"
_HEADER_SIZE = 100
# The beginning of a log, which changes whenever SQLite starts to overwrite the log.
_LOG_HEADER_SIZE = 32


def open_database(path: Path, *, create: bool, read_only: bool) -> database.Database:
    path = Path(os.path.realpath(path))
    _check_length(path)
    if read_only:
        check_header(path)
        database.check_beside(path)
        return _open_to_read(path)
    left = _make_sure_of(path) if create else ()
    check_header(path)
    database.check_beside(path)
    return _open_to_write(path, left)


def _check_length(path: Path) -> None:
    # A store is made under another name in the same folder.
    needed = max(len(os.fsencode(name)) for name in (path, name_draft(path)))
    if needed > LONGEST_PATH:
        raise StoreError(
            f"{path}: The path has {needed} bytes, and SQLite takes no more than {LONGEST_PATH}. Choose a file with a "
            "shorter path with --store."
        )


def _open_to_write(path: Path, left: tuple[Path, ...]) -> database.Database:
    if not (os.access(path, os.W_OK) and os.access(path.parent, os.W_OK)):
        raise StoreError(
            f"{path}: It cannot be written. Give yourself the right to write the file and its folder, or choose "
            "another file with --store."
        )
    with database.explaining(path):
        connection = _connect(path, "mode=rw")
        try:
            _check_content(connection, path)
            _prepare_to_write(connection, path)
        except BaseException:
            connection.close()
            raise
    return database.Database(path, connection, writable=True, left=left)


def _open_to_read(path: Path) -> database.Database:
    """Read without writing anything, here or beside it.

    A store that is complete in itself is read as a file that does not change. One with a log is being written, or was
    left by a process that was killed. SQLite would write to the files beside it, and perhaps to the store, to find
    out; so it gets a copy of its own.
    """
    fixed, log = database.look_at(path), database.look_at(path, database.LOG)
    with database.explaining(path), contextlib.ExitStack() as stack:
        if log is not None and log.st_size:
            fixed = None
            connection = _connect(_copy_files(path, stack.enter_context(_scratch(path))), "mode=rw")
            # The files of the copy are removed as soon as they are open: nobody else needs their names.
            connection.execute("PRAGMA locking_mode = EXCLUSIVE")
        else:
            connection = _connect(path, "mode=ro&immutable=1")
        try:
            _check_content(connection, path)
            connection = _bring_up_to_date(connection)
        except BaseException:
            connection.close()
            if fixed is not None:
                database.check_unchanged(path, fixed)
            raise
    return database.Database(path, connection, writable=False, fixed=fixed)


@contextlib.contextmanager
def _scratch(path: Path) -> Iterator[Path]:
    """A private folder for a copy of a store, if there is room for one."""
    try:
        with tempfile.TemporaryDirectory(prefix=name_scratch()) as folder:
            needed = sum(
                state.st_size for state in (database.look_at(path), database.look_at(path, database.LOG)) if state
            )
            if needed > shutil.disk_usage(folder).free:
                raise StoreError(
                    f"{path}: Reading a store that is in use takes a copy of {needed} bytes, for which {folder} has "
                    "no room. Name a folder with more room in TMPDIR."
                )
            yield Path(folder)
    except OSError as error:
        raise StoreError(
            f"{path}: Reading a store that is in use takes a copy of it, which cannot be made: {error.strerror}. Name "
            "another folder in TMPDIR."
        ) from error


def _copy_files(path: Path, folder: Path) -> Path:
    """Copy a store with its log; gives the name of the copy.

    While the log is the same, a store together with its log has all that was saved, whatever was moved from one to the
    other meanwhile. Where there is no log any more, the store must not change meanwhile.
    """
    copy = folder / "results.db"
    for _ in range(COPY_ATTEMPTS):
        before = _read_log_header(path), database.look_at(path)
        _copy_file(path, copy)
        _copy_file(Path(f"{path}{database.LOG}"), Path(f"{copy}{database.LOG}"))
        after = _read_log_header(path), database.look_at(path)
        if before[0] == after[0] and (before[0] or before[1] == after[1]):
            return copy
        time.sleep(COPY_PAUSE_S)
    raise StoreError(f"{path}: Another process keeps changing the store while it is copied to be read. Try again.")


def _copy_file(path: Path, copy: Path) -> None:
    copy.unlink(missing_ok=True)
    with contextlib.suppress(FileNotFoundError), open_plain(path) as source, copy.open("xb") as target:
        shutil.copyfileobj(source, target, 1 << 20)


def _read_log_header(path: Path) -> bytes:
    try:
        with open_plain(Path(f"{path}{database.LOG}")) as file:
            return file.read(_LOG_HEADER_SIZE)
    except FileNotFoundError:
        return b""


def check_header(path: Path) -> None:
    """Refuse what is no store of a version that is known here, from its first bytes."""
    try:
        with open_plain(path) as file:
            header = file.read(_HEADER_SIZE)
    except FileNotFoundError as error:
        raise StoreError(
            f"There is no store at {path}. Name one with --store, or make one with torchmark run."
        ) from error
    except OSError as error:
        raise StoreError(f"{path}: It cannot be read: {error.strerror}.") from error
    if not header:
        raise StoreError(f"{path}: It is empty: nothing has been saved there.")
    if len(header) < _HEADER_SIZE or not header.startswith(_MAGIC) or _number(header, 68) != APPLICATION_ID:
        raise _refuse(path)
    check_version(path, _number(header, 60))


def check_version(path: Path, version: int) -> None:
    if version > len(STEPS):
        raise StoreError(
            f"{path}: It was written by a newer torchmark: its version is {version}, this torchmark knows "
            f"{len(STEPS)}. Use that one, or choose another file with --store."
        )
    if version < 1:
        raise _refuse(path)


def _refuse(path: Path) -> StoreError:
    return StoreError(f"{path}: This is no store of torchmark's. It was left as it is; choose another with --store.")


def _number(header: bytes, offset: int) -> int:
    return int.from_bytes(header[offset : offset + 4], "big")


def _connect(path: Path, mode: str) -> sqlite3.Connection:
    connection = sqlite3.connect(f"{path.as_uri()}?{mode}", uri=True, isolation_level=None, timeout=BUSY_TIMEOUT_S)
    # Before anything is read: nothing that a stranger has put into the schema may be called, and pages are looked at
    # more closely.
    for setting in ("trusted_schema = OFF", "cell_size_check = ON", "foreign_keys = ON"):
        connection.execute(f"PRAGMA {setting}")
    return connection


def _check_content(connection: sqlite3.Connection, path: Path) -> None:
    """Refuse what has anything but the tables of its version in it."""
    version = read_version(connection)
    check_version(path, version)
    if read_objects(connection) != expect_objects(STEPS[:version]):
        raise _refuse(path)


def _bring_up_to_date(connection: sqlite3.Connection) -> sqlite3.Connection:
    """The connection, or one to a copy in memory if what it has is of an earlier version."""
    if read_version(connection) < len(STEPS):
        copy = sqlite3.connect(":memory:", isolation_level=None)
        with contextlib.closing(connection):
            connection.backup(copy)
        for setting in ("trusted_schema = OFF", "foreign_keys = ON"):
            copy.execute(f"PRAGMA {setting}")
        migrate(copy, STEPS)
        connection = copy
    connection.execute("PRAGMA query_only = ON")
    return connection


def _prepare_to_write(connection: sqlite3.Connection, path: Path) -> None:
    is_small = path.stat().st_size <= SMALL_ENOUGH_TO_CHECK
    if is_small and connection.execute("PRAGMA quick_check(1)").fetchone()[0] != "ok":
        raise sqlite3.DatabaseError("malformed")
    if connection.execute("PRAGMA journal_mode").fetchone()[0] != "wal":
        # A copy that another program made. A journal on the disk would be left if this process is killed here.
        connection.execute("PRAGMA journal_mode = MEMORY")
    connection.execute("PRAGMA journal_mode = WAL")
    # What is said to be saved survives a power cut too. An outcome takes longer than this.
    connection.execute("PRAGMA synchronous = FULL")
    migrate(connection, STEPS)
    # So that the log is there, which it is from the first reading on.
    read_version(connection)


def _make_sure_of(path: Path) -> tuple[Path, ...]:
    """Make a new store, in a folder of its own if need be, unless there is a file with something in it.

    Gives the files that an earlier store of that name had left beside it, which have other names now.
    """
    left: tuple[Path, ...] = ()
    try:
        _make_folder(path.parent)
        while (state := database.look_at(path)) is None or state.st_size == 0:
            if state is not None and not stat.S_ISREG(state.st_mode):
                break
            with _hold(path) as mine:
                if mine:
                    left = _put_new_store(path)
    except OSError as error:
        raise StoreError(
            f"{path}: It cannot be made: {error.strerror}. Choose another file with --store, or make room for it."
        ) from error
    return left


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
        await_lock(descriptor)
        held = os.fstat(descriptor)
        yield held.st_size == 0 and os.path.samestat(held, path.stat())
    finally:
        os.close(descriptor)


def _put_new_store(path: Path) -> tuple[Path, ...]:
    new = name_draft(path)
    try:
        with database.explaining(path), contextlib.closing(sqlite3.connect(new, isolation_level=None)) as connection:
            # So that a file can shrink when runs are removed. Once there is anything in a file it is too late for that.
            connection.execute("PRAGMA auto_vacuum = INCREMENTAL")
            connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
            connection.execute("PRAGMA journal_mode = WAL")
            # It is written to the disk as a whole, below.
            connection.execute("PRAGMA synchronous = OFF")
            migrate(connection, STEPS)
        left = database.clear_beside(path)
        put_in_place(new, path, durable=True)
        return left
    finally:
        database.remove_draft(new)
