"""The rows of the table of all cases, in the order in which they stand at first."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import NamedTuple

from torchmark.model.dossier import Dossier, Entry
from torchmark.report.pages.columns import Cell, Column, choose_columns, fill_status
from torchmark.report.pages.doubts import Doubt
from torchmark.report.pages.packing import identify_row
from torchmark.report.pages.story import is_compared
from torchmark.report.printable import one_line, printable
from torchmark.report.variants import Variants


class Row(NamedTuple):
    """A case in the table."""

    id: str
    heading: str
    leaf: str
    words: tuple[str, ...]
    stmt: str
    cells: list[Cell]


class Table(NamedTuple):
    """All rows, and the columns besides that of the names."""

    columns: list[Column]
    rows: list[Row]


def arrange(dossier: Dossier) -> Dossier:
    """The same with what changed most first; results of a single party stay in the order of their suite."""
    if not is_compared(dossier):
        return dossier
    return dataclasses.replace(dossier, entries=tuple(sorted(dossier.entries, key=_rank)))


def _rank(entry: Entry) -> float:
    key = fill_status(entry).key
    return 0.0 if key is None else key


def make_table(dossier: Dossier, doubts: Sequence[Sequence[Doubt]]) -> Table:
    """A row for each entry; `doubts` are those of each."""
    columns = choose_columns(dossier.entries, compared=is_compared(dossier))
    variants = Variants(entry.case for entry in dossier.entries)
    rows = [
        Row(
            identify_row(entry.case),
            variants.heading(entry.case),
            variants.leaf(entry.case),
            variants.words(entry.case),
            printable(one_line(entry.case.args.stmt.strip())),
            [column.fill(entry) for column in columns],
        )
        for entry in dossier.entries
    ]
    if any(doubts):
        columns = [*columns, Column("doubts", "Caveats", "How many reasons there are to doubt it", 3, lambda _: Cell())]
        for row, found in zip(rows, doubts, strict=True):
            row.cells.append(Cell(str(len(found)) if found else "", len(found)))
    return Table(columns, rows)
