"""What the page carries for its script, as plain values: sort keys, filters, details of all cases, flame graphs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from torchmark.model.dossier import Dossier, Entry, Party
from torchmark.model.flame import Flame
from torchmark.model.judgement import Side
from torchmark.report.embedding import script_json
from torchmark.report.flame_packing import NameTable, pack_flame
from torchmark.report.pages.details import pack_details
from torchmark.report.pages.doubts import Doubt
from torchmark.report.pages.facets import find_facets
from torchmark.report.pages.packing import Texts
from torchmark.report.pages.rows import Table
from torchmark.report.plots.palette import stage_colour
from torchmark.report.printable import printable

# Figures that sort keys are kept with: no two times of different cases are that close.
KEY_FIGURES = 9
# A page of two hundred cases is to stay below a megabyte, of which this is what other things leave. Of many more cases,
# a graph that tells something takes so much at least.
FLAME_BYTES = 260_000
BYTES_A_FLAME = 800
# What part of its graph a frame has to be: first no more than what is a few pixels wide on a screen.
SHARES = (0.002, 0.003, 0.005, 0.008, 0.012, 0.02)


def pack_page(dossier: Dossier, table: Table, doubts: Sequence[Sequence[Doubt]]) -> dict[str, Any]:
    """All but the flame graphs. Lists by case are in the order of the rows."""
    texts = Texts()
    entries = dossier.entries
    facets = find_facets(entries, [[kind for kind, _ in one] for one in doubts])
    details = [
        pack_details(entry, dossier, [text for _, text in found], texts)
        for entry, found in zip(entries, doubts, strict=True)
    ]
    stages = dict.fromkeys(
        stage.stage for entry in entries if entry.breakdown is not None for stage in entry.breakdown.stages
    )
    return {
        "parties": [printable(party.name) for party in dossier.parties],
        "columns": [[one.key, int(one.ascending)] for one in table.columns],
        "keys": [[_shorten(cell.key) for cell in row.cells] for row in table.rows],
        "facets": [list(facet) for facet in facets],
        "colours": {stage: stage_colour(stage) for stage in stages},
        "details": details,
        "flames": _title_flames(dossier),
        "texts": texts.entries,
    }


def _shorten(key: float | None) -> float | int | None:
    if key is None or not math.isfinite(key):
        return None
    short = float(f"{key:.{KEY_FIGURES}g}")
    return int(short) if short == int(short) else short


def _title_flames(dossier: Dossier) -> list[list[str]]:
    """For each case the titles of its flame graphs; a single one needs none, unless it is of one side of two."""
    return [
        [printable(flame.title) for flame in entry.flames]
        if len(entry.flames) > 1
        else [_title_only(entry, flame, dossier.parties) for flame in entry.flames]
        for entry in dossier.entries
    ]


def _title_only(entry: Entry, flame: Flame, parties: Sequence[Party]) -> str:
    if len(parties) == 1 or flame.root.base_value is not None:
        return ""
    only = None if entry.breakdown is None else entry.breakdown.only
    return f"{printable(parties[0 if only is Side.BASE else -1].name)}, the only side that was counted"


def pack_flames(entries: Sequence[Entry]) -> str:
    """The flame graphs of all cases as JSON, one after the other. They are large, and read when one is to be drawn.

    Where they would be larger than the page bears, narrow frames are left out, in all of them alike.
    """
    flames = [flame for entry in entries for flame in entry.flames]
    room = max(FLAME_BYTES, BYTES_A_FLAME * len(flames))
    text = ""
    for share in SHARES:
        names = NameTable()
        graphs = [pack_flame(flame, names, share) for flame in flames]
        text = script_json({"names": names.entries, "graphs": graphs})
        if len(text) <= room:
            break
    return text
