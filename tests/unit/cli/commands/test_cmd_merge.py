from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from tests.in_process import Program
from tests.made_shards import PLAN, carry_out, describe, load, run_shard, run_shards, run_whole, without_moments
from tests.stored_runs import BEGAN, HOST
from torchmark.analysis.estimate import pick_orders
from torchmark.model.run import Shard, Source
from torchmark.store.runs import open_store

DIRTY = "its sources had changes that are in no commit: standard; bench_mine.py at 0000000000 with changes."


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_shards_are_put_together(folder: Path, program: Program) -> None:
    run_shards(folder, 3)
    done = program("merge", "1_3.db", "2_3.db", "3_3.db", "-o", "all.db")
    run = load(Path("all.db"))
    assert done.returncode == 0
    assert done.stdout.splitlines() == [
        "all.db: 1 run",
        f"  before ({run.info.id[:12]}): 48 of 48 results, 3 failures, of shards 1/3, 2/3 and 3/3",
    ]
    assert done.stderr == f"Note: before ({run.info.id[:12]}): {DIRTY}\n"
    assert without_moments(run) == without_moments(run_whole(Path("whole.db")))
    assert "complete" in program("runs", "--store", "all.db").stdout


def test_missing_shards_are_named_and_what_is_there_is_written(folder: Path, program: Program) -> None:
    run_shards(folder, 3)
    done = program("merge", "3_3.db", "-o", "lone.db")
    assert done.returncode == 1
    assert "shards 1/3 and 2/3 are missing: 32 of 48 results are not there. Merge again when they are.\n" in done.stderr
    done = program("merge", "1_3.db", "3_3.db", "-o", "some.db")
    short = load(Path("some.db")).info.id[:12]
    assert done.returncode == 1
    assert done.stderr.endswith(
        f"Note: before ({short}): shard 2/3 is missing: 8 of 48 results are not there. Merge again when they are, "
        f"or go on with: torchmark run a.py b.py --resume --name {short} --env other=/opt/python --store some.db\n"
    )
    assert program("merge", "some.db", "2_3.db", "-o", "some.db").returncode == 2
    assert program("merge", "some.db", "2_3.db", "-o", "lone.db").returncode == 2
    assert program("merge", "some.db", "2_3.db", "-o", "lone.db", "--force").returncode == 0


def test_shards_that_were_stopped_are_named(folder: Path, program: Program) -> None:
    run_shards(folder, 3)
    with open_store(Path("stopped.db"), create=True) as store:
        carry_out(store, describe(Shard(2, 3), 9), PLAN, pick_orders(PLAN.orders, PLAN, Shard(2, 3))[:3])
    done = program("merge", "1_3.db", "stopped.db", "-o", "all.db")
    assert done.returncode == 1
    assert "shard 3/3 is missing, shard 2/3 was stopped: 21 of 48 results are not there." in done.stderr


def test_empty_shards_are_not_missed(folder: Path, program: Program) -> None:
    # What is compared with each other fills four of them.
    stores = [str(run_shard(folder / f"{n}.db", Shard(n, 9))) for n in range(1, 5)]
    done = program("merge", *stores, "-o", "all.db")
    assert (done.returncode, "missing" in done.stderr) == (0, False)


def test_all_that_may_make_numbers_doubtful_is_told(folder: Path, program: Program) -> None:
    run_shard(Path("1.db"), Shard(1, 2))
    run_shard(
        Path("2.db"),
        Shard(2, 2),
        host=dataclasses.replace(HOST, cpu_model="Zilog \x1b[31mZ80"),
        sources=(Source("bench_mine.py", "1" * 40),),
        torchmark="9.9",
        created=BEGAN + 100_000,
    )
    run_shard(Path("again.db"), Shard(2, 2), run_id=9)
    done = program("merge", "1.db", "2.db", "again.db", "-o", "all.db")
    assert done.returncode == 0
    for words in (
        "orders had been carried out more than once; no counts differed.",
        "its shards come from other sources: standard; bench_mine.py at 0000000000 with changes | bench_mine.py at 111",
        "measured with different processors: AMD EPYC, Zilog  [31mZ80.",
        "measured with different versions of torchmark: 0.1.0, 9.9.",
        "more than a day apart",
    ):
        assert words in done.stderr
