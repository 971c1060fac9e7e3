"""Counting through a worker: a job in, the profiles of all its layouts out."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable

from torchmark.callgrind.parse import parse_profile, read_trigger
from torchmark.errors import StoreError
from torchmark.model.costs import Counts, Profile
from torchmark.model.job import CountJob
from torchmark.model.outcome import Failure, FailureKind
from torchmark.runner.worker import DEFAULT_TIMEOUT_S, Worker
from torchmark.wire.messages import Separate
from torchmark.wire.profiles import BASELINE, name_layout


def count(
    worker: Worker,
    job: CountJob,
    payload: bytes = b"",
    timeout_s: float = DEFAULT_TIMEOUT_S,
    *,
    keep_texts: bool = False,
) -> Counts | Failure:
    """Count in each layout of the job. The time limit is for each process that is started for it."""
    known = worker.baselines.get(job.number) if job.baseline else None
    asked = dataclasses.replace(job, baseline=job.baseline and known is None)
    # A process with several threads cannot be forked.
    together = job.threads == 1 or len(job.layouts) == 1
    texts = _run(worker, [asked] if together else _split(asked), payload, timeout_s)
    if texts is None:
        texts = _run(worker, _split(asked), payload, timeout_s)
    if isinstance(texts, Failure):
        return texts
    assert texts is not None
    counts = _read(asked, texts, keep_texts=keep_texts)
    if isinstance(counts, Failure) or not job.baseline:
        return counts
    if known is None and counts.baseline is not None:
        worker.baselines[job.number] = counts.baseline
    return dataclasses.replace(counts, baseline=known or counts.baseline)


def _split(job: CountJob) -> list[CountJob]:
    """One layout at a time; the first also takes the baseline."""
    return [
        dataclasses.replace(job, layouts=(layout,), baseline=job.baseline and layout == job.layouts[0])
        for layout in job.layouts
    ]


def _run(worker: Worker, jobs: Iterable[CountJob], payload: bytes, timeout_s: float) -> list[str] | Failure | None:
    """The files of all jobs; None if a job has to be split."""
    texts: list[str] = []
    for job in jobs:
        reply = worker.run(job, payload, timeout_s)
        if isinstance(reply, Failure):
            return reply
        if isinstance(reply.message, Separate):
            return None
        texts += reply.files
    return texts


def _read(job: CountJob, texts: list[str], *, keep_texts: bool) -> Counts | Failure:
    names = [name_layout(layout) for layout in job.layouts]
    wanted = [*names, *([BASELINE] if job.baseline else [])]
    files = {name: text for text in texts if (name := read_trigger(text)) in wanted}
    if missing := [name for name in wanted if name not in files]:
        text = f"Callgrind wrote no profile of {', '.join(missing)}. Is the disk for temporary files full?"
        return Failure(FailureKind.NO_RESULT, text)
    profiles: dict[str, Profile] = {}
    for name in wanted:
        try:
            profiles[name] = parse_profile(files[name].splitlines(keepends=True), must_be_complete=True)
        except StoreError as error:
            return Failure(FailureKind.NO_RESULT, f"{error} Is the disk for temporary files full?")
    return Counts(
        number=job.number,
        layouts=tuple(profiles[name] for name in names),
        baseline=profiles.get(BASELINE),
        texts=tuple(files[name] for name in names) if keep_texts else None,
    )
