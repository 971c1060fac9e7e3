"""Counting with all callers: a job in, one profile of chains of calls out. The worker is one for stacks."""

from __future__ import annotations

import dataclasses

from torchmark.callgrind.parse import parse_profile, read_trigger
from torchmark.errors import StoreError
from torchmark.model.flame import PythonFunction, Trace
from torchmark.model.job import BARE_LAYOUT, CountJob
from torchmark.model.outcome import Failure, FailureKind
from torchmark.runner.worker import DEFAULT_TIMEOUT_S, Worker
from torchmark.wire.messages import Counted
from torchmark.wire.profiles import name_layout


def trace(worker: Worker, job: CountJob, payload: bytes = b"", timeout_s: float = DEFAULT_TIMEOUT_S) -> Trace | Failure:
    """Count once, in the heap as it happens to be, whatever layouts the job names."""
    assert worker.spec.stacks
    reply = worker.run(dataclasses.replace(job, layouts=(BARE_LAYOUT,)), payload, timeout_s)
    if isinstance(reply, Failure):
        return reply
    assert isinstance(reply.message, Counted)
    wanted = name_layout(BARE_LAYOUT)
    text = next((text for text in reply.files if read_trigger(text) == wanted), None)
    if text is None:
        return Failure(FailureKind.NO_RESULT, "Callgrind wrote no profile. Is the disk for temporary files full?")
    try:
        profile = parse_profile(text.splitlines(keepends=True), must_be_complete=True)
    except StoreError as error:
        return Failure(FailureKind.NO_RESULT, f"{error} Is the disk for temporary files full?")
    functions = tuple(PythonFunction(*function) for function in reply.message.functions)
    return Trace(profile, functions, job.number)
