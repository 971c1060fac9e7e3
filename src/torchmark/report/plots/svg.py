"""Pieces of SVG: elements, text, colours for light and dark pages, legends, and axes with round values."""

from __future__ import annotations

import html
import math
import re
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple, NewType

from torchmark.analysis.verdict.explain import STAGES
from torchmark.model.judgement import Side, Verdict
from torchmark.report.text.terminal import ELLIPSIS, printable
from torchmark.report.text.units import Scale, select_unit
from torchmark.stats.distribution import quantile

PREFIX = "--tm-"


class Shade(NamedTuple):
    """One colour: on a light ground, on a dark one, and where nobody knows what the ground is."""

    light: str
    dark: str
    either: str


# As text they have a contrast of at least 4.5 to their grounds; the last of three has 3 to white and to black.
GREY = Shade("#6a717b", "#969eaa", "#7d848e")
VERDICTS = {
    Verdict.SLOWER: Shade("#9e1b12", "#f9703e", "#d9562b"),
    Verdict.FASTER: Shade("#1a5fc0", "#5aa2ff", "#3f86d8"),
    Verdict.SAME: GREY,
    Verdict.UNDECIDED: Shade("#8d6c00", "#f0cf6a", "#a97f1a"),
    Verdict.FAILED: Shade("#4d0a3a", "#ffb0e0", "#c04a8a"),
}
SIDES = {Side.BASE: GREY, Side.HEAD: Shade("#6d3fc0", "#b794f6", "#8d66d9")}

# Neighbours in a bar differ most. On their grounds they have a contrast of at least 3.
_STAGE_SHADES = (
    Shade("#2f2899", "#7d709b", "#6a5fb0"),
    Shade("#4071a7", "#5cc1fc", "#4a8ac4"),
    Shade("#f36865", "#d04466", "#e0555f"),
    Shade("#868af7", "#7a7be2", "#8083ee"),
    Shade("#a99511", "#f1b027", "#a99511"),
    Shade("#7d470a", "#c36e38", "#a5631f"),
    Shade("#bc546c", "#d899b2", "#bc546c"),
    Shade("#0b5a2b", "#94dc79", "#3f8f4f"),
    Shade("#33a2b2", "#1fe3ee", "#2f9aaa"),
    Shade("#8b9097", "#f1f4f9", "#84898f"),
)
STAGE_SHADES = dict(zip(STAGES, _STAGE_SHADES, strict=True))

# The grounds that all of this is meant for. Pages that use the style sheet use them too.
GROUND = Shade("#ffffff", "#15181d", "transparent")
INK = Shade("#1b1f24", "#e6e8eb", "currentColor")


def _name(text: str) -> str:
    """A text as a part of a CSS name.

    >>> _name("__torch_function__"), _name("argument parsing")
    ('torch-function', 'argument-parsing')
    """
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")


_SHADES = {
    "ground": GROUND,
    "ink": INK,
    **{verdict.value: shade for verdict, shade in VERDICTS.items()},
    **{side.value: shade for side, shade in SIDES.items()},
    **{f"stage-{_name(stage)}": shade for stage, shade in STAGE_SHADES.items()},
}


def colour(of: Verdict | Side) -> str:
    """The colour of a verdict or of a side, as a CSS value.

    >>> colour(Side.HEAD)
    'var(--tm-head,#8d66d9)'
    """
    return _format_attribute(of.value)


def stage_colour(stage: str) -> str:
    """The colour of a stage, as a CSS value; of one that is not known, that of all others.

    >>> stage_colour("kernel")
    'var(--tm-stage-kernel,#3f8f4f)'
    """
    return _format_attribute(f"stage-{_name(stage if stage in STAGE_SHADES else STAGES[-1])}")


def _format_attribute(name: str) -> str:
    return f"var({PREFIX}{name},{_SHADES[name].either})"


def style_sheet() -> str:
    """All colours as custom properties of a page, `--tm-ground` and `--tm-ink` among them.

    What is dark on a screen is light on paper.
    """
    light = "".join(f"{PREFIX}{name}:{shade.light};" for name, shade in _SHADES.items())
    dark = "".join(f"{PREFIX}{name}:{shade.dark};" for name, shade in _SHADES.items())
    return f":root{{color-scheme:light dark;{light}}}@media screen and (prefers-color-scheme:dark){{:root{{{dark}}}}}"


Markup = NewType("Markup", str)

# All drawings are as wide as a telephone shows them in full size; pages put several side by side.
WIDTH = 360.0
# Sizes of letters in pixels, and of those of an axis.
SIZE = 12.0
SMALL = 11.0
FONT = "system-ui,sans-serif"

