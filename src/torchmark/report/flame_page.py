"""A flame graph as a page of its own, with a table beside it. Texts go through the templates' autoescaping."""

from __future__ import annotations

from torchmark.model.flame import Flame
from torchmark.report.embedding import load_asset, script_json, write_policy
from torchmark.report.flame_names import label_of, origin_of
from torchmark.report.flame_numbers import gauge_of, show_percent, show_relation
from torchmark.report.flame_packing import NameTable, pack_flame
from torchmark.report.flame_ranking import Spent, rank_growth, rank_own
from torchmark.report.flame_still import compose, draw, open_svg
from torchmark.report.flame_words import list_heading
from torchmark.report.page import load_templates
from torchmark.report.printable import printable

# As many as a person reads through.
MOST_FUNCTIONS = 25


def render_html(flame: Flame) -> str:
    """A file on its own. It asks for nothing from outside."""
    names = NameTable(full=True)
    graph = pack_flame(flame, names, share=0.0)
    picture = compose(flame)
    compared = flame.root.base_value is not None
    call = f'torchmarkFlame(document.getElementById("graph"), {script_json(names.entries)}, {script_json(graph)});'
    script = f"{load_asset('flame.js')}{call}\n"
    html: str = (
        load_templates()
        .get_template("flame.html")
        .render(
            title=printable(flame.title).strip() or "Flame graph",
            notes=list_heading(flame)[1:] if flame.title.strip() else list_heading(flame),
            unit=gauge_of(flame).unit,
            compared=compared,
            rows=_list_changes(flame) if compared else _list_spent(flame),
            still=f"{open_svg(picture)}{draw(picture)}</svg>",
            style=load_asset("flame.css") + load_asset("flame-page.css"),
            script=script,
            policy=write_policy(script),
        )
    )
    return html


def _list_spent(flame: Flame) -> list[tuple[str, str, list[str]]]:
    """The functions in which most is spent: name, origin, what and how much of all."""
    gauge = gauge_of(flame)
    return [
        (*_name(one), [gauge.show(one.head), show_percent(one.head, flame.root.value)])
        for one in rank_own(flame)[:MOST_FUNCTIONS]
    ]


def _list_changes(flame: Flame) -> list[tuple[str, str, list[str]]]:
    """The functions that changed most in themselves, from what grew to what shrank: base, head, change, its share."""
    gauge = gauge_of(flame)
    ranked = rank_growth(flame)
    most = sorted(ranked, key=lambda one: -abs(one.change))[:MOST_FUNCTIONS]
    return [
        (
            *_name(one),
            [
                gauge.show(one.base),
                gauge.show(one.head),
                gauge.show_change(one.change),
                show_relation(one.base, one.head),
            ],
        )
        for one in sorted(most, key=ranked.index)
    ]


def _name(one: Spent) -> tuple[str, str]:
    return label_of(one.frame), origin_of(one.frame)
