"""One connection to a store, whose every fault is told in words that help."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from torchmark.errors import StoreError

# What SQLite says, and what that means for whoever uses the store. By its text: older Pythons do not give the number.
_MEANINGS = {
    "database or disk is full": "The disk is full. What was saved before is safe; make room and go on.",
    "disk I/O error": "The disk cannot be read or written: is it full? What was saved before is safe.",
    "locked": "Another process keeps it locked. Wait for it to end, or choose another file with --store.",
    "readonly": "It cannot be written here. Give yourself the right to, or choose another file with --store.",
    "unable to open": "It cannot be opened. While others use it, reading it needs the right to write in its folder.",
    "malformed": "It is damaged. It was left as it is; restore it from a copy, or choose another file with --store.",
    "not a database": "It is damaged, or no store of torchmark's. It was left as it is.",
}


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


class Database:
    """An open file. Nothing is written outside a `transaction`, and nothing of one that does not end well."""

    def __init__(self, path: Path, connection: sqlite3.Connection, *, writable: bool) -> None:
        self.path = path
        self.writable = writable
        self._connection = connection

    def close(self) -> None:
        """Let go of the file."""
        with explaining(self.path):
            self._connection.close()

    @contextlib.contextmanager
    def transaction(self) -> Iterator[None]:
        """All that is written within this, or nothing; on the disk when it ends."""
        if not self.writable:
            raise StoreError(f"{self.path}: It is open for reading only.")
        with self._bracket("BEGIN IMMEDIATE"):
            yield

    @contextlib.contextmanager
    def snapshot(self) -> Iterator[None]:
        """All that is read within this is of one moment, whoever writes."""
        with self._bracket("BEGIN"):
            yield

    @contextlib.contextmanager
    def _bracket(self, begin: str) -> Iterator[None]:
        with explaining(self.path):
            try:
                # Within this: an interrupt may come as soon as it is done.
                self._connection.execute(begin)
                yield
                self._connection.execute("COMMIT")
            finally:
                # Where the disk is full, SQLite may have done so itself.
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")

    def shrink(self) -> None:
        """Give back to the disk what is no longer used."""
        with explaining(self.path):
            # Frees one page a step; of all of Python's ways to execute only this one takes them all.
            self._connection.executescript("PRAGMA incremental_vacuum; PRAGMA wal_checkpoint(TRUNCATE);")

    def rows(self, sql: str, *values: object) -> list[tuple[Any, ...]]:
        """All that a query gives."""
        with explaining(self.path):
            return self._connection.execute(sql, values).fetchall()

    def change(self, sql: str, *values: object) -> int:
        """How many rows a statement has changed."""
        with explaining(self.path):
            return self._connection.execute(sql, values).rowcount

    def insert(self, sql: str, *values: object) -> int:
        """The number of the row that a statement has added."""
        with explaining(self.path):
            return self._connection.execute(sql, values).lastrowid or 0

    def change_many(self, sql: str, values: Sequence[tuple[object, ...]]) -> None:
        """One statement for each of these."""
        with explaining(self.path):
            self._connection.executemany(sql, values)


def check_row(row: Sequence[Any], *kinds: type | tuple[type, ...]) -> tuple[Any, ...]:
    """A row whose values are of these kinds: SQLite keeps anything in any column."""
    for value, kind in zip(row, kinds, strict=True):
        if not isinstance(value, kind):
            raise StoreError(f"It is damaged: a row has {value!r:.40} where that cannot be.")
    return tuple(row)
