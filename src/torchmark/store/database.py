"""One connection to a store, whose every fault is told in words that help."""

from __future__ import annotations

import contextlib
import os
import secrets
import shlex
import sqlite3
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from torchmark.errors import StoreError
from torchmark.files import name_draft, put_in_place

# What SQLite says, and what that means for whoever uses the store. By its text: older Pythons do not give the number.
_MEANINGS = {
    "database or disk is full": "The disk is full. What was saved before is safe; make room and go on.",
    "disk I/O error": "The disk cannot be read or written: is it full? What was saved before is safe.",
    "locked": "Another process keeps it locked. Wait for it to end, or choose another file with --store.",
    "readonly": "It cannot be written here. Give yourself the right to, or choose another file with --store.",
    "unable to open": "It cannot be opened. Give yourself the right to, or choose another file with --store.",
    "malformed": "It is damaged. It was left as it is; restore it from a copy, or choose another file with --store.",
    "not a database": "It is damaged, or no store of torchmark's. It was left as it is.",
}
# The files that SQLite keeps beside a store: what was written last, an index of that, and what a program that does not
# use a write-ahead log has to undo.
LOG, INDEX, JOURNAL = "-wal", "-shm", "-journal"
BESIDE = (LOG, INDEX, JOURNAL)


class StoreLost(StoreError):
    """Somebody removed or replaced an open store, or a file that belongs to it."""


@contextlib.contextmanager
def explaining(path: Path) -> Iterator[None]:
    """Turn what SQLite raises within this into a StoreError that names the file."""
    try:
        yield
    except (sqlite3.Error, sqlite3.Warning, OverflowError, UnicodeError) as error:
        text = str(error)
        meaning = next((meaning for part, meaning in _MEANINGS.items() if part in text), None)
        raise StoreError(f"{path}: {meaning or f'It is damaged, or cannot be used: {text}.'}") from error
    except StoreError as error:
        if str(error).startswith(f"{path}: "):
            raise
        raise StoreError(f"{path}: {error}") from error


@contextlib.contextmanager
def bracket(connection: sqlite3.Connection, begin: str) -> Iterator[None]:
    """A transaction, which is rolled back if anything is raised within it."""
    try:
        # Within this: an interrupt may come as soon as it is done.
        connection.execute(begin)
        yield
        connection.execute("COMMIT")
    finally:
        # Where the disk is full, SQLite may have done so itself.
        if connection.in_transaction:
            connection.execute("ROLLBACK")


def look_at(path: Path, suffix: str = "") -> os.stat_result | None:
    """The state of a store's file, or of one beside it; None if there is none. Links beside it are not followed."""
    try:
        return os.lstat(f"{path}{suffix}") if suffix else os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        return None


def check_unchanged(path: Path, then: os.stat_result) -> None:
    """Refuse what was read of a file that was meanwhile written to. (One that has its name now is another file.)"""
    now = look_at(path)
    if now is None or not os.path.samestat(then, now):
        return
    if (then.st_size, then.st_mtime_ns) != (now.st_size, now.st_mtime_ns):
        raise StoreError(f"{path}: Another process changed the store while it was being read. Try again.")


def check_beside(path: Path) -> None:
    """Refuse a store with files beside it that SQLite must not be shown.

    A store is always in WAL mode, so torchmark leaves no rollback journal with anything in it. SQLite would carry out
    what one says, and a journal can name any other file, which SQLite then deletes. A link or a pipe in the place of
    one of the files leads elsewhere, or blocks.
    """
    for suffix in BESIDE:
        state = look_at(path, suffix)
        if state is None:
            continue
        if not stat.S_ISREG(state.st_mode):
            raise StoreError(
                f"{path}: The store was not opened, because {path.name}{suffix} is not an ordinary file. Move it away "
                "and try again."
            )
        if suffix == JOURNAL and state.st_size:
            raise StoreError(
                f"{path}: The store was not opened, because of {path.name}{suffix} beside it. torchmark never leaves "
                "such a file, and what SQLite does with it may change or delete other files. If somebody gave you "
                "this store, do not trust it. If another program wrote to the store, let that program finish. "
                "Otherwise move that file away and try again."
            )


def clear_beside(path: Path) -> tuple[Path, ...]:
    """Make room for a new store, which SQLite would mix with what an earlier one of that name has left beside it.

    What may have results in it is kept under another name; gives these names.
    """
    kept = []
    for suffix in BESIDE:
        state = look_at(path, suffix)
        if state is None:
            continue
        old = Path(f"{path}{suffix}")
        if state.st_size and suffix != INDEX:
            kept.append(_find_free_name(old))
            put_in_place(old, kept[-1])
        else:
            os.unlink(old)
    return tuple(kept)


def remove_draft(path: Path) -> None:
    """Remove a store that did not get its name, with the files beside it."""
    for suffix in ("", *BESIDE):
        with contextlib.suppress(FileNotFoundError, NotADirectoryError):
            os.unlink(f"{path}{suffix}")


def _find_free_name(path: Path) -> Path:
    return path.with_name(f"{path.name}.left-{secrets.token_hex(4)}")


