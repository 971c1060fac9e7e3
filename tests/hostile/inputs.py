"""Hostile inputs: what a stranger may have put into stores, journals, logs, exports, ledgers and caches.

An input is the files that it consists of and the commands that read them. The same kind and seed give the same bytes.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import io
import json
import os
import random
import struct
import tempfile
import zlib
from collections.abc import Callable, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

from tests.hostile import stores
from tests.hostile.json_values import dump_raw, mutate, settle
from tests.hostile.sqlite_files import (
    damage,
    make_hostile_wal,
    make_journal,
    make_plain_journal,
    replace_by_wal,
)
from tests.hostile.worker_answers import Script, make_script
from torchmark.api.callgrind_stats import CallgrindStats, FunctionCount, FunctionCounts
from torchmark.api.measurement import Measurement
from torchmark.cli.main import main
from torchmark.files import cache_folder
from torchmark.model.task import TaskSpec
from torchmark.report.formats.registry import FORMATS
from torchmark.runner.machine import read_cpu_model
from torchmark.runner.prepare import open_cache

# Below one folder: where commands run, the user's own things, the cache, and where commands are told to write.
WORK, HOME, CACHE, OUT, TEMPORARY, BIN = "clone", "home", "cache", "out", "tmp", "bin"
STORE = f"{WORK}/.torchmark/results.db"
LEDGER = "torchmark-ledger"
WROTE = "../out"


@dataclasses.dataclass(frozen=True)
class Link:
    """A symbolic link."""

    target: str


@dataclasses.dataclass(frozen=True)
class Pipe:
    """A named pipe that nobody writes to."""


@dataclasses.dataclass(frozen=True)
class Program:
    """A file that can be executed. It tells by a file in the user's folder that it was."""

    text: str = '#!/bin/sh\necho "$0" > "$HOME/STARTED"\n'


Content = bytes | Link | Pipe | Program


@dataclasses.dataclass(frozen=True)
class Step:
    """A command, and what it may change besides what it was told to write."""

    name: str
    arguments: tuple[str, ...]
    may_change: tuple[str, ...] = ()
    """Files; a star at the end stands for anything."""
    never: tuple[str, ...] = ()
    """What it must leave alone all the same."""
    unless_accepted: tuple[str, ...] = ()
    """What it must leave alone if it refuses the input."""
    if_accepted: bool = False
    """Only if the step before has accepted its input."""


@dataclasses.dataclass(frozen=True)
class Input:
    """What lies where, and what is done with it."""

    files: Mapping[str, Content]
    steps: tuple[Step, ...]
    script: Script | None = None
    """What a hostile worker does, for steps that need one."""


# --- what is everywhere ----------------------------------------------------------------------------------

_PLANTED = b"""import os, pathlib
pathlib.Path(os.environ["HOME"], "STARTED").write_text(__file__)
BENCHMARKS = {}
"""
_PROGRAMS = ("python3", "cc", "c++", "git", "valgrind", "check")

# Nothing of this may ever change.
SURROUNDINGS: Mapping[str, Content] = {
    f"{WORK}/victim.txt": b"precious\n",
    f"{WORK}/.git/HEAD": b"ref: refs/heads/main\n",
    f"{WORK}/bench_planted.py": _PLANTED,
    f"{WORK}/docs/conf_helper.py": _PLANTED,
    f"{WORK}/docs/bench_more.py": _PLANTED,
    f"{WORK}/tools/check": Program(),
    f"{WORK}/good.json": b"",  # see `make_input`
    f"{HOME}/precious.txt": b"precious\n",
    f"{HOME}/.bashrc": b"# mine\n",
    f"{HOME}/.config/mine.conf": b"a = 1\n",
    **{f"{BIN}/{name}": Program() for name in _PROGRAMS},
}
# By which a journal may name something that is not its own: from the folder that commands run in.
VICTIMS = (
    "victim.txt",
    ".git/HEAD",
    "../home/precious.txt",
    "../home/.bashrc",
    "/proc/self/cwd/victim.txt",
    "bench_planted.py",
    "good.json",
)


# --- commands that read a store ------------------------------------------------------------------------

