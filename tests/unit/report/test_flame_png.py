from __future__ import annotations

import sys
from typing import Any

import pytest

from tests.made_flames import compared_flame, hostile_flame, make_stacks, plain_flame
from tests.pictures import Pixel, read_rows, read_size
from torchmark.analysis.flames import draw_one
from torchmark.errors import SetupError
from torchmark.model.flame import Frame
from torchmark.report.flame import picture
from torchmark.report.flame.picture import MOST_PIXELS, WIDTH, compose, open_renderer, render_png

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
