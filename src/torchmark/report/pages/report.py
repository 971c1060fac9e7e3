"""The report as one HTML file that needs nothing else. Every text goes through autoescaping, or through JSON."""

from __future__ import annotations

import time
from typing import Any

from torchmark.model.dossier import Command, Dossier, Drawing, Section
from torchmark.report.embedding import load_asset, script_json, write_policy
from torchmark.report.gate import list_sentences
from torchmark.report.page import load_templates
from torchmark.report.pages.doubts import find_common, list_doubts, sum_up_doubts
from torchmark.report.pages.overview import count_statuses, draw_changes, draw_stages, list_failed
from torchmark.report.pages.payload import pack_flames, pack_page
from torchmark.report.pages.rows import arrange, make_table
from torchmark.report.pages.story import hold_default_gate, is_compared, make_headline, name_parties, tell_story
from torchmark.report.pages.surroundings import list_builds, list_facts
from torchmark.report.plots.palette import style_sheet
from torchmark.report.printable import printable, show_lines
from torchmark.report.variants import Variants

SCRIPTS = ("flame.js", "samples.js", "details.js", "report.js")
STYLES = ("flame.css", "report.css")
# Reasons of a gate that are told one by one.
MOST_REASONS = 5
# So many caveats are shown whole. More are folded to a line each.
MOST_WHOLE = 2


def render_report(dossier: Dossier) -> str:
    """The whole page. It loads nothing, and runs no script but its own."""
    dossier = arrange(dossier)
    common = find_common(dossier)
    doubts = [list_doubts(entry, dossier.parties, common) for entry in dossier.entries]
    table = make_table(dossier, doubts)
    script = "\n".join(map(load_asset, SCRIPTS))
    html: str = (
        load_templates()
        .get_template("report.html")
        .render(
            **_tell(dossier),
            columns=table.columns,
            rows=table.rows,
            styles="\n".join([style_sheet(), *map(load_asset, STYLES)]),
            script=script,
            policy=write_policy(script),
            page_json=script_json(pack_page(dossier, table, doubts)),
            flames_json=pack_flames(dossier.entries),
        )
    )
    return html


def _tell(dossier: Dossier) -> dict[str, Any]:
    """What stands above the table and below it."""
    variants = Variants(entry.case for entry in dossier.entries)
    gate = hold_default_gate(dossier)
    reasons = [] if gate is None else list_sentences(gate)
    return {
        "title": printable(dossier.title),
        "headline": make_headline(dossier),
        "parties_told": name_parties(dossier),
        "story": [_hold_together(text) for text in tell_story(dossier)],
        "remarks": [show_lines(text) for text in dossier.remarks],
        "compared": is_compared(dossier),
        "tiles": count_statuses(dossier),
        "whole": MOST_WHOLE,
        "changes": draw_changes(dossier.entries, variants),
        "stages": draw_stages(dossier),
        "judged": gate is not None,
        "reasons": [_hold_together(text) for text in reasons[:MOST_REASONS]],
        "more_reasons": max(len(reasons) - MOST_REASONS, 0),
        "failed": list_failed(dossier, variants),
        "doubts": [_hold_together(text) for text in sum_up_doubts(dossier)],
        "sections": [_clean_section(section) for section in dossier.sections],
        "parties": [printable(party.name) for party in dossier.parties],
        "facts": list_facts(dossier.parties),
        "builds": list_builds(dossier.parties),
        "method": [printable(text) for text in dossier.method],
        "commands": [Command(printable(one.about), show_lines(one.text)) for one in dossier.commands],
        "created": time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(dossier.created)),
        "torchmark": printable(dossier.torchmark),
    }


def _hold_together(text: str) -> str:
    """A sentence in which no line begins with the sign of the number before."""
    return text.replace(" %", "\xa0%")


def _clean_section(section: Section) -> Section:
    """The same without what is not to be seen, or would turn a line around."""
    return Section(
        printable(section.title),
        tuple(map(show_lines, section.paragraphs)),
        tuple(map(printable, section.columns)),
        tuple(tuple(map(printable, row)) for row in section.rows),
        tuple(Drawing(printable(one.caption), one.svg) for one in section.drawings),
    )
