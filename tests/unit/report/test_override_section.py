from __future__ import annotations

import dataclasses

from tests.made_overrides import make_override_rows
from torchmark.analysis.overrides import OverrideRow
from torchmark.report.html.overrides import make_override_section


def slow(rows: tuple[OverrideRow, ...], factor: float) -> tuple[OverrideRow, ...]:
    """The same rows with overheads that are so many times as large."""
    return tuple(
        row
        if row.overhead is None
        else dataclasses.replace(
            row,
            overhead=dataclasses.replace(
                row.overhead,
                seconds=None if row.overhead.seconds is None else factor * row.overhead.seconds,
                instructions=None if row.overhead.instructions is None else factor * row.overhead.instructions,
            ),
        )
        for row in rows
    )


def test_the_classic_types_come_first_and_changes_are_those_of_overheads() -> None:
    rows = make_override_rows()
    section = make_override_section(rows, slow(rows, 2.0))
    assert section is not None
    assert section.rows
    assert section.rows[0][0] == "SubTensor"
    assert all(row[-1] == "+100 %" for row in section.rows)
    assert all(len(row) == len(section.columns) for row in section.rows)


def test_what_one_side_has_alone_is_left_out() -> None:
    assert make_override_section((), make_override_rows()) is None
