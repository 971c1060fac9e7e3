"""From values to pixels, and the axis below a drawing."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from torchmark.report.plots.svg import SMALL, Markup, element, fix, join, label, measure_text
from torchmark.report.plots.ticks import Ticks, find_ticks
from torchmark.report.units import Scale, select_unit
from torchmark.stats.order import quantile

# Tukey's outer fences, in interquartile ranges: of a normal distribution two in a million lie outside.
FAR = 3.0
# No more than this part of a group is called far at either end: what happens more often is another mode.
RARE = 0.08
# Marks on an axis need room for their texts.
PIXELS_A_TICK = 56.0
# What is all alike gets an axis of so much around it, as a share.
AROUND = 0.01
# Less than this share apart, and below this size, floats run out between two of them.
CLOSE, TINY = 1e-9, 1e-290
# An axis that begins and ends at values needs a little air.
AIR = 0.03
# Lines that help the eye only.
FAINT = 0.25
AXIS_HEIGHT = 18.0


class Span(NamedTuple):
    """Which values lie between which pixels."""

    low: float
    high: float
    left: float
    right: float

    def at(self, value: float) -> float:
        """The pixel of a value; of one that is outside, the end it is nearest to.

        >>> Span(0.0, 10.0, 100.0, 200.0).at(5.0), Span(0.0, 10.0, 100.0, 200.0).at(1e300)
        (150.0, 200.0)
        """
        inner = min(max(value, self.low), self.high)
        # Halves, for the distance itself may be more than a number can be.
        share = (inner / 2 - self.low / 2) / (self.high / 2 - self.low / 2)
        return self.left + share * (self.right - self.left)

    def has(self, value: float) -> bool:
        """Whether it is not outside."""
        return self.low <= value <= self.high


def find_limits(groups: Iterable[Sequence[float]], rare: float = RARE) -> tuple[float, float] | None:
    """From where to where most values of all groups lie: nothing is left out but what is far from its own group.

    At either end of a group no more than the part `rare` is left out.

    >>> find_limits([[1.0, 2.0, 3.0], [2.0, 2.5, 3.0, 3.5, 4.0, 900.0]])
    (1.0, 4.0)
    >>> find_limits([[]]) is None
    True
    """
    kept = [value for group in groups if group for value in _drop_far(sorted(group), rare)]
    return (min(kept), max(kept)) if kept else None


def _drop_far(ordered: Sequence[float], rare: float) -> list[float]:
    p25, p75 = quantile(ordered, 0.25), quantile(ordered, 0.75)
    reach = FAR * (p75 - p25)
    low = min(p25 - reach, quantile(ordered, rare))
    high = max(p75 + reach, quantile(ordered, 1 - rare))
    # Where most values are the same, any other would be far.
    return [value for value in ordered if not reach or low <= value <= high]


def widen(low: float, high: float, air: float = AIR) -> tuple[float, float]:
    """Limits with air around them; different ones, also where both are the same.

    >>> widen(1.0, 1.0), widen(0.0, 0.0)
    ((0.99, 1.01), (-0.01, 0.01))
    """
    size = max(abs(low), abs(high))
    reach = air * (high - low)
    if high - low <= max(CLOSE * size, TINY):
        reach = AROUND * (size if size > TINY else 1.0)
    wide = low - reach, high + reach
    return wide if all(map(math.isfinite, wide)) else (low, high)


def scale_times(low: float, high: float) -> Scale:
    """The unit of an axis of seconds: the one in which its larger end reads best."""
    unit, length_s = select_unit(max(abs(low), abs(high)))
    return Scale(unit, length_s, 0)


def mark_ticks(span: Span, length: float, unit: str, *, signed: bool = False) -> list[tuple[float, str]]:
    """Pixels and texts of the marks on an axis whose unit has this length; the last one tells the unit."""
    ticks = find_ticks(span.low / length, span.high / length, max(2, int((span.right - span.left) / PIXELS_A_TICK)))
    texts = [_show_tick(ticks, value, signed) for value in ticks.values]
    if texts:
        texts[-1] = f"{texts[-1]} {unit}".strip()
    return [(span.at(value * length), text) for value, text in zip(ticks.values, texts, strict=True)]


def _show_tick(ticks: Ticks, value: float, signed: bool) -> str:
    return ("+" if signed and value > 0 else "") + ticks.show(value).replace("-", "−")


def draw_axis(span: Span, y: float, marks: Sequence[tuple[float, str]], width: float, *, above: bool = False) -> Markup:
    """A line at `y`, with marks and texts below it or above it; texts stay within the drawing."""
    end, text_y = (-4.0, y - 6.0) if above else (4.0, y + 14.0)
    strokes = f"M{fix(span.left)} {fix(y)}H{fix(span.right)}" + "".join(
        f"M{fix(x)} {fix(y)}v{fix(end)}" for x, _ in marks
    )
    texts = []
    for x, text in marks:
        half = measure_text(text, SMALL) / 2
        texts.append(label(min(max(x, half), width - half), text_y, text, size=SMALL, anchor="middle", opacity=0.8))
    line = element("path", d=strokes, fill="none", stroke="currentColor", stroke_opacity=0.5)
    return join([line, *texts])
