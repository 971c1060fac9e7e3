from __future__ import annotations

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from torchmark.report.text.terminal import escape_json, format_lines, printable, printable_lines

EVIL = [
    "\x1b]0;PWN\x07",
    "\x9b2J",
    "\x7f",
    "\u202e",
    "\u200b",
    "\ufeff",
    "\ud800",
    "\U000e0001",
    "\u2028",
    "\x00",
    "\r",
]
TEXTS = st.lists(st.sampled_from([*"a:# [\n\t", *"".join(EVIL), "\x1b[31m", "\x1b[8m", "::", "##[", "##vso["])).map(
    "".join
)


def is_command(line: str) -> bool:
    """As GitHub, Azure Pipelines and TeamCity read a log."""
    return line.lstrip().startswith("::") or re.search(r"##(\w*)\[", line) is not None


@pytest.mark.parametrize("text", EVIL)
def test_nothing_that_steers_a_terminal_is_left(text: str) -> None:
    assert printable(f"a{text}b").isprintable()
    for line in printable_lines(f"a{text}b", styled=True).split("\n"):
        assert line.isprintable()


@given(TEXTS)
def test_no_line_is_a_command_to_a_log(text: str) -> None:
    for line in printable_lines(text).split("\n"):
        assert line.isprintable()
        assert not is_command(line)


@pytest.mark.parametrize("text", [":\x1b[31m:error::x", "#\x1b[31m#[error]", "##\x1b[31mvso[task]"])
def test_a_style_does_not_hide_a_command(text: str) -> None:
    assert not is_command(printable_lines(text, styled=True).replace("\x1b[31m", ""))


@given(TEXTS)
def test_styled_text_has_no_more_than_styles(text: str) -> None:
    for line in printable_lines(text, styled=True).split("\n"):
        bare = line.replace("\x1b[31m", "")
        assert bare.isprintable()
        assert not is_command(bare)


@given(st.text(st.characters(categories=["L", "N", "P", "S"], exclude_characters="#:")))
def test_ordinary_text_stays_as_it_is(text: str) -> None:
    assert printable(text) == printable_lines(text) == text


@pytest.mark.parametrize(
    "text", ["a::b\n  std::f", "## Results\n### More", "a # b [c] ##", "\n\nx\n", "x: [1]", "a : : b", "[::1]"]
)
def test_what_only_looks_like_a_command_stays_as_it_is(text: str) -> None:
    assert printable_lines(text) == text


@pytest.mark.parametrize("style", ["\x1b[1m", "\x1b[2m\x1b[91m", "\x1b[1;31m", "\x1b[0m", "\x1b[32m"])
def test_styles_of_tables_stay_where_they_are_meant(style: str) -> None:
    assert printable_lines(f"a {style}b", styled=True) == f"a {style}b"
    assert "\x1b" not in printable_lines(f"a {style}b")


@pytest.mark.parametrize(
    "sequence", ["\x1b[8m", "\x1b[2J", "\x1b[5m", "\x1b[1A", "\x1b[", "\x1b[31", "\x1b]8;;x\x1b\\"]
)
def test_other_sequences_are_not_styles(sequence: str) -> None:
    assert "\x1b" not in printable_lines(sequence, styled=True)


def test_nothing_that_steers_is_left_in_lines_of_pages() -> None:
    assert format_lines("a\x1b[31m\r\n\u202eb\x00\ud800") == "a [31m\n b  "


@given(st.lists(TEXTS))
def test_json_means_the_same_and_can_be_printed(texts: list[str]) -> None:
    text = escape_json(json.dumps(texts, indent=2))
    assert json.loads(text) == texts
    assert printable_lines(text) == text
