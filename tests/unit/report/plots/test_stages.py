from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.drawings import SVG, Drawing
from torchmark.analysis.verdict.explain import STAGES
from torchmark.model.judgement import Explanation, StageChange
from torchmark.report.plots.comparison import StageBar, draw_stages, stack_sides

BASE = StageBar("base", {"interpreter": 300, "kernel": 100, "other": 0})
HEAD = StageBar("head", {"interpreter": 250, "kernel": 550})
BAR = "20"


def bars(drawing: Drawing) -> list[float]:
    return [float(str(one.get("width"))) for one in drawing.root.iter(f"{SVG}rect") if one.get("height") == BAR]


def test_bars_are_to_one_scale() -> None:
    drawing = Drawing(draw_stages([BASE, HEAD], width=416))
    # 400 pixels for 800 instructions; a pixel of each is what they are cut by.
    assert bars(drawing) == [149, 49, 124, 274]
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
