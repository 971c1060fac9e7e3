"""Flame graphs with a script: as SVG, as a page of their own with a table, and packed for pages of many cases."""

from __future__ import annotations

import base64
import zlib
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from torchmark.analysis.flames import list_callers_first
from torchmark.model.costs import Flame, Frame
from torchmark.report.flame.labels import (
    LINES,
    LINES_OF_BOTH,
    colour_of,
    format_percent,
    format_relation,
    full_name,
    gauge_of,
    label_of,
    list_shorter,
    origin_of,
)
from torchmark.report.flame.picture import (
    Box,
    choose_wide,
    compose,
    draw,
    draw_tree,
    escape_text,
    find_rest,
    lay_out,
    list_heading,
    list_keys,
    open_svg,
)
from torchmark.report.html.templates import fill_template, load_asset, script_json, write_policy
from torchmark.report.text.terminal import cut_middle, printable


class Spent(NamedTuple):
    """A function with what is spent in itself at all places together, of all runs. Base has none without a base."""

    frame: Frame
    head: int
    base: int = 0

    @property
    def change(self) -> int:
        return self.head - self.base


def rank_own(flame: Flame) -> list[Spent]:
    """Functions in which something is spent, the most expensive first."""
    spent = [one for one in _add_up(flame) if one.head]
    return sorted(spent, key=lambda one: (-one.head, one.frame.name, one.frame.origin))


def rank_growth(flame: Flame) -> list[Spent]:
    """Functions that cost more or less in themselves than in base: what grew most first, what shrank most last.

    Their callers are not among them: what they call is not theirs.
    """
    spent = [one for one in _add_up(flame) if one.change]
    return sorted(spent, key=lambda one: (-one.change, one.frame.name, one.frame.origin))


def _add_up(flame: Flame) -> list[Spent]:
    sums: dict[Frame, Spent] = {}
    for node in list_callers_first(flame.root):
        _, head, base = sums.get(node.frame, Spent(node.frame, 0))
        sums[node.frame] = Spent(node.frame, head + node.own, base + (node.base_own or 0))
    return list(sums.values())


XHTML = "http://www.w3.org/1999/xhtml"
MOST_FUNCTIONS = 5
# What C++ names are cut to.
LONGEST_NAME = 60


def describe_flame(flame: Flame) -> list[str]:
    """The total, and the functions that cost most in themselves, or whose own cost changed most."""
    gauge, root = gauge_of(flame), flame.root
    if root.base_value is None:
        spent = rank_own(flame)[:MOST_FUNCTIONS]
        shares = (f"{format_percent(one.head, root.value):>6}  {_name(one)}" for one in spent)
        return [f"{gauge.show(root.value)} {gauge.unit}", *shares]
    relation = format_relation(root.base_value, root.value)
    lines = [f"{gauge.show(root.base_value)} → {gauge.show(root.value)} {gauge.unit} ({relation})"]
    ranked = sorted(rank_growth(flame), key=lambda one: -abs(one.change))
    changes = [(gauge.format_change(one.change), _name(one)) for one in ranked[:MOST_FUNCTIONS]]
    width = max((len(change) for change, _ in changes), default=0)
    return lines + [f"{change:>{width}}  {name}" for change, name in changes]


def _name(one: Spent) -> str:
    origin = origin_of(one.frame)
    name = cut_middle(printable(label_of(one.frame)), LONGEST_NAME)
    return f"{name} ({printable(origin)})" if origin else name


def pack_graph(flame: Flame, boxes: Sequence[Box], names: dict[Frame, int]) -> dict[str, Any]:
    """A graph as plain columns, callers first, which no depth of calls is too much for. `names` numbers the frames.

    Of all runs together, to the last instruction: what is spent in each frame itself, and in frames that were left out
    below it; of two sides head's, and how much more than base's that is.
    """
    gauge, compared = gauge_of(flame), flame.root.base_value is not None
    nodes, rests = [box.node for box in boxes], [find_rest(box.node) for box in boxes]
    packed: dict[str, Any] = {
        "runs": gauge.runs,
        "lines": [line.replace("{unit}", gauge.unit) for line in (LINES_OF_BOTH if compared else LINES)],
        "depth": [box.depth for box in boxes],
        "name": [names.setdefault(node.frame, len(names)) for node in nodes],
        "own": [node.own for node in nodes],
        "rest": [rest for rest, _ in rests],
    }
    if compared:
        styles = {style: i for i, style in enumerate(dict.fromkeys(box.style for box in boxes))}
        packed["styles"], packed["style"] = list(styles), [styles[box.style] for box in boxes]
        packed["ownChange"] = [node.own - (node.base_own or 0) for node in nodes]
        packed["restChange"] = [rest - base_rest for rest, base_rest in rests]
    return packed


def list_names(names: Iterable[Frame]) -> list[list[Any]]:
    """Of each frame its label, colour, origin, shorter labels, and its name where that is another than the label."""
    found = []
    for frame in names:
        label, full = label_of(frame), full_name(frame)
        longer = [] if full == label else [full]
        found.append([label, colour_of(frame), origin_of(frame), list_shorter(label), *longer])
    return found


