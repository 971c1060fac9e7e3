"""A flame graph drawn once: as the SVG that flame.js acts on, and as PNG."""

from __future__ import annotations

import dataclasses
import functools
import math
import textwrap
from collections.abc import Callable, Sequence
from typing import NamedTuple
from xml.sax.saxutils import escape

from torchmark.analysis.flames import list_callers_first
from torchmark.errors import SetupError
from torchmark.model.costs import Flame, FlameNode, Method
from torchmark.report.flame.labels import (
    FAMILIES,
    SHADES,
    FlameScale,
    colour_of,
    describe_frame,
    family_of,
    find_step,
    fit_label,
    format_percent,
    gauge_of,
    label_of,
    own_change,
)
from torchmark.report.html.templates import load_asset
from torchmark.report.text.terminal import printable

# Narrower frames are not drawn: they are about a pixel, and there can be many. flame.js draws them on zooming.
LEAST_WIDTH = 0.001


class Box(NamedTuple):
    """A frame's place among all frames, how deep it is, where it begins, and how wide it is, in what was spent.

    `style` are the classes of its colour, and `mark` stands before its name: how much it has changed itself.
    """

    number: int
    node: FlameNode
    parent: FlameNode | None
    depth: int
    start: int
    span: int
    style: str
    mark: str


def lay_out(flame: Flame) -> list[Box]:
    """All frames, callers first.

    Where two sides are drawn, what is spent in each frame itself is as wide as on the larger side. So nothing of either
    is hidden, and a frame is still as wide as all that is in it.
    """
    found: list[tuple[FlameNode, int, int]] = []
    waiting = [(flame.root, 0, -1)]
    while waiting:
        node, caller, above = waiting.pop()
        waiting += [(child, len(found), above + 1) for child in reversed(node.children)]
        found.append((node, caller, above + 1))
    spans = [_measure(node) for node, _, _ in found]
    for i in range(len(found) - 1, 0, -1):
        spans[found[i][1]] += spans[i]
    gauge, largest = gauge_of(flame), max(abs(own_change(node)) for node, _, _ in found)
    # Where in each frame the next of those below it begins.
    filled = [0] * len(found)
    boxes = []
    for i, (node, caller, depth) in enumerate(found):
        filled[i] = start = filled[caller]
        if i:
            filled[caller] += spans[i]
        parent = found[caller][0] if i else None
        boxes.append(Box(i, node, parent, depth, start, spans[i], *_style(node, gauge, largest)))
    return boxes


def choose_wide(boxes: Sequence[Box]) -> list[Box]:
    """The root, and the frames that are wide enough to be seen."""
    root, *others = boxes
    return [root, *(box for box in others if root.span and box.span >= LEAST_WIDTH * root.span)]


def _measure(node: FlameNode) -> int:
    """How wide a frame is without those below it: what is spent in it, and in frames that were left out."""
    rest, base_rest = find_rest(node)
    return max(node.own, node.base_own or 0) + max(rest, base_rest)


def find_rest(node: FlameNode) -> tuple[int, int]:
    """What head and base spend in frames below this one that were left out of the tree."""
    rest = node.value - node.own - sum(child.value for child in node.children)
    base_rest = (node.base_value or 0) - (node.base_own or 0) - sum(child.base_value or 0 for child in node.children)
    return rest, base_rest


def _style(node: FlameNode, gauge: FlameScale, largest: int) -> tuple[str, str]:
    if node.base_value is None:
        return f"tmf-c{colour_of(node.frame)}", ""
    change = own_change(node)
    step = find_step(change, largest)
    style = f"tmf-more{step}" if step > 0 else f"tmf-less{-step}" if step < 0 else "tmf-none"
    gone = " tmf-gone" if node.base_value and not node.value else ""
    return style + gone, f"{gauge.format_change(change)} " if step else ""


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
    gauge, root = gauge_of(flame), flame.root
    total = gauge.show(root.value) if root.base_value is None else gauge.format_sides(root.base_value, root.value)
    widths = "" if root.base_value is None else WIDTHS
    lines = [flame.title, f"{total} {gauge.unit}. {METHODS[flame.method]} {widths}", flame.note]
    return [line for line in (printable(line).strip() for line in lines) if line]