# So many times as wide are bold letters.
BOLD = 1.13

# Widths of letters in sizes of the font, those of DejaVu Sans rounded up. No other font that browsers fall back to is
# wider.
_NARROW, _COMMON, _BROAD, _SQUARE = 0.42, 0.65, 0.8, 1.0
_WIDTHS = {
    **dict.fromkeys("fijlrtI.,:;'|!()[]{}/\\ ·-", _NARROW),
    **dict.fromkeys("ABCDEFGHJKLNOPQRSTUVXYZw&#~<>=+", _BROAD),
    **dict.fromkeys("mMW%@…—→←↑↓±≥≤", _SQUARE),
}


def fix(number: float) -> str:
    """A coordinate as short as a tenth of a pixel allows.

    >>> fix(12.04), fix(-0.01), fix(3.26)
    ('12', '0', '3.3')
    """
    assert math.isfinite(number)
    text = f"{number:.1f}".removesuffix(".0")
    return "0" if text == "-0" else text


def write(text: str) -> Markup:
    """A text, escaped; what cannot be seen, or XML cannot have, becomes a blank.

    >>> write("a < b\\x00")
    'a &lt; b '
    """
    return Markup(html.escape(printable(text)))


def element(tag: str, *children: Markup, **attributes: str | float | None) -> Markup:
    """An element. Of names of attributes `_` is written as `-`; those that are None are left out.

    >>> element("path", element("title", write("a & b")), d="M0 0h9", stroke_width=2, opacity=None)
    '<path d="M0 0h9" stroke-width="2"><title>a &amp; b</title></path>'
    """
    spelt = "".join(
        f' {name.replace("_", "-")}="{write(value) if isinstance(value, str) else fix(value)}"'
        for name, value in attributes.items()
        if value is not None
    )
    return Markup(f"<{tag}{spelt}>{''.join(children)}</{tag}>" if children else f"<{tag}{spelt}/>")


def join(parts: Iterable[Markup]) -> Markup:
    return Markup("".join(parts))


def title(text: str) -> Markup:
    """What is shown when somebody points at the element around it."""
    return element("title", write(text))


def label(
    x: float, y: float, text: str, *, size: float = SIZE, anchor: str | None = None, opacity: float | None = None,
    weight: str | None = None, fill: str | None = None,
) -> Markup:  # fmt: skip
    """A text whose line is at `y`; `anchor` is "middle" or "end" where it does not begin at `x`."""
    return element(
        "text", write(text), x=x, y=y, font_size=None if size == SIZE else size, text_anchor=anchor, opacity=opacity,
        font_weight=weight, fill=fill,
    )  # fmt: skip


def measure_text(text: str, size: float = SIZE) -> float:
    """How many pixels a text takes at most.

    >>> measure_text("im"), measure_text("加算") > measure_text("ab")
    (17.04, True)
    """
    return size * sum(map(_measure_letter, printable(text)))


def _measure_letter(letter: str) -> float:
    if letter.isascii() or letter in _WIDTHS:
        return _WIDTHS.get(letter, _COMMON)
    if unicodedata.combining(letter):
        return 0.0
    # Pictures are wider than they are high.
    return 1.4 if unicodedata.east_asian_width(letter) in "WF" or ord(letter) > 0xFFFF else _SQUARE


def fit(text: str, room: float, size: float = SIZE, *, bold: bool = False) -> str:
    """A text as far as there is room for it, with dots where its end is missing.

    >>> fit("transpose", 40.0), fit("add", 40.0)
    ('tran…', 'add')
    """
    text, size = printable(text), size * (BOLD if bold else 1.0)
    if measure_text(text, size) <= room:
        return text
    left = room - size * _SQUARE
    for end, letter in enumerate(text):
        left -= size * _measure_letter(letter)
        if left < 0:
            return text[:end].rstrip() + ELLIPSIS if end else ""
    return text


# Room at both sides of what is drawn.
MARGIN = 8.0


