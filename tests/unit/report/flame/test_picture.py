"""Where frames are."""

from __future__ import annotations

import sys
from typing import Any

import pytest
from hypothesis import given, settings

from tests.made_flames import DEEP, compared_flame, flames, hostile_flame, make_deep_stacks, make_stacks, plain_flame
from tests.pictures import Pixel, read_rows, read_size
from torchmark.analysis.flames import count_frames, draw_one, grow
from torchmark.errors import SetupError
from torchmark.model.costs import Flame, Frame
from torchmark.report.flame import picture
from torchmark.report.flame.page import round_to_runs
from torchmark.report.flame.picture import MOST_PIXELS, WIDTH, compose, lay_out, open_renderer, render_png


def test_frames_are_as_wide_as_what_is_spent_in_them() -> None:
    boxes = lay_out(plain_flame().root)
    widths = [(box.depth, box.node.frame.name.split("(")[0], round(box.width * 1000.5, 6)) for box in boxes]
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
    assert [round(box.left * 1000.5, 6) for box in boxes] == [0, 0, 0, 0, 0, 400, 690.5, 800.5]


def test_of_two_sides_each_frame_itself_is_as_wide_as_on_the_larger_one() -> None:
    boxes = {(box.depth, box.node.frame.name): box for box in lay_out(compared_flame().root)}
    # 1000.5 of base, and 120 that the hook grew by; what shrank and what is gone keeps its width.
    whole = 1120.5
    assert boxes[2, "Sub.__torch_function__"].width * whole == pytest.approx(810.5)
    assert boxes[2, "at::old_path()"].width * whole == pytest.approx(110)


def test_narrow_frames_are_left_out_with_all_below_them() -> None:
    root = plain_flame().root
    assert len(lay_out(root, 0.05)) == count_frames(root) - 1
    assert [box.node for box in lay_out(root, 1.0)] == [root, root.children[0]]


def test_a_graph_of_nothing_is_its_root() -> None:
    (box,) = lay_out(grow(make_stacks()))
    assert (box.left, box.width) == (0, 1)


@settings(max_examples=30)
@given(flames())
def test_frames_lie_within_their_callers_and_do_not_overlap(flame: Flame) -> None:
    boxes = lay_out(flame.root, 0)
    if lay_out(flame.root)[0].width and flame.root.value + (flame.root.base_value or 0):
        assert len(boxes) == count_frames(flame.root)
    by_node = {id(box.node): box for box in boxes}
    ends: dict[int, float] = {}
    for box in boxes:
        if box.parent is not None:
            above = by_node[id(box.parent)]
            assert above.depth == box.depth - 1
            assert box.left >= above.left - 1e-9
            assert box.left + box.width <= above.left + above.width + 1e-9
        assert box.left >= ends.get(box.depth, 0) - 1e-9
        ends[box.depth] = box.left + box.width


def test_a_chain_of_calls_may_be_as_deep_as_it_likes() -> None:
    boxes = lay_out(grow(make_deep_stacks()))
    assert (len(boxes), boxes[-1].depth) == (DEEP + 1, DEEP)
    assert round_to_runs(grow(make_deep_stacks(leaf=1000)), 10).value == 100


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
    for top, bottom in ((0, picture.top), (picture.bottom, picture.height)):
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
    flame = draw_one(make_stacks((chain, 100)), "tall", "")
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
