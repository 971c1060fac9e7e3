"""One job through a worker, tried once more if the worker was killed; and counting in several layouts."""

from __future__ import annotations

import dataclasses
import io
from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from torchmark.callgrind.profiles import parse_profile, read_trigger, tidy_for_other_programs
from torchmark.errors import StoreError, UsageError, WorkerError
from torchmark.model.costs import INSTRUCTIONS, Counts, Profile, PythonFunction
from torchmark.model.job import BARE_LAYOUT, CountJob, Place
from torchmark.model.outcome import Failure, FailureKind, was_killed
from torchmark.runner.worker import DEFAULT_TIMEOUT_S, Reply, Worker
from torchmark.worker.protocol import Counted, Separate, name_layout

T = TypeVar("T")

# Once is bad luck.
ATTEMPTS = 2


def retry_if_killed(attempt: Callable[[], T | Failure]) -> T | Failure:
    """The result, or the failure of the last attempt.

    A worker that does not stay up is a failure too, and so is a machine that lacks something: room for temporary files,
    say, or the working folder.
    """
    for number in range(ATTEMPTS):
        try:
            result = attempt()
        except WorkerError as error:
            if error.kind == "abandoned":
                raise
            result = Failure(FailureKind.WORKER_DIED, str(error))
        except (OSError, UsageError) as error:
            return Failure(FailureKind.MISSING, str(error))
        if not isinstance(result, Failure) or not was_killed(result) or number == ATTEMPTS - 1:
            return result
    raise AssertionError("unreachable")


def count(
    worker: Worker,
    job: CountJob,
    payload: bytes = b"",
    timeout_s: float = DEFAULT_TIMEOUT_S,
    *,
    baseline: bool = True,
    keep_texts: bool = False,
) -> Counts | Failure:
    """Count in each layout of the job, and the empty loop. The time limit is for each process that is started."""
    # A process with several threads cannot be forked.
    together = job.threads == 1 or len(job.layouts) == 1
    replies = _run(worker, [job] if together else _split(job), payload, timeout_s)
    if replies is None:
        replies = _run(worker, _split(job), payload, timeout_s)
    if isinstance(replies, Failure):
        return replies
    assert replies is not None
    counts = _read(job, replies, keep_texts=keep_texts)
    if isinstance(counts, Failure) or not baseline:
        return counts
    empty = _count_empty_loop(worker, job.number, timeout_s)
    return empty if isinstance(empty, Failure) else dataclasses.replace(counts, baseline=empty)


def _count_empty_loop(worker: Worker, number: int, timeout_s: float) -> Profile | Failure:
    """In a process of its own, which no setup has touched: so it depends on nothing but the number of runs."""
    known = worker.baselines.get(number)
    if known is not None:
        return known
    job = CountJob("pass", "pass", Place("/"), number, layouts=(BARE_LAYOUT,))
    counts = count(worker, job, timeout_s=timeout_s, baseline=False)
    if isinstance(counts, Failure):
        return counts
    worker.baselines[number] = counts.layouts[0]
    return counts.layouts[0]


def _split(job: CountJob) -> list[CountJob]:
    """One layout at a time."""
    return [dataclasses.replace(job, layouts=(layout,)) for layout in job.layouts]


def _run(worker: Worker, jobs: Iterable[CountJob], payload: bytes, timeout_s: float) -> list[Reply] | Failure | None:
    """The replies to all jobs; None if a job has to be split."""
    replies: list[Reply] = []
    for job in jobs:
        reply = worker.run(job, payload, timeout_s)
        if isinstance(reply, Failure):
            return reply
        if isinstance(reply.message, Separate):
            return None
        replies.append(reply)
    return replies


def _read(job: CountJob, replies: Sequence[Reply], *, keep_texts: bool) -> Counts | Failure:
    names = [name_layout(layout) for layout in job.layouts]
    files = {name: text for reply in replies for text in reply.files if (name := read_trigger(text)) in names}
    if missing := [name for name in names if name not in files]:
        text = f"Callgrind wrote no profile of {', '.join(missing)}. Is the disk for temporary files full?"
        return Failure(FailureKind.NO_RESULT, text)
    profiles: dict[str, Profile] = {}
    for name in names:
        try:
            # As a file has lines: names may have characters that only `splitlines` takes for ends of lines.
            profiles[name] = parse_profile(io.StringIO(files[name]), must_be_complete=True)
        except StoreError as error:
            return Failure(FailureKind.NO_RESULT, f"{error} Is the disk for temporary files full?")
        if INSTRUCTIONS not in profiles[name].events:
            return Failure(FailureKind.NO_RESULT, f"The profile of {name} does not count instructions.")
    answers = [reply.message for reply in replies if isinstance(reply.message, Counted)]
    return Counts(
        number=job.number,
        layouts=tuple(profiles[name] for name in names),
        baseline=None,
        texts=tuple(tidy_for_other_programs(files[name]) for name in names) if keep_texts else None,
        optimised_away=any(answer.optimised_away for answer in answers),
        functions=tuple(PythonFunction(*function) for answer in answers for function in answer.functions),
    )
