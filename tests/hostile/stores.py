"""The stores, exports and ledgers that hostile ones are made from, and stores with hostile rows and schemas."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import json
import os
import random
import sqlite3
import tempfile
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from tests import sample_runs
from tests.hostile.json_values import NUMBERS, TEXTS, dump_raw, mutate, settle
from tests.made_shards import run_shard
from tests.stored_runs import (
    ADD_CASE,
    BEGAN,
    COMPILED_CASE,
    COSTS,
    CPP_CASE,
    ENVIRONMENT,
    GOLDEN,
    HOST,
    INFO,
    KILLED,
    PROFILE,
    TALLY,
)
from torchmark.model.costs import Function
from torchmark.model.outcome import Failure, Outcome, Result
from torchmark.model.plan import Case, Metric, Order, Plan, Sampling, Target
from torchmark.model.run import Run, Shard
from torchmark.store.documents import export_run, to_json_profile
from torchmark.store.plain import content_hash, from_plain, hash_text, read_case
from torchmark.store.runs import open_store

# Bombs: how much a few kilobytes claim to be. The last is above what any store may have.
BOMBS = (1 << 20, 1 << 20, 30 << 20, 30 << 20, 260 << 20)
# More calls in a chain than Python allows itself.
CHAIN = 3000


def make_id(number: int) -> str:
    """The id of such a run."""
    return f"{0xABC0 + number:032x}"


def make_run(name: str, number: int, *, factor: float = 1.0, suite: str = "standard", python: str | None = None) -> Run:
    """A finished run of one target with a result of every kind; runs of different factors can be compared."""
    target = Target(python=python)
    cases = tuple(dataclasses.replace(case, suite=suite) for case in (ADD_CASE, CPP_CASE, COMPILED_CASE))
    plan = Plan(cases, (target,), Sampling(min_run_time_s=0.1, layouts=(0, 1, 2), timeout_s=60.0))
    add, cpp, compiled = cases
    times = sample_runs.times(1000, *(factor * 1e-6 * (1 + i / 1000) for i in range(9)))
    tally = dataclasses.replace(
        TALLY, totals=(100, 99, int(101 * factor)), events=(("Ir", 100), ("Dr", 10)), allocations=int(3 * factor)
    )
    results: list[tuple[Case, Metric, Result]] = [
        (add, Metric.WALL, times),
        (add, Metric.COUNT, tally),
        (cpp, Metric.WALL, KILLED),
        (cpp, Metric.COUNT, dataclasses.replace(tally, noisy=None, text=None)),
        (compiled, Metric.WALL, COSTS),
        (compiled, Metric.COUNT, sample_runs.FAILURE),
    ]
    began = BEGAN + 1000 * number
    outcomes = tuple(
        Outcome(
            order=Order(case, target, metric),
            result=result,
            began=began + i,
            ended=began + i + 0.5,
            environment=ENVIRONMENT,
            cores=(0, 1),
        )
        for i, (case, metric, result) in enumerate(results)
    )
    info = dataclasses.replace(
        INFO,
        id=make_id(number),
        name=name,
        created=began,
        finished=began + 60,
        options=(("names", (suite,)), ("folder", ("..",))),
        host=dataclasses.replace(HOST, cpu_model=None),
        orders=len(plan.orders),
        outcomes=len(outcomes),
        failures=sum(isinstance(outcome.result, Failure) for outcome in outcomes),
    )
    return Run(info, plan, outcomes)


def _write_store(*runs: Run) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "results.db")
        with open_store(path, create=True) as store:
            for run in runs:
                store.add(run)
        return path.read_bytes()


@functools.cache
def golden() -> bytes:
    """The store of version 1."""
    return (GOLDEN / "store_v1.db").read_bytes()


@functools.cache
def pair() -> bytes:
    """Two runs that can be compared, `base` and `head`."""
    return _write_store(make_run("base", 1), make_run("head", 2, factor=1.25))


@functools.cache
def single() -> bytes:
    """Only `base`."""
    return _write_store(make_run("base", 1))


@functools.cache
def mixed() -> bytes:
    """Runs with odd names and without samples, and one that is golden."""
    odd = sample_runs.sample_run()
    return _write_store(make_run("base", 1), dataclasses.replace(odd, info=dataclasses.replace(odd.info, name="head")))


@functools.cache
def shards() -> tuple[bytes, ...]:
    """Both halves of a run, each a store."""
    with tempfile.TemporaryDirectory() as folder:
        paths = [run_shard(Path(folder, f"{n}.db"), Shard(n, 2)) for n in (1, 2)]
        return tuple(path.read_bytes() for path in paths)


@functools.cache
def _exports() -> tuple[str, ...]:
    runs = (make_run("head", 2, factor=1.25), sample_runs.sample_run())
    texts = [json.dumps(export_run(run)) for run in runs]
    return (texts[0], texts[0], texts[1], (GOLDEN / "run_v1.json").read_text())


def export_text() -> str:
    """A document that can be imported beside `base`."""
    return _exports()[0]


# --- exports ---------------------------------------------------------------------------------------------


def make_export(chance: random.Random) -> bytes:
    """A document for `torchmark import` with hostile values; mostly with hashes that fit, so that it gets far."""
    document = json.loads(chance.choice(_exports()))
    document = mutate(document, chance)
    if chance.random() < 0.85:
        document = settle(document)
        if isinstance(document, dict):
            _fit_cases(document)
            _fit_parts(document)
    text = dump_raw(document).encode()
    kind = chance.random()
    if kind < 0.03:
        text = text[: chance.randrange(len(text))]
    elif kind < 0.06:
        changed = bytearray(text)
        changed[chance.randrange(len(changed))] = chance.randrange(256)
        text = bytes(changed)
    elif kind < 0.08:
        text = chance.choice((b"\xff\xfe" + text, b"\xef\xbb\xbf" + text, text + b"x", b"[" + text + b"]", b"\0" * 10))
    return text


def _fit_cases(document: dict[str, Any]) -> None:
    cases = document.get("cases")
    for case in cases if isinstance(cases, list) else ():
        with contextlib.suppress(Exception):
            found = from_plain(Case, {k: v for k, v in case.items() if k not in ("key", "content_hash")}, "case")
            case |= {"key": found.key, "content_hash": content_hash(found)}


def _fit_parts(document: dict[str, Any]) -> None:
    """Name large parts by their content again."""
    with contextlib.suppress(Exception):
        parts = document["parts"]
        names = {old: hash_text(json.dumps(part, separators=(",", ":"))) for old, part in parts.items()}
        document["parts"] = {names[old]: part for old, part in parts.items()}
        for outcome in document["outcomes"]:
            outcome["parts"] = {role: names.get(old, old) for role, old in outcome["parts"].items()}


# --- rows ------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def _altering(content: bytes) -> Iterator[tuple[sqlite3.Connection, list[bytes]]]:
    """A connection to a copy of a store, and a list that gets the content of what became of it."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "copy.db")
        Path(path).write_bytes(content)
        connection = sqlite3.connect(path, isolation_level=None)
        result: list[bytes] = []
        try:
            for setting in ("synchronous = OFF", "foreign_keys = OFF", "ignore_check_constraints = ON"):
                connection.execute(f"PRAGMA {setting}")
            yield connection, result
        finally:
            connection.close()
        result.append(Path(path).read_bytes())


