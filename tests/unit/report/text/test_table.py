"""The table that all others are made with: what gives way, and that names are told apart."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from torchmark.report.text.counts import fit_name
from torchmark.report.text.table import TextColumn, TextRow, TextTable
from torchmark.report.text.terminal import measure, printable

NAME = TextColumn("case", left=True, least=16)
NUMBERS = [TextColumn("time"), TextColumn("±", gap=1), TextColumn("instructions")]
CELLS = {"time": "1.51 us", "±": "0.3%", "instructions": "1,234"}


def render(names: list[str], width: int, **options: object) -> list[str]:
    rows = [TextRow({"case": name, **CELLS}) for name in names]
    return TextTable([NAME, *NUMBERS], rows, width, name="case", gives_way=["±"], **options).lines()  # type: ignore[arg-type]


def test_numbers_stand_at_the_right_of_their_columns_and_names_at_the_left() -> None:
    assert render(["add", "Linear"], 80) == [
        "case       time    ±  instructions",
        "add     1.51 us 0.3%         1,234",
        "Linear  1.51 us 0.3%         1,234",
    ]


def test_a_name_that_does_not_fit_stands_above_its_numbers_whole() -> None:
    assert render(["add", "Pointwise / Math / transpose / Case: 0"], 44) == [
        "case                 time    ±  instructions",
        "add               1.51 us 0.3%         1,234",
        "Pointwise / Math / transpose / Case: 0",
        "                  1.51 us 0.3%         1,234",
    ]


def test_a_name_longer_than_the_line_takes_several() -> None:
    assert render(["a" * 50], 40)[1:] == ["a" * 40, "a" * 10, "                   1.51 us         1,234"]


def test_columns_give_way_in_their_order_and_the_rest_takes_their_room() -> None:
    columns = [TextColumn("name", left=True, least=4), TextColumn("a"), TextColumn("b"), TextColumn("c")]
    rows = [TextRow({"name": "transpose", "a": "1" * 5, "b": "2" * 5, "c": "3" * 5})]
    tables = {width: TextTable(columns, rows, width, name="name", gives_way=["b", "a"]) for width in (30, 24, 17, 8)}
    assert {width: table.left_out for width, table in tables.items()} == {
        30: (),
        24: ("b",),
        17: ("b", "a"),
        8: ("b", "a"),
    }
    assert tables[24].lines()[1] == "transpose  11111  33333"
    assert tables[17].lines()[1] == "transpose  33333"
    assert [tables[width].is_tight for width in (30, 24, 17, 8)] == [False, False, False, True]


def test_a_column_that_may_shrink_is_cut_and_a_spare_one_takes_what_is_left() -> None:
    columns = [
        TextColumn("run"),
        TextColumn("torch", left=True, least=4),
        TextColumn("note", left=True, least=6, spare=True),
    ]
    rows = [TextRow({"run": "1", "torch": "2.13.0+cpu", "note": "x" * 40})]
    lines = {width: TextTable(columns, rows, width, gives_way=["torch"]).lines()[1] for width in (12, 22, 26)}
    assert lines == {12: "  1  2.13.0…", 22: "  1  2.13.0+cpu", 26: "  1  2.13.0+cpu  xxxxxxxx…"}


def test_headings_are_said_once_and_stand_above_what_follows() -> None:
    rows = [TextRow({"case": name, "time": "1"}, heading=name[0], aside="C++") for name in ("ab", "ac", "b")]
    lines = TextTable([NAME, NUMBERS[0]], rows, 80, name="case", colour=True).lines()
    assert lines == [
        "\033[1mcase    time\033[0m",
        "\033[1ma\033[0m",
        "ab C++     1",
        "ac C++     1",
        "\033[1mb\033[0m",
        "b  C++     1",
    ]


def test_a_text_may_take_the_place_of_all_columns_but_the_first() -> None:
    columns = [TextColumn("verdict", "", left=True), NAME, NUMBERS[0]]
    rows = [
        TextRow({"verdict": "slower", "case": "add", "time": "1"}, style="\033[31m"),
        TextRow({"verdict": "failed"}, instead=["mul: no", "  such type"]),
    ]
    assert TextTable(columns, rows, 40, name="case", colour=True).lines()[1:] == [
        "\033[31mslower\033[0m  add      1",
        "failed  mul: no",
        "          such type",
    ]


# Names as they are printed. What differs in blanks alone looks the same wherever it is shown.
NAMES = st.lists(
    st.text(st.sampled_from("ab: /加e\u0301\u2cef\ufe0f") | st.characters(), max_size=90).map(printable),
    max_size=5,
    unique_by=lambda name: "".join(name.split()),
)
WIDTHS = st.integers(40, 120)


def find_names(lines: list[str]) -> list[str]:
    """What is shown of names: rows end with their only number, which stands in no name."""
    return re.split(r"1\.51 us|#", "".join("".join(lines).split()))[:-1]


@given(NAMES, WIDTHS)
@example(["a" * 80 + ": 0", "a" * 80 + ": 1"], 40)
def test_every_name_is_shown_whole_and_every_line_fits(names: list[str], width: int) -> None:
    names = [name.replace("#", "") for name in names]
    rows = [TextRow({"case": name, "time": "#"}) for name in names]
    lines = TextTable([NAME, TextColumn("time", "")], rows, width, name="case").lines()
    assert max(map(measure, lines), default=0) <= width
    assert find_names(lines[1:]) == ["".join(name.split()) for name in names]


@given(NAMES, WIDTHS, st.sampled_from([fit_name, lambda name, width: name[: width // 2]]))
@example(["a" * 80 + ": 0" + "a" * 80, "a" * 80 + ": 1" + "a" * 80], 40, fit_name)
def test_names_that_are_shortened_are_told_apart(
    names: list[str], width: int, shorten: Callable[[str, int], str]
) -> None:
    rows = [TextRow({"time": "#", "case": name.replace("#", "")}) for name in names]
    lines = TextTable([TextColumn("time", ""), NAME], rows, width, name="case", shorten=shorten).lines()
    assert max(map(measure, lines), default=0) <= width
    shown = ["".join(text.split()) for text in "\n".join(lines[1:]).split("#")[1:]]
    assert len(set(shown)) == len({"".join(row.cells["case"].split()) for row in rows})


@pytest.mark.parametrize("number", ["1" * 36, "1" * 60])
def test_numbers_without_room_beside_them_leave_names_lines_of_their_own(number: str) -> None:
    rows = [TextRow({"time": number, "case": name}) for name in ("at::native::add", "at::native::mul")]
    lines = TextTable([TextColumn("time"), NAME], rows, 40, name="case", shorten=fit_name).lines()
    assert max(map(measure, lines)) <= 40
    assert [line for line in lines if "at" in line] == ["  at::native::add", "  at::native::mul"]
