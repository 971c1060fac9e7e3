"""How many runs make a block and how many blocks a measurement, as steps that an engine carries out."""

from __future__ import annotations

import bisect
import math
from collections.abc import Callable, Generator
from typing import Any, NamedTuple, Protocol, TypeVar, Union

from torchmark.model.task import Times
from torchmark.stats import distribution

R = TypeVar("R")


class Shared(NamedTuple):
    """Steps that ask for one setup for all their blocks; the one who yields this is sent what they return."""

    steps: Steps[Any]


# What is sent is a time after a number, and anything after `Shared`.
Steps = Generator[Union[int, Shared], Any, R]


class Engine(Protocol):
    """Runs the statement `number` times, after the setup, and says how many seconds that took.

    One that can also keep what the setup made has a second method, `follow(steps)`, which carries out all of the steps
    after one run of the setup and gives what they return.
    """

    def timeit(self, number: int) -> float: ...


def carry_out(engine: Engine, steps: Steps[R]) -> R:
    """Time the blocks that the steps ask for, each after a setup of its own unless they share one."""
    reply: Any = None
    while True:
        try:
            request = steps.send(reply)
        except StopIteration as end:
            result: R = end.value
            return result
        reply = share_setup(engine, request.steps) if isinstance(request, Shared) else engine.timeit(request)


def share_setup(engine: Engine, steps: Steps[R]) -> R:
    """Carry out the steps with one run of the setup where the engine can do that; an engine of the user's may not."""
    follow = getattr(engine, "follow", None)
    if follow is None:
        return carry_out(engine, flatten(steps))
    result: R = follow(flatten(steps))
    return result


def flatten(steps: Steps[R]) -> Steps[R]:
    """The same steps for an engine that is within one setup already.

    >>> def inner(): return 2 * (yield 1)
    >>> def outer(): return (yield Shared(inner())) + (yield 3)
    >>> steps = flatten(outer())
    >>> [next(steps), steps.send(10)]
    [1, 3]
    """
    reply: Any = None
    while True:
        try:
            request = steps.send(reply)
        except StopIteration as end:
            result: R = end.value
            return result
        if isinstance(request, Shared):
            reply = yield from flatten(request.steps)
        else:
            reply = yield request


# A clock cannot be trusted below this; it also keeps ratios of times finite.
SHORTEST_S = 1e-9
# An empty block may take at most this share of a full one.
OVERHEAD_SHARE = 1e-4
# A thousand blocks would fill the time asked for: enough to see a distribution.
BLOCKS_AT_MOST = 1000
# No search goes beyond this. Engines count further, but where this many runs take no time, more will not either.
LARGEST_NUMBER = 2**31 - 1
# The first run after a setup finds caches and heap cold: a block of at least this many dilutes it,
DILUTING_RUNS = 10
# unless that would leave fewer blocks than this in the time asked for.
BLOCKS_AT_LEAST = 10
# What a person would try, as timeit does.
PREFERRED_STEPS = (1, 2, 5)
# Aim this much above the goal, so that the next try reaches it in spite of noise.
FIT_MARGIN = 1.2

Callback = Callable[[int, float], object]
StopRule = Callable[[float], bool]


class BlockSize(NamedTuple):
    """Runs per block, and the time of an empty block."""

    number: int
    overhead_s: float


def time_block(number: int) -> Steps[float]:
    """Seconds for one block, never less than a nanosecond."""
    seconds: float = yield number
    return max(seconds, SHORTEST_S)


def time_blocks(repeat: int, number: int) -> Steps[tuple[float, ...]]:
    times = []
    for _ in range(repeat):
        times.append((yield from time_block(number)))
    return tuple(times)


