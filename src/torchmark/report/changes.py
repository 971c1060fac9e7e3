"""Changes as text: with a sign, and with as many figures as a person can use."""

from __future__ import annotations

import math

from torchmark.model.judgement import TimeEvidence
from torchmark.report.units import format_time, show_allocations, show_share

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
    """How much more a log-ratio is, as a share; infinite where there is no number for it.

    >>> round(to_share(0.0198), 3), to_share(1e6)
    (0.02, inf)
    """
    try:
        return math.expm1(log_ratio)
    except OverflowError:
        return math.inf


def find_bound(time: TimeEvidence) -> float:
    """The largest change, as a share, that the interval leaves room for in either direction."""
    return max(abs(to_share(time.low)), abs(to_share(time.high)))


def show_interval(time: TimeEvidence) -> str:
    """The interval of a change, for a column: as ± if that gives the same ends as are shown elsewhere, or as its ends.

    Empty where too little was measured for an interval.
    """
    if not has_interval(time):
        return ""
    share, low, high = to_share(time.log_ratio), to_share(time.low), to_share(time.high)
    margin = show_magnitude(max(high - share, share - low))
    middle, reach, least, most = map(_read, (show_change(share), margin, show_change(low), show_change(high)))
    if math.isclose(middle - reach, least, abs_tol=1e-9) and math.isclose(middle + reach, most, abs_tol=1e-9):
        return f"±{margin}"
    return f"{show_change(low)} to {show_change(high)}"


def word_interval(time: TimeEvidence) -> str:
    """The ends of the interval of a change, for a sentence."""
    if not has_interval(time):
        return "no interval: too few samples"
    return f"{word_change(to_share(time.low))} to {word_change(to_share(time.high))}"


def has_interval(time: TimeEvidence) -> bool:
    """Whether enough was measured to exclude anything."""
    return math.isfinite(time.low) or math.isfinite(time.high)


def _read(text: str) -> float:
    """The number that is shown; NaN where it is none."""
    try:
        return float(text.removesuffix("%"))
    except ValueError:
        return math.nan


def word_level(confidence: float) -> str:
    """How sure an interval is.

    >>> word_level(0.911302), word_level(0.95), word_level(0.9875)
    ('91 %', '95 %', '98.8 %')
    """
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
    """How much longer a run takes."""
    return time.base_s * to_share(time.log_ratio)


def show_magnitude(share: float) -> str:
    """A share without its sign, for a column.

    >>> show_magnitude(-0.0193), show_magnitude(2.5e9), show_magnitude(math.inf)
    ('1.9%', '2e+11%', '∞')
    """
    if not math.isfinite(share):
        return UNKNOWN if math.isnan(share) else ENDLESS
    return show_share(abs(share)) if abs(share) < ENORMOUS else f"{abs(share) * 100:.0e}%"


def show_change(share: float) -> str:
    """A share with its sign, for a column.

    >>> show_change(0.0193), show_change(-0.41), show_change(-1e-7)
    ('+1.9%', '-41%', '0%')
    """
    return "0%" if abs(share) < NOTHING else _sign(share) + show_magnitude(share)


def word_share(share: float) -> str:
    """A share without its sign, for a sentence.

    >>> word_share(-0.0193)
    '1.9 %'
    """
    return show_magnitude(share).replace("%", " %")


def word_change(share: float) -> str:
    """A share with its sign, for a sentence.

    >>> word_change(0.41)
    '+41 %'
    """
    return show_change(share).replace("%", " %")


def word_seconds(seconds: float) -> str:
    """A time without its sign, to two figures: it is an estimate.

    >>> word_seconds(-29.3e-9), word_seconds(1.234e-6), word_seconds(0.0)
    ('29 ns', '1.2 us', '0 ns')
    """
    if not math.isfinite(seconds):
        return UNKNOWN if math.isnan(seconds) else ENDLESS
    number, unit = format_time(float(f"{abs(seconds):.2g}")).split(" ")
    return f"{float(number):g} {unit}"


def show_seconds(seconds: float) -> str:
    """A change of time with its sign.

    >>> show_seconds(29.3e-9), show_seconds(-1.234e-3)
    ('+29 ns', '-1.2 ms')
    """
    text = word_seconds(seconds)
    return text if text.startswith("0 ") else _sign(seconds) + text


def show_delta(number: float) -> str:
    """A change of a count with its sign.

    >>> show_delta(3712.4), show_delta(-0.3), show_delta(2.0), show_delta(0.0)
    ('+3,712', '-0.3', '+2', '0')
    """
    if not math.isfinite(number):
        return _sign(number) + (UNKNOWN if math.isnan(number) else ENDLESS)
    text = f"{abs(number):,.0f}" if abs(number) >= FEW else f"{abs(number):.1f}".removesuffix(".0")
    return text if text == "0" else _sign(number) + text


def show_allocation_delta(number: float) -> str:
    """A change of allocations with its sign.

    >>> show_allocation_delta(2.0), show_allocation_delta(-0.25), show_allocation_delta(0.0)
    ('+2', '-0.25', '0')
    """
    text = show_allocations(abs(number))
    return text if text == "0" else _sign(number) + text


def _sign(number: float) -> str:
    return "-" if number < 0 else "+" if number > 0 else ""
