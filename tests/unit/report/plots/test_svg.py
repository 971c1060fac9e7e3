from __future__ import annotations

from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.drawings import Drawing
from torchmark.report.plots.svg import draw_frame, element, fit, fix, label, measure_text, stand_alone, write

EVIL = "<script>alert('x')</script> & \"q\" ]]> \x00\x1b\ud800\ufffe"


@pytest.mark.parametrize(
    ("number", "expected"), [(0, "0"), (-0.04, "0"), (1.25, "1.2"), (-3.96, "-4"), (10, "10"), (0.1, "0.1")]
)
def test_coordinates_are_short(number: float, expected: str) -> None:
    assert fix(number) == expected


def test_coordinates_are_numbers() -> None:
    with pytest.raises(AssertionError):
        fix(float("nan"))


def test_texts_and_attributes_are_inert() -> None:
    drawn = draw_frame(100, 50, EVIL, EVIL, label(0, 10, EVIL), element("g", write(EVIL), fill=EVIL))
    drawing = Drawing(drawn)
    assert drawing.count("script") == 0
    assert drawing.texts[0].startswith("<script>alert('x')</script> & \"q\"")


@given(st.text(), st.text())
def test_every_text_is_well_formed(name: str, text: str) -> None:
    Drawing(draw_frame(100, 50, name or "?", text, label(0, 10, text)))
    ElementTree.fromstring(element("g", write(text), fill=name))


def test_a_file_of_its_own_has_its_colours_in_it() -> None:
    root = ElementTree.fromstring(stand_alone(draw_frame(100, 50, "A > B", "")))
    assert root[0].tag.endswith("style")
    assert "prefers-color-scheme:dark" in str(root[0].text)


@pytest.mark.parametrize(
    ("text", "room", "expected"),
    [("add", 100, "add"), ("", 0, ""), ("transpose", 0, ""), ("transpose", 40, "tran…"), ("a\tb", 100, "a b")],
)
def test_texts_are_cut_to_their_room(text: str, room: float, expected: str) -> None:
    assert fit(text, room) == expected


@given(st.text(), st.floats(0, 400), st.booleans())
def test_what_was_cut_fits(text: str, room: float, bold: bool) -> None:
    cut = fit(text, room, bold=bold)
    assert measure_text(cut) <= room + 1e-6
