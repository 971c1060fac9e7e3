"""A store that several processes use, and that some of them leave in the middle of things."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from tests.store_writer import ENDLESS, check_integrity, make_plan
from torchmark.processes import this_process
from torchmark.store.runs import open_store

ROOT = Path(__file__).parents[2]


def run_module(*arguments: str) -> subprocess.Popen[str]:
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, [str(ROOT / "src"), os.getenv("PYTHONPATH")]))}
    command = [sys.executable, "-m", "tests.store_writer", *arguments]
    return subprocess.Popen(command, cwd=ROOT, env=environ, stdout=subprocess.PIPE, text=True)


def start_writer(path: Path, run_id: str, rounds: int) -> subprocess.Popen[str]:
    return run_module("write", str(path), run_id, str(rounds))


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
    done = run_module("kill", str(path), "10").communicate()[0]
    saved = json.loads(done)
    assert len(saved) == 10
    with open_store(path) as store:
        assert all(entry.writer is None for entry in store.list_entries())
        for run_id, number in saved.items():
            # What was saved when it was killed it may not have said.
            assert number <= store.load(run_id, profiles=True).info.outcomes <= number + 1
            with store.resume(run_id, make_plan(ENDLESS)) as recorder:
                assert recorder.info.outcomes + len(recorder.missing) == ENDLESS
        store.remove(saved)
        assert store.list_runs() == ()


def test_a_run_is_known_to_be_under_way_elsewhere(tmp_path: Path) -> None:
    path = tmp_path / "results.db"
    writer = start_writer(path, "a" * 32, ENDLESS)
    assert writer.stdout
    writer.stdout.readline()
    with open_store(path, read_only=True) as store:
        assert store.list_entries()[0].writer == writer.pid != this_process().pid
    writer.kill()
    # It has ended, but is still there for its parent to see.
    os.waitid(os.P_PID, writer.pid, os.WEXITED | os.WNOWAIT)
    with open_store(path, read_only=True) as store:
        assert store.list_entries()[0].writer is None
    writer.communicate()