def pack_flames(flames: Sequence[Flame]) -> str:
    """The graphs of a page of many cases, which `torchmarkFlames` of flame.js reads: deflated JSON in base 64.

    They are large, and read when one is to be drawn. Each comes with what is around it, and its outermost frame.
    """
    names: dict[Frame, int] = {}
    graphs = []
    for flame in flames:
        boxes = lay_out(flame)
        graphs.append(pack_graph(flame, boxes, names) | {"markup": surround(flame, draw_tree(flame, boxes[:1]))})
    text = script_json({"names": list_names(names), "graphs": graphs})
    return base64.b64encode(zlib.compress(text.encode(), 9)).decode()


def surround(flame: Flame, tree: str) -> str:
    """The frames with what flame.js needs around them: the controls, colours and the place of a tip. HTML and XML."""
    keys = "".join(
        f'<li><svg xmlns="http://www.w3.org/2000/svg" class="tmf-swatch {key.style}" aria-hidden="true">'
        f'<rect width="14" height="14"/></svg><span>{escape_text(key.text)}</span></li>'
        for key in list_keys(flame)
    )
    return (
        '<div class="tmf-bar" role="search" hidden="hidden">'
        '<input type="search" placeholder="Search frames" aria-label="Search frames" spellcheck="false"/>'
        '<button type="button">Reset zoom</button><span class="tmf-found" role="status"></span>'
        '<span class="tmf-keys">Click or Enter zooms, arrows move, / searches, Esc goes back</span></div>\n'
        f'{tree}<ul class="tmf-legend" aria-label="Colours">{keys}</ul>\n'
        '<div class="tmf-tip" aria-hidden="true" hidden="hidden"></div>'
    )


def _write_script(flame: Flame, call: str) -> str:
    names: dict[Frame, int] = {}
    graph = script_json(pack_graph(flame, lay_out(flame), names))
    return f"{load_asset('flame.js')}{call}{script_json(list_names(names))}, {graph});\n"


def render_svg(flame: Flame) -> str:
    """A file on its own. It asks for nothing from outside."""
    picture = compose(flame)
    heading = "".join(
        f'<p class="tmf-note">{escape_text(line)}</p>' if i else f'<h1 class="tmf-title">{escape_text(line)}</h1>'
        for i, line in enumerate(list_heading(flame))
    )
    # Until there is a script, these are not to be seen. It puts the frames between them.
    controls = f'<div xmlns="{XHTML}" class="tmf tmf-alone">{heading}{surround(flame, "")}</div>'
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n'
        f"{open_svg(picture)}<style>{escape_text(load_asset('flame.css'))}</style>\n"
        f'<g id="tmf-still">\n{draw(picture)}</g>\n'
        f'<foreignObject id="tmf-controls" width="100%" height="100%" display="none">{controls}</foreignObject>\n'
        f"<script><![CDATA[\n{_write_script(flame, 'torchmarkFlameAlone(')}]]></script>\n</svg>\n"
    )


# As many as a person reads through.
MOST_FUNCTIONS_ON_PAGE = 25


def render_html(flame: Flame) -> str:
    """A file on its own. It asks for nothing from outside."""
    compared = flame.root.base_value is not None
    script = _write_script(flame, 'torchmarkFlame(document.getElementById("graph"), ')
    values = {
        "title": printable(flame.title).strip() or "Flame graph",
        "notes": list_heading(flame)[1:] if flame.title.strip() else list_heading(flame),
        "unit": gauge_of(flame).unit,
        "compared": compared,
        "rows": _list_changes(flame) if compared else _list_spent(flame),
        "graph": surround(flame, draw_tree(flame, choose_wide(lay_out(flame)))),
        "style": load_asset("flame.css") + load_asset("flame-page.css"),
        "script": script,
        "policy": write_policy(script),
    }
    return fill_template("flame.html", values)


def _list_spent(flame: Flame) -> list[tuple[str, str, list[str]]]:
    """The functions in which most is spent: name, origin, what and how much of all."""
    gauge = gauge_of(flame)
    return [
        (label_of(one.frame), origin_of(one.frame), [gauge.show(one.head), format_percent(one.head, flame.root.value)])
        for one in rank_own(flame)[:MOST_FUNCTIONS_ON_PAGE]
    ]


def _list_changes(flame: Flame) -> list[tuple[str, str, list[str]]]:
    """The functions that changed most in themselves, from what grew to what shrank: base, head, change, its share."""
    gauge = gauge_of(flame)
    ranked = rank_growth(flame)
    most = sorted(ranked, key=lambda one: -abs(one.change))[:MOST_FUNCTIONS_ON_PAGE]
    rows = []
    for one in sorted(most, key=ranked.index):
        change = gauge.format_change(one.change), format_relation(one.base, one.head)
        cells = [gauge.show(one.base), gauge.show(one.head), *change]
        rows.append((label_of(one.frame), origin_of(one.frame), cells))
    return rows
