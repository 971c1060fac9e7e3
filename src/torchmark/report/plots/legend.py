"""What marks and colours mean, in as many lines as it takes."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from torchmark.report.plots.svg import SMALL, Markup, fit, join, label, measure_text

# A mark, and the room between it and its text, and between two entries.
MARK, GAP, APART = 14.0, 5.0, 12.0
LINE = 17.0

Mark = Callable[[float, float], Markup]
"""Draws a mark from this place on, `MARK` wide, around this height."""


def draw_legend(entries: Iterable[tuple[Mark, str]], y: float, left: float, right: float) -> tuple[Markup, float]:
    """Marks with their texts from `y` on down, and where that ends."""
    parts: list[Markup] = []
    x, line = left, y + LINE / 2
    for mark, text in entries:
        text = fit(text, right - left - MARK - GAP, SMALL)
        taken = MARK + GAP + measure_text(text, SMALL)
        if x > left and x + taken > right:
            x, line = left, line + LINE
        parts += [mark(x, line), label(x + MARK + GAP, line + 4, text, size=SMALL, opacity=0.8)]
        x += taken + APART
    return join(parts), line + LINE / 2 if parts else y
