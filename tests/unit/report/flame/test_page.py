from __future__ import annotations

import base64
import dataclasses
import hashlib
import json
import re
from html.parser import HTMLParser
from typing import Any
from xml.etree import ElementTree

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.made_flames import (
    ADD,
    BASE,
    DEEP,
    HOOK,
    HOSTILE,
    LOOP,
    MALLOC,
    OLD,
    RUN,
    compared_flame,
    flames,
    hostile_flame,
    inflate,
    large_flame,
    make_deep_stacks,
    make_stacks,
    plain_flame,
    unpack,
)
from torchmark.analysis.flames import grow, prune
from torchmark.model.costs import Flame, FlameNode, FlameUnit, Frame, FrameKind, Method, Stack, Stacks
from torchmark.report.flame.labels import FAMILIES, SHADES, colour_of, full_name, label_of, origin_of
from torchmark.report.flame.page import (
    MOST_FUNCTIONS_ON_PAGE,
    XHTML,
    describe_flame,
    pack_flames,
    rank_growth,
    rank_own,
    render_html,
    render_svg,
)
from torchmark.report.flame.picture import TREE_WIDTH, list_heading, list_keys
from torchmark.report.html.templates import load_asset


def relabel(node: FlameNode) -> FlameNode:
    frame = Frame(label_of(node.frame), FrameKind.OTHER, origin_of(node.frame))
    return dataclasses.replace(node, frame=frame, children=tuple(map(relabel, node.children)))


@settings(max_examples=30)
@given(st.lists(flames(), max_size=3))
def test_what_was_packed_can_be_read_again_to_the_last_instruction(made: list[Flame]) -> None:
    packed = read_packed(made)
    for flame, graph in zip(made, packed["graphs"], strict=True):
        assert unpack(packed["names"], graph) == relabel(flame.root)


def read_packed(made: list[Flame]) -> dict[str, Any]:
    """What flame.js inflates."""
    read: dict[str, Any] = json.loads(inflate(pack_flames(made)))
    return read


def test_frames_have_one_entry_however_often_and_in_however_many_graphs_they_occur() -> None:
    packed = read_packed([plain_flame(), compared_flame(), plain_flame()])
    assert len(packed["names"]) == 7
    hook, add = (packed["names"][packed["graphs"][0]["name"][i]] for i in (2, 3))
    assert hook == ["Sub.__torch_function__", colour_of(HOOK), "/site-packages/sub.py:12", []]
    # What says nothing on its own keeps what it belongs to; the full name is there where it is another.
    shorter = ["_ops::add_Tensor::call", "add_Tensor::call"]
    assert add == ["at::_ops::add_Tensor::call", colour_of(ADD), "libtorch_cpu.so", shorter, full_name(ADD)]


def test_each_graph_of_many_brings_its_controls_its_colours_and_its_outermost_frame() -> None:
    graph = read_packed([plain_flame()])["graphs"][0]
    assert graph["markup"].count("data-frame=") == 1
    for part in ('type="search"', "Reset zoom", "Python 30%", 'class="tmf-tip"'):
        assert part in graph["markup"]
    assert graph["lines"][2] == "{value} instructions per run, {share} of all"


def test_what_is_left_out_stays_part_of_its_callers() -> None:
    flame = plain_flame()
    packed = read_packed([dataclasses.replace(flame, root=prune(flame.root, 0.5))])
    root = unpack(packed["names"], packed["graphs"][0])
    run = root.children[0]
    (hook,) = run.children
    assert (root.value, run.value, run.own, hook.value, hook.children) == (100_050, 100_050, 10_000, 69_050, ())


def test_a_frame_takes_a_few_bytes() -> None:
    assert len(pack_flames([large_flame(20_000)])) < 10 * 20_000


@pytest.mark.parametrize("depth", [5_000, DEEP])
def test_a_chain_of_calls_may_be_as_deep_as_it_likes(depth: int) -> None:
    made = make_deep_stacks(depth)
    flame = Flame(grow(made), "deep", made.unit, made.method, made.number)
    assert render_svg(flame).count("data-frame=") == depth + 1
    assert render_html(flame).count("data-frame=") == depth + 1
    (graph,) = read_packed([flame])["graphs"]
    assert graph["depth"] == list(range(depth + 1))


