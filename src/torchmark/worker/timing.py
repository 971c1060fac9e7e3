"""Times one statement in a child of the zygote."""

from __future__ import annotations

import time
from typing import Any

from torchmark.measure import blocks
from torchmark.measure.clock import choose_clock
from torchmark.measure.snippet import SnippetTimer
from torchmark.model.job import TimeJob
from torchmark.wire.messages import Timed


def measure_time(job: TimeJob, namespace: dict[str, Any]) -> Timed:
    """Blocks no longer than needed, until they add up or time is up."""
    end = time.perf_counter() + job.max_run_time_s
    timer = SnippetTimer(job.stmt, job.setup, choose_clock(), namespace)
    size = blocks.fitted_block_size(timer, job.min_run_time_s, lambda: end - time.perf_counter())
    times = blocks.measure(
        timer,
        size.number,
        min_run_time=job.min_run_time_s,
        out_of_time=lambda _: time.perf_counter() >= end,
    )
    return Timed(size.number, times, size.overhead_s)
