"""Times one statement in a child of the zygote."""

from __future__ import annotations

import time
from typing import Any

from torchmark.measure.clock import choose_clock
from torchmark.measure.procedures import blocked_within
from torchmark.measure.snippet import SnippetTimer
from torchmark.measure.steps import carry_out
from torchmark.model.job import TimeJob
from torchmark.wire.messages import Timed


def measure_time(job: TimeJob, namespace: dict[str, Any]) -> Timed:
    """Blocks no longer than needed, until they add up or time is up."""
    timer = SnippetTimer(job.stmt, job.setup, choose_clock(), namespace)
    times = carry_out(timer, blocked_within(job.min_run_time_s, job.max_run_time_s, None, time.perf_counter))
    return Timed(times.number_per_run, times.raw_times, times.overhead_s)