# What SQLite may keep beside a store, even for whoever only reads.
# What a command may change that writes to the store. The log of an earlier store is renamed.
_WRITTEN = (STORE, f"{STORE}-shm", f"{STORE}-wal", f"{STORE}-wal.left-*", f"{STORE}-journal.left-*")


def _reads() -> dict[str, tuple[str, ...]]:
    one = "add and eager and python"
    commands: dict[str, tuple[str, ...]] = {
        "runs": ("runs",),
        "runs --json": ("runs", "--json", "-"),
        "show": ("show",),
        "show --json": ("show", "--json", "-"),
        "show --failures": ("show", "base", "--failures"),
        "show --functions": ("show", "--functions", one),
        "show --functions --inclusive": ("show", "base", "--functions", one, "--inclusive"),
        "compare": ("compare", "@1", "@"),
        "compare --fail-on": ("compare", "@1", "@", "--fail-on", "slower,failed,undecided", "--limit", "time:2%"),
        "compare --force": ("compare", "@1", "@", "--force", "--all", "--explain", "add"),
        "compare --json": ("compare", "@1", "@", "--force", "--json", "-"),
        "compare --summary": ("compare", "@1", "@", "--force", "--summary", f"{WROTE}/summary.md"),
        "compare RUN": ("compare", "@"),
        "report": ("report", "-o", f"{WROTE}/report.html"),
        "report BASE": ("report", "@", "@1", "--force", "-o", f"{WROTE}/report.html"),
        "report --no-flames": ("report", "-o", f"{WROTE}/report.html", "--no-flames"),
        "history": ("history",),
        "history --html": ("history", "--html", f"{WROTE}/history.html"),
        "history --json": ("history", "--json", "-"),
        "accept": ("accept", "--all", "--why", "x", "--ledger", f"{WROTE}/ledger"),
        "rm of a missing run": ("rm", "--yes", "no-such-run"),
        "run --resume --dry-run": ("run", "--resume", "--dry-run"),
        "run --dry-run": ("run", "standard", "-k", "add", "--dry-run"),
        "merge": ("merge", ".torchmark/results.db", "-o", f"{WROTE}/merged.db"),
    }
    for name in ("json", *FORMATS):
        commands[f"export {name}"] = ("export", "--format", name)
        commands[f"export {name} -o"] = ("export", "--format", name, "-o", f"{WROTE}/export.{name}")
    return commands


READS = _reads()
# What is run last, for it may change the store.
WRITES = {
    "import into": ("import", "good.json"),
    "rm": ("rm", "--yes", "@"),
}


def _choose_steps(chance: random.Random, number: int, *, has_log: bool = False) -> tuple[Step, ...]:
    """Some commands on the store, the last of which may write to it, and bring its log into it."""
    steps = [Step(name, READS[name]) for name in chance.sample(list(READS), number)]
    if chance.random() < 0.25:
        name = chance.choice(list(WRITES))
        steps.append(Step(name, WRITES[name], _WRITTEN, unless_accepted=() if has_log else (STORE,)))
    return tuple(steps)


def _make_damaged(chance: random.Random) -> Input:
    content = chance.choice((stores.golden, stores.pair, stores.pair, stores.mixed))()
    for _ in range(chance.choice((1, 1, 2))):
        content = damage(content, chance) if len(content) > 4096 else content
    return Input({STORE: content}, _choose_steps(chance, 2))


def _make_rows(chance: random.Random) -> Input:
    return Input({STORE: stores.make_rows(chance)}, _choose_steps(chance, 3))


def _make_blobs(chance: random.Random) -> Input:
    content = stores.make_blobs(chance)
    needing = ("show --functions", "show --functions --inclusive", "report", "report BASE", "compare --force", "accept")
    first = chance.choice(needing)
    rest = chance.sample([name for name in READS if name != first], 2)
    return Input({STORE: content}, tuple(Step(name, READS[name]) for name in (first, *rest)))


def _make_schema(chance: random.Random) -> Input:
    return Input({STORE: stores.make_schema(chance)}, _choose_steps(chance, 2))