class Database:
    """An open file. Nothing is written outside a `transaction`, and nothing of one that does not end well.

    `fixed` is the state of a file that is read as one that does not change: what is read is only given out if that
    was true. Of a file that is open for writing, `left` are the files that were beside its name when it was made.
    """

    def __init__(
        self,
        path: Path,
        connection: sqlite3.Connection,
        *,
        writable: bool,
        fixed: os.stat_result | None = None,
        left: tuple[Path, ...] = (),
    ) -> None:
        self.path = path
        self.writable = writable
        self.left = left
        self._connection = connection
        self._fixed = fixed
        self._files = self._identify() if writable else None

    def close(self) -> None:
        with explaining(self.path):
            try:
                self._check_kept()
            finally:
                self._connection.close()

    def retire(self, patience_ms: int) -> None:
        """Bring everything into the one file, and leave nothing beside it, if no other process uses it."""
        self._files = None
        with explaining(self.path):
            self._connection.execute(f"PRAGMA busy_timeout = {patience_ms}")
            # With a journal in memory: one on the disk would be left if this process is killed here.
            self._connection.execute("PRAGMA journal_mode = MEMORY")

    def _identify(self) -> tuple[tuple[int, int] | None, ...]:
        """Which files have the names of the store, its log and its index."""
        states = [look_at(self.path, suffix) for suffix in ("", LOG, INDEX)]
        return tuple(state and (state.st_dev, state.st_ino) for state in states)

    def _check_kept(self) -> None:
        """Make sure that what was written is in the files that have the names of the store.

        SQLite goes on with files that have no name any more, and all that is written to them is gone when they are
        closed. As long as they are open, everything can still be read and saved again.
        """
        if self._files is None:
            return
        found = self._identify()
        if found == self._files:
            return
        (database, log, index), self._files = self._files, None
        try:
            # Nobody else has begun another log or index for it.
            is_alone = found[0] == database and found[1] in (None, log) and found[2] in (None, index)
            # That brings what the log has into the store. Its first column tells of readers who are in the way.
            if is_alone and not self._connection.execute("PRAGMA wal_checkpoint(FULL)").fetchone()[0]:
                raise StoreLost(
                    f"{self.path}: {self.path.name}{LOG if found[1] is None else INDEX} was removed while the store "
                    "was in use. Everything up to now is saved in the store. Continue a run with: "
                    f"torchmark run --resume --store {shlex.quote(str(self.path))}"
                )
            kept = self._save_again(own_log=found[1] == log)
        except (sqlite3.Error, OSError) as error:
            raise StoreLost(
                f"{self.path}: The store was removed or replaced while it was in use, and what was in it could not "
                f"be saved again ({error}). Results are lost; measure them again with torchmark run."
            ) from error
        raise StoreLost(
            f"{self.path}: The store was removed or replaced while it was in use. Everything up to now was saved "
            f"again in {kept}. Continue a run with: torchmark run --resume --store {shlex.quote(str(kept))}"
        )

    def _save_again(self, *, own_log: bool) -> Path:
        """Write what this connection has to a new file: under the store's name, if that is free again."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        draft = name_draft(self.path)
        try:
            with contextlib.closing(sqlite3.connect(draft)) as copy:
                self._connection.backup(copy)
            place = self.path
            if look_at(place) is not None:
                place = _find_free_name(place)
            elif own_log:
                # All that is in it is in the new file.
                for suffix in (LOG, INDEX):
                    with contextlib.suppress(FileNotFoundError):
                        os.unlink(f"{place}{suffix}")
            else:
                clear_beside(place)
            put_in_place(draft, place, durable=True)
            return place
        finally:
            remove_draft(draft)

    @contextlib.contextmanager
    def transaction(self) -> Iterator[None]:
        """All that is written within this, or nothing; on the disk when it ends."""
        if not self.writable:
            raise StoreError(f"{self.path}: It is open for reading only.")
        with explaining(self.path), bracket(self._connection, "BEGIN IMMEDIATE"):
            yield
        self._check_kept()

    @contextlib.contextmanager
    def snapshot(self) -> Iterator[None]:
        """All that is read within this is of one moment, whoever writes."""
        with explaining(self.path), bracket(self._connection, "BEGIN"):
            yield

    def shrink(self) -> None:
        """Give back to the disk what is no longer used."""
        with explaining(self.path):
            # Frees one page a step; of all of Python's ways to execute only this one takes them all.
            self._connection.executescript("PRAGMA incremental_vacuum; PRAGMA wal_checkpoint(TRUNCATE);")

    def rows(self, sql: str, *values: object) -> list[tuple[Any, ...]]:
        with explaining(self.path):
            try:
                return self._connection.execute(sql, values).fetchall()
            finally:
                if self._fixed is not None:
                    check_unchanged(self.path, self._fixed)

    def change(self, sql: str, *values: object) -> int:
        with explaining(self.path):
            return self._connection.execute(sql, values).rowcount

    def insert(self, sql: str, *values: object) -> int:
        """The number of the row that a statement has added."""
        with explaining(self.path):
            return self._connection.execute(sql, values).lastrowid or 0

    def change_many(self, sql: str, values: Sequence[tuple[object, ...]]) -> None:
        with explaining(self.path):
            self._connection.executemany(sql, values)


def check_row(row: Sequence[Any], *kinds: type | tuple[type, ...]) -> tuple[Any, ...]:
    """A row whose values are of these kinds: SQLite keeps anything in any column."""
    for value, kind in zip(row, kinds, strict=True):
        if not isinstance(value, kind):
            raise StoreError(f"It is damaged: a row has {value!r:.40} where that cannot be.")
    return tuple(row)
