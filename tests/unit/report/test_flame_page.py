"""Flame graphs as pages."""

from __future__ import annotations

import base64
import dataclasses
import hashlib
from html.parser import HTMLParser

from hypothesis import given, settings

from tests.made_flames import BASE, HOSTILE, compared_flame, flames, hostile_flame, plain_flame
from torchmark.analysis.flames import grow_difference
from torchmark.model.flame import Flame
from torchmark.report.flame.page import MOST_FUNCTIONS_ON_PAGE, render_html


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
    html = render_html(dataclasses.replace(compared_flame(), root=grow_difference(BASE, BASE)))
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