def _make_journal(chance: random.Random) -> Input:
    content = chance.choice((stores.golden, stores.pair))()
    victim = chance.choice(VICTIMS)
    journal: Content = make_journal(content, victim, chance)
    kind = chance.random()
    if kind < 0.4:
        journal = make_plain_journal(content, victim)
    elif kind < 0.48:
        journal = chance.choice((b"", b"\0" * 600, b"x", Link(f"../{victim}"), Link("nowhere")))
    name = f"{STORE}-journal"
    steps = _choose_steps(chance, 2)
    return Input({STORE: content, name: journal}, steps)


def _make_wal(chance: random.Random) -> Input:
    content = chance.choice((stores.golden, stores.pair))()
    kind = chance.random()
    if kind < 0.45:
        log: Content = make_hostile_wal(content, [stores.golden(), stores.pair(), stores.mixed()], chance)
    elif kind < 0.85:
        # One that is in order, and makes a hostile store of this one.
        log = replace_by_wal(content, chance.choice((stores.make_rows, stores.make_schema))(chance), chance)
    else:
        log = chance.choice((b"", b"\0" * 5000, b"x", Link("../victim.txt"), Link("../../home/precious.txt")))
    files: dict[str, Content] = {STORE: content, f"{STORE}-wal": log}
    if chance.random() < 0.2:
        files[f"{STORE}-shm"] = chance.choice((bytes(32768), chance.randbytes(32768), b"", Link("../victim.txt")))
    if chance.random() < 0.1:
        del files[STORE]
    return Input(files, _choose_steps(chance, 2, has_log=True))


def _make_merge(chance: random.Random) -> Input:
    found = stores.make_shards(chance)
    names = [f"{WORK}/{number}.db" for number in range(len(found))]
    files: dict[str, Content] = dict(zip(names, found, strict=True))
    if chance.random() < 0.2:
        files[f"{names[0]}-journal"] = make_plain_journal(found[0], chance.choice(VICTIMS))
    elif chance.random() < 0.2:
        files[f"{names[0]}-wal"] = make_hostile_wal(found[0], list(found), chance)
    merged = f"{WROTE}/merged.db"
    steps = [Step("merge", ("merge", *(os.path.basename(name) for name in names), "-o", merged))]
    for name in chance.sample(["show", "runs", "export json", "compare RUN", "history"], 1):
        steps.append(Step(f"{name} of a merged one", (*READS[name], "--store", merged), if_accepted=True))
    return Input(files, tuple(steps))


def _make_resume(chance: random.Random) -> Input:
    mutated = chance.random() < 0.4
    content = stores.make_resumable(chance, read_cpu_model(Path("/")), mutated=mutated)
    resume = ("run", "--resume")
    steps = [
        Step("run --resume --dry-run", (*resume, "--dry-run")),
        Step("run --resume --name --dry-run", (*resume, "--name", "planted", "--dry-run")),
    ]
    if not mutated:
        # What is mutated may have nothing of the sender's left, and go on.
        steps.append(Step("run --resume", (*resume, "-q"), _WRITTEN))
    return Input({STORE: content}, tuple(steps))


# --- exports -------------------------------------------------------------------------------------------


def _make_export(chance: random.Random) -> Input:
    name = "run.json"
    files: dict[str, Content] = {f"{OUT}/new.db": stores.single(), f"{WORK}/{name}": stores.make_export(chance)}
    if chance.random() < 0.01:
        name = "/dev/zero"
    steps = [Step("import", ("import", name, "--store", f"{WROTE}/new.db"))]
    for read in chance.sample(list(READS), 4):
        arguments = tuple(f"{WROTE}/new.db" if one == ".torchmark/results.db" else one for one in READS[read])
        store = () if read == "merge" else ("--store", f"{WROTE}/new.db")
        steps.append(Step(f"{read} of an import", (*arguments, *store), if_accepted=True))
    return Input(files, tuple(steps))


# --- files of results ------------------------------------------------------------------------------------


