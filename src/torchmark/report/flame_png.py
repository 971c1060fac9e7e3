"""Flame graphs as PNG: the still picture, drawn by resvg, which is an optional package and needs a font of the system.

`open_renderer` says at once whether pictures can be drawn, so that nobody measures for minutes in vain.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable

from torchmark.errors import SetupError
from torchmark.model.flame import Flame
from torchmark.report.embedding import load_asset
from torchmark.report.flame_still import WIDTH, compose, draw, escape_text, open_svg

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
