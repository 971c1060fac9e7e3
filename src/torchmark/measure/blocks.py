"""How many runs make a block, and how many blocks make a measurement: all of it as steps, which an engine carries out.

The sequence of blocks in `decade_block_size` and `measure` is part of the public contract: with an engine that replays
recorded times, results are the same to the last digit.
"""

from __future__ import annotations

import bisect
import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

from torchmark.measure.steps import Shared, Steps
from torchmark.stats import order

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
    """Seconds for each of several blocks."""
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
        """Take in one more block time and decide."""
        bisect.insort(self._ordered, t / self._number)
        return len(self._ordered) > 3 and self._spread(self._ordered) < self._threshold

    @staticmethod
    def _spread(ordered: Sequence[float]) -> float:
        return (order.quantile(ordered, 0.75) - order.quantile(ordered, 0.25)) / order.quantile(ordered, 0.5)