def make_rows(chance: random.Random) -> bytes:
    """A store with hostile values in some rows, all hashes as they should be."""
    with _altering(chance.choice((golden, pair, pair, pair, mixed))()) as (connection, result):
        for _ in range(chance.choice((1, 1, 1, 2, 4))):
            with contextlib.suppress(sqlite3.Error, OverflowError, UnicodeError):
                _change_row(connection, chance)
    return result[0]


def _list_tables(connection: sqlite3.Connection) -> list[str]:
    rows = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name")
    return [name for (name,) in rows if not name.startswith("sqlite_")]


def _change_row(connection: sqlite3.Connection, chance: random.Random) -> None:
    # Most of what can be said is said there.
    table = chance.choice([*_list_tables(connection), "outcomes", "outcomes", "runs", "definitions", "blobs"])
    rows = connection.execute(f"SELECT rowid, * FROM {table} ORDER BY rowid").fetchall()
    if not rows:
        return
    row = chance.choice(rows)
    names = [name for _, name, *_ in connection.execute(f"PRAGMA table_info({table})")]
    values = dict(zip(names, row[1:], strict=True))
    kind = chance.random()
    if kind < 0.06:
        connection.execute(f"DELETE FROM {table} WHERE rowid = ?", (row[0],))
    elif table == "definitions":
        _change_definition(connection, values, chance)
    elif table == "blobs":
        part = mutate(json.loads(zlib.decompress(values["body"])), chance)
        put_blob(connection, values["hash"], dump_raw(part).encode(errors="replace"))
    else:
        column = chance.choice(names)
        value = values[column]
        new = _change_value(value, chance)
        connection.execute(f"UPDATE {table} SET {column} = ? WHERE rowid = ?", (new, row[0]))