def list_keys(flame: Flame) -> list[Key]:
    """The colours that occur, with their shares of what was spent; of a difference, what red and blue are."""
    if flame.root.base_value is not None:
        return [
            Key("tmf-more5", "more in itself than in base"),
            Key("tmf-none", "the same"),
            Key("tmf-less5", "less in itself"),
            Key("tmf-none tmf-gone", "only in base"),
        ]
    sums = [0] * len(FAMILIES)
    for node in list_callers_first(flame.root):
        sums[family_of(node.frame)] += node.own
    names = [OTHER, *FAMILIES[1:]]
    return [
        Key(f"tmf-c{family * SHADES}", f"{names[family]} {format_percent(own, flame.root.value)}")
        for family, own in enumerate(sums)
        if own
    ]


# In pixels: as wide as pages are where such pictures are shown, and rows in which a line of text has its room.
WIDTH = 1200
MARGIN = 12
TREE_WIDTH = WIDTH - 2 * MARGIN
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
    """What is in a picture, from top to bottom: lines of the heading, the frames in an element of their own, keys."""

    flame: Flame
    heading: list[str]
    tree: str
    rows: int
    keys: list[list[Key]]

    @property
    def bottom(self) -> int:
        return find_top(self.heading) + ROW * self.rows

    @property
    def height(self) -> int:
        return self.bottom + MARGIN + NOTE_ROW * len(self.keys) + MARGIN


def find_top(heading: Sequence[str]) -> int:
    return MARGIN + NOTE_ROW * len(heading) + MARGIN


def compose(flame: Flame) -> Picture:
    letters = int(TREE_WIDTH / NOTE_LETTER)
    heading = [part for line in list_heading(flame) for part in textwrap.wrap(line, letters)]
    rows: list[list[Key]] = [[]]
    for key in list_keys(flame):
        if _measure_keys([*rows[-1], key]) > TREE_WIDTH and rows[-1]:
            rows.append([])
        rows[-1].append(key)
    boxes = choose_wide(lay_out(flame))
    tree = draw_tree(flame, boxes, find_top(heading))
    return Picture(flame=flame, heading=heading, tree=tree, rows=count_rows(boxes), keys=rows)


def count_rows(boxes: Sequence[Box]) -> int:
    return 1 + max(box.depth for box in boxes)


def draw_tree(flame: Flame, boxes: Sequence[Box], top: int = 0) -> str:
    """Frames in an element of their own, which flame.js changes."""
    gauge, scale = gauge_of(flame), TREE_WIDTH / (boxes[0].span or 1)
    title, height = escape_text(printable(flame.title).strip() or "a profile"), ROW * count_rows(boxes)
    frames = "\n".join(_draw_frame(box, scale, flame.root, gauge) for box in boxes)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="tmf-tree" x="{MARGIN}" y="{top}" width="{TREE_WIDTH}" '
        f'height="{height}" viewBox="0 0 {TREE_WIDTH} {height}" role="tree" '
        f'aria-label="Flame graph of {title}, callers above callees">\n{frames}\n</svg>'
    )


def _draw_frame(box: Box, scale: float, root: FlameNode, gauge: FlameScale) -> str:
    width = box.span * scale if box.number else TREE_WIDTH
    told = escape_text("\n".join(describe_frame(box.node, box.parent, root, gauge)))
    label = escape_text(fit_label(label_of(box.node.frame), int((width - 2 * PADDING) / LETTER), box.mark))
    # A frame as wide as the gap would be nothing but gap.
    shown = max(width - GAP, min(width, GAP))
    return (
        f'<g class="tmf-frame {box.style}" data-frame="{box.number}" '
        f'transform="translate({box.start * scale:.2f} {ROW * box.depth})"><title>{told}</title>'
        f'<rect width="{shown:.2f}" height="{ROW - GAP}"/><text x="{PADDING}" y="{ROW - 5}">{label}</text></g>'
    )


def draw(picture: Picture) -> str:
    parts = [f'<rect class="tmf-paper" width="{WIDTH}" height="{picture.height}"/>']
    for i, line in enumerate(picture.heading):
        style = "tmf-still-note" if i else "tmf-still-title"
        y = MARGIN + NOTE_ROW * (i + 1) - 4
        parts.append(f'<text class="{style}" x="{MARGIN}" y="{y}">{escape_text(line)}</text>')
    parts.append(picture.tree)
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
    """The picture in light colours, twice as large as the SVG; `render` comes from `open_renderer`."""
    picture = compose(flame)
    zoom = min(ZOOM, math.sqrt(MOST_PIXELS / (WIDTH * picture.height)))
    style = escape_text(load_asset("flame.css"))
    return render(f"{open_svg(picture)}<style>{style}</style>\n{draw(picture)}</svg>\n", zoom=zoom)