def warm_up(number: int) -> Steps[None]:
    """A hundredth of the runs to come, and two at the least."""
    yield max(number // 100, 2)


def measure_overhead() -> Steps[float]:
    """The middle one of five empty blocks."""
    return sorted((yield from time_blocks(5, 0)))[2]


def decade_block_size(min_run_time: float) -> Steps[BlockSize]:
    """The smallest power of ten that makes a good block; this also warms the statement up."""
    overhead = yield from measure_overhead()
    number = 1
    while True:
        t = yield from time_block(number)
        if overhead / t <= OVERHEAD_SHARE and t >= min_run_time / BLOCKS_AT_MOST:
            break
        if t > min_run_time or number * 10 > LARGEST_NUMBER:
            break
        number *= 10
    return BlockSize(number, overhead)


def fitted_block_size(min_run_time: float, time_left: Callable[[], float]) -> Steps[BlockSize]:
    """Like `decade_block_size`, but no larger than needed, and settled before the time left is used up.

    A block counts as long enough only if it is so twice: an interrupt can make one too short a block look good.
    Slow statements run several times in a block too, while there is time for ten blocks; and where the setup is slow,
    blocks are long enough for those that there is time for to add up to `min_run_time`.
    """
    available = time_left()
    overhead = yield from time_block(0)
    # In this order, so that time without end (inf - inf is not a number) counts as 0.
    setup_s = max(0.0, available - time_left() - overhead)
    size: BlockSize = yield Shared(_fit(overhead, setup_s, min_run_time, time_left))
    return size


def _fit(overhead: float, setup_s: float, min_run_time: float, time_left: Callable[[], float]) -> Steps[BlockSize]:
    if time_left() > setup_s:
        overhead = yield from measure_overhead()
    goal = max(
        overhead / OVERHEAD_SHARE,
        min_run_time / BLOCKS_AT_MOST,
        min_run_time * setup_s / max(time_left(), SHORTEST_S),
    )
    number, t = yield from _search(min(goal, min_run_time), min_run_time, time_left)
    if number < DILUTING_RUNS:
        affordable = int(min(min_run_time, max(time_left(), 0.0)) / BLOCKS_AT_LEAST / (t / number))
        number = max(number, min(affordable, DILUTING_RUNS))
    return BlockSize(number, overhead)


def _search(goal: float, min_run_time: float, time_left: Callable[[], float]) -> Steps[tuple[int, float]]:
    """How many runs take `goal` seconds, and how long they took."""
    number, t = 1, SHORTEST_S
    while time_left() > 0:
        t = yield from time_block(number)
        if goal <= t < min_run_time:
            t = min(t, (yield from time_block(number)))
        growth = min(max(goal / t * FIT_MARGIN, 1.01), 10.0)
        if t >= goal or number >= LARGEST_NUMBER or t * growth > time_left():
            break
        number = min(math.ceil(number * growth), LARGEST_NUMBER)
    return number, t


def search_preferred(goal: float, callback: Callback | None = None) -> Steps[tuple[int, float]]:
    """The first of 1, 2, 5, 10, 20, 50, ... runs that take `goal` seconds, and how long they took."""
    decade = 1
    while True:
        for step in PREFERRED_STEPS:
            number = step * decade
            t = yield from time_block(number)
            if callback is not None:
                callback(number, t)
            if t >= goal or number > LARGEST_NUMBER // 10:
                return number, t
        decade *= 10


def measure(
    number: int,
    *,
    min_run_time: float,
    should_stop: StopRule = lambda t: True,
    out_of_time: StopRule = lambda total: False,
    callback: Callback | None = None,
) -> Steps[tuple[float, ...]]:
    """Time blocks until they add up to `min_run_time` and `should_stop` agrees, or there is no time left.

    `should_stop` sees each block's time, `out_of_time` the sum of them so far.
    """
    times: list[float] = []
    total = 0.0
    stop = False
    while total < min_run_time or not stop:
        t = yield from time_block(number)
        times.append(t)
        total += t
        if callback is not None:
            callback(number, t)
        stop = should_stop(t)
        if out_of_time(total):
            break
    return tuple(times)


class SteadyEnough:
    """Stops once the interquartile range is below a share of the median, with four samples at the least.

    Keeps the samples sorted, so a long measurement does not slow down as it goes.
    """

    def __init__(self, number: int, threshold: float) -> None:
        self._number = number
        self._threshold = threshold
        self._ordered: list[float] = []

    def __call__(self, t: float) -> bool:
        bisect.insort(self._ordered, t / self._number)
        p25, median, p75 = (distribution.quantile(self._ordered, share) for share in (0.25, 0.5, 0.75))
        return len(self._ordered) > 3 and (p75 - p25) / median < self._threshold


# The adaptive measurement sizes its blocks for this long a measurement, whatever its arguments.
ADAPTIVE_SIZING_S = 0.05
# A block of the preferred size, and what the blocked measurement takes by default: enough to see past an interrupt.
RUN_TIME_S = 0.2
# How many blocks of the preferred size are taken, as the command line of Python's timeit does.
REPEATS = 5
# Of blocks of a size that the user gives: as many as make an interval of the median possible.
BLOCKS_OF_FIXED_SIZE = 7


def one_block(number: int) -> Steps[Times]:
    yield from warm_up(number)
    return Times(number, (yield from time_blocks(1, number)))


def repeated(repeat: int, number: int) -> Steps[Times]:
    """So many blocks of a fixed size after a warm-up."""
    overhead = yield from measure_overhead()
    yield from warm_up(number)
    return Times(number, (yield from time_blocks(repeat, number)), overhead)


def fixed(repeat: int, number: int) -> Steps[Times]:
    """So many blocks of a fixed size, all after one setup and a whole block that is not timed."""
    times: Times = yield Shared(_fixed(repeat, number))
    return times


def _fixed(repeat: int, number: int) -> Steps[Times]:
    overhead = yield from measure_overhead()
    yield number
    return Times(number, (yield from time_blocks(repeat, number)), overhead)


def preferred(callback: Callback | None) -> Steps[Times]:
    """Five blocks of the first size among 1, 2, 5, 10, ... that takes long enough."""
    overhead = yield from measure_overhead()
    number, t = yield from search_preferred(RUN_TIME_S, callback)
    rest = yield from time_blocks(REPEATS - 1, number)
    return Times(number, (t, *rest), overhead)


def blocked(min_run_time: float, callback: Callback | None) -> Steps[Times]:
    """Blocks of a power of ten until they add up."""
    size = yield from decade_block_size(min_run_time)
    times = yield from measure(size.number, min_run_time=min_run_time, callback=callback)
    return Times(size.number, times, size.overhead_s)


def blocked_within(
    min_run_time: float, max_run_time: float, callback: Callback | None, now: Callable[[], float]
) -> Steps[Times]:
    """Blocks no longer than needed until they add up, or time is up by the clock `now`."""
    end = now() + max_run_time
    size = yield from fitted_block_size(min_run_time, lambda: end - now())
    times = yield from measure(
        size.number, min_run_time=min_run_time, out_of_time=lambda _: now() >= end, callback=callback
    )
    return Times(size.number, times, size.overhead_s)


def adaptive(threshold: float, min_run_time: float, max_run_time: float, callback: Callback | None) -> Steps[Times]:
    """Blocks of a power of ten until their times are steady; no limit if `max_run_time` is 0."""
    size = yield from decade_block_size(ADAPTIVE_SIZING_S)
    times = yield from measure(
        size.number,
        min_run_time=min_run_time,
        should_stop=SteadyEnough(size.number, threshold),
        out_of_time=lambda total: bool(max_run_time) and total > max_run_time,
        callback=callback,
    )
    return Times(size.number, times, size.overhead_s)
