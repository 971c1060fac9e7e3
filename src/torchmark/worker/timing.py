"""Times one statement in a child of the zygote."""

from __future__ import annotations

import time
from typing import Any

from torchmark.measure.clock import choose_clock, choose_native_clock
from torchmark.measure.compiled import CompiledTimer
from torchmark.measure.dynamo import Watch
from torchmark.measure.procedures import BLOCKS_OF_FIXED_SIZE, adaptive, blocked_within, fixed, repeated
from torchmark.measure.snippet import SnippetTimer
from torchmark.measure.steps import Steps, carry_out, flatten
from torchmark.model.job import TimeJob
from torchmark.model.outcome import FailureKind
from torchmark.model.times import Times
from torchmark.wire.messages import Failed, Timed

# Before the compiler is watched. The first run compiles; the second may be the first with some inputs that are new.
WATCHED_WARM_UP_RUNS = 3


def measure_time(job: TimeJob, namespace: dict[str, Any]) -> Timed | Failed:
    """Carry the job out."""
    steps = choose_steps(job)
    if job.compiled is None:
        engine = SnippetTimer(job.stmt, job.setup, choose_clock(), namespace)
        outcome = engine.follow(_watched(steps)) if job.watch_compiler else carry_out(engine, steps)
        if isinstance(outcome, str):
            return Failed(FailureKind.RECOMPILED.value, outcome, None)
        return Timed(outcome.number_per_run, outcome.raw_times, outcome.overhead_s)
    timer = CompiledTimer(job.compiled, choose_native_clock())
    times = carry_out(timer, steps)
    return Timed(times.number_per_run, times.raw_times, times.overhead_s, timer.optimised_away)


def _watched(steps: Steps[Times]) -> Steps[Times | str]:
    """The same after a warm-up and with one setup for all, or what `torch.compile` has compiled meanwhile."""
    yield WATCHED_WARM_UP_RUNS
    watch = Watch()
    times = yield from flatten(steps)
    return watch.find_compiling() or times


def choose_steps(job: TimeJob) -> Steps[Times]:
    """What to measure, as the job asks for it."""
    if job.number is not None and job.blocks is not None:
        return fixed(job.blocks, job.number)
    if job.number is not None:
        return repeated(BLOCKS_OF_FIXED_SIZE, job.number)
    if job.threshold is not None:
        return adaptive(job.threshold, job.min_run_time_s, job.max_run_time_s, None)
    return blocked_within(job.min_run_time_s, job.max_run_time_s, None, time.perf_counter)
