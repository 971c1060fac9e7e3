from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.drawings import SVG, Drawing
from torchmark.report.plots.samples import FEW, Strip, draw_distributions

MANY = [1e-6 * (1 + 0.001 * i) for i in range(40)]
TIMES = st.lists(
    st.floats(1e-9, 10) | st.floats() | st.sampled_from([0.0, 5e-324, 1e308, math.nan, math.inf, -1.0]), max_size=40
)
STRIPS = st.lists(st.builds(Strip, st.text(), TIMES), max_size=3)


def test_a_strip_is_told_in_words_and_numbers() -> None:
    drawing = Drawing(draw_distributions([Strip("base", MANY)], name="add"))
    # The median of 40 is halfway between the twentieth and the next one; 95 % take ranks 13 to 26 counted from 0.
    assert drawing.words == (
        "add. base: median 1.02 us, 96 % interval 1.013 to 1.026 us, minimum 1.000 us, maximum 1.039 us, 40 samples."
    )
    assert {"base", "1.02 us, 40 samples", "median", "its interval", "minimum"} <= set(drawing.texts)


def test_samples_far_beyond_are_counted_instead_of_drawn() -> None:
    drawing = Drawing(draw_distributions([Strip("head", [*MANY, 1e-3, 2e-3])]))
    assert "1.02 us, 42 samples, 2 beyond →" in drawing.texts
    assert "2 of them not on the axis" in drawing.words
    # The axis ends with what is left, not with a millisecond.
    assert drawing.texts[-4] == "1.04 us"
    drawing = Drawing(draw_distributions([Strip("head", [*MANY, 1e-9])]))
    assert "1.02 us, 41 samples, ← 1 below" in drawing.texts


def test_sides_share_one_axis() -> None:
    drawing = Drawing(draw_distributions([Strip("base", MANY), Strip("head", [2 * one for one in MANY])]))
    paths = [str(one.get("d")) for one in drawing.root.iter(f"{SVG}path") if one.get("fill-opacity") == "0.3"]
    first, second = ([float(part.split("V")[0]) for part in path.split("H")[1:]] for path in paths)
    # Where base's bars end, head's have not begun.
    assert first[-1] < second[0]
    assert sum(text.endswith(" us") for text in drawing.texts) == 1


def test_few_samples_are_dots_and_many_are_bars() -> None:
    few = draw_distributions([Strip("a", MANY[: FEW - 1])])
    assert few.count("h0") == FEW - 1
    assert "h0" not in draw_distributions([Strip("a", MANY[:FEW])])


@pytest.mark.parametrize(
    ("samples", "words"),
    [
        ([], "no samples"),
        ([math.nan, math.inf], "no samples"),
        ([2e-6], "2.00 us, 1 sample"),
        ([1e-6, 3e-6], "2.00 us, 2 samples"),
        ([5e-3] * 30, "5.00 ms, 30 samples"),
        ([0.0] * 30, "0.00 ns, 30 samples"),
    ],
)
def test_none_few_and_equal_samples_are_drawn_too(samples: list[float], words: str) -> None:
    assert words in Drawing(draw_distributions([Strip("a", samples)])).texts


@settings(deadline=None)
@given(STRIPS)
def test_every_distribution_is_well_formed(strips: list[Strip]) -> None:
    Drawing(draw_distributions(strips)).check_bounds()
