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
    Figure,
    Markup,
    Shade,
    Span,
    colour,
    element,
    find_limits,
    find_ticks,
    fit,
    fix,
    label,
    label_ticks,
    measure_text,
    scale_times,
    stage_colour,
    style_sheet,
    widen,
    write,
)

NUMBERS = st.floats(-1e99, 1e99)


def test_values_are_where_they_belong() -> None:
    span = Span(-1.0, 1.0, 10.0, 110.0)
    assert [span.at(value) for value in (-1.0, 0.0, 0.5, 1.0)] == [10.0, 60.0, 85.0, 110.0]
    assert (span.at(-9.0), span.at(math.inf)) == (10.0, 110.0)
    assert (span.has(1.0), span.has(1.1)) == (True, False)


def test_what_is_far_off_is_left_out_unless_it_is_a_mode_of_its_own() -> None:
    most = [1.0 + i / 100 for i in range(45)]
    # The middle half reaches from 1.12 to 1.34, so that the fences are about 0.3 and 2.
    assert find_limits([[*most, 9.0, 9.1]]) == (1.0, 1.44)
    assert find_limits([[*most, *[9.0] * 5]]) == (1.0, 9.0)
    assert find_limits([[*most, *[9.0] * 5]], rare=0.5) == (1.0, 1.44)
    assert find_limits([most, [3.0]]) == (1.0, 3.0)


@pytest.mark.parametrize(
    ("groups", "expected"), [([], None), ([[]], None), ([[2.0]], (2, 2)), ([[1.0, 1.0, 5.0]], (1, 5))]
)
def test_few_and_equal_values_have_limits(groups: list[list[float]], expected: tuple[float, float] | None) -> None:
    assert find_limits(groups) == expected


@given(NUMBERS, NUMBERS)
def test_an_axis_has_a_length(one: float, other: float) -> None:
    low, high = widen(*sorted((one, other)))
    assert low < high
    assert low <= min(one, other)
    assert high >= max(one, other)
    assert math.isfinite(Span(low, high, 0.0, 100.0).at(one))


def test_marks_tell_their_unit_once() -> None:
    span = Span(1.0e-6, 1.2e-6, 0.0, 300.0)
    scale = scale_times(span.low, span.high)
    marks = label_ticks(span, scale.length_s, scale.unit)
    assert [text for _, text in marks] == ["1.00", "1.05", "1.10", "1.15", "1.20 us"]
    signed = label_ticks(Span(-0.02, 0.02, 0.0, 400.0), 0.01, "%", signed=True)
    assert [text for _, text in signed] == ["−2", "−1", "0", "+1", "+2 %"]


FINITE = st.floats(allow_nan=False, allow_infinity=False)


@pytest.mark.parametrize(
    ("low", "high", "most", "expected"),
    [
        # Steps of 1 would be eleven marks, of 2 six, of 5 three.
        (0, 10, 11, tuple(range(11))),
        (0, 10, 6, (0, 2, 4, 6, 8, 10)),
        (0, 10, 5, (0, 5, 10)),
        (0, 10, 2, (0, 10)),
        # From 3 on, the first multiple of 20 is 20.
        (3, 97, 5, (20, 40, 60, 80)),
        (-0.013, 0.021, 4, (-0.01, 0.0, 0.01, 0.02)),
        (1.02e-6, 1.13e-6, 6, (1.02e-6, 1.04e-6, 1.06e-6, 1.08e-6, 1.1e-6, 1.12e-6)),
        (-3, -1, 3, (-3, -2, -1)),
        (7, 7, 5, (7,)),
        (0, 0, 5, (0,)),
    ],
)
def test_marks_are_at_round_numbers(low: float, high: float, most: int, expected: tuple[float, ...]) -> None:
    assert find_ticks(low, high, most).values == expected


@pytest.mark.parametrize(
    ("low", "high", "most", "expected"),
    [
        (0, 1, 6, ["0.0", "0.2", "0.4", "0.6", "0.8", "1.0"]),
        (0, 1000, 3, ["0", "500", "1,000"]),
        (4990, 5010, 3, ["4,990", "5,000", "5,010"]),
        (0.01, 0.02, 3, ["0.010", "0.015", "0.020"]),
        (0, 4e12, 3, ["0", "2e+12", "4e+12"]),
        (0, 4e-12, 3, ["0", "2e-12", "4e-12"]),
    ],
)
def test_texts_have_the_decimals_that_they_need(low: float, high: float, most: int, expected: list[str]) -> None:
    ticks = find_ticks(low, high, most)
    assert [ticks.show(value) for value in ticks.values] == expected


@given(FINITE, FINITE, st.integers(2, 12))
def test_marks_are_within_the_limits_ascending_and_never_too_many(one: float, other: float, most: int) -> None:
    low, high = sorted((one, other))
    ticks = find_ticks(low, high, most)
    assert len(ticks.values) <= most
    # A hair outside is allowed, for what is there but for rounding.
    hair = 1e-8 * ticks.step if math.isfinite(ticks.step) else 0.0
    assert all(low - hair <= value <= high + hair for value in ticks.values)
    assert all(a < b for a, b in itertools.pairwise(ticks.values))
    assert all(len(ticks.show(value)) <= 18 for value in ticks.values)


@given(st.floats(-1e9, 1e9), st.floats(1e-3, 1e9), st.integers(3, 12))
def test_there_are_marks_on_every_axis_of_some_length(low: float, length: float, most: int) -> None:
    assert len(find_ticks(low, low + length, most).values) >= 1


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


def draw(name: str, description: str, *parts: Markup) -> Markup:
    figure = Figure()
    figure.add(*parts, height=50)
    return figure.close(name, description)


def test_a_figure_grows_with_what_is_added() -> None:
    figure = Figure()
    figure.add(label(0, 10, "a"), height=20)
    figure.add_legend([])
    assert figure.height == 20
    figure.add_legend([(lambda x, y: label(x, y, "·"), "a mark"), (lambda x, y: label(x, y, "·"), "another mark " * 5)])
    assert figure.height == 20 + 2 * 17


def test_texts_and_attributes_are_inert() -> None:
    drawn = draw(EVIL, EVIL, label(0, 10, EVIL), element("g", write(EVIL), fill=EVIL))
    drawing = Drawing(drawn)
    assert drawing.count("script") == 0
    assert drawing.texts[0].startswith("<script>alert('x')</script> & \"q\"")


@given(st.text(), st.text())
def test_every_text_is_well_formed(name: str, text: str) -> None:
    Drawing(draw(name or "?", text, label(0, 10, text)))
    ElementTree.fromstring(element("g", write(text), fill=name))


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
