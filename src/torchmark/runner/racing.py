"""Timing statements in turns through a worker: a job in, the times of each statement's blocks out."""

from __future__ import annotations

from torchmark.model.job import RaceJob
from torchmark.model.outcome import Failure
from torchmark.model.times import Times
from torchmark.runner.worker import DEFAULT_TIMEOUT_S, Worker
from torchmark.wire.messages import Raced


def race(
    worker: Worker, job: RaceJob, payload: bytes = b"", timeout_s: float = DEFAULT_TIMEOUT_S
) -> tuple[Times, ...] | Failure:
    """Have the statements of one job timed. Blocks at the same position in two of the results ran in one round."""
    reply = worker.run(job, payload, timeout_s)
    if isinstance(reply, Failure):
        return reply
    raced = reply.message
    assert isinstance(raced, Raced)
    return tuple(map(Times, raced.numbers, raced.raw_times))
