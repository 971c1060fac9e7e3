"""Whole measurements, one for each way that a timer offers, as steps."""

from __future__ import annotations

from collections.abc import Callable

from torchmark.measure import blocks
from torchmark.measure.steps import Shared, Steps
from torchmark.model.times import Times

# The adaptive measurement sizes its blocks for this long a measurement, whatever its arguments.
ADAPTIVE_SIZING_S = 0.05
# A block of the preferred size, and what the blocked measurement takes by default: enough to see past an interrupt.
RUN_TIME_S = 0.2
# How many blocks of the preferred size are taken, as the command line of Python's timeit does.
REPEATS = 5
# Of blocks of a size that the user gives: as many as make an interval of the median possible.
BLOCKS_OF_FIXED_SIZE = 7


def one_block(number: int) -> Steps[Times]:
    """A single block after a warm-up."""
    yield from blocks.warm_up(number)
    return Times(number, (yield from blocks.time_blocks(1, number)))


def repeated(repeat: int, number: int) -> Steps[Times]:
    """So many blocks of a fixed size after a warm-up."""
    overhead = yield from blocks.measure_overhead()
    yield from blocks.warm_up(number)
    return Times(number, (yield from blocks.time_blocks(repeat, number)), overhead)


def fixed(repeat: int, number: int) -> Steps[Times]:
    """So many blocks of a fixed size, all after one setup and a whole block that is not timed."""
    times: Times = yield Shared(_fixed(repeat, number))
    return times


def _fixed(repeat: int, number: int) -> Steps[Times]:
    overhead = yield from blocks.measure_overhead()
    yield number
    return Times(number, (yield from blocks.time_blocks(repeat, number)), overhead)


def preferred(callback: blocks.Callback | None) -> Steps[Times]:
    """Five blocks of the first size among 1, 2, 5, 10, ... that takes long enough."""
    overhead = yield from blocks.measure_overhead()
    number, t = yield from blocks.search_preferred(RUN_TIME_S, callback)
    rest = yield from blocks.time_blocks(REPEATS - 1, number)
    return Times(number, (t, *rest), overhead)


def blocked(min_run_time: float, callback: blocks.Callback | None) -> Steps[Times]:
    """Blocks of a power of ten until they add up."""
    size = yield from blocks.decade_block_size(min_run_time)
    times = yield from blocks.measure(size.number, min_run_time=min_run_time, callback=callback)
    return Times(size.number, times, size.overhead_s)


def blocked_within(
    min_run_time: float, max_run_time: float, callback: blocks.Callback | None, now: Callable[[], float]
) -> Steps[Times]:
    """Blocks no longer than needed until they add up, or time is up by the clock `now`."""
    end = now() + max_run_time
    size = yield from blocks.fitted_block_size(min_run_time, lambda: end - now())
    times = yield from blocks.measure(
        size.number, min_run_time=min_run_time, out_of_time=lambda _: now() >= end, callback=callback
    )
    return Times(size.number, times, size.overhead_s)


def adaptive(
    threshold: float, min_run_time: float, max_run_time: float, callback: blocks.Callback | None
) -> Steps[Times]:
    """Blocks of a power of ten until their times are steady; no limit if `max_run_time` is 0."""
    size = yield from blocks.decade_block_size(ADAPTIVE_SIZING_S)
    times = yield from blocks.measure(
        size.number,
        min_run_time=min_run_time,
        should_stop=blocks.SteadyEnough(size.number, threshold),
        out_of_time=lambda total: bool(max_run_time) and total > max_run_time,
        callback=callback,
    )
    return Times(size.number, times, size.overhead_s)
