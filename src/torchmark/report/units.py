"""Units and significant figures: the only place where seconds become something else."""

from __future__ import annotations

import math
from typing import NamedTuple

_UNITS = (("s", 1.0), ("ms", 1e-3), ("us", 1e-6), ("ns", 1e-9))
# Times are quotients of floats: a microsecond may come out a hair short of one. What is this close to a power of ten,
# as a share, counts as having reached it; single precision, which torch.utils.benchmark computes with, does the same.
HAIR = 5e-8
# Figures of a quotient that its own rounding, in the sixteenth, does not touch.
SAFE_FIGURES = 12
# Figures beyond three that a narrow range is shown with: clocks tell no more.
MOST_MORE_FIGURES = 3

_ENGLISH = {"ns": "nanosecond", "us": "microsecond", "ms": "millisecond", "s": "second"}


def format_size(size_bytes: int) -> str:
    """A size in bytes for people.

    >>> format_size(0), format_size(1536), format_size(5 * 1024**3)
    ('0 B', '1.5 KiB', '5.0 GiB')
    """
    if size_bytes < 1024:
        return f"{size_bytes} B"
    power = min((size_bytes.bit_length() - 1) // 10, 4)
    return f"{size_bytes / 1024**power:.1f} {'KMGT'[power - 1]}iB"


def select_unit(t: float) -> tuple[str, float]:
    """The unit in which `t` seconds read best, and its length in seconds; nanoseconds for all that is shorter.

    >>> select_unit(0.99)
    ('ms', 0.001)
    """
    magnitude = abs(t) * (1 + HAIR)
    return next(((unit, scale) for unit, scale in _UNITS if magnitude >= scale), _UNITS[-1])


def unit_to_english(u: str) -> str:
    """The name of a unit in full.

    >>> unit_to_english("us")
    'microsecond'
    """
    return _ENGLISH[u]


def trim_sigfig(x: float, n: int) -> float:
    """Round to `n` significant figures.

    >>> trim_sigfig(3.14159, 2)
    3.1
    """
    if n != int(n):
        # An AssertionError because scripts written for torch.utils.benchmark may catch it.
        raise AssertionError("Number of significant figures must be an integer")
    if x == 0 or not math.isfinite(x):
        return float(x)
    # Without its hair, what lies halfway is rounded to even, as it should be.
    plain = float(f"{x:.{max(SAFE_FIGURES, int(n))}g}")
    return round(plain, int(n) - count_integer_digits(abs(plain)))


def count_integer_digits(value: float) -> int:
    """Figures before the decimal point of a positive number; 0 or less for what is not above 1.

    >>> count_integer_digits(17.4), count_integer_digits(1.0), count_integer_digits(0.05)
    (2, 0, -1)
    """
    return math.ceil(math.log10(value * (1 - HAIR))) if value > 0 else 0


def format_time(t: float) -> str:
    """A time on its own, to three figures.

    >>> format_time(998e-9), format_time(1.9e-6), format_time(72.0)
    ('998 ns', '1.90 us', '72.0 s')
    """
    unit, scale = select_unit(t)
    value = t / scale
    figures_before_point = len(str(int(abs(value))))
    return f"{value:.{max(3 - figures_before_point, 0)}f} {unit}"


def format_edges(low: float, high: float) -> tuple[str, str]:
    """Both ends of a range, with as many figures as it takes to see how far they are apart.

    >>> format_edges(1.1902e-6, 1.2013e-6), format_edges(9e-8, 6.17e-6)
    (('1.190 us', '1.201 us'), ('90.0 ns', '6.17 us'))
    """
    if not 0 < low < high < 10 * low:
        return format_time(low), format_time(high)
    unit, scale = select_unit(high)
    least = max(3 - len(str(int(high / scale))), 0)
    decimals = min(max(1 - math.floor(math.log10((high - low) / scale)), least), least + MOST_MORE_FIGURES)
    return f"{low / scale:.{decimals}f} {unit}", f"{high / scale:.{decimals}f} {unit}"


def format_range(low: float, high: float) -> str:
    """A range of times.

    >>> format_range(1.1902e-6, 1.2013e-6), format_range(9e-8, 6.17e-6)
    ('1.190 to 1.201 us', '90.0 ns to 6.17 us')
    """
    first, last = format_edges(low, high)
    number, unit = first.split(" ")
    return f"{number if last.endswith(f' {unit}') else first} to {last}"


def format_deviation(mean: float, std: float) -> str:
    """A mean and how far samples are from it, to two figures of the latter.

    >>> format_deviation(1193.76e-9, 738.24e-9), format_deviation(12.3456e-6, 0.0123e-6)
    ('1.19 ± 0.74 us', '12.346 ± 0.012 us')
    """
    unit, scale = select_unit(mean)
    least = max(3 - len(str(int(abs(mean) / scale))), 0)
    digits = 1 - math.floor(math.log10(std / scale)) if std > 0 else least
    decimals = max(min(digits, least + MOST_MORE_FIGURES), 0)
    return f"{mean / scale:.{decimals}f} ± {std / scale:.{decimals}f} {unit}"


class Scale(NamedTuple):
    """How all times of one result are shown: in one unit, with the same decimals."""

    unit: str
    length_s: float
    decimals: int

    def show(self, t: float) -> str:
        """A time as a number in this unit."""
        return f"{t / self.length_s:.{self.decimals}f}"


def choose_scale(t: float) -> Scale:
    """The scale in which `t` reads best.

    >>> scale = choose_scale(1.5e-6)
    >>> scale.show(2e-6), scale.unit
    ('2.00', 'us')
    """
    unit, length_s = select_unit(t)
    return Scale(unit, length_s, decimals_for(t / length_s))


def decimals_for(value: float) -> int:
    """Decimal places for a scaled number: two, or more where two would show nothing but zeros.

    >>> decimals_for(12.3), decimals_for(0.0042)
    (2, 4)
    """
    if value == 0 or abs(value) >= 0.1 or not math.isfinite(value):
        return 2
    return 1 - math.floor(math.log10(abs(value)))


def show_share(share: float) -> str:
    """A share in at most five columns, unless it is enormous.

    >>> show_share(0.0), show_share(0.00042), show_share(0.0123), show_share(0.42), show_share(1e-9)
    ('0%', '0.04%', '1.2%', '42%', '<.01%')
    """
    percent = share * 100
    if percent == 0 or percent >= 9.95:
        return f"{percent:.0f}%"
    if percent >= 0.095:
        return f"{percent:.1f}%"
    return f"{percent:.2f}%" if percent >= 0.005 else "<.01%"


def show_time(seconds: float) -> str:
    """A time whose unit takes two columns, whatever it is."""
    number, unit = format_time(seconds).split(" ")
    return f"{number} {unit:<2}"


def show_allocations(number: float) -> str:
    """Allocations per run: whole, or with decimals where they are few and not whole.

    >>> show_allocations(3.0), show_allocations(2.97), show_allocations(1234.5)
    ('3', '2.97', '1,234')
    """
    return f"{number:,.0f}" if number >= 100 else f"{number:.2f}".removesuffix(".00")


def show_ratio(ratio: float) -> str:
    """A ratio to three figures, in which 1 has two decimals.

    >>> show_ratio(0.987), show_ratio(12.34), show_ratio(1234.5), show_ratio(0.0123)
    ('0.99', '12.3', '1234', '0.012')
    """
    if not math.isfinite(ratio) or ratio >= 100:
        return f"{ratio:.0f}"
    return f"{ratio:.2f}" if 0.1 <= ratio < 10 else f"{ratio:.1f}" if ratio >= 10 else f"{ratio:.2g}"
