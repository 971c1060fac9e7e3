from __future__ import annotations

import dataclasses
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.drawings import SVG, Drawing
from tests.made_judgements import make_time, make_visits, random_times
from torchmark.analysis.verdict.explain import STAGES
from torchmark.model.judgement import Explanation, LayoutVisits, StageChange, TimeEvidence, Verdict
from torchmark.report.plots.comparison import StageBar, draw_differences, draw_stages, stack_sides


def dots(drawing: Drawing) -> int:
    """The visits that are on the axis, and the one of the legend."""
    return sum(str(one.get("d")).count("h0") for one in drawing.root.iter(f"{SVG}path"))


def test_every_layout_has_a_row_with_its_visits() -> None:
    visits = make_visits([[0.02, 0.03], [0.01]], fresh=[[0.025, 0.02, 0.015]])
    drawing = Drawing(draw_differences(dataclasses.replace(make_time(0.02), visits=visits), name="add"))
    assert {"first layouts", "fresh layouts", "1", "2", "3", "all"} <= set(drawing.texts)
    assert dots(drawing) == 6 + 1
    rows = [told for told in drawing.titles if told.startswith("Layout")]
    assert rows[0] == "Layout 1: +2.5 % in 2 visits (+2.0 %, +3.0 %)"
    assert rows[1] == "Layout 2: +1.0 % in 1 visit"
    assert drawing.words == (
        "add. Slower: +2.0 %, 99 % interval +1.6 % to +2.4 %, about +20 ns a run. 3 layouts, 1 of them fresh, from "
        "+1.0 % to +2.5 %."
    )


def test_one_kind_of_layouts_needs_no_heading() -> None:
    drawing = Drawing(draw_differences(dataclasses.replace(make_time(0.02), visits=make_visits([[0.02], [0.01]]))))
    assert "first layouts" not in drawing.texts


def test_the_axis_is_in_per_cent_and_in_time() -> None:
    drawing = Drawing(draw_differences(make_time(0.05, base_s=1e-6)))
    assert any(text.endswith(" %") and text.startswith("+") for text in drawing.texts)
    assert any(text.endswith(" ns") for text in drawing.texts)


def test_a_visit_that_is_far_off_is_an_arrow_at_the_end() -> None:
    layouts = [[0.001 * i, 0.001 * i + 0.001] for i in range(6)]
    near = dataclasses.replace(make_time(0.003), visits=make_visits(layouts))
    far = dataclasses.replace(near, visits=make_visits([*layouts[:5], [0.005, 5.0, -0.9]]))
    drawing = Drawing(draw_differences(far))
    assert dots(drawing) == 11 + 1
    arrows = [one for one in drawing.root.iter(f"{SVG}path") if str(one.get("d")).endswith("v7z")]
    assert len(arrows) == 2
    drawing.check_bounds()


@pytest.mark.parametrize("verdict", Verdict)
def test_the_verdict_is_told_in_a_word(verdict: Verdict) -> None:
    heading = Drawing(draw_differences(make_time(-0.02, verdict=verdict))).texts
    word = "the same" if verdict is Verdict.SAME else verdict.value
    assert f"{word}, −2.0 %" in heading


def test_times_that_were_not_taken_in_turns_have_an_interval_alone() -> None:
    drawing = Drawing(draw_differences(make_time(0.2, 0.05, layouts=0)))
    assert "a visit" not in drawing.texts
    assert drawing.words.endswith("Both sides did not run in turns.")


def test_an_interval_without_ends_goes_to_the_ends_of_the_axis() -> None:
    drawing = Drawing(draw_differences(make_time(0.0, math.inf)))
    bands = [one for one in drawing.root.iter(f"{SVG}rect") if one.get("fill-opacity") == "0.2"]
    assert float(str(bands[0].get("width"))) > 200
    drawing.check_bounds()


RATIOS = st.floats(-5, 5) | st.floats() | st.sampled_from([0.0, 1e300, -1e300])
LAYOUTS = st.lists(st.builds(LayoutVisits, st.lists(RATIOS, max_size=4).map(tuple), RATIOS, st.booleans()), max_size=8)


@settings(deadline=None)
@given(random_times, LAYOUTS)
def test_every_difference_is_well_formed(time: TimeEvidence, layouts: list[LayoutVisits]) -> None:
    Drawing(draw_differences(dataclasses.replace(time, visits=tuple(layouts)))).check_bounds()


BASE = StageBar("base", {"interpreter": 300, "kernel": 100, "other": 0})
HEAD = StageBar("head", {"interpreter": 250, "kernel": 550})
BAR = "20"


def bars(drawing: Drawing) -> list[float]:
    return [float(str(one.get("width"))) for one in drawing.root.iter(f"{SVG}rect") if one.get("height") == BAR]


def test_bars_are_to_one_scale() -> None:
    drawing = Drawing(draw_stages([BASE, HEAD]))
    # 344 pixels for 800 instructions; a pixel of each is what they are cut by.
    assert bars(drawing) == [128, 42, 106.5, 235.5]
    assert {"400", "800", "base", "head", "change", "−50", "+450"} <= set(drawing.texts)
    # What nobody has is not listed.
    assert "other" not in drawing.texts


def test_one_side_has_no_change() -> None:
    drawing = Drawing(draw_stages([BASE], name="add"))
    assert "change" not in drawing.texts
    assert drawing.words == "add. base: 400 instructions; interpreter 300, kernel 100."
    assert "base, interpreter: 300 (75.0 %)" in drawing.titles


def test_large_numbers_are_short() -> None:
    texts = Drawing(draw_stages([StageBar("base", {"kernel": 3.21e9}), StageBar("head", {"kernel": 1.05e9})])).texts
    assert {"3.21 G", "1.05 G", "−2.16 G"} <= set(texts)


def test_both_sides_of_an_explanation() -> None:
    explanation = Explanation((), (StageChange("kernel", 10, 60), StageChange("other", 5, 5)))
    assert stack_sides(explanation) == (
        StageBar("base", {"kernel": 10, "other": 5}),
        StageBar("head", {"kernel": 60, "other": 5}),
    )


@pytest.mark.parametrize("stacks", [[], [StageBar("a", {})], [StageBar("a", {"kernel": 0})]])
def test_nothing_is_drawn_of_nothing(stacks: list[StageBar]) -> None:
    assert bars(Drawing(draw_stages(stacks))) == []


@given(
    st.lists(
        st.builds(
            StageBar,
            st.text(),
            st.dictionaries(st.sampled_from(STAGES) | st.text(), st.floats(0, 1e12) | st.floats(), max_size=12),
        ),
        max_size=2,
    )
)
def test_every_stack_is_well_formed(stacks: list[StageBar]) -> None:
    drawing = Drawing(draw_stages(stacks))
    drawing.check_bounds()
    assert all(0 <= width <= 344 for width in bars(drawing))
