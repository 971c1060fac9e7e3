"""What a job may answer with. A process that runs a user's code may write anything where its answer is expected."""

from __future__ import annotations

from torchmark.model.compiling import FirstCall
from torchmark.model.job import (
    CheckJob,
    CompileJob,
    CountJob,
    DuelJob,
    GaugeJob,
    Job,
    RaceJob,
    ScriptJob,
    TimeJob,
)
from torchmark.model.outcome import FailureKind
from torchmark.wire.messages import (
    Checked,
    Counted,
    Dueled,
    Failed,
    Gauged,
    Message,
    Raced,
    Scripted,
    Separate,
    Timed,
)

_ANSWERS: dict[type[Job], tuple[type[Message], ...]] = {
    CountJob: (Counted, Separate),
    TimeJob: (Timed,),
    RaceJob: (Raced,),
    GaugeJob: (Gauged,),
    DuelJob: (Dueled,),
    CompileJob: (FirstCall,),
    ScriptJob: (Scripted,),
    CheckJob: (Checked,),
}


def check_answer(job: Job, answer: Message | None) -> Message | None:
    """The answer, if it is one to this job; a failure in its place otherwise."""
    if answer is None or isinstance(answer, Failed):
        return answer
    if isinstance(answer, _ANSWERS[type(job)]) and _fits(job, answer):
        return answer
    problem = f"The result cannot be read: {type(answer).__name__} is not an answer to this {type(job).__name__}."
    return Failed(FailureKind.NO_RESULT.value, problem, None)


def _fits(job: Job, answer: Message) -> bool:
    """Whether an answer of the right kind is of as much as was asked for."""
    if isinstance(job, CountJob) and isinstance(answer, Separate):
        # Only several layouts can be asked for one at a time.
        return len(job.layouts) > 1
    if isinstance(job, TimeJob) and isinstance(answer, Timed):
        blocks = len(answer.raw_times) if job.blocks is None or job.number is None else job.blocks
        return (job.number is None or answer.number == job.number) and len(answer.raw_times) == blocks
    if isinstance(job, RaceJob) and isinstance(answer, Raced):
        return len(answer.numbers) == len(job.stmts)
    if isinstance(job, DuelJob) and isinstance(answer, Dueled):
        sides = 1 if job.rival is None else 2
        return len(answer.times) == sides and all(len(side) == len(job.firsts) for side in answer.times)
    return True