def _change_value(value: object, chance: random.Random) -> object:
    if isinstance(value, str) and value[:1] in ("{", "["):
        return dump_raw(mutate(json.loads(value), chance))
    kind = chance.random()
    if kind < 0.5:
        return chance.choice((-1, 0, 1, 2**31, 2**63 - 1, -(2**63), 1e308, float("inf"), 5e10, 6e10, 0.5, None))
    return chance.choice((*TEXTS[:20], b"\xff\x00", b"", "[]", "{}", "null", chance.choice(NUMBERS)))


def _change_definition(connection: sqlite3.Connection, values: dict[str, Any], chance: random.Random) -> None:
    text = dump_raw(mutate(json.loads(values["body"]), chance))
    name = hash_text(text) if text.isascii() else values["hash"]
    connection.execute("UPDATE definitions SET hash = ?, body = ? WHERE hash = ?", (name, text, values["hash"]))
    connection.execute("UPDATE cases SET definition = ? WHERE definition = ?", (name, values["hash"]))
    with contextlib.suppress(Exception):
        key = read_case(json.loads(text), "", ()).key
        for number, old in connection.execute(
            "SELECT number, name FROM subjects WHERE number IN (SELECT subject FROM cases WHERE definition = ?)",
            (name,),
        ).fetchall():
            new = json.dumps([json.loads(old)[0], key], separators=(",", ":"))
            connection.execute("UPDATE subjects SET name = ? WHERE number = ?", (new, number))


def put_blob(connection: sqlite3.Connection, old: str, text: bytes, packed: bytes | None = None) -> None:
    """Put another content in place of a blob, under the hash that it has."""
    name = hash_text(text.decode("ascii")) if text.isascii() else old
    connection.execute("UPDATE blobs SET hash = ?, body = ? WHERE hash = ?", (name, packed or _compress(text), old))
    connection.execute("UPDATE parts SET blob = ? WHERE blob = ?", (name, old))


def _compress(text: bytes) -> bytes:
    return zlib.compress(text, 1)


# --- blobs -----------------------------------------------------------------------------------------------


def make_blobs(chance: random.Random) -> bytes:
    """A store, one large part of which is hostile."""
    with _altering(chance.choice((pair, golden))()) as (connection, result):
        roles = connection.execute("SELECT role, blob FROM parts ORDER BY role, blob").fetchall()
        role, old = chance.choice(roles)
        name, text, packed = _make_blob(role, chance)
        put_blob(connection, old, text, packed)
        if name is not None:
            connection.execute("UPDATE blobs SET hash = ? WHERE hash = ?", (name, hash_text(text.decode("ascii"))))
    return result[0]


def _make_blob(role: str, chance: random.Random) -> tuple[str | None, bytes, bytes | None]:
    """The name of a blob where that does not fit, its text, and its compressed form where that does not fit."""
    kind = chance.random()
    if kind < 0.03:
        return None, *_make_bomb(chance.choice(BOMBS), chance.randrange(3))
    if kind < 0.2:
        good = json.dumps(["a"]).encode()
        packed = zlib.compress(good)
        return chance.choice(
            (
                ("0" * 64, good, packed),
                (None, good, packed[:-3]),
                (None, good, packed + b"more"),
                (None, good, b""),
                (None, good, b"\0" * 100),
                (None, '["é"]'.encode(), None),
                (None, b"[1,", None),
                (None, b"", None),
            )
        )
    if kind < 0.35:
        return None, b"[" * 200_000 + b"]" * 200_000, None
    return None, dump_raw(chance.choice(_PROFILES)(chance)).encode(), None


