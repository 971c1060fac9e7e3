"""Times a pair of processes in turns, from inside one of them.

A module of its own, as each kind of job is.
"""

from __future__ import annotations

import contextlib
import os
import resource
import socket
import time
from collections.abc import Collection, Sequence
from typing import Any

from torchmark.measure.clock import choose_clock, choose_native_clock
from torchmark.measure.compiled import CompiledTimer
from torchmark.measure.snippet import SnippetTimer
from torchmark.measure.source import SETUP_NAME
from torchmark.measure.steps import Steps
from torchmark.model.job import GaugeJob, PairJob, SideBlocks
from torchmark.model.outcome import FailureKind
from torchmark.worker.protocol import Failed, Gauged, PairTimed
from torchmark.worker.time_jobs import share_setup

# A block has to last that long for its length to be told from the clock's own steps and from interrupts.
LONG_ENOUGH_S = 20e-6
# The shortest of so many blocks: an interrupt makes a block longer, never shorter.
ATTEMPTS = 5
# After this the size of a block is looked for in steps; aimed a little above, to be reached in spite of noise.
LARGEST_STEP = 10
MARGIN = 1.2
MOST_RUNS = 10_000_000
# The first runs load, allocate and optimise what later ones find (TorchScript takes two runs for that).
FIRST_RUNS = 3

# After a fork the heap is full of holes and of pages that are still shared, and statements run slower until both are
# used up. So blocks run until some in a row use no new page, for so long at most and so often at the most.
CALM_BLOCKS = 3
SETTLING_S = 0.01
SETTLING_BLOCKS = 100


class PartnerGone(Exception):
    """The other side has ended, for a reason that it will tell itself."""


def hand_over(end: socket.socket) -> None:
    try:
        end.sendall(b".")
    except OSError as error:
        raise PartnerGone from error


def await_turn(end: socket.socket) -> None:
    try:
        turn = end.recv(1)
    except OSError as error:
        # It had not read all that was sent to it.
        raise PartnerGone from error
    if not turn:
        raise PartnerGone


# Of a timed block: seconds, and what `read_disturbances` gave before it and after it.
TimedBlock = tuple[float, tuple[int, int], tuple[int, int]]


def make_blocks(timed: Sequence[TimedBlock]) -> SideBlocks:
    return SideBlocks(
        times=tuple(seconds for seconds, _, _ in timed),
        faults=tuple(after[0] - before[0] for _, before, after in timed),
        switches=tuple(after[1] - before[1] for _, before, after in timed),
    )


def gauge(job: GaugeJob, namespace: dict[str, Any]) -> Gauged:
    pin(job.cores)
    return _make_engine(job, namespace).follow(_gauge())


def _gauge() -> Steps[Gauged]:
    yield FIRST_RUNS
    number = 1
    while True:
        shortest = float("inf")
        for _ in range(ATTEMPTS):
            shortest = min(shortest, (yield number))
            if shortest > LONG_ENOUGH_S * LARGEST_STEP:
                # Long enough by far; what takes seconds is not run five times.
                break
        if shortest >= LONG_ENOUGH_S or number >= MOST_RUNS:
            return Gauged(shortest / number)
        fitting = int(MARGIN * number * LONG_ENOUGH_S / max(shortest, 1e-9))
        number = max(number + 1, min(LARGEST_STEP * number, fitting))


def time_pair(job: PairJob, namespace: dict[str, Any], end: socket.socket | None) -> PairTimed | Failed:
    """Carry the job out; `end` is that of the connection to the other process, where there is one."""
    # None where the system does not tell.
    allowed: Collection[int] = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else ()
    pin(job.cores)
    try:
        if job.partner is not None:
            return _time_pair_here(job, job.partner, namespace)
        assert end is not None
        return PairTimed((_make_engine(job, namespace).follow(take_part(job, end)),))
    except PartnerGone:
        return Failed(FailureKind.NO_RESULT.value, "The other side ended before the comparison did.", None)
    finally:
        # Giving its memory back takes a process some milliseconds: both sides can do that at once, on different cores.
        pin(allowed)


def take_part(job: PairJob, end: socket.socket) -> Steps[SideBlocks]:
    """One side's blocks, each when it is its turn; `end` is that of the connection to the other."""
    blocks: list[TimedBlock] = []
    yield FIRST_RUNS
    yield from settle(job.number)
    # Both have to be there.
    hand_over(end)
    await_turn(end)
    sides = list_turns(job.firsts)
    for i, side in enumerate(sides):
        if side != job.side:
            continue
        if i and sides[i - 1] != side:
            await_turn(end)
        # Another process has filled the caches meanwhile.
        yield job.warm
        before = read_disturbances()
        seconds = yield job.number
        blocks.append((seconds, before, read_disturbances()))
        if i + 1 < len(sides) and sides[i + 1] != side:
            hand_over(end)
    return make_blocks(blocks)


def list_turns(firsts: Sequence[int]) -> list[int]:
    """Whose turn it is, block after block.

    >>> list_turns([0, 1])
    [0, 1, 1, 0]
    """
    return [side for first in firsts for side in (first, 1 - first)]


def settle(number: int) -> Steps[None]:
    """Run blocks until the heap has come to rest."""
    calm, end = 0, time.perf_counter() + SETTLING_S
    for _ in range(SETTLING_BLOCKS):
        faults, _ = read_disturbances()
        yield number
        calm = calm + 1 if read_disturbances()[0] == faults else 0
        if calm == CALM_BLOCKS or time.perf_counter() > end:
            return


def _time_pair_here(job: PairJob, partner: str, namespace: dict[str, Any]) -> PairTimed:
    with contextlib.ExitStack() as stack:
        timers, _sources = share_setup(stack, [(job.setup, SETUP_NAME)], (job.stmt, partner), namespace)
        for timer in timers:
            timer.follow(_warm_up(job.number))
        sides: tuple[list[TimedBlock], list[TimedBlock]] = ([], [])
        for side in list_turns(job.firsts):
            timers[side].timeit(job.warm)
            before = read_disturbances()
            seconds = timers[side].timeit(job.number)
            sides[side].append((seconds, before, read_disturbances()))
    return PairTimed(tuple(map(make_blocks, sides)))


def _warm_up(number: int) -> Steps[None]:
    yield FIRST_RUNS
    yield from settle(number)


def _make_engine(job: GaugeJob | PairJob, namespace: dict[str, Any]) -> SnippetTimer | CompiledTimer:
    if job.compiled is not None:
        return CompiledTimer(job.compiled, choose_native_clock())
    return SnippetTimer(job.stmt, job.setup, choose_clock(), namespace)


def read_disturbances() -> tuple[int, int]:
    """Pages that this thread was the first to use, and how often the core was taken from it."""
    usage = resource.getrusage(getattr(resource, "RUSAGE_THREAD", resource.RUSAGE_SELF))
    return usage.ru_minflt, usage.ru_nivcsw


def pin(cores: Collection[int]) -> None:
    """Run on these cores only, where the system allows that."""
    if cores and hasattr(os, "sched_setaffinity"):
        with contextlib.suppress(OSError):
            os.sched_setaffinity(0, cores)
