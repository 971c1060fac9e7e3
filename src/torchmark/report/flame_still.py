"""The still picture of a flame graph, as SVG that is complete without scripts and without a network.

Every text goes through `escape_text`; what else is in the markup is ours.
"""

from __future__ import annotations

import dataclasses
import textwrap
from xml.sax.saxutils import escape

from torchmark.model.flame import Flame
from torchmark.report.flame_layout import Box, lay_out
from torchmark.report.flame_names import LEAST_ROOM, colour_of, fit_label, label_of
from torchmark.report.flame_numbers import Gauge, find_step, gauge_of, own_change, tell_frame
from torchmark.report.flame_words import Key, list_heading, list_keys
from torchmark.report.printable import printable

# In pixels: as wide as pages are where such pictures are shown, and rows in which a line of text has its room.
WIDTH = 1200
MARGIN = 12
ROW = 17
NOTE_ROW = 18
# What a letter takes of the frames' font, in which all are alike, and on average of the others.
LETTER = 6.62
NOTE_LETTER = 6.2
# Between a text and the sides of its frame, and between frames.
PADDING = 3
GAP = 1
SWATCH = 12


@dataclasses.dataclass(frozen=True)
class Picture:
    """What is in a picture, from top to bottom."""

    flame: Flame
    heading: list[str]
    boxes: list[Box]
    keys: list[list[Key]]

    @property
    def top(self) -> int:
        """Where the frames begin."""
        return MARGIN + NOTE_ROW * len(self.heading) + MARGIN

    @property
    def bottom(self) -> int:
        """Where they end."""
        return self.top + ROW * (1 + max(box.depth for box in self.boxes))

    @property
    def height(self) -> int:
        """In pixels."""
        return self.bottom + MARGIN + NOTE_ROW * len(self.keys) + MARGIN


def compose(flame: Flame) -> Picture:
    """Break what is said around the graph into lines."""
    letters = int((WIDTH - 2 * MARGIN) / NOTE_LETTER)
    heading = [part for line in list_heading(flame) for part in textwrap.wrap(line, letters)]
    rows: list[list[Key]] = [[]]
    for key in list_keys(flame):
        if _measure_keys([*rows[-1], key]) > WIDTH - 2 * MARGIN and rows[-1]:
            rows.append([])
        rows[-1].append(key)
    return Picture(flame, heading, lay_out(flame.root), rows)


def draw(picture: Picture) -> str:
    """The elements of a picture."""
    parts = [f'<rect class="tmf-paper" width="{WIDTH}" height="{picture.height}"/>']
    for i, line in enumerate(picture.heading):
        style = "tmf-still-note" if i else "tmf-still-title"
        y = MARGIN + NOTE_ROW * (i + 1) - 4
        parts.append(f'<text class="{style}" x="{MARGIN}" y="{y}">{escape_text(line)}</text>')
    gauge = gauge_of(picture.flame)
    largest = max(abs(own_change(box.node)) for box in picture.boxes)
    parts += [_draw_frame(box, picture, gauge, largest) for box in picture.boxes]
    for i, keys in enumerate(picture.keys):
        parts += _draw_keys(keys, picture.bottom + MARGIN + NOTE_ROW * i)
    return "\n".join(parts) + "\n"


def open_svg(picture: Picture) -> str:
    """The tag that is around them, with what the picture is of."""
    title = escape_text(printable(picture.flame.title).strip() or "Flame graph")
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="tmf-still" width="{WIDTH}" height="{picture.height}" '
        f'viewBox="0 0 {WIDTH} {picture.height}" role="img" aria-label="{title}">\n<title>{title}</title>\n'
    )


def escape_text(text: str) -> str:
    """A text for markup, between tags or in quotes. What XML has no letters for must be gone already."""
    return escape(text, {'"': "&quot;", "'": "&#39;"})


def _draw_frame(box: Box, picture: Picture, gauge: Gauge, largest: int) -> str:
    node = box.node
    x = MARGIN + box.left * (WIDTH - 2 * MARGIN)
    y = picture.top + ROW * box.depth
    width = box.width * (WIDTH - 2 * MARGIN)
    told = escape_text("\n".join(tell_frame(node, box.parent, picture.flame.root, gauge)))
    label = _fit(box, int((width - 2 * PADDING) / LETTER), gauge, largest)
    text = f'<text x="{x + PADDING:.1f}" y="{y + ROW - 5}">{escape_text(label)}</text>' if label else ""
    # A frame as wide as the gap would be nothing but gap.
    shown = max(width - GAP, min(width, GAP))
    return (
        f'<g class="{_style(box, largest)}"><title>{told}</title>'
        f'<rect x="{x:.2f}" y="{y}" width="{shown:.2f}" height="{ROW - GAP}"/>{text}</g>'
    )


def _style(box: Box, largest: int) -> str:
    node = box.node
    if node.base_value is None:
        return f"tmf-c{colour_of(node.frame)}"
    step = find_step(own_change(node), largest)
    style = f"tmf-more{step}" if step > 0 else f"tmf-less{-step}" if step < 0 else "tmf-none"
    return f"{style} tmf-gone" if node.base_value and not node.value else style


def _fit(box: Box, room: int, gauge: Gauge, largest: int) -> str:
    label = label_of(box.node.frame)
    if not find_step(own_change(box.node), largest):
        return fit_label(label, room)
    change = gauge.show_change(own_change(box.node))
    left = room - len(change) - 1
    if left < LEAST_ROOM:
        return fit_label(change, room)
    return f"{change} {fit_label(label, left)}"


def _measure_keys(keys: list[Key]) -> float:
    return sum(SWATCH + 6 + len(key.text) * NOTE_LETTER + 16 for key in keys)


def _draw_keys(keys: list[Key], y: int) -> list[str]:
    parts = []
    for i, key in enumerate(keys):
        x = MARGIN + _measure_keys(keys[:i])
        parts.append(
            f'<g class="{key.style}"><rect x="{x:.1f}" y="{y}" width="{SWATCH}" height="{SWATCH}"/></g>'
            f'<text class="tmf-still-note" x="{x + SWATCH + 6:.1f}" y="{y + SWATCH - 2}">{escape_text(key.text)}</text>'
        )
    return parts
