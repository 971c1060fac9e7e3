"""How a store is laid out, and the way from each earlier layout to the newest.

A file of any version is made by taking the steps from nothing, so its schema can be compared to the letter. A step is
never changed once it was released; there is only another one behind it.
"""

from __future__ import annotations

import functools
import sqlite3
from collections.abc import Callable

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
    """The version that a file has."""
    version: int = connection.execute("PRAGMA user_version").fetchone()[0]
    return version


def migrate(connection: sqlite3.Connection, steps: tuple[Step, ...]) -> None:
    """Take all steps that are left to take, each in a transaction of its own."""
    while read_version(connection) < len(steps):
        connection.execute("BEGIN IMMEDIATE")
        try:
            # Another process may have taken it in the meantime.
            version = read_version(connection)
            if version < len(steps):
                steps[version](connection)
                connection.execute(f"PRAGMA user_version = {version + 1}")
            connection.execute("COMMIT")
        finally:
            if connection.in_transaction:
                connection.execute("ROLLBACK")


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
    """What is defined in a file after these steps."""
    connection = sqlite3.connect(":memory:", isolation_level=None)
    try:
        migrate(connection, steps)
        return read_objects(connection)
    finally:
        connection.close()
