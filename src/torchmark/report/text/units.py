"""Units, significant figures and changes: where seconds and ratios become text."""

from __future__ import annotations

import math
from typing import NamedTuple

from torchmark.model.judgement import TimeEvidence

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
    """A time on its own, to three figures."""
    unit, scale = select_unit(t)
    value = t / scale
    return f"{value:.{max(3 - len(str(int(abs(value)))), 0)}f} {unit}"


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
    """Decimal places for a scaled number: two, or more where two would show nothing but zeros."""
    return 1 - math.floor(math.log10(abs(value))) if 0 < abs(value) < 0.1 else 2


def format_share_cell(share: float) -> str:
    """A share in at most five columns, unless it is enormous.

    >>> [format_share_cell(share) for share in (0.0, 0.00042, 0.0123, 0.42, 1e-9)]
    ['0%', '0.04%', '1.2%', '42%', '<.01%']
    """
    percent = share * 100
    if percent == 0 or percent >= 9.95:
        return f"{percent:.0f}%"
    if percent >= 0.095:
        return f"{percent:.1f}%"
    return f"{percent:.2f}%" if percent >= 0.005 else "<.01%"


def format_time_cell(seconds: float) -> str:
    """A time whose unit takes two columns, whatever it is."""
    number, unit = format_time(seconds).split(" ")
    return f"{number} {unit:<2}"


def format_allocations(number: float) -> str:
    """Allocations per run: whole, or with decimals where they are few and not whole.

    >>> format_allocations(3.0), format_allocations(2.97), format_allocations(1234.5)
    ('3', '2.97', '1,234')
    """
    return f"{number:,.0f}" if number >= 100 else f"{number:.2f}".removesuffix(".00")


def format_ratio(ratio: float) -> str:
    """A ratio to three figures, in which 1 has two decimals.

    >>> format_ratio(0.987), format_ratio(12.34), format_ratio(1234.5), format_ratio(0.0123)
    ('0.99', '12.3', '1234', '0.012')
    """
    if not math.isfinite(ratio) or ratio >= 100:
        return f"{ratio:.0f}"
    return f"{ratio:.2f}" if 0.1 <= ratio < 10 else f"{ratio:.1f}" if ratio >= 10 else f"{ratio:.2g}"


UNKNOWN = "?"
ENDLESS = "∞"
# What is smaller, as a share, would be shown as 0.00 %.
NOTHING = 5e-5
# What is larger, as a share, has more digits than anybody reads: a hundred thousand per cent.
ENORMOUS = 1e3
# The level of intervals of one side.
USUAL_LEVEL = 0.95
# From this percentage on, a decimal of a level matters.
LEAST_WITH_DECIMALS = 98
# Counts below this are shown with a decimal if they are not whole.
FEW = 10


def to_share(log_ratio: float) -> float:
    """How much more a log-ratio is, as a share; infinite where there is no number for it."""
    try:
        return math.expm1(log_ratio)
    except OverflowError:
        return math.inf


def find_bound(time: TimeEvidence) -> float:
    """The largest change, as a share, that the interval leaves room for in either direction."""
    return max(abs(to_share(time.low)), abs(to_share(time.high)))


def format_interval_cell(time: TimeEvidence) -> str:
    """The interval of a change, for a column: as ± if that gives the same ends as are shown elsewhere, or as its ends.

    Empty where too little was measured for an interval.
    """
    if not has_interval(time):
        return ""
    share, low, high = to_share(time.log_ratio), to_share(time.low), to_share(time.high)
    margin = format_magnitude_cell(max(high - share, share - low))
    middle, reach, least, most = map(
        _read, (format_change_cell(share), margin, format_change_cell(low), format_change_cell(high))
    )
    if math.isclose(middle - reach, least, abs_tol=1e-9) and math.isclose(middle + reach, most, abs_tol=1e-9):
        return f"±{margin}"
    return f"{format_change_cell(low)} to {format_change_cell(high)}"


def format_interval(time: TimeEvidence) -> str:
    if not has_interval(time):
        return "no interval: too few samples"
    return f"{format_change(to_share(time.low))} to {format_change(to_share(time.high))}"


def has_interval(time: TimeEvidence) -> bool:
    """Whether enough was measured to exclude anything."""
    return math.isfinite(time.low) or math.isfinite(time.high)


def _read(text: str) -> float:
    try:
        return float(text.removesuffix("%"))
    except ValueError:
        return math.nan


def format_level(confidence: float) -> str:
    percent = confidence * 100
    return f"{percent:.0f} %" if percent < LEAST_WITH_DECIMALS else f"{percent:.1f}".removesuffix(".0") + " %"


def explain_level(time: TimeEvidence) -> str:
    """Why an interval is less sure than 95 %; empty where it is not.

    Runs that were timed one after the other have an interval for each side, and both have to hold.
    """
    if time.layouts or time.confidence >= USUAL_LEVEL or not has_interval(time):
        return ""
    if time.confidence < 2 * USUAL_LEVEL - 1:
        return "there are too few samples for 95 %"
    return "it takes the 95 % interval of each side, and both have to hold"


def find_seconds(time: TimeEvidence) -> float:
    return time.base_s * to_share(time.log_ratio)


def format_magnitude_cell(share: float) -> str:
    """A share without its sign, for a column."""
    if not math.isfinite(share):
        return UNKNOWN if math.isnan(share) else ENDLESS
    return format_share_cell(abs(share)) if abs(share) < ENORMOUS else f"{abs(share) * 100:.0e}%"


def format_change_cell(share: float) -> str:
    """A share with its sign, for a column."""
    return "0%" if abs(share) < NOTHING else _sign(share) + format_magnitude_cell(share)


def format_share(share: float) -> str:
    """A share without its sign, for a sentence."""
    return format_magnitude_cell(share).replace("%", " %")


def format_change(share: float) -> str:
    """A share with its sign, for a sentence."""
    return format_change_cell(share).replace("%", " %")


def format_seconds(seconds: float) -> str:
    """A time without its sign, to two figures: it is an estimate."""
    if not math.isfinite(seconds):
        return UNKNOWN if math.isnan(seconds) else ENDLESS
    number, unit = format_time(float(f"{abs(seconds):.2g}")).split(" ")
    return f"{float(number):g} {unit}"


def format_seconds_change(seconds: float) -> str:
    text = format_seconds(seconds)
    return text if text.startswith("0 ") else _sign(seconds) + text


def format_duration(seconds: float) -> str:
    """A length of time as one speaks of it.

    >>> format_duration(0.4), format_duration(75), format_duration(3700), format_duration(200000)
    ('1 s', '75 s', '1 h 2 min', '2 d 7 h')
    """
    whole = max(round(seconds), 1)
    if whole < 100:
        return f"{whole} s"
    minutes = round(seconds / 60)
    if minutes < 60:
        return f"{minutes} min"
    hours, minutes = divmod(minutes, 60)
    if hours < 48:
        return f"{hours} h {minutes} min" if minutes else f"{hours} h"
    days, hours = divmod(hours, 24)
    return f"{days} d {hours} h" if hours else f"{days} d"


def format_delta(number: float) -> str:
    if not math.isfinite(number):
        return _sign(number) + (UNKNOWN if math.isnan(number) else ENDLESS)
    text = f"{abs(number):,.0f}" if abs(number) >= FEW else f"{abs(number):.1f}".removesuffix(".0")
    return text if text == "0" else _sign(number) + text


def format_allocation_delta(number: float) -> str:
    text = format_allocations(abs(number))
    return text if text == "0" else _sign(number) + text


def _sign(number: float) -> str:
    return "-" if number < 0 else "+" if number > 0 else ""
