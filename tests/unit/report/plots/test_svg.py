"""Colours can be told apart by everybody, and be seen on their grounds."""

from __future__ import annotations

import itertools
import math
import re
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.drawings import Drawing
from torchmark.analysis.verdict.explain import STAGES
from torchmark.model.judgement import Side, Verdict
from torchmark.report.plots.svg import (
    GROUND,
    INK,
    SIDES,
    STAGE_SHADES,
    VERDICTS,
    Shade,
    colour,
    draw_frame,
    element,
    fit,
    fix,
    label,
    measure_text,
    stage_colour,
    stand_alone,
    style_sheet,
    write,
)

# How the world looks to those who lack one kind of cone, after Machado, Oliveira and Fernandes (2009).
VISION = {
    "all": ((1, 0, 0), (0, 1, 0), (0, 0, 1)),
    "no long": ((0.152, 1.053, -0.205), (0.115, 0.786, 0.099), (-0.004, -0.048, 1.052)),
    "no middle": ((0.367, 0.861, -0.228), (0.280, 0.673, 0.047), (-0.012, 0.043, 0.969)),
    "no short": ((1.256, -0.077, -0.179), (-0.078, 0.931, 0.147), (0.005, 0.691, 0.304)),
}
# In units of CIELAB; two are a difference that is just seen.
APART = 9.5
WHITE, BLACK = "#ffffff", "#111111"


def linear(code: str) -> tuple[float, ...]:
    parts = [int(code[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    return tuple(part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)


def luminance(code: str) -> float:
    red, green, blue = linear(code)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    dark, light = sorted((luminance(one), luminance(other)))
    return (light + 0.05) / (dark + 0.05)


def perceive(code: str, matrix: tuple[tuple[float, ...], ...]) -> tuple[float, float, float]:
    """In CIELAB, under daylight."""
    parts = linear(code)
    red, green, blue = (min(max(sum(m * p for m, p in zip(row, parts, strict=True)), 0), 1) for row in matrix)
    x = (0.4124 * red + 0.3576 * green + 0.1805 * blue) / 0.9505
    y = 0.2126 * red + 0.7152 * green + 0.0722 * blue
    z = (0.0193 * red + 0.1192 * green + 0.9505 * blue) / 1.089
    fx, fy, fz = (t ** (1 / 3) if t > 0.008856 else 7.787 * t + 16 / 116 for t in (x, y, z))
    return 116 * fy - 16, 500 * (fx - fy), 200 * (fy - fz)


@pytest.mark.parametrize("vision", VISION)
@pytest.mark.parametrize("ground", ["light", "dark"])
@pytest.mark.parametrize("shades", [STAGE_SHADES, VERDICTS, SIDES], ids=["stages", "verdicts", "sides"])
def test_colours_are_told_apart(shades: dict[object, Shade], ground: str, vision: str) -> None:
    seen = {name: perceive(getattr(shade, ground), VISION[vision]) for name, shade in shades.items()}
    for one, other in itertools.combinations(seen, 2):
        assert math.dist(seen[one], seen[other]) > APART, (one, other)


@pytest.mark.parametrize("shade", [*VERDICTS.values(), *SIDES.values(), INK])
def test_colours_of_texts_can_be_read_on_both_grounds(shade: Shade) -> None:
    assert contrast(shade.light, GROUND.light) >= 4.5
    assert contrast(shade.dark, GROUND.dark) >= 4.5


@pytest.mark.parametrize("shade", [*STAGE_SHADES.values(), *VERDICTS.values(), *SIDES.values()])
def test_every_colour_is_seen_on_every_ground(shade: Shade) -> None:
    assert contrast(shade.light, GROUND.light) >= 3
    assert contrast(shade.dark, GROUND.dark) >= 3
    # Where the ground is not known, on white and on black.
    assert min(contrast(shade.either, WHITE), contrast(shade.either, BLACK)) >= 3


def test_all_that_drawings_name_is_in_the_style_sheet() -> None:
    named = [colour(verdict) for verdict in Verdict] + [colour(side) for side in Side] + list(map(stage_colour, STAGES))
    sheet = style_sheet()
    for value in named:
        found = re.fullmatch(r"var\((--tm-[a-z-]+),#[0-9a-f]{6}\)", value)
        assert found
        assert sheet.count(f"{found[1]}:") == 2
    assert len(set(named)) == len(named)


def test_a_stage_that_nobody_knows_has_the_colour_of_all_others() -> None:
    assert stage_colour("}</style>") == stage_colour("other")


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
