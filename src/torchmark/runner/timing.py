"""Timing through a worker: a job in, the times of its blocks out."""

from __future__ import annotations

from torchmark.model.job import TimeJob
from torchmark.model.outcome import Failure
from torchmark.model.times import Times
from torchmark.runner.worker import DEFAULT_TIMEOUT_S, Worker
from torchmark.wire.messages import Timed


def measure_time(
    worker: Worker, job: TimeJob, payload: bytes = b"", timeout_s: float = DEFAULT_TIMEOUT_S
) -> Times | Failure:
    """Have one job timed."""
    reply = worker.run(job, payload, timeout_s)
    if isinstance(reply, Failure):
        return reply
    timed = reply.message
    assert isinstance(timed, Timed)
    return Times(timed.number, timed.raw_times, timed.overhead_s, timed.optimised_away)
