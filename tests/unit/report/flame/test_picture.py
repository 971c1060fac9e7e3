"""Where frames are."""

from __future__ import annotations

import sys
from typing import Any

import pytest
from hypothesis import given, settings

from tests.made_flames import (
    DEEP,
    compared_flame,
    flames,
    hostile_flame,
    large_flame,
    make_deep_stacks,
    make_stacks,
    plain_flame,
)
from tests.pictures import Pixel, read_rows, read_size
from torchmark.analysis.flames import draw_flame, list_callers_first
from torchmark.errors import SetupError
from torchmark.model.costs import Flame, Frame
from torchmark.report.flame import picture
from torchmark.report.flame.picture import (
    LEAST_WIDTH,
    MOST_PIXELS,
    WIDTH,
    choose_wide,
    compose,
    find_top,
    lay_out,
    open_renderer,
    render_png,
)


def test_frames_are_as_wide_as_what_is_spent_in_them() -> None:
    boxes = lay_out(plain_flame())
    widths = [(box.depth, box.node.frame.name.split("(")[0], box.span / 100) for box in boxes]
    assert widths == [
        (0, "all", 1000.5),
        (1, "run", 1000.5),
        (2, "Sub.__torch_function__", 690.5),
        (3, "at::_ops::add_Tensor::call", 490.5),
        (4, "at::native::vectorized_loop<float>", 400),
        (4, "malloc", 40),
        (2, "at::old_path", 110),
        (2, "malloc", 100),
    ]
    assert [box.start / 100 for box in boxes] == [0, 0, 0, 0, 0, 400, 690.5, 800.5]


def test_of_two_sides_each_frame_itself_is_as_wide_as_on_the_larger_one() -> None:
    boxes = {(box.depth, box.node.frame.name): box for box in lay_out(compared_flame())}
    # 1000.5 of base, and 120 that the hook grew by; what shrank and what is gone keeps its width.
    assert boxes[0, "all"].span == 112_050
    assert boxes[2, "Sub.__torch_function__"].span == 81_050
    assert boxes[2, "at::old_path()"].span == 11_000


def test_narrow_frames_are_left_out_with_all_below_them() -> None:
    boxes = lay_out(large_flame(20_000))
    wide = {box.number for box in choose_wide(boxes)}
    assert 20 < len(wide) < len(boxes)
    for box in boxes:
        assert (box.number in wide) is (box.span >= LEAST_WIDTH * boxes[0].span)
    drawn = {id(boxes[number].node) for number in wide}
    assert all(id(boxes[number].parent) in drawn for number in wide if number)


def test_a_graph_of_nothing_is_its_root() -> None:
    stacks = make_stacks()
    boxes = lay_out(draw_flame(stacks, "nothing"))
    assert [(box.start, box.span) for box in boxes] == [(0, 0)]
    assert choose_wide(boxes) == boxes
    none_spent = draw_flame(make_stacks(((Frame("f"),), 0)), "nothing")
    assert len(choose_wide(lay_out(none_spent))) == 1


@settings(max_examples=30)
@given(flames())
def test_frames_lie_within_their_callers_and_do_not_overlap(flame: Flame) -> None:
    boxes = lay_out(flame)
    assert [box.number for box in boxes] == list(range(len(list_callers_first(flame.root))))
    by_node = {id(box.node): box for box in boxes}
    ends: dict[int, int] = {}
    for box in boxes:
        if box.parent is not None:
            above = by_node[id(box.parent)]
            assert above.depth == box.depth - 1
            assert above.start <= box.start <= box.start + box.span <= above.start + above.span
        assert box.start >= ends.get(box.depth, 0)
        ends[box.depth] = box.start + box.span


def test_a_chain_of_calls_may_be_as_deep_as_it_likes() -> None:
    boxes = lay_out(draw_flame(make_deep_stacks(), "deep"))
    assert (len(boxes), boxes[-1].depth) == (DEEP + 1, DEEP)


WHITE, RED = (255, 255, 255), (0xA3, 0x16, 0x21)


@pytest.fixture(scope="module")
def difference() -> list[list[Pixel]]:
    return list(read_rows(render_png(compared_flame(), open_renderer())))


def test_a_picture_is_twice_as_large_as_the_svg_and_has_the_colours_of_a_light_page(
    difference: list[list[Pixel]],
) -> None:
    assert (len(difference[0]), len(difference)) == (2 * WIDTH, 2 * compose(compared_flame()).height)
    assert difference[0][0] == WHITE
    # What became more is red: two thirds of the width.
    assert max(row.count(RED) for row in difference) > WIDTH


def test_title_and_legend_have_text(difference: list[list[Pixel]]) -> None:
    picture = compose(compared_flame())
    for top, bottom in ((0, find_top(picture.heading)), (picture.bottom, picture.height)):
        inked = {i for row in difference[2 * top : 2 * bottom] for i, pixel in enumerate(row) if sum(pixel) < 200}
        assert len(inked) > 100


def test_the_picture_has_no_controls() -> None:
    written: list[str] = []

    def render(svg_string: str, **_: Any) -> bytes:
        written.append(svg_string)
        return b""

    render_png(plain_flame(), render)
    assert "<script" not in written[0]
    assert "Search" not in written[0]


def test_any_text_can_be_in_a_picture() -> None:
    assert read_size(render_png(hostile_flame(), open_renderer()))[0] == 2 * WIDTH


def test_a_tall_graph_gets_a_smaller_picture_and_not_more_memory() -> None:
    zooms: list[float] = []

    def render(svg_string: str, *, zoom: float, **_: Any) -> bytes:
        zooms.append(zoom)
        return b""

    chain = tuple(Frame(f"f{i}") for i in range(5000))
    flame = draw_flame(make_stacks((chain, 100)), "tall", "")
    render_png(flame, render)
    assert zooms[0] ** 2 * WIDTH * compose(flame).height == pytest.approx(MOST_PIXELS)


def test_without_the_package_it_is_said_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "resvg_py", None)
    with pytest.raises(SetupError, match=r"pip install 'torchmark\[png\]'") as caught:
        open_renderer()
    assert caught.value.exit_code == 3


def test_without_a_font_there_is_no_picture_without_text(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(picture, "MONO", ("Nobody's Mono",))
    with pytest.raises(SetupError, match="fonts-dejavu-core"):
        open_renderer()
