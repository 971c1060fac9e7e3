"""What pages carry inside themselves."""

from __future__ import annotations

import json
from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from torchmark import Compare, Measurement, TaskSpec
from torchmark.report.html.templates import format_code, load_asset, script_json, split_first_sentence


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


EVIL = "<script>alert('x')</script> & \"q\""


class Outline(HTMLParser):
    """Collects tags and text, and checks that every tag is closed in order."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.open: list[str] = []
        self.text = ""
        self.feed(html)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def html_of(shown: Measurement | Compare) -> Outline:
    return Outline(shown._repr_html_())


def test_a_measurement_shows_its_numbers_and_a_histogram() -> None:
    times = [1e-6 * t for t in (1.0, 1.1, 1.05, 1.02, 1.2, 1.07, 1.03, 1.01, 1.09)]
    outline = html_of(Measurement(1, times, TaskSpec("x + y", "x = 1", label="add", description="small")))
    assert outline.tags.count("svg") == 1
    assert outline.tags.count("rect") == 3
    for text in ("add", "small", "setup: x = 1", "1.05 us", "95 % interval", "9 samples of 1 run, 1 thread", "1.20 us"):
        assert text in outline.text


def test_caveats_are_shown_in_words() -> None:
    assert "an interval of the median takes 6" in html_of(Measurement(1, [1.0, 2.0], TaskSpec("x", ""))).text


@pytest.mark.parametrize("times", [[], [1.0], [0.0, 0.0], [1.0, 1.0]])
def test_few_and_equal_samples_are_shown_too(times: list[float]) -> None:
    assert "x" in html_of(Measurement(1, times, TaskSpec("x", ""))).text


def test_nobody_can_smuggle_in_markup() -> None:
    spec = TaskSpec(EVIL, EVIL, label=EVIL, sub_label=EVIL, description=EVIL, env=EVIL)
    for shown in (Measurement(1, [1.0], spec), Compare([Measurement(1, [1.0], spec)])):
        outline = html_of(shown)
        assert "script" not in outline.tags
        assert EVIL in outline.text


def test_a_comparison_is_a_table_a_label() -> None:
    results = [
        Measurement(1, [t], TaskSpec(name, "", label=label, env=env))
        for label in ("a", "b")
        for name, t, env in (("x", 1.0, "e"), ("y", 9.0, None))
    ]
    comparison = Compare(results)
    comparison.colorize()
    outline = html_of(comparison)
    assert outline.tags.count("table") == 2
    assert "Unspecified env" in outline.text
    comparison.highlight_warnings()
    html = comparison._repr_html_()
    assert html.count("color: #1a7f37") == 2
    assert html.count("color: #cf222e") == 2


def test_what_stands_in_backticks_is_code_and_its_markup_is_text() -> None:
    outline = Outline(format_code(f"Try `{EVIL}` & {EVIL}, or `a`."))
    assert outline.tags == ["code", "code"]
    assert outline.text == f"Try {EVIL} & {EVIL}, or a."


@pytest.mark.parametrize("text", ["a ` alone", "empty ``", "over `two\nlines`"])
def test_backticks_that_are_not_around_a_line_of_code_stay(text: str) -> None:
    assert format_code(text) == text


def test_a_number_or_a_name_does_not_end_a_sentence() -> None:
    assert split_first_sentence("at::add of 1.5 us. `x` is slow. So be it.") == (
        "at::add of 1.5 us.",
        "`x` is slow. So be it.",
    )
