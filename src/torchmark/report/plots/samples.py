"""Drawings of samples: one strip for each side, on a common axis.

Apart from the fragments that show them: drawings know nothing of pages.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence

from torchmark.analysis.summarise import find_median_interval
from torchmark.model.judgement import Side
from torchmark.report.plots.svg import (
    AXIS_HEIGHT,
    MARGIN,
    MARK,
    WIDTH,
    Figure,
    Mark,
    Markup,
    Span,
    colour,
    draw_across,
    draw_axis,
    draw_heading,
    draw_upright,
    element,
    find_limits,
    fix,
    join,
    label_ticks,
    scale_times,
    title,
    widen,
)
from torchmark.report.text.terminal import count
from torchmark.report.text.units import format_edges, format_level, format_range, format_time
from torchmark.stats.distribution import quantile

# Fewer samples than this are shown one by one: their histogram would look like more than is known.
FEW = 13
CONFIDENCE = 0.95
# What no clock gives, and would be too large to compute with.
ENDLESS_S = 1e100

HEADER, BARS, BELOW = 20.0, 40.0, 11.0


@dataclasses.dataclass(frozen=True)
class Strip:
    """The samples of one side in seconds per run, in whatever order, under a name."""

    name: str
    samples: Sequence[float]


class Drawer:
    """Draws one strip on an axis; `span` is None where there is none, because no strip has samples."""

    def __init__(self, strip: Strip, span: Span | None, ink: str) -> None:
        self._name, self._ink = strip.name, ink
        self._ordered = sort_samples(strip)
        self._span = span if self._ordered else None
        self._interval = find_median_interval(self._ordered, CONFIDENCE) if self._ordered else None
        self._before = 0 if span is None else sum(one < span.low for one in self._ordered)
        self._behind = 0 if span is None else sum(one > span.high for one in self._ordered)

    def describe(self) -> str:
        if not self._ordered:
            return f"{self._name}: no samples."
        facts = [f"median {format_time(quantile(self._ordered, 0.5))}"]
        if (found := self._interval) is not None:
            facts.append(f"{format_level(found.confidence)} interval {format_range(found.low, found.high)}")
        least, most = format_edges(self._ordered[0], self._ordered[-1])
        facts += [f"minimum {least}", f"maximum {most}", count(len(self._ordered), "sample")]
        if self._before or self._behind:
            facts.append(f"{self._before + self._behind} of them not on the axis")
        return f"{self._name}: {', '.join(facts)}."

    def draw(self, top: float, bars: int) -> Markup:
        """The strip from its top on, with so many bars all along the axis."""
        foot = top + HEADER + BARS
        return element(
            "g",
            title(self.describe()),
            draw_heading(self._name, self._summarise(), top + 12, fill=self._ink),
            draw_across(MARGIN, WIDTH - MARGIN, foot, stroke_opacity=0.4),
            *(() if self._span is None else self._draw_samples(self._span, foot, bars)),
        )

    def _summarise(self) -> str:
        """What stands beside the name; of samples that are not to be seen it tells at which end they would be."""
        if not self._ordered:
            return "no samples"
        facts = f"{format_time(quantile(self._ordered, 0.5))}, {count(len(self._ordered), 'sample')}"
        facts += f", ← {self._before} below" if self._before else ""
        return facts + (f", {self._behind} beyond →" if self._behind else "")

    def _draw_samples(self, span: Span, foot: float, bars: int) -> list[Markup]:
        shown = [one for one in self._ordered if span.has(one)]
        if len(self._ordered) < FEW:
            return [self._draw_dots(shown, span, foot), self._draw_statistics(span, foot)]
        return [self._draw_bars(shown, span, foot, bars), self._draw_statistics(span, foot)]

    def _draw_bars(self, shown: Sequence[float], span: Span, foot: float, bars: int) -> Markup:
        heights = [0] * bars
        for value in shown:
            share = (span.at(value) - span.left) / (span.right - span.left)
            heights[min(int(share * bars), bars - 1)] += 1
        step, tallest = (span.right - span.left) / bars, max(heights) or 1
        outline, level = f"M{fix(span.left)} {fix(foot)}", 0
        # One outline for all of them, and back to the line at the end.
        for i, height in enumerate([*heights, 0]):
            if height != level:
                outline += f"H{fix(span.left + i * step)}V{fix(foot - BARS * height / tallest)}"
                level = height
        return element("path", d=outline, fill=self._ink, fill_opacity=0.3, stroke=self._ink)

    def _draw_dots(self, shown: Sequence[float], span: Span, foot: float) -> Markup:
        strokes = "".join(f"M{fix(span.at(one))} {fix(foot - 12)}h0" for one in shown)
        return element("path", d=strokes, stroke=self._ink, stroke_width=9, stroke_linecap="round", stroke_opacity=0.5)

    def _draw_statistics(self, span: Span, foot: float) -> Markup:
        """The median through the bars; below them its interval, and the minimum."""
        parts = []
        if self._interval is not None:
            parts.append(draw_interval(span.at(self._interval.low), span.at(self._interval.high), foot + 6))
        if span.has(self._ordered[0]):
            parts.append(draw_minimum(span.at(self._ordered[0]), foot))
        return join([*parts, draw_median(span.at(quantile(self._ordered, 0.5)), foot - BARS, foot + 10)])


def sort_samples(strip: Strip) -> list[float]:
    """The samples that are times, ascending."""
    return sorted(one for one in strip.samples if abs(one) < ENDLESS_S)


def draw_median(x: float, top: float, bottom: float) -> Markup:
    return draw_upright(x, top, bottom, stroke_width=1.5)


def draw_interval(low: float, high: float, y: float) -> Markup:
    """A thick line, which is a dot where both ends are one."""
    return draw_across(low, high, y, stroke_width=4, stroke_linecap="round", stroke_opacity=0.6)


def draw_minimum(x: float, y: float) -> Markup:
    """A triangle whose point is at the value."""
    return element("path", d=f"M{fix(x)} {fix(y + 1)}l3.5 8h-7z")


# More bars than this are thinner than a hair; fewer than that show no shape.
MOST_BARS, FEWEST_BARS = 72, 12
GAP = 8.0

LEGEND: tuple[tuple[Mark, str], ...] = (
    (lambda x, y: draw_median(x + MARK / 2, y - 6, y + 6), "median"),
    (lambda x, y: draw_interval(x + 2, x + MARK - 2, y), "its interval"),
    (lambda x, y: draw_minimum(x + MARK / 2, y - 5), "minimum"),
)


def draw_distributions(strips: Sequence[Strip], *, name: str = "Distribution of the samples") -> Markup:
    """A strip for each side of a case, base first, all on one axis. `name` is what those hear who do not see it."""
    figure = Figure()
    groups = [sort_samples(strip) for strip in strips]
    limits = find_limits(groups)
    span = None if limits is None else Span(*widen(*limits), MARGIN, WIDTH - MARGIN)
    bars = 0 if span is None else _count_bars(groups, span)
    drawers = [Drawer(strip, span, colour(Side.HEAD if i else Side.BASE)) for i, strip in enumerate(strips)]
    for drawer in drawers:
        figure.add(drawer.draw(figure.height, bars), height=HEADER + BARS + BELOW + GAP)
    if span is not None:
        scale = scale_times(span.low, span.high)
        marks = label_ticks(span, scale.length_s, scale.unit)
        figure.add(draw_axis(span, figure.height, marks), height=AXIS_HEIGHT)
    figure.add_legend(LEGEND)
    return figure.close(name, " ".join(drawer.describe() for drawer in drawers) or "Nothing to show.")


def _count_bars(groups: Sequence[Sequence[float]], span: Span) -> int:
    """As many bars as the narrowest group needs by the rule of Freedman and Diaconis, within limits."""
    spreads = [(quantile(group, 0.75) - quantile(group, 0.25), len(group)) for group in groups if group]
    widths = [2 * spread / n ** (1 / 3) for spread, n in spreads if spread > 0]
    wanted = (span.high - span.low) / min(widths) if widths else MOST_BARS
    return max(FEWEST_BARS, math.ceil(min(wanted, MOST_BARS)))
