"""Where to put the threshold between two values: at the roundest number there, as authors of kernels do."""

from __future__ import annotations

import math
from collections.abc import Iterator

# Digits that tell any two floats apart.
MOST_DIGITS = 17
# The least power of ten that floats have with all their digits.
LEAST_POWER = -307


def choose_threshold(lo: float, hi: float) -> float:
    """The roundest number t with lo <= t < hi: "above t" holds for `hi` and not for `lo`.

    Zero if it lies there. Else a power of two from 1 up, for that is where kernels change their ways. Else the number
    with the fewest significant digits. Of several, the one nearest to the geometric middle. Between integers it is one.

    >>> choose_threshold(900, 1100), choose_threshold(1100, 1300), choose_threshold(0.043, 0.071)
    (1024, 1200, 0.06)
    """
    assert lo < hi
    if lo <= 0 < hi:
        return 0
    sign = -1 if lo < 0 else 1
    middle = math.sqrt(abs(lo)) * math.sqrt(abs(hi))
    for candidates in _rounder_first(middle, lo, hi):
        there = [sign * candidate for candidate in candidates if lo <= sign * candidate < hi]
        if there:
            best = min(there, key=lambda t: abs(math.log(abs(t) / middle)))
            return int(best) if isinstance(lo, int) and isinstance(hi, int) else best
    return lo


def _rounder_first(middle: float, lo: float, hi: float) -> Iterator[tuple[float, ...]]:
    """Numbers next to the middle on both sides: powers of two, then numbers of one digit, of two, and so on."""
    if middle > 0:
        exponent = math.floor(math.log2(middle))
        # One more on each side: logarithms are rounded.
        yield tuple(2**e for e in range(exponent - 1, exponent + 3) if e >= 0)
        leading = math.floor(math.log10(middle))
        integers = isinstance(lo, int) and isinstance(hi, int)
        least = max(0 if integers else LEAST_POWER, leading - MOST_DIGITS + 1)
        for power in range(leading, least - 1, -1):
            below = math.floor(middle / 10.0**power)
            # From text, because 6 * 0.01 is not the float that is written 0.06.
            yield tuple(float(f"{n}e{power}") for n in (below - 1, below, below + 1, below + 2) if n > 0)


def count_digits(value: float) -> int:
    """How many significant digits a number needs; none for zero and powers of two, which come first.

    >>> count_digits(1024), count_digits(1200), count_digits(0.06), count_digits(1023)
    (0, 2, 1, 4)
    """
    if value == 0 or (abs(value) >= 1 and math.frexp(abs(value))[0] == 0.5):
        return 0
    # repr has the fewest digits that tell a float apart.
    mantissa = repr(float(abs(value))).split("e")[0]
    return len(mantissa.replace(".", "").strip("0"))
