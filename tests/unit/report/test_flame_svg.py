"""Flame graphs as SVG."""

from __future__ import annotations

import dataclasses
import re
from xml.etree import ElementTree

from hypothesis import given, settings

from tests.made_flames import compared_flame, flames, hostile_flame, large_flame, make_stacks, plain_flame
from torchmark.analysis.flames import grow
from torchmark.model.flame import Flame, Method
from torchmark.report.flame.labels import FAMILIES, SHADES
from torchmark.report.flame.page import render_svg
from torchmark.report.flame.picture import WIDTH, list_heading, list_keys
from torchmark.report.html.templates import load_asset

SVG = "{http://www.w3.org/2000/svg}"
OWN_TAGS = {f"{SVG}{tag}" for tag in ("svg", "title", "style", "g", "rect", "text", "script")}


def frames_of(flame: Flame) -> list[ElementTree.Element]:
    root = ElementTree.fromstring(render_svg(flame))
    still = root.find(f"{SVG}g[@id='tmf-still']")
    assert still is not None
    return [group for group in still.iter(f"{SVG}g") if group.find(f"{SVG}title") is not None]


def text_of(element: ElementTree.Element, tag: str) -> str:
    return element.findtext(f"{SVG}{tag}") or ""


def test_without_scripts_every_frame_is_a_rectangle_with_a_label_and_a_tooltip() -> None:
    frames = frames_of(plain_flame())
    assert [text_of(frame, "text") for frame in frames] == [
        "all",
        "run",
        "Sub.__torch_function__",
        "at::_ops::add_Tensor::call",
        "at::native::vectorized_loop<float>",
        "malloc",
        "at::old_path",
        "malloc",
    ]
    assert text_of(frames[4], "title").splitlines() == [
        "at::native::vectorized_loop<float>(char**, long)",
        "libtorch_cpu.so",
        "400 instructions per run, 40% of all, 82% of its caller",
        "in itself 400, 40% of all",
    ]


def test_in_a_difference_what_changed_itself_has_a_colour_and_a_sign_and_its_callers_have_none() -> None:
    drawn = {text_of(frame, "title").splitlines()[0]: frame for frame in frames_of(compared_flame())}
    styles = {name.split("(")[0]: frame.get("class") for name, frame in drawn.items()}
    assert styles == {
        "all": "tmf-none",
        "run": "tmf-none",
        "Sub.__torch_function__": "tmf-more5",
        "at::_ops::add_Tensor::call": "tmf-none",
        "at::native::vectorized_loop<float>": "tmf-less2",
        "malloc": "tmf-none",
        "at::old_path": "tmf-less5 tmf-gone",
    }
    assert text_of(drawn["Sub.__torch_function__"], "text") == "+120 Sub.__torch_function__"
    assert text_of(drawn["at::old_path()"], "text").startswith("−110 ")


def test_labels_stay_within_their_frames_and_frames_within_the_picture() -> None:
    for flame in (plain_flame(), compared_flame(), large_flame(2_000)):
        for frame in frames_of(flame):
            rect = frame.find(f"{SVG}rect")
            assert rect is not None
            x, width = float(rect.attrib["x"]), float(rect.attrib["width"])
            assert 0 <= x <= x + width <= WIDTH
            assert len(text_of(frame, "text")) * 6.6 <= width


def test_colours_say_what_share_they_have_and_add_up_to_all() -> None:
    texts = [key.text for key in list_keys(plain_flame())]
    assert texts == ["Python 30%", "dispatcher 5.0%", "allocation 14%", "kernel 51%"]
    assert [key.text for key in list_keys(compared_flame())][-1] == "only in base"


def test_what_no_function_is_known_for_is_called_other() -> None:
    flame = plain_flame()
    root = flame.root
    more = dataclasses.replace(root, own=root.value, value=2 * root.value)
    assert "other 50%" in [key.text for key in list_keys(dataclasses.replace(flame, root=more))]


def test_every_colour_that_is_used_is_in_the_style_for_light_and_for_dark() -> None:
    rules = re.findall(r"\.(tmf-[\w-]+) \{ background-color", load_asset("flame.css"))
    kinds = [f"tmf-c{number}" for number in range(len(FAMILIES) * SHADES)]
    changes = [f"tmf-{side}{step}" for side in ("more", "less") for step in range(1, 6)]
    for name in (*kinds, *changes, "tmf-none"):
        assert rules.count(name) == 2


def test_the_heading_says_how_exact_it_is() -> None:
    flame = plain_flame()
    assert (
        list_heading(flame)[1]
        == "1,000.5 instructions per run. Exact: every instruction was counted with all its callers."
    )
    assert "980.5 (−20, −2.0%)" in list_heading(compared_flame())[1]
    for method in Method:
        assert len(list_heading(dataclasses.replace(flame, method=method))) == 3


def test_hostile_names_are_text_and_nothing_else() -> None:
    root = ElementTree.fromstring(render_svg(hostile_flame()))
    assert {element.tag for element in root.iter()} <= OWN_TAGS
    assert len(list(root.iter(f"{SVG}script"))) == 1
    for element in root.iter():
        assert not any(name.startswith("on") or "href" in name for name in element.attrib)


@settings(max_examples=50)
@given(flames())
def test_any_graph_is_well_formed(flame: Flame) -> None:
    root = ElementTree.fromstring(render_svg(flame).encode("utf-8"))
    assert {element.tag for element in root.iter()} <= OWN_TAGS


def test_a_graph_of_nothing_can_be_drawn() -> None:
    stacks = make_stacks()
    (frame,) = frames_of(Flame(grow(stacks), "", stacks.unit, stacks.method))
    assert text_of(frame, "text") == "all"