@functools.cache
def _result_files() -> tuple[bytes, bytes]:
    """What `torchmark time --json` and `torchmark count --json` write."""
    task = TaskSpec("x + y", "x, y = torch.ones(8), torch.ones(8)")
    times = Measurement(100, [1e-4, 1.1e-4, 1.2e-4, 1.3e-4], task).to_dict()
    table = FunctionCounts((FunctionCount(900, "a.cpp:add(int) [/lib/a.so]"), FunctionCount(100, "b.c:run")), False)
    empty = FunctionCounts((), False)
    fields = {"layouts": (1000,), "events": (("Ir", 1000),), "allocations": 1, "tensor_allocations": 1}
    counts = CallgrindStats(
        task_spec=task,
        number_per_run=100,
        built_with_debug_symbols=True,
        baseline_inclusive_stats=empty,
        baseline_exclusive_stats=empty,
        stmt_inclusive_stats=table,
        stmt_exclusive_stats=table,
        stmt_callgrind_out=None,
        **fields,  # type: ignore[arg-type]
    ).to_dict()
    documents = (
        {"schema": "torchmark.time", "schema_version": 1, "measurements": [times], "failures": []},
        {"schema": "torchmark.count", "schema_version": 1, "counts": [counts], "failures": []},
    )
    first, second = (json.dumps(document).encode() for document in documents)
    return first, second


def _make_result_file(chance: random.Random) -> Input:
    good = chance.choice(_result_files())
    value = mutate(json.loads(good), chance)
    bad: Content = dump_raw(settle(value) if chance.random() < 0.7 else value).encode()
    if chance.random() < 0.1:
        bad = chance.choice((b"", b"\xff", b"[" * 100_000, b"{}", b"null", Link("/dev/zero"), Link("."), Pipe()))
    files: dict[str, Content] = {f"{WORK}/one.json": good, f"{WORK}/other.json": bad}
    commands = {
        "compare FILE FILE": ("compare", "one.json", "other.json", "--force"),
        "compare FILE FILE, swapped": ("compare", "other.json", "one.json", "--fail-on", "slower,undecided"),
        "compare FILE FILE --json": ("compare", "one.json", "other.json", "--json", "-"),
        "compare FILE FILE --summary": ("compare", "one.json", "other.json", "--summary", f"{WROTE}/summary.md"),
    }
    return Input(files, tuple(Step(name, commands[name]) for name in chance.sample(list(commands), 2)))


# --- ledgers -------------------------------------------------------------------------------------------


@functools.cache
def _ledger() -> Mapping[str, bytes]:
    """A ledger that fits the store of two runs."""
    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()):
        Path(folder, "results.db").write_bytes(stores.pair())
        store = ("--store", f"{folder}/results.db")
        code = main(["accept", "--all", "--why", "It is right.", "--run", "base", "--ledger", f"{folder}/led", *store])
        assert code == 0
        found = {path.name: json.loads(path.read_text()) for path in sorted(Path(folder, "led").iterdir())}
    return {name: json.dumps({**entry, "date": "2024-01-31"}, indent=1).encode() for name, entry in found.items()}


def _make_ledger(chance: random.Random) -> Input:
    entries: dict[str, Content] = dict(_ledger())
    name = chance.choice(list(entries))
    entry = mutate(json.loads(_ledger()[name]), chance)
    if chance.random() < 0.7:
        entry = _fit_entry(settle(entry))
    entries[name] = dump_raw(entry).encode()
    kind = chance.random()
    if kind < 0.06:
        entries[name] = chance.choice((Link("../victim.txt"), Link("/dev/zero"), Link("nowhere"), Link("."), Pipe()))
    elif kind < 0.1:
        entries[name] = chance.choice((b"", b"\xff", b"[" * 100_000, b" " * 5_000_000, b"{}", b"null", b"1"))
    files: dict[str, Content] = {STORE: stores.pair()}
    files |= {f"{WORK}/{LEDGER}/{one}": content for one, content in entries.items()}
    commands = {
        "compare --ledger": ("compare", "base", "head", "--ledger", LEDGER),
        "compare, ledger found": ("compare", "base", "head", "--fail-on", "slower"),
        "compare --ledger --json": ("compare", "base", "head", "--ledger", LEDGER, "--json", "-"),
        "compare --ledger --summary": ("compare", "base", "head", "--ledger", LEDGER, "--summary", f"{WROTE}/s.md"),
    }
    steps = [Step(one, commands[one]) for one in chance.sample(list(commands), 1)]
    # It puts new entries in place of these; nothing else.
    accept = ("accept", "--all", "--why", "y", "--run", "head")
    steps.append(Step("accept over a ledger", accept, (f"{WORK}/{LEDGER}/*",)))
    return Input(files, tuple(steps))


