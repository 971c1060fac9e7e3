"""How many runs make a block, and how many blocks make a measurement.

The sequence of calls to the engine in `decade_block_size` and `measure` is part of the public contract: with
an engine that replays recorded times, results are the same to the last digit.
"""

from __future__ import annotations

import bisect
import math
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import NamedTuple

from torchmark.measure.snippet import Engine
from torchmark.stats import order

# A clock cannot be trusted below this; it also keeps ratios of times finite.
SHORTEST_S = 1e-9
# An empty block may take at most this share of a full one.
OVERHEAD_SHARE = 1e-4
# A thousand blocks would fill the time asked for: enough to see a distribution.
BLOCKS_AT_MOST = 1000
# The largest count that a 32-bit loop counter of a compiled engine takes.
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


def time_block(engine: Engine, number: int) -> float:
    """Seconds for one block, never less than a nanosecond."""
    return max(engine.timeit(number), SHORTEST_S)


def measure_overhead(engine: Engine) -> float:
    """The middle one of five empty blocks."""
    return sorted(time_block(engine, 0) for _ in range(5))[2]


def decade_block_size(engine: Engine, min_run_time: float) -> BlockSize:
    """The smallest power of ten that makes a good block; this also warms the statement up."""
    overhead = measure_overhead(engine)
    number = 1
    while True:
        t = time_block(engine, number)
        if overhead / t <= OVERHEAD_SHARE and t >= min_run_time / BLOCKS_AT_MOST:
            break
        if t > min_run_time or number * 10 > LARGEST_NUMBER:
            break
        number *= 10
    return BlockSize(number, overhead)


def fitted_block_size(engine: Engine, min_run_time: float, time_left: Callable[[], float]) -> BlockSize:
    """Like `decade_block_size`, but no larger than needed, and settled before the time left is used up.

    A block counts as long enough only if it is so twice: an interrupt can make one too short a block look good.
    Slow statements run several times in a block too, while there is time for ten blocks; and where the setup is slow,
    blocks are long enough for those that there is time for to add up to `min_run_time`.
    """
    available = time_left()
    overhead = time_block(engine, 0)
    # In this order, so that time without end (inf - inf is not a number) counts as 0.
    setup_s = max(0.0, available - time_left() - overhead)
    with share_setup(engine):
        if time_left() > setup_s:
            overhead = measure_overhead(engine)
        goal = max(
            overhead / OVERHEAD_SHARE,
            min_run_time / BLOCKS_AT_MOST,
            min_run_time * setup_s / max(time_left(), SHORTEST_S),
        )
        number, t = _search(engine, min(goal, min_run_time), min_run_time, time_left)
    if number < DILUTING_RUNS:
        affordable = int(min(min_run_time, max(time_left(), 0.0)) / BLOCKS_AT_LEAST / (t / number))
        number = max(number, min(affordable, DILUTING_RUNS))
    return BlockSize(number, overhead)


def _search(engine: Engine, goal: float, min_run_time: float, time_left: Callable[[], float]) -> tuple[int, float]:
    """How many runs take `goal` seconds, and how long they took."""
    number, t = 1, SHORTEST_S
    while time_left() > 0:
        t = time_block(engine, number)
        if goal <= t < min_run_time:
            t = min(t, time_block(engine, number))
        growth = min(max(goal / t * FIT_MARGIN, 1.01), 10.0)
        if t >= goal or number >= LARGEST_NUMBER or t * growth > time_left():
            break
        number = min(math.ceil(number * growth), LARGEST_NUMBER)
    return number, t


def search_preferred(engine: Engine, goal: float, callback: Callback | None = None) -> tuple[int, float]:
    """The first of 1, 2, 5, 10, 20, 50, ... runs that take `goal` seconds, and how long they took."""
    decade = 1
    while True:
        for step in PREFERRED_STEPS:
            number = step * decade
            t = time_block(engine, number)
            if callback is not None:
                callback(number, t)
            if t >= goal or number > LARGEST_NUMBER // 10:
                return number, t
        decade *= 10


def share_setup(engine: Engine) -> AbstractContextManager[None]:
    """Let blocks share one run of the setup where the engine can do that; an engine of the user's may not."""
    one_setup: Callable[[], AbstractContextManager[None]] = getattr(engine, "one_setup", nullcontext)
    return one_setup()


def measure(
    engine: Engine,
    number: int,
    *,
    min_run_time: float,
    should_stop: StopRule = lambda t: True,
    out_of_time: StopRule = lambda total: False,
    callback: Callback | None = None,
) -> tuple[float, ...]:
    """Time blocks until they add up to `min_run_time` and `should_stop` agrees, or there is no time left.

    `should_stop` sees each block's time, `out_of_time` the sum of them so far.
    """
    times: list[float] = []
    total = 0.0
    stop = False
    while total < min_run_time or not stop:
        t = time_block(engine, number)
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
        """Take in one more block time and decide."""
        bisect.insort(self._ordered, t / self._number)
        return len(self._ordered) > 3 and self._spread(self._ordered) < self._threshold

    @staticmethod
    def _spread(ordered: Sequence[float]) -> float:
        return (order.quantile(ordered, 0.75) - order.quantile(ordered, 0.25)) / order.quantile(ordered, 0.5)
