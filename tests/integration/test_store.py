"""A store that several processes use, and that some of them leave in the middle of things."""

from __future__ import annotations

import os
import random
import sqlite3
import subprocess
import sys
from pathlib import Path

from tests.store_writer import make_plan
from torchmark.model.owner import this_process
from torchmark.store.runs import open_store

ROOT = Path(__file__).parents[2]


def start_writer(path: Path, run_id: str, rounds: int) -> subprocess.Popen[str]:
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, [str(ROOT / "src"), os.getenv("PYTHONPATH")]))}
    command = [sys.executable, "-m", "tests.store_writer", str(path), run_id, str(rounds)]
    return subprocess.Popen(command, cwd=ROOT, env=environ, stdout=subprocess.PIPE, text=True)


def check_integrity(path: Path) -> None:
    connection = sqlite3.connect(path)
    assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    assert connection.execute("PRAGMA foreign_key_check").fetchall() == []
    connection.close()


def test_two_processes_make_one_store_and_write_to_it_at_once(tmp_path: Path) -> None:
    path = tmp_path / ".torchmark" / "results.db"
    ids = ["a" * 32, "b" * 32]
    writers = [start_writer(path, run_id, 200) for run_id in ids]
    for writer in writers:
        writer.communicate()
        assert writer.returncode == 0
    with open_store(path, read_only=True) as store:
        for run_id in ids:
            run = store.load(run_id)
            assert run.info.finished is not None
            assert tuple(outcome.order for outcome in run.outcomes) == make_plan(200).orders
    check_integrity(path)
    assert sorted(file.name for file in path.parent.iterdir()) == [".gitignore", "results.db"]


def test_a_process_that_is_killed_loses_nothing_that_it_has_saved(tmp_path: Path) -> None:
    path = tmp_path / "results.db"
    chance = random.Random(5)
    # All of them start at once, since starting takes most of the time; each is killed at another moment.
    writers = {f"{number:032x}": start_writer(path, f"{number:032x}", 3_000) for number in range(10)}
    saved = {}
    for run_id, writer in writers.items():
        assert writer.stdout
        reported = [int(writer.stdout.readline()) for _ in range(chance.randrange(1, 30))]
        writer.kill()
        reported += [int(line) for line in writer.stdout.read().splitlines()]
        writer.wait()
        saved[run_id] = len(reported)
        check_integrity(path)
    with open_store(path) as store:
        assert all(entry.writer is None for entry in store.list_entries())
        for run_id, number in saved.items():
            # What was saved when it was killed it may not have said.
            assert number <= store.load(run_id, profiles=True).info.outcomes <= number + 1
            with store.resume(run_id, make_plan(3_000)) as recorder:
                assert recorder.info.outcomes + len(recorder.missing) == 3_000
        store.remove(saved)
        assert store.list_runs() == ()


def test_a_run_is_known_to_be_under_way_elsewhere(tmp_path: Path) -> None:
    path = tmp_path / "results.db"
    writer = start_writer(path, "a" * 32, 3_000)
    assert writer.stdout
    writer.stdout.readline()
    with open_store(path, read_only=True) as store:
        assert store.list_entries()[0].writer == writer.pid != this_process().pid
    writer.kill()
    with open_store(path, read_only=True) as store:
        # Also while nobody has waited for it.
        writer.stdout.read()
        assert store.list_entries()[0].writer is None
    writer.communicate()
