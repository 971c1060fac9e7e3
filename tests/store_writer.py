"""Processes that save outcomes in a store, and one that kills such processes.

`python -m tests.store_writer write PATH ID N` saves N outcomes and says so of each; `kill PATH N` kills N of those.
"""

from __future__ import annotations

import dataclasses
import json
import os
import random
import signal
import sqlite3
import struct
import sys
from pathlib import Path
from typing import IO

from tests.stored_runs import ADD_CASE, BEGAN, INFO, TALLY
from torchmark.model.outcome import Outcome
from torchmark.model.plan import Metric, Plan, Sampling
from torchmark.model.task import Times
from torchmark.store.runs import open_store

# More than anybody waits for.
ENDLESS = 1_000


def make_plan(number: int) -> Plan:
    """One case, by both metrics, that often in all."""
    return Plan((ADD_CASE,), sampling=Sampling(metrics=(Metric.WALL, Metric.COUNT), repeat=number // 2))


def check_integrity(path: Path) -> None:
    """What SQLite itself says of a file."""
    connection = sqlite3.connect(path)
    assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    assert connection.execute("PRAGMA foreign_key_check").fetchall() == []
    connection.close()


def write_journal(path: Path, victim: Path) -> None:
    """A rollback journal that has SQLite delete another file: it names that file as the journal of all journals."""
    magic = bytes.fromhex("d9d505f920a163d7")
    content = path.read_bytes()
    page = int.from_bytes(content[16:18], "big")
    header = magic + struct.pack(">IIIII", 0, 1, len(content) // page, 512, page)
    name = os.fsencode(victim)
    tail = struct.pack(">I", 0x40000000 // page + 1) + name + struct.pack(">II", len(name), sum(name)) + magic
    Path(f"{path}-journal").write_bytes(header.ljust(512, b"\0") + tail)


def write(path: Path, run_id: str, number: int, out: IO[str]) -> None:
    """Save outcomes one by one."""
    plan = make_plan(number)
    info = dataclasses.replace(INFO, id=run_id)
    with open_store(path, create=True) as store, store.begin(plan, info) as recorder:
        for place, order in enumerate(plan.orders):
            # Each has something of its own that is kept apart from it.
            tally = dataclasses.replace(TALLY, text=f"{run_id} {place}")
            result = tally if order.metric is Metric.COUNT else Times(1, (0.5, float(place)))
            recorder.append(Outcome(order, result, BEGAN + place, BEGAN + place + 1))
            print(place, file=out, flush=True)
        recorder.finish()


def fork_writer(path: Path, run_id: str) -> tuple[int, IO[str]]:
    """A process of its own that saves, and what it says."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(reading)
        try:
            write(path, run_id, ENDLESS, open(writing, "w"))  # noqa: SIM115  closed when it is killed
        finally:
            os._exit(1)
    os.close(writing)
    return pid, open(reading)


def kill(path: Path, number: int) -> dict[str, int]:
    """Kill writers at moments of chance, while others write; gives how many outcomes each had said it saved."""
    chance = random.Random(5)
    ids = [f"{place:032x}" for place in range(number)]
    saved = {}
    writers = {ids[0]: fork_writer(path, ids[0])}
    for place, run_id in enumerate(ids):
        if place + 1 < number:
            writers[ids[place + 1]] = fork_writer(path, ids[place + 1])
        pid, lines = writers[run_id]
        with lines:
            said = [lines.readline() for _ in range(chance.randrange(1, 15))]
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            said += lines.readlines()
        saved[run_id] = len(said)
        check_integrity(path)
    return saved


if __name__ == "__main__":
    if sys.argv[1] == "write":
        write(Path(sys.argv[2]), sys.argv[3], int(sys.argv[4]), sys.stdout)
    else:
        print(json.dumps(kill(Path(sys.argv[2]), int(sys.argv[3]))))
