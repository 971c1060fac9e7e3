"""Axes of drawings, and the round values that are marked on them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from torchmark.report.plots.svg import SMALL, Markup, element, fix, join, label, measure_text
from torchmark.report.text.units import Scale, select_unit
from torchmark.stats.order import quantile

# The second factor of a step. The last one is the first of the next power.
_FACTORS = (1, 2, 5, 10)
# From here on numbers are written with a power of ten, and likewise steps below its inverse.
ENORMOUS = 1e7
# Figures of a number that is written with a power of ten.
FIGURES = 4


class Ticks(NamedTuple):
    """The values that are marked, ascending, and how far apart they are."""

    values: tuple[float, ...]
    step: float

    def show(self, value: float) -> str:
        """One of them as a text.

        >>> find_ticks(0.0, 1.0, 5).show(0.4), find_ticks(0.0, 900.0, 4).show(500.0)
        ('0.4', '500')
        """
        largest = max(map(abs, self.values), default=0.0)
        if largest >= ENORMOUS or self.step < 1 / ENORMOUS:
            return f"{value:.{FIGURES}g}"
        return f"{value:,.{max(0, -_exponent(self.step))}f}"


def find_ticks(low: float, high: float, most: int = 5) -> Ticks:
    """Marks from `low` to `high`, both finite, as many as there may be; one where both are the same.

    >>> find_ticks(0.0, 1.0, 6).values
    (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)
    >>> find_ticks(-3.2, 4.1, 4).values
    (-2.0, 0.0, 2.0, 4.0)
    """
    assert math.isfinite(low)
    assert math.isfinite(high)
    # Halves, for the distance itself may be more than a number can be.
    half = high / 2 - low / 2
    if half <= 0:
        return Ticks((low,), abs(low) or 1.0)
    exponent = _exponent(half) - 2
    while True:
        for factor in _FACTORS:
            values = _list_multiples(low, high, factor, exponent, most)
            if values is not None:
                return Ticks(values, _scale(factor, exponent))
        exponent += 1


def _exponent(step: float) -> int:
    """The power of ten of a number's first figure."""
    return math.floor(math.log10(step) + 1e-9)


def _scale(number: int, exponent: int) -> float:
    """A number with its power of ten, to the last bit: 3 tenths are 0.3."""
    try:
        return float(f"{number}e{exponent}")
    except OverflowError:  # no float is as large
        return math.inf


def _list_multiples(low: float, high: float, factor: int, exponent: int, most: int) -> tuple[float, ...] | None:
    """The multiples of a step within the limits; None if that is more than so many, or if there is no such step."""
    step = _scale(factor, exponent)
    if not step or high / step - low / step > most:
        return None
    # What is a hair outside by rounding is within.
    hair = 1e-9
    first, last = math.ceil(low / step - hair), math.floor(high / step + hair)
    if last - first >= most:
        return None
    values = dict.fromkeys(_scale(number * factor, exponent) for number in range(first, last + 1))
    return tuple(values)


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