class Figure:
    """A drawing that grows downwards: its parts, and the height that they reach."""

    def __init__(self) -> None:
        self.height = 0.0
        self._parts: list[Markup] = []

    def add(self, *parts: Markup, height: float = 0.0) -> None:
        """Put these into the drawing, which is higher by this afterwards."""
        self._parts += parts
        self.height += height

    def add_heading(self, text: str, aside: str, y: float, *, apart: float = SIZE, fill: str | None = None) -> None:
        self.add(draw_heading(text, aside, y, apart=apart, fill=fill))

    def add_legend(self, entries: Iterable[tuple[Mark, str]]) -> None:
        parts: list[Markup] = []
        left, right = MARGIN, WIDTH - MARGIN
        x, line = left, self.height + LINE / 2
        for mark, text in entries:
            text = fit(text, right - left - MARK - GAP, SMALL)
            taken = MARK + GAP + measure_text(text, SMALL)
            if x > left and x + taken > right:
                x, line = left, line + LINE
            parts += [mark(x, line), label(x + MARK + GAP, line + 4, text, size=SMALL, opacity=0.8)]
            x += taken + APART
        if parts:
            self.add(*parts)
            self.height = line + LINE / 2

    def close(self, name: str, description: str) -> Markup:
        """The whole drawing; name and description are for those who cannot see it."""
        told = f"{name}. {description}" if description else name
        return element(
            "svg", title(name), *([element("desc", write(description))] if description else []), *self._parts,
            xmlns="http://www.w3.org/2000/svg", viewBox=f"0 0 {fix(WIDTH)} {fix(self.height)}",
            width=WIDTH, height=self.height, role="img", aria_label=told, font_family=FONT, font_size=SIZE,
            fill="currentColor", style="max-width:100%;height:auto",
        )  # fmt: skip


def draw_heading(text: str, aside: str, y: float, *, apart: float = SIZE, fill: str | None = None) -> Markup:
    """A bold text at the left, cut to the room that a small one at the right end leaves."""
    room = WIDTH - 2 * MARGIN - measure_text(aside, SMALL) - apart
    return join(
        [
            label(MARGIN, y, fit(text, room, bold=True), weight="600", fill=fill),
            label(WIDTH - MARGIN, y, aside, size=SMALL, anchor="end", opacity=0.8),
        ]
    )


def draw_across(left: float, right: float, y: float, **attributes: str | float | None) -> Markup:
    """A horizontal line, of the text's colour unless another `stroke` is given."""
    return element("path", d=f"M{fix(left)} {fix(y)}H{fix(right)}", **{"stroke": "currentColor", **attributes})


def draw_upright(x: float, top: float, bottom: float, **attributes: str | float | None) -> Markup:
    """A vertical line, of the text's colour unless another `stroke` is given."""
    return element("path", d=f"M{fix(x)} {fix(top)}V{fix(bottom)}", **{"stroke": "currentColor", **attributes})


# A mark, and the room between it and its text, and between two entries.
MARK, GAP, APART = 14.0, 5.0, 12.0
LINE = 17.0

Mark = Callable[[float, float], Markup]
"""Draws a mark from this place on, `MARK` wide, around this height."""


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
    return tuple(dict.fromkeys(_scale(number * factor, exponent) for number in range(first, last + 1)))


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
    is_close = high - low <= max(CLOSE * size, TINY)
    reach = AROUND * (size if size > TINY else 1.0) if is_close else air * (high - low)
    wide = low - reach, high + reach
    return wide if all(map(math.isfinite, wide)) else (low, high)


def scale_times(low: float, high: float) -> Scale:
    """The unit of an axis of seconds: the one in which its larger end reads best."""
    unit, length_s = select_unit(max(abs(low), abs(high)))
    return Scale(unit, length_s, 0)


def label_ticks(span: Span, length: float, unit: str, *, signed: bool = False) -> list[tuple[float, str]]:
    """Pixels and texts of the marks on an axis whose unit has this length; the last one tells the unit."""
    ticks = find_ticks(span.low / length, span.high / length, max(2, int((span.right - span.left) / PIXELS_A_TICK)))
    texts = [_format_tick(ticks, value, signed) for value in ticks.values]
    if texts:
        texts[-1] = f"{texts[-1]} {unit}".strip()
    return [(span.at(value * length), text) for value, text in zip(ticks.values, texts, strict=True)]


def _format_tick(ticks: Ticks, value: float, signed: bool) -> str:
    return ("+" if signed and value > 0 else "") + ticks.show(value).replace("-", "−")


def draw_axis(span: Span, y: float, marks: Sequence[tuple[float, str]], *, above: bool = False) -> Markup:
    """A line at `y`, with marks and texts below it or above it; texts stay within the drawing."""
    end, text_y = (-4.0, y - 6.0) if above else (4.0, y + 14.0)
    strokes = f"M{fix(span.left)} {fix(y)}H{fix(span.right)}" + "".join(
        f"M{fix(x)} {fix(y)}v{fix(end)}" for x, _ in marks
    )
    texts = []
    for x, text in marks:
        half = measure_text(text, SMALL) / 2
        texts.append(label(min(max(x, half), WIDTH - half), text_y, text, size=SMALL, anchor="middle", opacity=0.8))
    return join([element("path", d=strokes, fill="none", stroke="currentColor", stroke_opacity=0.5), *texts])