def _fit_entry(entry: Any) -> Any:
    """Let the sums be right, for what else is wrong to be seen."""
    with contextlib.suppress(Exception):
        if entry["total"] not in entry["totals"]:
            entry["totals"][0] = entry["total"]
        entry["rest"] = entry["total"] - sum(entry["functions"].values())
    return entry


# --- caches --------------------------------------------------------------------------------------------

_KEY, _OTHER_KEY, _PRELUDE = ("0" * 31 + digit for digit in "123")
# Headers of an entry, more than any has: sixty megabytes of them.
_MANY_HEADERS = 10 << 20
# What users keep in the same folders, and what shows that the whole folder was theirs before.
_USERS = {f"{CACHE}/models/my_finetuned.pt": b"weights", f"{CACHE}/snippets/mylib.so": b"mine"}
_NOTES = {f"{CACHE}/notes.txt": b"mine", f"{CACHE}/selftest/mine.json": b"{}"}


@functools.cache
def _cache() -> Mapping[str, bytes]:
    """What torchmark itself leaves in a cache with two snippets."""
    with tempfile.TemporaryDirectory() as folder:
        library = Path(folder, "library.so")
        library.write_bytes(b"\x7fELF" + bytes(1000))
        environ = {"TORCHMARK_CACHE": f"{folder}/cache"}
        root = cache_folder(environ)
        open_cache(environ).publish(library, {"/nowhere/header.h": (1, 2)}, [_KEY, _OTHER_KEY])
        return {f"{CACHE}/{path.relative_to(root)}": path.read_bytes() for path in root.rglob("*") if path.is_file()}


def _seal(library: bytes, listed: bytes, length: int | None = None) -> bytes:
    """An entry whose checksum fits, whatever its list of headers is."""
    packed = zlib.compress(listed, 1)
    checksum = sha256(library + packed).digest()
    magic = b"torchmark-lib-1\n"
    size = len(packed) if length is None else length
    return library + packed + struct.pack(f">32sQ{len(magic)}s", checksum, size, magic)


def _make_entry(chance: random.Random, good: bytes) -> bytes:
    kind = chance.random()
    if kind < 0.3:
        changed = bytearray(good)
        changed[chance.randrange(len(changed))] ^= 1 << chance.randrange(8)
        return bytes(changed)
    if kind < 0.5:
        return good[: chance.choice((0, 1, 55, 56, 57, chance.randrange(len(good))))]
    lists = (
        b"",
        b"x",
        b"a b c",
        b"1 2",
        b"1 2 /etc/passwd\0",
        b"9" * 5000 + b" 1 /etc/passwd",
        b"\xff 1 2",
        b"1e9 2 x",
    )
    listed = chance.choice((*lists, b"1 1 /dev/zero", b"1 2 a\0" * 1000, b"1 2 " + b"\x1b]0;PWN\x07" + b"/" * 5000))
    length = chance.choice((None, None, None, 0, 1, 1 << 63, 10_000))
    return _make_bomb() if kind < 0.52 else _seal(b"\x7fELF" + bytes(100), listed, length)


@functools.cache
def _make_bomb() -> bytes:
    return _seal(b"\x7fELF" + bytes(100), b"1 2 a\0" * _MANY_HEADERS)


