"""The still picture of a flame graph, as SVG without scripts or as PNG."""

from __future__ import annotations

import dataclasses
import functools
import math
import textwrap
from collections.abc import Callable
from typing import NamedTuple
from xml.sax.saxutils import escape

from torchmark.analysis.flames import build_up
from torchmark.errors import SetupError
from torchmark.model.costs import Flame, FlameNode, Method
from torchmark.report.flame.labels import (
    ARROW,
    FAMILIES,
    LEAST_ROOM,
    SHADES,
    FlameScale,
    colour_of,
    describe_frame,
    family_of,
    find_step,
    fit_label,
    format_percent,
    format_relation,
    gauge_of,
    label_of,
    own_change,
)
from torchmark.report.html.templates import load_asset
from torchmark.report.text.terminal import printable

# Narrower frames are not drawn: they are about a pixel, and there can be many. flame.js draws them on zooming.
LEAST_WIDTH = 0.001


class Box(NamedTuple):
    """A frame's place: how deep, and from where to where as shares of the width."""

    node: FlameNode
    parent: FlameNode | None
    depth: int
    left: float
    width: float


class _FrameSpan(NamedTuple):
    node: FlameNode
    size: int
    below: tuple[_FrameSpan, ...]


def lay_out(root: FlameNode, least: float = LEAST_WIDTH) -> list[Box]:
    """The frames that are wide enough to be seen, callers first.

    Where two sides are drawn, what is spent in each frame itself is as wide as on the larger side. So nothing of either
    is hidden, and a frame is still as wide as all that is in it.
    """
    whole = build_up(root, lambda node: node.children, _measure)
    boxes: list[Box] = []
    waiting: list[tuple[_FrameSpan, FlameNode | None, int, int]] = [(whole, None, 0, 0)]
    while waiting:
        span, parent, depth, start = waiting.pop()
        width = span.size / whole.size if whole.size else 1.0
        if width < least:
            continue
        boxes.append(Box(span.node, parent, depth, start / whole.size if whole.size else 0.0, width))
        following = []
        for below in span.below:
            following.append((below, span.node, depth + 1, start))
            start += below.size
        waiting += reversed(following)
    return boxes


def _measure(node: FlameNode, below: tuple[_FrameSpan, ...]) -> _FrameSpan:
    left_out = node.value - node.own - sum(child.value for child in node.children)
    if node.base_value is None or node.base_own is None:
        own = node.own + left_out
    else:
        base_left_out = node.base_value - node.base_own - sum(child.base_value or 0 for child in node.children)
        own = max(node.own, node.base_own) + max(left_out, base_left_out)
    return _FrameSpan(node, own + sum(span.size for span in below), below)


METHODS = {
    Method.CALLERS: "Exact: every instruction was counted with all its callers.",
    Method.CALL_GRAPH: "Counted exactly by function; what a function calls is shared among its callers in proportion.",
    Method.SAMPLING: "Sampled: widths are how often a function was seen.",
}
WIDTHS = (
    "A frame is as wide as it is on the larger side; the number before a name is the change in the function itself."
)
# The first family is the root: its own cost belongs to no function.
OTHER = "other"


class Key(NamedTuple):
    """A colour, by the class of its style, and what it stands for."""

    style: str
    text: str


def list_heading(flame: Flame) -> list[str]:
    """Title, total, how it was found out, and the note; what is not known is left out."""
    lines = [flame.title, _describe_total(flame), flame.note]
    return [line for line in (printable(line).strip() for line in lines) if line]


def _describe_total(flame: Flame) -> str:
    gauge, root = gauge_of(flame), flame.root
    if root.base_value is None:
        return f"{gauge.show(root.value)} {gauge.unit}. {METHODS[flame.method]}"
    return f"{_describe_change(root.base_value, root.value, gauge)} {gauge.unit}. {METHODS[flame.method]} {WIDTHS}"


def _describe_change(base: int, head: int, gauge: FlameScale) -> str:
    change = "" if base == head else f"{gauge.format_change(head - base)}, "
    return f"{gauge.show(base)} {ARROW} {gauge.show(head)} ({change}{format_relation(base, head)})"


