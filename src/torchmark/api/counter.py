"""Has a task counted by a worker of this process, and makes its result of what comes back."""

from __future__ import annotations

import os
from collections.abc import Mapping

from torchmark.api.stats import CallgrindStats, make_stats
from torchmark.callgrind.tally import tally
from torchmark.errors import UsageError, WorkerError
from torchmark.model.job import BARE_LAYOUT, CountJob
from torchmark.model.outcome import Failure
from torchmark.model.task import TaskSpec
from torchmark.report.failures import describe_failure
from torchmark.report.waiting import show_waiting
from torchmark.runner.count import count
from torchmark.runner.pool import get_worker
from torchmark.runner.spec import own_worker
from torchmark.runner.worker import Worker

STARTING = "Starting a Python with torch under Valgrind (once; takes half a minute or so)"


def collect(
    spec: TaskSpec,
    job: CountJob,
    payload: bytes,
    *,
    baseline: bool,
    keep_texts: bool,
    simulate: bool,
    given: Mapping[str, str],
    timeout_s: float,
) -> CallgrindStats:
    """Count once; what the task did wrong is a WorkerError."""
    worker = get_worker(own_worker(os.environ, given, simulate=simulate))
    start(worker)
    outcome = count(worker, job, payload, timeout_s, baseline=baseline, keep_texts=keep_texts)
    if isinstance(outcome, Failure):
        text = f"Failed to collect callgrind profile:\n{describe_failure(outcome)}"
        raise WorkerError(text, kind=outcome.kind.value)
    return make_stats(spec, tally(outcome, job.layouts), worker.environment, compiled=job.compiled is not None)


def start(worker: Worker) -> None:
    """Start a worker, with a sign of life."""
    if not worker.is_up:
        with show_waiting(STARTING):
            worker.start()


def choose_layouts(number: int) -> tuple[int, ...]:
    """The seeds of so many layouts: the same on every run."""
    if number < 1:
        raise UsageError(f"`layouts` must be at least 1, not {number}.")
    return (BARE_LAYOUT,) if number == 1 else tuple(range(1, number + 1))