class Outline(HTMLParser):
    """Tags with their attributes, and the cells of the table by row."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.names: set[str] = set()
        self.rows: list[list[str]] = []
        self.inside = ""
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.names |= {name for name, _ in attrs}
        self.inside = tag if tag in ("td", "th", "span") else ""
        if tag == "tr":
            self.rows.append([])
        elif tag in ("td", "th"):
            self.rows[-1].append("")

    def handle_endtag(self, tag: str) -> None:
        if tag in ("td", "th"):
            self.inside = ""

    def handle_data(self, data: str) -> None:
        if self.inside and self.rows:
            self.rows[-1][-1] += data


def rows_of(flame: Flame) -> list[list[str]]:
    return Outline(render_html(flame)).rows


def test_the_table_has_the_functions_in_which_most_is_spent() -> None:
    head, first, second, *_ = rows_of(plain_flame())
    assert head == ["in itself", "of all", "function"]
    assert first == ["400", "40%", "at::native::vectorized_loop<float> libtorch_cpu.so"]
    assert second == ["200", "20%", "Sub.__torch_function__ /site-packages/sub.py:12"]


def test_the_table_of_a_difference_goes_from_what_grew_to_what_shrank() -> None:
    rows = rows_of(compared_flame())
    assert rows == [
        ["base", "head", "change", "change in percent", "function"],
        ["200", "320", "+120", "+60%", "Sub.__torch_function__ /site-packages/sub.py:12"],
        ["400", "370", "−30", "−7.5%", "at::native::vectorized_loop<float> libtorch_cpu.so"],
        ["110", "0", "−110", "gone", "at::old_path libtorch_cpu.so"],
    ]


def test_a_difference_of_nothing_says_so() -> None:
    html = render_html(dataclasses.replace(compared_flame(), root=grow(BASE, BASE)))
    assert "No function costs more or less than in base." in html
    assert "<table" not in html


def test_hostile_texts_are_inert_everywhere() -> None:
    html = render_html(hostile_flame())
    outline = Outline(html)
    assert outline.tags.count("script") == 1
    assert "img" not in outline.tags
    assert not [name for name in outline.names if name.startswith("on")]
    assert not [text for text in HOSTILE if "<" in text and text.strip("<>! -") and text in html]


@settings(max_examples=25)
@given(flames())
def test_any_graph_makes_a_page_of_one_script_and_few_rows(flame: Flame) -> None:
    html = render_html(flame)
    html.encode("utf-8")
    outline = Outline(html)
    assert outline.tags.count("script") == 1
    assert len(outline.rows) <= MOST_FUNCTIONS_ON_PAGE + 1


def test_the_page_runs_its_own_script_and_no_other() -> None:
    page = render_html(hostile_flame())
    script = page.partition("<script>")[2].partition("</script>")[0]
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}';" in page
    assert "default-src 'none'" in page


def test_a_function_counts_at_all_places_together_and_without_what_it_calls() -> None:
    ranked = [(spent.frame, spent.head) for spent in rank_own(plain_flame())]
    assert ranked == [
        (LOOP, 40_000),
        (HOOK, 20_000),
        (MALLOC, 14_000),
        (OLD, 11_000),
        (RUN, 10_000),
        (ADD, 5_050),
    ]


def test_what_grew_itself_comes_first_and_its_callers_not_at_all() -> None:
    ranked = [(spent.frame, spent.change) for spent in rank_growth(compared_flame())]
    assert ranked == [(HOOK, 12_000), (LOOP, -3_000), (OLD, -11_000)]


def test_nothing_grew_where_nothing_is_compared_but_for_what_there_is() -> None:
    assert [spent.base for spent in rank_own(plain_flame())] == [0] * 6


@settings(max_examples=30)
@given(flames())
def test_all_that_was_spent_is_spent_in_functions(flame: Flame) -> None:
    assert sum(spent.head for spent in rank_own(flame)) == flame.root.value
    assert sum(spent.change for spent in rank_growth(flame)) == flame.root.value - (flame.root.base_value or 0)


F, G = Frame("f", FrameKind.PYTHON, "a.py:1"), Frame("at::add(int)", FrameKind.NATIVE, "l.so")


def make(own: int, below: int) -> Stacks:
    return Stacks((Stack((F,), own), Stack((F, G), below)), FlameUnit.INSTRUCTIONS, Method.CALLERS, 10)


def test_the_most_expensive_functions_come_first() -> None:
    flame = Flame(root=grow(make(300, 700)), title="x", unit=FlameUnit.INSTRUCTIONS, method=Method.CALLERS, number=10)
    assert describe_flame(flame) == ["100 instructions per run", "   70%  at::add (l.so)", "   30%  f (a.py:1)"]


def test_of_a_difference_those_that_changed_most_do() -> None:
    root = grow(make(800, 600), make(300, 700))
    lines = describe_flame(Flame(root=root, title="x", unit=FlameUnit.INSTRUCTIONS, method=Method.CALLERS, number=10))
    assert lines == ["100 → 140 instructions per run (+40%)", "+50  f (a.py:1)", "−10  at::add (l.so)"]


def test_of_nothing_there_is_only_the_total() -> None:
    flame = Flame(grow(Stacks((), FlameUnit.SAMPLES, Method.SAMPLING)), "x", FlameUnit.SAMPLES, Method.SAMPLING)
    assert describe_flame(flame) == ["0 samples"]


SVG = "{http://www.w3.org/2000/svg}"
OWN_TAGS = {f"{SVG}{tag}" for tag in ("svg", "title", "style", "g", "rect", "text", "script", "foreignObject")}
OWN_TAGS |= {f"{{{XHTML}}}{tag}" for tag in ("div", "h1", "p", "input", "button", "span", "ul", "li")}


def frames_of(flame: Flame) -> list[ElementTree.Element]:
    root = ElementTree.fromstring(render_svg(flame))
    tree = root.find(f"{SVG}g[@id='tmf-still']/{SVG}svg")
    assert tree is not None
    return list(tree.findall(f"{SVG}g"))


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
        "400 instructions per run, 40% of all",
        "82% of its caller",
        "in itself 400, 40% of all",
    ]


def test_in_a_difference_what_changed_itself_has_a_colour_and_a_sign_and_its_callers_have_none() -> None:
    drawn = {text_of(frame, "title").splitlines()[0]: frame for frame in frames_of(compared_flame())}
    styles = {name.split("(")[0]: str(frame.get("class")).removeprefix("tmf-frame ") for name, frame in drawn.items()}
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
            x = float(frame.attrib["transform"].removeprefix("translate(").split()[0])
            width = float(rect.attrib["width"])
            assert 0 <= x <= x + width <= TREE_WIDTH
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
    rules = re.findall(r"\.(tmf-[\w-]+) \{ fill: #", load_asset("flame.css"))
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