def _make_cache(chance: random.Random) -> Input:
    files: dict[str, Content] = dict(_USERS)
    files |= _cache()
    folder = next(os.path.dirname(name) for name in _cache() if name.endswith(f"{_KEY}.so"))
    good = _cache()[f"{folder}/{_KEY}.so"]
    files[f"{folder}/{_KEY}.so"] = _make_entry(chance, good)
    links = (Link(f"../../{WORK}/victim.txt"), Link("../../home"), Link("nowhere"), Link("."), Pipe())
    for name in chance.sample(
        [
            f"{folder}/{'0' * 31}4.so",
            f"{folder}/making-abcdefgh",
            f"{folder}/making-ijklmnop/owner",
            f"{folder}/new-abcdefgh",
            f"{folder}/{_KEY}.lock",
            f"{folder}/{_PRELUDE}.prelude",
            f"{CACHE}/watched-0123456789abcdef.so",
            f"{CACHE}/models/torchscript_0123_01234567.pt",
        ],
        chance.choice((0, 1, 2, 4)),
    ):
        files[name] = chance.choice((b"", chance.randbytes(100), *links))
    if chance.random() < 0.3:
        files[f"{folder}/{_PRELUDE}.prelude/headers"] = _make_entry(chance, _seal(b"", b"1 2 /nowhere/a.h"))
        files[f"{folder}/{_PRELUDE}.prelude/prelude.h"] = b"#include <vector>\n"
        files.pop(f"{folder}/{_PRELUDE}.prelude", None)
    selftest = {"cpu_model": None, "date": "2024-01-31", "trials": 9, "false_alarms": 0, "sd": 0.01}
    files[f"{CACHE}/selftest.json"] = dump_raw(mutate(selftest, chance)).encode()
    if chance.random() < 0.3:
        # A folder that torchmark has not made.
        files |= _NOTES
        for name in set(_cache()) - {f"{folder}/{_KEY}.so", f"{folder}/{_OTHER_KEY}.so"}:
            files.pop(name, None)
    steps = [
        Step("cache info", ("cache", "info")),
        Step("cache info --json", ("cache", "info", "--json", "-")),
        Step("finding a snippet", ("call", "find snippet", _KEY)),
        Step("finding a prelude", ("call", "find prelude", _PRELUDE)),
        Step("reading a self-test", ("call", "read selftest")),
        Step("cache clear", ("cache", "clear"), (f"{CACHE}/*",), (*_USERS, *_NOTES)),
        Step("models", ("call", "close models"), (f"{CACHE}/*",), (*_USERS, *_NOTES)),
    ]
    return Input(files, tuple(steps))


# --- workers -------------------------------------------------------------------------------------------


def _make_worker(chance: random.Random) -> Input:
    script = make_script(chance)
    shown = ("show", "--failures", "--store", f"{WROTE}/worker.db")
    steps = (
        Step(f"{script.job} job", ("call", "worker", f"{WROTE}/worker.db"), (f"{CACHE}/*",)),
        Step("show of what was kept", shown, if_accepted=True),
    )
    return Input({}, steps, script)


@dataclasses.dataclass(frozen=True)
class Kind:
    """A kind of input, and how many of it a whole campaign has."""

    make: Callable[[random.Random], Input]
    number: int


# Of each, as many as there are ways to make one; more where values are hostile and files are not.
KINDS: Mapping[str, Kind] = {
    "store bytes": Kind(_make_damaged, 650),
    "store rows": Kind(_make_rows, 750),
    "store blobs": Kind(_make_blobs, 200),
    "store schema": Kind(_make_schema, 250),
    "journal": Kind(_make_journal, 350),
    "wal": Kind(_make_wal, 450),
    "shards": Kind(_make_merge, 200),
    "resume": Kind(_make_resume, 100),
    "export": Kind(_make_export, 1000),
    "result file": Kind(_make_result_file, 400),
    "ledger": Kind(_make_ledger, 400),
    "cache": Kind(_make_cache, 150),
    "worker": Kind(_make_worker, 600),
}


def make_input(kind: str, seed: int) -> Input:
    """The input of that kind and seed, with all that lies around it."""
    made = KINDS[kind].make(random.Random(f"{kind} {seed}"))
    good = {f"{WORK}/good.json": stores.export_text().replace(stores.make_id(2), stores.make_id(9)).encode()}
    return dataclasses.replace(made, files={**SURROUNDINGS, **good, **made.files})
