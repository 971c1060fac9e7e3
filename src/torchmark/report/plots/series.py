"""The values of a history as they are drawn: times in per cent against the anchor's, instructions as they are."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from torchmark.model.history import History, Point
from torchmark.model.plan import Metric
from torchmark.model.run import RunInfo
from torchmark.report.changes import to_share
from torchmark.report.history import FLAT, name_run, tell_day
from torchmark.report.history_words import SHORT_COMMIT
from torchmark.report.plots.axes import widen
from torchmark.report.plots.ticks import ENORMOUS
from torchmark.report.printable import printable
from torchmark.stats.changes import LEAST_INSTRUCTIONS_SHARE, LEAST_SHIFT

# What cannot be drawn to scale beside anything else.
ENDLESS = 1e100
AIR = 0.06


class Value(NamedTuple):
    """What the run at a position says, and between what it varies.

    `segment` is which of the runs that can be compared with each other it belongs to.
    """

    position: int
    height: float
    low: float
    high: float
    segment: int | None


def list_values(history: History, metric: Metric) -> list[Value]:
    """The points of a series that were measured."""
    if metric is Metric.WALL:
        found = [_read_time(i, point) for i, point in enumerate(history.points)]
    else:
        borders = [shift.position for shift in history.shifts if metric in shift.metrics and shift.before is None]
        found = [
            _read_count(i, point, sum(border <= i for border in borders)) for i, point in enumerate(history.points)
        ]
    return [value for value in found if value is not None]


def _read_time(position: int, point: Point) -> Value | None:
    height = to_height(point.log_ratio)
    return None if height is None else Value(position, height, height, height, point.segment)


def _read_count(position: int, point: Point, segment: int) -> Value | None:
    spread = point.instructions
    if spread is None or not all(abs(one) < ENDLESS for one in (spread.value, spread.low, spread.high)):
        return None
    low, high = min(spread.low, spread.value), max(spread.high, spread.value)
    return Value(position, spread.value, low, high, segment)


def to_height(log_ratio: float | None) -> float | None:
    """A log-ratio in per cent; None for what cannot be drawn.

    >>> to_height(0.0), to_height(None), to_height(math.inf)
    (0.0, None, None)
    """
    height = math.inf if log_ratio is None else 100 * to_share(log_ratio)
    return height if abs(height) < ENDLESS else None


def find_heights(values: Sequence[Value], metric: Metric) -> tuple[float, float]:
    """From where to where an axis goes. What is not called a change takes up a quarter of it at most."""
    ends = [end for value in values for end in (value.low, value.high)] or [0.0]
    low, high = min(ends), max(ends)
    is_time = metric is Metric.WALL
    least = 100 * LEAST_SHIFT if is_time else LEAST_INSTRUCTIONS_SHARE * max(abs(low), abs(high))
    missing = max(0.0, FLAT * least - (high - low)) / 2
    return widen(low - missing, high + missing, AIR)


def show_height(height: float, metric: Metric) -> str:
    """A value in words.

    >>> show_height(-1.25, Metric.WALL), show_height(8484.8, Metric.COUNT)
    ('−1.2 %', '8,485 instructions')
    """
    if metric is Metric.COUNT:
        return f"{height:,.0f} instructions" if abs(height) < ENORMOUS**2 else f"{height:.3g} instructions"
    text = f"{height:+.1f}" if abs(height) < ENORMOUS else f"{height:+.3g}"
    return f"{text.replace('-', '−')} %"


def name_point(run: RunInfo, suite: str) -> str:
    """The day and the name of a run, and the commit of what it measured."""
    commit = name_commit(run, suite)
    return f"{tell_day(run.created)} {name_run(run)}" + (f", commit {commit}" if commit else "")


def name_commit(run: RunInfo, suite: str) -> str:
    """The commit of the folder that a suite was in, as short as people write it; nothing if that is not known."""
    commit = next((source.commit for source in run.sources if source.suite == suite), None)
    return printable((commit or "")[:SHORT_COMMIT])
