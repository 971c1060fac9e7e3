"""Counting with all callers: a job in, one profile of chains of calls out. The worker is one for stacks."""

from __future__ import annotations

import dataclasses

from torchmark.model.flame import Trace
from torchmark.model.job import BARE_LAYOUT, CountJob
from torchmark.model.outcome import Failure
from torchmark.runner.count import count
from torchmark.runner.worker import DEFAULT_TIMEOUT_S, Worker


def trace(worker: Worker, job: CountJob, payload: bytes = b"", timeout_s: float = DEFAULT_TIMEOUT_S) -> Trace | Failure:
    """Count once, in the heap as it happens to be, whatever layouts the job names."""
    assert worker.spec.stacks
    counts = count(worker, dataclasses.replace(job, layouts=(BARE_LAYOUT,)), payload, timeout_s, baseline=False)
    return counts if isinstance(counts, Failure) else Trace(counts.layouts[0], counts.functions, counts.number)