@functools.cache
def _make_bomb(size: int, kind: int) -> tuple[bytes, bytes]:
    text = (b'["' + b"a" * size + b'"]', b'["' + b'","' * (size // 3) + b'"]', b"[" + b"1," * (size // 2) + b"1]")[kind]
    return text, _compress(text)


def _mutated_profile(chance: random.Random) -> Any:
    return mutate(to_json_profile(PROFILE), chance)


def _chain(chance: random.Random) -> Any:
    """Functions that call each other, one deeper than the other; or in circles."""
    functions = [Function("f.c", f"f{i}", "lib.so") for i in range(chance.choice((CHAIN, 200, 3)))]
    numbers = range(len(functions))
    calls = [[i, i + 1, 1, 100, 10] for i in numbers[:-1]]
    if chance.random() < 0.5:
        calls += [[len(functions) - 1, 0, 1, 100, 10], *([i, i, 1, 5, 5] for i in numbers)]
    texts = list(dict.fromkeys(text for function in functions for text in function))
    places = {text: place for place, text in enumerate(texts)}
    return {
        "events": ["Ir", "Dr"],
        "trigger": None,
        "texts": texts,
        "functions": [[places[text] for text in function] for function in functions],
        "exclusive": [[1, 1]] * len(functions),
        "calls": calls,
        "inclusive": None,
    }


def _without_instructions(chance: random.Random) -> Any:
    return {**to_json_profile(PROFILE), "events": chance.choice((["Dr", "Dw"], [], ["Ir", "Ir"], ["Ir"]))}


def _hostile_names(chance: random.Random) -> Any:
    profile = to_json_profile(PROFILE)
    profile["texts"] = [chance.choice((text, text + chance.choice(TEXTS))) for text in profile["texts"]]
    return profile


_PROFILES: tuple[Callable[[random.Random], Any], ...] = (
    _mutated_profile,
    _mutated_profile,
    _chain,
    _without_instructions,
    _hostile_names,
)


# --- schemas ---------------------------------------------------------------------------------------------

_STATEMENTS = (
    "CREATE TRIGGER t AFTER INSERT ON runs BEGIN SELECT load_extension('./tools/check'); END",
    "CREATE TRIGGER t AFTER UPDATE ON runs BEGIN DELETE FROM outcomes; END",
    "CREATE TRIGGER t BEFORE DELETE ON runs BEGIN UPDATE runs SET name = x'00'; END",
    "CREATE VIEW v AS SELECT randomblob(1000000000) AS x",
    "CREATE VIEW v AS WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT count(*) AS number FROM c",
    "CREATE TABLE extra (a, b AS (abs(a)) STORED, CHECK (load_extension('./tools/check')))",
    "CREATE INDEX i ON runs (json_extract(info, '$'))",
    "CREATE VIRTUAL TABLE f USING fts5(a)",
    "CREATE VIRTUAL TABLE r USING rtree(a, b, c)",
    "CREATE TABLE sequence (a INTEGER PRIMARY KEY AUTOINCREMENT)",
    "ALTER TABLE runs ADD COLUMN more TEXT",
    "ALTER TABLE runs RENAME COLUMN info TO inf",
    "DROP TABLE parts",
    "DROP INDEX cases_by_subject",
    "ANALYZE",
    "PRAGMA user_version = 2",
    "PRAGMA user_version = -1",
    "PRAGMA application_id = 0",
    "PRAGMA journal_mode = DELETE",
)
_SLOW_VIEW = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT count(*) FROM c"
# What goes straight into the table of what there is: type, name, table, root page, text.
_ENTRIES: tuple[tuple[str, str, str, int, str], ...] = (
    ("table", "sqlite_stat1", "sqlite_stat1", 0, "CREATE VIRTUAL TABLE sqlite_stat1 USING fts5(tbl, idx, stat)"),
    ("table", "sqlite_stat1", "sqlite_stat1", 0, "CREATE VIRTUAL TABLE sqlite_stat1 USING dbstat"),
    ("table", "sqlite_stat1", "sqlite_stat1", 2, "CREATE TABLE sqlite_stat1(tbl, idx, stat)"),
    ("table", "sqlite_stat1", "sqlite_stat1", 99999, "CREATE TABLE sqlite_stat1(tbl, idx, stat)"),
    ("table", "sqlite_stat4", "sqlite_stat4", 3, "CREATE TABLE sqlite_stat4(tbl, idx, neq, nlt, ndlt, sample)"),
    ("table", "sqlite_stat_x", "sqlite_stat_x", 0, "CREATE VIRTUAL TABLE sqlite_stat_x USING nothing(here)"),
    ("view", "sqlite_stat9", "sqlite_stat9", 0, f"CREATE VIEW sqlite_stat9 AS {_SLOW_VIEW}"),
    ("view", "runs", "runs", 0, f"CREATE VIEW runs AS {_SLOW_VIEW}"),
    ("trigger", "t", "outcomes", 0, "CREATE TRIGGER t AFTER INSERT ON outcomes BEGIN SELECT 1; END"),
    ("table", "nonsense", "nonsense", 2, "CREATE nonsense"),
    ("table", "a\x1b]0;PWN\x07", "b", 2, "CREATE TABLE a (b)"),
    ("index", "i", "runs", 0, "CREATE INDEX i ON runs (number)"),
    ("unknown", "u", "u", 0, ""),
)


def make_schema(chance: random.Random) -> bytes:
    """A store in which more, less or something else is defined than in a store of ours."""
    with _altering(chance.choice((golden, pair))()) as (connection, result):
        for _ in range(chance.choice((1, 1, 2))):
            # An SQLite may have been built without some of these.
            with contextlib.suppress(sqlite3.Error):
                _change_schema(connection, chance)
    return result[0]


def _change_schema(connection: sqlite3.Connection, chance: random.Random) -> None:
    kind = chance.random()
    if kind < 0.4:
        connection.execute(chance.choice(_STATEMENTS))
        return
    connection.execute("PRAGMA writable_schema = ON")
    if kind < 0.75:
        connection.execute("INSERT INTO sqlite_master VALUES (?, ?, ?, ?, ?)", chance.choice(_ENTRIES))
        return
    rows = connection.execute("SELECT rowid, sql, rootpage FROM sqlite_master WHERE sql IS NOT NULL").fetchall()
    rowid, text, root = chance.choice(rows)
    column, value = chance.choice(
        (
            ("sql", text.replace("TEXT", "BLOB", 1)),
            ("sql", text.replace(")", ", CHECK (load_extension('./tools/check')))", 1)),
            ("sql", text + " WITHOUT ROWID"),
            ("sql", text + "/*" + "x" * 100_000 + "*/"),
            ("sql", None),
            ("sql", b"\xff"),
            ("rootpage", chance.choice((0, 1, root + 1, 2**31))),
            ("name", chance.choice(TEXTS[:20])),
            ("type", "view"),
            ("tbl_name", "sqlite_master"),
        )
    )
    connection.execute(f"UPDATE sqlite_master SET {column} = ? WHERE rowid = ?", (value, rowid))


# --- stores of several ----------------------------------------------------------------------------------


def make_shards(chance: random.Random) -> list[bytes]:
    """Stores of shards, one of which is hostile."""
    found = list(shards())
    number = chance.randrange(len(found))
    with _altering(found[number]) as (connection, result):
        for _ in range(chance.choice((1, 2))):
            # What was changed the first time may be too odd to be changed again.
            with contextlib.suppress(sqlite3.Error, OverflowError, ValueError, RecursionError, TypeError, KeyError):
                if chance.random() < 0.5:
                    (text,) = connection.execute("SELECT info FROM runs").fetchone()
                    info = json.loads(text)
                    info["options"] = mutate(info["options"], chance)
                    connection.execute("UPDATE runs SET info = ?", (dump_raw(info),))
                else:
                    _change_row(connection, chance)
    found[number] = result[0]
    return found


def make_resumable(chance: random.Random, cpu_model: str | None, *, mutated: bool) -> bytes:
    """A store whose newest run was begun here, or says so, and would run something of the sender's when it goes on."""
    suite = chance.choice(("bench_planted.py", "./bench_planted.py", "docs/conf_helper.py", "docs", ".", "standard"))
    python: str | None = chance.choice(("./tools/check", "tools/check", "check", "python3"))
    if suite != "standard":
        # One of the two is enough.
        python = chance.choice((python, None))
    run = make_run("planted", 3, suite=suite, python=python)
    host = dataclasses.replace(run.info.host, cpu_model=cpu_model)
    options = (("names", (suite,)), ("folder", (chance.choice(("..", "..", ".")),)))
    info = dataclasses.replace(run.info, host=host, options=options, finished=None)
    content = _write_store(make_run("base", 1), dataclasses.replace(run, info=info, outcomes=run.outcomes[:2]))
    if not mutated:
        return content
    with _altering(content) as (connection, result):
        name = chance.choice(("info", "info", "targets", "sampling"))
        (text,) = connection.execute(f"SELECT {name} FROM runs ORDER BY created DESC").fetchone()
        new = dump_raw(mutate(json.loads(text), chance))
        connection.execute(f"UPDATE runs SET {name} = ? WHERE created = (SELECT max(created) FROM runs)", (new,))
    return result[0]
