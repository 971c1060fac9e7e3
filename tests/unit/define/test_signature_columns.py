from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from torchmark.define.signature import COLUMN_WIDTH, join_stmts, parse_stmts
from torchmark.errors import DefinitionError

HEADING = "Python                                   | C++"
RULE = f"{'-' * 40} | {'-' * 40}"
CHARACTERS = st.characters(
    min_codepoint=32, max_codepoint=0x2FF, exclude_categories=("Cc", "Zs"), include_characters=" "
)
CODE = st.text(st.one_of(st.just("|"), CHARACTERS))
LINES = st.lists(CODE.map(str.rstrip), min_size=1, max_size=5)
WIDE = "x = torch.ones((4, 4)) | torch.ones((4, 4)) | 1"


def block(*rows: str, heading: str = HEADING, rule: str = RULE) -> str:
    return "\n".join((heading, rule, *rows))


def row(python: str, cpp: str, width: int = COLUMN_WIDTH) -> str:
    return f"{python:<{width}} | {cpp}".rstrip()


def test_columns_are_taken_apart_wherever_the_text_stands() -> None:
    text = """
        Python                                   | C++
        ---------------------------------------- | ----------------------------------------
        # @setup                                 | // @setup
        if x | y:                                |
            z = 1                                | auto z = torch::ones({4}).view({2, 2}).transpose(0, 1).contiguous();

                                                 |     z;
    """
    python, cpp = parse_stmts(text)
    assert [line.rstrip() for line in python.split("\n")] == ["# @setup", "if x | y:", "    z = 1", "", ""]
    assert {len(line) for line in python.split("\n")} == {40}
    long = "auto z = torch::ones({4}).view({2, 2}).transpose(0, 1).contiguous();"
    assert cpp.split("\n") == ["// @setup", "", long, "", "    z;"]


def test_the_heading_decides_how_wide_the_python_is() -> None:
    text = f"Python{' ' * 41} | C++\n{'-' * 47} | ---\n{WIDE:<47} | y;"
    assert parse_stmts(text) == (WIDE, "y;")
    assert parse_stmts("Python  | C++\n------- | -\nx = 1   | y;") == ("x = 1  ", "y;")


@pytest.mark.parametrize(
    ("text", "problem", "place"),
    [
        ("", "Invalid string:", None),
        (f"{HEADING}\n{RULE}", "Invalid string:", None),
        (block(row("x", "y"), heading="Python"), "the pattern ^", ("Python", 0)),
        (block(row("x", "y"), heading=HEADING.replace("C++", "Cpp")), "Invalid column names", (HEADING[:-2] + "pp", 0)),
        (block(row("x", "y"), rule="-" * 83), "Invalid separator", ("-" * 83, 0)),
        (block(row("x", "y"), rule=f"{'-' * 39} | ---"), "Invalid separator", (f"{'-' * 39} | ---", 0)),
        (block("x = 1"), "Invalid line `x = 1`: there is no `|`", ("x = 1", 5)),
        (block(row("x", "y"), row("x" * 41, "y")), "longer than its column of 40", (row("x" * 41, "y"), 41)),
        (block(row("x", "y", 39)), "does not stand below", (row("x", "y", 39), 41)),
        (block(f"{'x':<40} |y"), "a space has to follow", (f"{'x':<40} |y", 42)),
    ],
)
def test_what_is_not_in_columns_is_shown(text: str, problem: str, place: tuple[str, int] | None) -> None:
    with pytest.raises(DefinitionError) as caught:
        parse_stmts(text)
    assert problem in str(caught.value)
    assert ((caught.value.text, caught.value.position) if place else None) == place


@pytest.mark.parametrize("text", [None, 3, b"Python"])
def test_columns_are_a_text(text: object) -> None:
    with pytest.raises(DefinitionError, match="are a text, not"):
        parse_stmts(text)  # type: ignore[arg-type]


@given(LINES, LINES)
def test_what_was_put_together_comes_apart(left: list[str], right: list[str]) -> None:
    python, cpp = parse_stmts(join_stmts("\n".join(left), "\n".join(right)))
    length = max(len(left), len(right))
    assert [line.rstrip() for line in python.split("\n")] == left + [""] * (length - len(left))
    assert [line.rstrip() for line in cpp.split("\n")] == right + [""] * (length - len(right))


@given(LINES, LINES, st.integers(COLUMN_WIDTH, 60))
def test_what_was_taken_apart_goes_together(left: list[str], right: list[str], width: int) -> None:
    width = max(width, *map(len, left))
    rows = [row(one, two, width) for one, two in zip(left, right, strict=False)]
    text = block(*rows, heading=row("Python", "C++", width), rule=row("-" * width, "-" * COLUMN_WIDTH, width))
    assert join_stmts(*parse_stmts(text)) == text


@given(st.one_of(st.text(), st.lists(st.text(alphabet="x| -\t\r", max_size=50)).map(lambda rows: block(*rows))))
def test_any_text_is_columns_or_a_definition_error(text: str) -> None:
    try:
        python, cpp = parse_stmts(text)
    except DefinitionError:
        return
    assert python.count("\n") == cpp.count("\n")
