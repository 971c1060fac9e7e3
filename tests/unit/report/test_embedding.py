"""What pages carry inside themselves."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from torchmark.report.html.templates import load_asset, script_json


@given(st.recursive(st.text(st.characters(codec=None)), lambda below: st.lists(below, max_size=3)))
def test_json_in_a_script_is_ascii_that_neither_html_nor_xml_takes_for_markup(value: object) -> None:
    text = script_json(value)
    assert text.isascii()
    assert not set(text) & set("<>&")


@given(st.lists(st.text(st.characters(categories=["L", "N", "P", "S"]))))
def test_texts_in_a_script_are_what_they_were(value: list[str]) -> None:
    assert json.loads(script_json([*value, "5\xa0%", "a\nb", 1, None])) == [*value, "5\xa0%", "a\nb", 1, None]


def test_texts_in_a_script_cannot_turn_lines_around() -> None:
    assert json.loads(script_json({"a\x1b": ["\u202eb\x00", ("\x9b",)]})) == {"a ": [" b ", [" "]]}


def test_numbers_that_are_none_are_refused() -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        script_json(float("nan"))


@pytest.mark.parametrize("name", ["flame.js", "flame.css", "flame-page.css"])
def test_assets_ask_for_nothing_and_end_neither_their_tag_nor_a_section(name: str) -> None:
    text = load_asset(name)
    for word in ("]]>", "</", "<!--", "@import", "url(", "fetch(", "innerHTML", "eval("):
        assert word not in text
    addresses = {part.split('"')[0] for part in text.split("http")[1:]}
    assert addresses <= {"://www.w3.org/1999/xhtml", "://www.w3.org/2000/svg"}


def test_an_asset_that_is_not_there_is_an_error() -> None:
    with pytest.raises(FileNotFoundError):
        load_asset("no.js")
