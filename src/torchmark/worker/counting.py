"""Counts one statement in a child of the zygote. Everything here is the same from run to run, to the instruction:
no clock is read, and nothing depends on what the worker has counted before.
"""

from __future__ import annotations

import dataclasses
import os
import signal
from types import CodeType
from typing import Any, NoReturn

from torchmark.measure.compiled import CompiledTimer
from torchmark.measure.dynamo import Watch
from torchmark.measure.snippet import SnippetTimer
from torchmark.measure.steps import Steps
from torchmark.measure.warming import warm_up
from torchmark.model.job import BARE_LAYOUT, CountJob
from torchmark.model.outcome import FailureKind
from torchmark.wire.frames import Unpacker, pack
from torchmark.wire.messages import Counted, Failed, Separate, decode, encode
from torchmark.wire.profiles import name_layout
from torchmark.wire.status import describe_status
from torchmark.worker.marks import Marks
from torchmark.worker.process import count_threads, die_with_parent, failure_of

# In a heap that was changed, the statement finds its places before it is counted.
SETTLING_RUNS = 8


def count(job: CountJob, namespace: dict[str, Any], marks: Marks) -> Counted | Separate | Failed:
    """Write a profile for every layout."""
    fork = _Fork()
    try:
        if job.compiled is None:
            timer = SnippetTimer(job.stmt, job.setup, marks.clock, namespace)
            return timer.follow(_count_visibly(job, timer.code, marks, fork))
        compiled = CompiledTimer(job.compiled, marks.clock)
        outcome = compiled.follow(_count_visibly(job, None, marks, fork))
        if isinstance(outcome, Counted):
            return dataclasses.replace(outcome, optimised_away=compiled.optimised_away)
        return outcome
    except BaseException as error:
        if fork.pipe is None:
            raise
        _say_and_wait(fork.pipe, failure_of(error))


def _count_visibly(
    job: CountJob, code: CodeType | None, marks: Marks, fork: _Fork
) -> Steps[Counted | Separate | Failed]:
    """With Python functions made visible, where that is asked for; from before the warm-up, as code adapts to it."""
    if marks.calls is None:
        return (yield from _count(job, code, marks, fork))
    marks.calls.show()
    try:
        outcome = yield from _count(job, code, marks, fork)
    finally:
        marks.calls.hide()
    return Counted(functions=marks.calls.list_functions()) if isinstance(outcome, Counted) else outcome


class _Fork:
    """Where this process answers, if it is one that was forked for a layout."""

    pipe: int | None = None


def _count(job: CountJob, code: CodeType | None, marks: Marks, fork: _Fork) -> Steps[Counted | Separate | Failed]:
    yield from warm_up(code, job.number)
    watch = Watch() if job.watch_compiler else None
    if not marks.started:
        marks.start()
        # All code is translated anew after that: here, once for all layouts.
        yield SETTLING_RUNS
    if len(job.layouts) == 1:
        return (yield from _count_layout(job.number, job.layouts[0], marks, watch))
    threads = count_threads()
    if threads > 1:
        return Separate(threads)
    # Once for all layouts, which would otherwise each write the costs of setup and warm-up.
    marks.forget()
    for layout in job.layouts:
        outcome = yield from _count_in_fork(job.number, layout, marks, watch, fork)
        if isinstance(outcome, Failed):
            return outcome
    return Counted()


def _count_layout(number: int, layout: int, marks: Marks, watch: Watch | None) -> Steps[Counted | Failed]:
    _kept = marks.scatter(layout) if layout != BARE_LAYOUT else None
    yield SETTLING_RUNS
    marks.arm(name_layout(layout))
    yield number
    # Behind the loop, which has written its profile.
    problem = watch.find_compiling() if watch is not None else None
    return Counted() if problem is None else Failed(FailureKind.RECOMPILED.value, problem, None)


def _count_in_fork(number: int, layout: int, marks: Marks, watch: Watch | None, fork: _Fork) -> Steps[Counted | Failed]:
    """One layout in a process of its own, so that all start from the same heap."""
    ours, theirs = os.pipe()
    parent = os.getpid()
    pid = os.fork()
    if pid == 0:
        os.close(ours)
        fork.pipe = theirs
        die_with_parent(parent)
        outcome = yield from _count_layout(number, layout, marks, watch)
        _say_and_wait(theirs, outcome)
    os.close(theirs)
    answer = _read_answer(ours)
    os.close(ours)
    # By force: a normal exit would make Callgrind write one more profile.
    os.kill(pid, signal.SIGKILL)
    _, status = os.waitpid(pid, 0)
    if answer is not None:
        return answer
    kind, text = describe_status(status)
    return Failed(kind.value, f"The process {text}.", None)


def _say_and_wait(pipe: int, outcome: Counted | Failed) -> NoReturn:
    """Answer, and wait to be killed; whatever a user's signal handler may do meanwhile."""
    try:
        os.write(pipe, pack(encode(outcome)))
        while True:
            signal.pause()
    finally:
        os._exit(1)


def _read_answer(pipe: int) -> Counted | Failed | None:
    """One message, not all there is: something that the statement started may hold the pipe open for ever."""
    unpacker = Unpacker()
    while True:
        piece = os.read(pipe, 1 << 16)
        if not piece:
            return None
        for plain in unpacker.feed(piece):
            message = decode(plain)
            assert isinstance(message, (Counted, Failed))
            return message