def list_keys(flame: Flame) -> list[Key]:
    """The colours that occur, with their shares of what was spent; of a difference, what red and blue are."""
    if flame.root.base_value is not None:
        return [
            Key("tmf-more5", "more in itself than in base"),
            Key("tmf-none", "the same"),
            Key("tmf-less5", "less in itself"),
            Key("tmf-none tmf-gone", "only in base"),
        ]
    sums = dict.fromkeys(range(len(FAMILIES)), 0)
    waiting: list[FlameNode] = [flame.root]
    while waiting:
        node = waiting.pop()
        waiting += node.children
        sums[family_of(node.frame)] += node.own
    return [
        Key(
            f"tmf-c{family * SHADES}",
            f"{FAMILIES[family] if family else OTHER} {format_percent(own, flame.root.value)}",
        )
        for family, own in sums.items()
        if own
    ]


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


def _draw_frame(box: Box, picture: Picture, gauge: FlameScale, largest: int) -> str:
    node = box.node
    x = MARGIN + box.left * (WIDTH - 2 * MARGIN)
    y = picture.top + ROW * box.depth
    width = box.width * (WIDTH - 2 * MARGIN)
    told = escape_text("\n".join(describe_frame(node, box.parent, picture.flame.root, gauge)))
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


def _fit(box: Box, room: int, gauge: FlameScale, largest: int) -> str:
    label = label_of(box.node.frame)
    if not find_step(own_change(box.node), largest):
        return fit_label(label, room)
    change = gauge.format_change(own_change(box.node))
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


# Two pixels for each of the SVG: text stays sharp on screens of today, and where a page scales the picture.
ZOOM = 2.0
# 64 million pixels take 256 MB while they are drawn. A graph of more than 800 rows gets a smaller zoom instead.
MOST_PIXELS = 2**26
# resvg does not ask the system which font `sans-serif` is, and leaves out text that it has no font for.
SANS = ("DejaVu Sans", "Liberation Sans", "Noto Sans", "Arial", "Helvetica", "Ubuntu", "Cantarell", "FreeSans")
MONO = ("DejaVu Sans Mono", "Liberation Mono", "Noto Sans Mono", "Courier New", "Ubuntu Mono", "FreeMono")
PROBE = '<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"><text y="9" font-family="{}">m</text></svg>'


Renderer = Callable[..., bytes]
"""Draws an SVG that is a text; `zoom` is how many pixels each of its pixels gets."""


def open_renderer() -> Renderer:
    """The renderer, if the package and a font for it are installed. SetupError says what is missing."""
    # Loaded at first use: it is an optional package.
    try:
        from resvg_py import svg_to_bytes
    except ImportError as error:
        raise SetupError(
            "PNG files need the package resvg-py, which is not installed.",
            missing="resvg-py",
            advice="Install it with: pip install 'torchmark[png]'",
        ) from error
    sans, mono = (_find_font(svg_to_bytes, families) for families in (SANS, MONO))
    return functools.partial(svg_to_bytes, sans_serif_family=sans, monospace_family=mono)


def _find_font(render: Renderer, families: tuple[str, ...]) -> str:
    """The first of these families that is installed: the one that draws something."""
    blank = render(PROBE.format("no such family"))
    for family in families:
        if render(PROBE.format(family)) != blank:
            return family
    raise SetupError(
        f"PNG files need a font such as {families[0]}, and none is installed.",
        missing="font",
        advice="Debian, Ubuntu: apt-get install fonts-dejavu-core",
    )


def render_png(flame: Flame, render: Renderer) -> bytes:
    """The still picture in light colours, twice as large as the SVG; `render` comes from `open_renderer`."""
    picture = compose(flame)
    zoom = min(ZOOM, math.sqrt(MOST_PIXELS / (WIDTH * picture.height)))
    style = escape_text(load_asset("flame.css"))
    return render(f"{open_svg(picture)}<style>{style}</style>\n{draw(picture)}</svg>\n", zoom=zoom)
