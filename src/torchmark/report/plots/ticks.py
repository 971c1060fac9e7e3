"""Where an axis has its marks: at multiples of 1, 2 or 5 times a power of ten, with just the decimals they need."""

from __future__ import annotations

import math
from typing import NamedTuple

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
