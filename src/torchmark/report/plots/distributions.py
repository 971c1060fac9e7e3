"""How samples are distributed: one strip below the other for the sides of a case, on one axis, and a grid of cases."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from torchmark.model.judgement import Side
from torchmark.report.plots.axes import AXIS_HEIGHT, Span, draw_axis, find_limits, mark_ticks, scale_times, widen
from torchmark.report.plots.legend import MARK, Mark, draw_legend
from torchmark.report.plots.palette import colour
from torchmark.report.plots.strips import (
    BARS,
    BELOW,
    HEADER,
    MARGIN,
    Drawer,
    Strip,
    draw_interval,
    draw_median,
    draw_minimum,
    sort_samples,
)
from torchmark.report.plots.svg import NOTHING, WIDTH, Markup, draw_frame, element, fit, fix, join, label
from torchmark.stats.order import quantile

# More bars than this are thinner than a hair; fewer than that show no shape.
MOST_BARS, FEWEST_BARS = 72, 12
GAP = 8.0

LEGEND: tuple[tuple[Mark, str], ...] = (
    (lambda x, y: draw_median(x + MARK / 2, y - 6, y + 6), "median"),
    (lambda x, y: draw_interval(x + 2, x + MARK - 2, y), "its interval"),
    (lambda x, y: draw_minimum(x + MARK / 2, y - 5), "minimum"),
)


def draw_distributions(
    strips: Sequence[Strip], *, name: str = "Distribution of the samples", width: float = WIDTH, legend: bool = True
) -> Markup:
    """One case: a strip for each of its sides, all on one axis. `name` is what those hear who do not see it."""
    panel = _draw_panel(strips, width)
    key, height = NOTHING, panel.height
    if legend:
        key, height = draw_legend(LEGEND, height, MARGIN, width - MARGIN)
    return draw_frame(width, height, name, panel.words, panel.markup, key)


def draw_distribution_grid(
    cases: Sequence[tuple[str, Sequence[Strip]]],
    *,
    name: str = "Distributions of the samples",
    columns: int = 3,
    width: float = WIDTH,
) -> Markup:
    """Many cases side by side, each under its name and on its own axis, `width` pixels a case."""
    columns = max(1, min(columns, len(cases)))
    panels = [_draw_panel(strips, width, text) for text, strips in cases]
    parts, y = [], 0.0
    for first in range(0, len(panels), columns):
        row = panels[first : first + columns]
        for i, panel in enumerate(row):
            parts.append(element("g", panel.markup, transform=f"translate({fix(i * width)} {fix(y)})"))
        y += max(panel.height for panel in row) + GAP
    key, height = draw_legend(LEGEND, y, MARGIN, columns * width - MARGIN)
    words = " ".join(f"{text}: {panel.words}" for (text, _), panel in zip(cases, panels, strict=True))
    return draw_frame(columns * width, height, name, words, *parts, key)


class _Panel(NamedTuple):
    """The strips of one case, from the top on: how high that is, and what it shows in words."""

    markup: Markup
    height: float
    words: str


def _draw_panel(strips: Sequence[Strip], width: float, heading: str = "") -> _Panel:
    groups = [sort_samples(strip) for strip in strips]
    limits = find_limits(groups)
    span = None if limits is None else Span(*widen(*limits), MARGIN, width - MARGIN)
    bars = 0 if span is None else _count_bars(groups, span)
    inks = [strip.colour or colour(Side.HEAD if i else Side.BASE) for i, strip in enumerate(strips)]
    drawers = [Drawer(strip, span, ink) for strip, ink in zip(strips, inks, strict=True)]
    parts, y = [], 0.0
    if heading:
        y += HEADER
        parts.append(label(MARGIN, y - 5, fit(heading, width - 2 * MARGIN, bold=True), weight="600"))
    for drawer in drawers:
        parts.append(drawer.draw(y, bars, width))
        y += HEADER + BARS + BELOW + GAP
    if span is not None:
        scale = scale_times(span.low, span.high)
        parts.append(draw_axis(span, y, mark_ticks(span, scale.length_s, scale.unit), width))
        y += AXIS_HEIGHT
    words = " ".join(drawer.describe() for drawer in drawers) or "Nothing to show."
    return _Panel(join(parts), y, words)


def _count_bars(groups: Sequence[Sequence[float]], span: Span) -> int:
    """As many bars as the narrowest group needs by the rule of Freedman and Diaconis, within limits."""
    spreads = [(quantile(group, 0.75) - quantile(group, 0.25), len(group)) for group in groups if group]
    widths = [2 * spread / n ** (1 / 3) for spread, n in spreads if spread > 0]
    wanted = (span.high - span.low) / min(widths) if widths else MOST_BARS
    return max(FEWEST_BARS, math.ceil(min(wanted, MOST_BARS)))
