"""Writing SVG by hand: elements, texts that are always escaped and fit their room, and the frame of a drawing.

`Markup` is text that is ready to be written. Only this module makes it from other text, so nothing is left unescaped.
"""

from __future__ import annotations

import html
import math
import unicodedata
from collections.abc import Iterable
from typing import NewType

from torchmark.report.cells import ELLIPSIS
from torchmark.report.plots.palette import style_sheet
from torchmark.report.printable import printable

Markup = NewType("Markup", str)

NOTHING = Markup("")
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
    """All of them, one behind the other."""
    return Markup("".join(parts))


def title(text: str) -> Markup:
    """What is shown when somebody points at the element around it."""
    return element("title", write(text))


def label(
    x: float, y: float, text: str, *, size: float = SIZE, anchor: str | None = None, opacity: float | None = None,
    weight: str | None = None, fill: str | None = None,
) -> Markup:  # fmt: skip
    """A text whose line is at `y`; `anchor` is "middle" or "end" where it does not begin at `x`."""
    size_told = None if size == SIZE else size
    return element(
        "text", write(text), x=x, y=y, font_size=size_told, text_anchor=anchor, opacity=opacity, font_weight=weight,
        fill=fill,
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


def draw_frame(width: float, height: float, name: str, description: str, *body: Markup) -> Markup:
    """A drawing of this size, and what it shows in words for those who cannot see it."""
    told = f"{name}. {description}" if description else name
    return element(
        "svg", title(name), *([element("desc", write(description))] if description else []), *body,
        xmlns="http://www.w3.org/2000/svg", viewBox=f"0 0 {fix(width)} {fix(height)}", width=width, height=height,
        role="img", aria_label=told, font_family=FONT, font_size=SIZE, fill="currentColor",
        style="max-width:100%;height:auto",
    )  # fmt: skip


def stand_alone(drawing: Markup) -> Markup:
    """The same as a file of its own, with its colours in it.

    >>> stand_alone(draw_frame(10, 10, "A square", "")).count("<style>")
    1
    """
    start, middle, rest = drawing.partition(">")
    style = f"<style>{style_sheet()}svg{{color:var(--tm-ink);background:var(--tm-ground)}}</style>"
    return Markup(f"{start}{middle}{style}{rest}\n")
