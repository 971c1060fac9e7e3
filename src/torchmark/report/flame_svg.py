"""Flame graphs as SVG files: a still picture for any viewer, and where scripts run, one to look into."""

from __future__ import annotations

from torchmark.model.flame import Flame
from torchmark.report.embedding import load_asset, script_json
from torchmark.report.flame_packing import NameTable, pack_flame
from torchmark.report.flame_still import compose, draw, escape_text, open_svg
from torchmark.report.flame_words import list_heading


def render_svg(flame: Flame) -> str:
    """A file on its own. It asks for nothing from outside."""
    names = NameTable(full=True)
    graph = pack_flame(flame, names, share=0.0) | {"heading": list_heading(flame)}
    call = f"torchmarkFlameAlone({script_json(names.entries)}, {script_json(graph)});"
    picture = compose(flame)
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n'
        f"{open_svg(picture)}<style>{escape_text(load_asset('flame.css'))}</style>\n"
        f'<g id="tmf-still">\n{draw(picture)}</g>\n'
        f"<script><![CDATA[\n{load_asset('flame.js')}{call}\n]]></script>\n</svg>\n"
    )
