from __future__ import annotations

from torchmark.measure.steps import BLOCKS_OF_FIXED_SIZE
from torchmark.model.job import Place, TimeJob
from torchmark.model.task import Times
from torchmark.worker.time_jobs import measure_time


def measure(job: TimeJob) -> tuple[Times, list[str]]:
    done: list[str] = []
    timed = measure_time(job, {"done": done})
    assert isinstance(timed, Times)
    return timed, done


def test_exactly_so_many_blocks_of_so_many_runs_are_timed_after_one_setup() -> None:
    job = TimeJob("done.append('run')", "done.append('setup')", Place("/"), number=10, blocks=3)
    timed, done = measure(job)
    assert (timed.number_per_run, len(timed.raw_times)) == (10, 3)
    # A block more comes first, and is not timed.
    assert done == ["setup"] + ["run"] * 40


def test_a_number_alone_gives_a_few_blocks_each_after_a_setup_of_its_own() -> None:
    timed, done = measure(TimeJob("pass", "done.append('setup')", Place("/"), number=10))
    assert (timed.number_per_run, len(timed.raw_times)) == (10, BLOCKS_OF_FIXED_SIZE)
    assert len(done) > BLOCKS_OF_FIXED_SIZE
