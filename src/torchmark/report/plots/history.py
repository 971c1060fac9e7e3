"""Drawings of histories: a series of results, with what changed in it.

Apart from the page: drawings know nothing of pages.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from torchmark.analysis.verdict.judge import SMALLEST_RATIO
from torchmark.model.history import History, Point, Shift, ShiftStanding
from torchmark.model.judgement import Side, Verdict
from torchmark.model.plan import Metric
from torchmark.model.run import RunInfo
from torchmark.report.plots.svg import (
    ENORMOUS,
    MARGIN,
    SIZE,
    SMALL,
    WIDTH,
    Figure,
    Markup,
    Span,
    colour,
    draw_across,
    draw_upright,
    element,
    find_ticks,
    fit,
    fix,
    join,
    label,
    measure_text,
    title,
    widen,
)
from torchmark.report.text.history import FLAT, SHORT_COMMIT, choose_shifts, describe_shift, format_day, name_run
from torchmark.report.text.terminal import count, printable
from torchmark.report.text.units import to_share
from torchmark.stats.changes import LEAST_SHIFT

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
    points = enumerate(history.points)
    if metric is Metric.WALL:
        heights = ((i, to_height(point.log_ratio), point.segment) for i, point in points)
        return [Value(i, height, height, height, segment) for i, height, segment in heights if height is not None]
    borders = [shift.position for shift in history.shifts if metric in shift.metrics and shift.before is None]
    found = (_read_count(i, point, sum(border <= i for border in borders)) for i, point in points)
    return [value for value in found if value is not None]


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
    least = 100 * LEAST_SHIFT if metric is Metric.WALL else SMALLEST_RATIO * max(abs(low), abs(high))
    missing = max(0.0, FLAT * least - (high - low)) / 2
    return widen(low - missing, high + missing, AIR)


def format_height(height: float, metric: Metric) -> str:
    """A value in words.

    >>> format_height(-1.25, Metric.WALL), format_height(8484.8, Metric.COUNT)
    ('−1.2 %', '8,485 instructions')
    """
    if metric is Metric.COUNT:
        return f"{height:,.0f} instructions" if abs(height) < ENORMOUS**2 else f"{height:.3g} instructions"
    text = f"{height:+.1f}" if abs(height) < ENORMOUS else f"{height:+.3g}"
    return f"{text.replace('-', '−')} %"


def name_point(run: RunInfo, suite: str) -> str:
    commit = name_commit(run, suite)
    return f"{format_day(run.created)} {name_run(run)}" + (f", commit {commit}" if commit else "")


def name_commit(run: RunInfo, suite: str) -> str:
    """The commit of the folder that a suite was in, as short as people write it; nothing if that is not known."""
    commit = next((source.commit for source in run.sources if source.suite == suite), None)
    return printable((commit or "")[:SHORT_COMMIT])


# From the top: what it is, words of changes, the series, and the days of its ends.
HEADER, WORDS, SERIES, FOOTER = 20.0, 15.0, 84.0, 20.0
# The first and the last run are not at the very end.
INSET = 5.0
MOST_TICKS = 4
# More dots than this are small ones.
MANY = 60

NAMES = {Metric.WALL: "time", Metric.COUNT: "instructions"}
DASHES = {ShiftStanding.UNCONFIRMED: "4 3", ShiftStanding.ENVIRONMENT: "1 3"}


def draw_history(history: History, metric: Metric, *, name: str = "", hover: bool = True) -> Markup:
    """The series of one metric. Pointing at a run tells which it is, unless `hover` is off, which makes it smaller.

    `name` is what those hear who do not see it.
    """
    return _HistoryDrawing(history, metric).draw(name or f"{NAMES[metric].capitalize()} over all runs", hover)


class _HistoryDrawing:
    def __init__(self, history: History, metric: Metric) -> None:
        self._history, self._metric = history, metric
        self._values, self._shifts = list_values(history, metric), choose_shifts(history, [metric])
        low, high = find_heights(self._values, metric)
        ticks = find_ticks(low, high, MOST_TICKS)
        self._marks = [(tick, _format_tick(ticks.show(tick), tick, metric)) for tick in ticks.values]
        self._left = MARGIN + max((measure_text(text, SMALL) for _, text in self._marks), default=0.0) + 6
        self._right = WIDTH - MARGIN
        self._top, self._bottom = HEADER + WORDS, HEADER + WORDS + SERIES
        # Upside down, for pixels are counted from the top.
        self._heights = Span(low, high, self._bottom, self._top)

    def draw(self, name: str, hover: bool) -> Markup:
        figure, metric = Figure(), NAMES[self._metric]
        newest = fit(self._describe_newest(), WIDTH - 2 * MARGIN - measure_text(metric) - 2 * SIZE, SMALL)
        figure.add_heading(metric, newest, 13)
        figure.add(self._draw_grid(), self._draw_footer(), height=self._bottom + FOOTER)
        if self._values:
            figure.add(*self._draw_shifts(), self._draw_lines(), self._draw_points(hover))
        else:
            figure.add(label(self._left + 4, self._top + SERIES / 2, "nothing was measured", opacity=0.7))
        return figure.close(name, self._describe())

    def _x(self, position: float) -> float:
        """Runs are evenly spaced; a single one is in the middle."""
        last, left, right = len(self._history.points) - 1, self._left + INSET, self._right - INSET
        return left + (right - left) * (position / last if last > 0 else 0.5)

    def _describe_newest(self) -> str:
        if not self._values:
            return ""
        newest = format_height(self._values[-1].height, self._metric).removesuffix(f" {NAMES[self._metric]}")
        if self._metric is Metric.WALL and self._history.anchor is not None:
            newest += f" against {name_run(self._history.anchor)}"
        if len(self._values) > 1:
            return newest
        return f"{newest}, in one run only" if self._metric is Metric.COUNT else "measured in one run only"

    def _draw_grid(self) -> Markup:
        """Faint lines at the marks of the upright axis, less faint where the anchor is."""
        parts = []
        for tick, text in self._marks:
            y, is_anchor = self._heights.at(tick), tick == 0 and self._metric is Metric.WALL
            parts.append(draw_across(self._left, self._right, y, stroke_opacity=0.5 if is_anchor else 0.15))
            parts.append(label(self._left - 6, y + 4, text, size=SMALL, anchor="end", opacity=0.8))
        return join(parts)

    def _draw_footer(self) -> Markup:
        points, y = self._history.points, self._bottom + 15
        days = [format_day(point.run.created) for point in (points[:1] + points[-1:])]
        texts = [label(self._left, y, days[0] if days else "no runs", size=SMALL, opacity=0.8)]
        if len(points) > 1:
            middle = (self._left + self._right) / 2
            texts.append(label(middle, y, count(len(points), "run"), size=SMALL, anchor="middle", opacity=0.8))
            texts.append(label(self._right, y, days[-1], size=SMALL, anchor="end", opacity=0.8))
        return join(texts)

    def _draw_lines(self) -> Markup:
        """A line for all values that can be compared with each other, and what counts vary between."""
        segments: dict[int | None, list[str]] = {}
        bars = ""
        for value in self._values:
            x = fix(self._x(value.position))
            segments.setdefault(value.segment, []).append(f"{x} {fix(self._heights.at(value.height))}")
            if value.low < value.high:
                bars += f"M{x} {fix(self._heights.at(value.low))}V{fix(self._heights.at(value.high))}"
        lines = "".join(f"M{' '.join(places)}" for places in segments.values())
        return element(
            "path", d=lines + bars, fill="none", stroke=colour(Side.HEAD), stroke_width=1.5, stroke_linejoin="round"
        )  # fmt: skip

    def _draw_points(self, hover: bool) -> Markup:
        """A dot a run, with what it says where somebody may point at it."""
        dots = [f"M{fix(self._x(one.position))} {fix(self._heights.at(one.height))}h0" for one in self._values]
        if hover:
            marks = [
                element("path", title(self._name(value.position, value.height)), d=dot)
                for dot, value in zip(dots, self._values, strict=True)
            ]
        else:
            marks = [element("path", d="".join(dots))]
        size = 5.0 if len(dots) <= MANY else 3.0
        return element("g", *marks, stroke=colour(Side.HEAD), stroke_width=size, stroke_linecap="round")

    def _name(self, position: int, height: float) -> str:
        run = name_point(self._history.points[position].run, self._history.case.suite)
        return f"{run}: {format_height(height, self._metric)}"

    def _draw_shifts(self) -> Iterator[Markup]:
        """A line between two runs, levels beside it, and words above it where there is room for them."""
        taken = 0.0
        for shift in self._shifts:
            x = (self._x(shift.previous) + self._x(shift.position)) / 2
            text = self._find_words(x, shift, taken)
            parts = [title(self._describe_point(shift)), self._draw_level(shift)]
            look = {"stroke_width": 1.5, "stroke_dasharray": DASHES.get(shift.standing)}
            parts.append(draw_upright(x, self._top - 2, self._bottom, stroke=ink(shift), **look))
            if text:
                width = measure_text(text, SMALL)
                start = min(max(x - width / 2, taken), self._right - width)
                parts.append(label(start, self._top - 5, text, size=SMALL, fill=ink(shift)))
                taken = start + width + SIZE
            yield element("g", *parts)

    def _find_words(self, x: float, shift: Shift, taken: float) -> str:
        share = "" if shift.share is None else format_height(100 * shift.share, Metric.WALL)
        for text in (f"{share} {shift.standing.value}".strip(), share):
            width = measure_text(text, SMALL)
            if max(x - width / 2, taken) <= min(x, self._right - width):
                return text
        return ""

    def _draw_level(self, shift: Shift) -> Markup:
        """What the series is held for on both sides of a change, as far as to the next one."""
        places = [-1, *(one.position for one in self._shifts), len(self._history.points)]
        before = max(place for place in places if place < shift.position)
        after = min(place for place in places if place > shift.position)
        strokes = ""
        for level, first, last in (
            (shift.before, max(before, 0), shift.previous),
            (shift.after, shift.position, after - 1),
        ):
            height = to_height(level) if self._metric is Metric.WALL else level
            if height is not None and self._heights.has(height):
                strokes += f"M{fix(self._x(first))} {fix(self._heights.at(height))}H{fix(self._x(last))}"
        return element("path", d=strokes or "M0 0", stroke=ink(shift), stroke_width=6, stroke_opacity=0.25)

    def _describe_point(self, shift: Shift) -> str:
        run = self._history.points[shift.position].run
        return f"{name_point(run, self._history.case.suite)}: {describe_shift(shift)}"

    def _describe(self) -> str:
        if not self._values:
            return "Nothing was measured."
        first, last = self._values[0], self._values[-1]
        told = f"{format_height(last.height, self._metric)} in the newest of {count(len(self._values), 'run')}"
        if len(self._values) > 1:
            told += f", {format_height(first.height, self._metric)} in the oldest"
        changes = " ".join(map(self._describe_point, self._shifts))
        return f"{told}. {changes or 'No change.'}"


def _format_tick(text: str, tick: float, metric: Metric) -> str:
    text = text.replace("-", "−")
    return text if metric is Metric.COUNT else f"{'+' if tick > 0 else ''}{text} %"


def ink(shift: Shift) -> str:
    """The colour of a change: of what became slower or faster, if that is confirmed."""
    if shift.standing is ShiftStanding.UNCONFIRMED:
        return colour(Verdict.UNDECIDED)
    if shift.standing is not ShiftStanding.CONFIRMED or shift.before is None or shift.after is None:
        return colour(Verdict.SAME)
    return colour(Verdict.SLOWER if shift.after > shift.before else Verdict.FASTER)
