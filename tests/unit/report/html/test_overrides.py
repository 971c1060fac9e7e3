from __future__ import annotations

import dataclasses
import io
import zipfile

from tests.made_flames import compared_flame
from tests.made_judgements import make_judgement, make_time, make_visits
from tests.made_overrides import make_override_rows
from tests.made_summaries import make_case
from torchmark.analysis.overrides import OverrideRow
from torchmark.report.html.overrides import make_override_section, pack_bundle, write_guide, write_tables

FILES = {"README.md": "hello\n", "flames/base-add.svg": "<svg/>"}


def test_files_lie_below_one_folder() -> None:
    with zipfile.ZipFile(io.BytesIO(pack_bundle("overrides", FILES))) as archive:
        assert archive.testzip() is None
        assert archive.namelist() == ["overrides/README.md", "overrides/flames/base-add.svg"]
        assert archive.read("overrides/README.md") == b"hello\n"
        assert all(info.external_attr >> 16 == 0o644 for info in archive.infolist())


def test_the_same_files_are_the_same_bytes() -> None:
    assert pack_bundle("x", FILES) == pack_bundle("x", FILES)


def test_a_character_that_no_encoding_has_is_no_reason_to_fail() -> None:
    with zipfile.ZipFile(io.BytesIO(pack_bundle("x", {"a.txt": "\ud800"}))) as archive:
        assert archive.read("x/a.txt") == b"?"


ADD, NEG = make_case("add"), make_case("neg")


def test_tables_have_minima_and_standard_deviations_of_both_sides() -> None:
    # Of 1 and 3 us the sample standard deviation is the square root of two.
    (visits,) = make_visits([[0.01, 0.01]])
    visits = dataclasses.replace(visits, base_s=(1e-6, 3e-6), head_s=(2e-6,))
    judgement = make_judgement(case=ADD, time=dataclasses.replace(make_time(0.02), visits=(visits,)))
    text = write_tables([judgement])
    assert "| case | base minimum, us | base std, us | branch minimum, us | branch std, us |" in text
    assert "| add | 1.000 | 1.414 | 2.000 |  |" in text


def test_without_times_there_are_only_verdicts() -> None:
    text = write_tables([make_judgement(case=ADD, time=None)])
    assert "minimum" not in text
    assert "branch against base" in text


def guide(**changes: object) -> str:
    slower, same = make_judgement(case=ADD, time=make_time(0.02)), make_judgement(case=NEG, time=make_time(0.0))
    arguments: dict[str, object] = {
        "names": {ADD: "add"},
        "differences": {ADD: compared_flame()},
        "environments": {"base": None, "branch": None},
        "command": "torchmark overrides --base /a/python",
        "untraced": {},
        **changes,
    }
    return write_guide([slower, same], **arguments)  # type: ignore[arg-type]


def test_the_guide_leads_to_the_graphs_of_what_became_slower_and_of_nothing_else() -> None:
    text = guide()
    for kind in ("difference", "base", "branch"):
        assert f"[{kind}-add.svg](flames/{kind}-add.svg) ([PNG](flames/{kind}-add.png))" in text
    assert "neg" not in text.partition("## Became slower")[2].partition("## Files")[0]


def test_it_names_the_function_that_grew_most() -> None:
    assert "most in " in guide()


def test_it_says_why_there_is_no_graph() -> None:
    text = guide(names={}, differences={}, untraced={ADD: "It <crashed>."})
    assert "no flame graph: It \\<crashed\\>." in text


def test_it_says_why_there_are_no_png_files() -> None:
    text = guide(no_png="PNG files need a font.")
    assert "There are no PNG files: PNG files need a font." in text
    assert ".png" not in text


def test_it_has_the_command_that_does_it_again() -> None:
    assert "```sh\ntorchmark overrides --base /a/python\n```" in guide()


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
