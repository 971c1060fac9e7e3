"""The page as a text: complete, self-contained, and without a single text that is anything but text."""

from __future__ import annotations

import dataclasses
import html
import json
import re
from html.parser import HTMLParser
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.made_flames import read_flames
from tests.made_judgements import make_judgement, make_time, random_judgements
from tests.made_reports import HOSTILE, make_entry, make_flame, make_hostile, make_many, make_report, make_small
from tests.made_summaries import make_case, make_summary
from torchmark.model.judgement import CaseJudgement, LayoutVisits
from torchmark.model.report_data import Drawing, ReportData, ReportEntry, Section
from torchmark.report.html.report_page import render_report

VOID = {"meta", "input", "br", "img", "link"}


class Reader(HTMLParser):
    """Sees to it that tags match, and collects what a browser would act on."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.scripts: list[str] = []
        self.attributes: list[tuple[str, str, str | None]] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.attributes += [(tag, name, value) for name, value in attrs]
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] == "script":
            self.scripts.append(data)
        elif self.open and self.open[-1] != "style":
            self.text += data


def read(page: str) -> Reader:
    reader = Reader()
    reader.feed(page)
    reader.close()
    assert reader.open == []
    return reader


def values(page: str) -> Any:
    match = re.search(r'id="torchmark-page">(.*?)</script>', page, re.DOTALL)
    assert match
    return json.loads(match[1])


@pytest.mark.parametrize("compared", [True, False])
def test_all_cases_stand_in_the_table_without_any_script(compared: bool) -> None:
    reader = read(render_report(make_small(compared=compared)))
    rows = [value for tag, name, value in reader.attributes if tag == "tr" and name == "id"]
    assert len(set(rows)) == 5
    assert "AttributeError: module 'torch' has no attribute 'f'" in reader.text


@pytest.mark.parametrize("compared", [True, False])
def test_hostile_texts_are_only_ever_text(compared: bool) -> None:
    page = render_report(make_hostile(compared=compared))
    reader = read(page)
    # Two lots of values, and one script of our own.
    assert len(reader.scripts) == 3
    assert not [one for one in reader.attributes if one[1].startswith("on") or one[0] in ("img", "iframe", "link")]
    links = [value or "" for _, name, value in reader.attributes if name in ("href", "src")]
    assert all(link.startswith("#") for link in links)
    assert HOSTILE[0] in reader.text
    assert "{{ 7 * 7 }}" in reader.text
    assert not re.search("[\u202a-\u202e\u2066-\u2069\u200e\u200f\x00-\x08\x1b\ud800-\udfff]", page)


def test_values_for_the_script_hold_no_tag_and_no_line_end_of_javascript() -> None:
    page = render_report(make_hostile())
    for which in ("page", "flames"):
        match = re.search(rf'id="torchmark-{which}">(.*?)</script>', page, re.DOTALL)
        assert match
        assert not set(match[1]) & set("<>&\u2028\u2029\n")
    assert HOSTILE[0] in values(page)["texts"]


def test_only_our_own_script_may_run_and_nothing_is_loaded() -> None:
    page = render_report(make_small())
    policy = next(
        value for _, name, value in read(page).attributes if name == "content" and "default-src" in (value or "")
    )
    assert policy is not None
    assert "default-src 'none'" in policy
    assert re.search(r"script-src 'sha256-[\w+/]{43}='", policy)
    assert "http://" not in page.replace("http://www.w3.org/", "")
    assert "https://" not in page


def test_functions_and_stages_add_up_to_the_count() -> None:
    page = values(render_report(make_small()))
    told = [one for one in page["details"] if "stages" in one]
    assert told
    for one in told:
        rest = one["rest"][1:] if "rest" in one else [0, 0]
        for side in (0, 1):
            functions = sum(row[2 + side] for row in one["functions"]) + rest[side]
            assert functions == pytest.approx(sum(row[1 + side] for row in one["stages"]), abs=0.1)


def test_filters_are_offered_for_what_differs_and_for_nothing_else() -> None:
    facets = {key: found for key, _, found, _ in values(render_report(make_small()))["facets"]}
    assert facets["verdict"] == ["slower", "failed", "faster", "same"]
    assert facets["language"] == ["C++", "Python"]
    assert facets["threads"] == ["1", "2"]
    assert "suite" not in facets
    assert "tag" not in facets


def test_what_changed_most_comes_first() -> None:
    page = render_report(make_small())
    keys = [row[0] for row in values(page)["keys"]]
    assert keys == sorted(keys)
    assert page.index("▲ slower</td>") < page.index("▼ faster</td>") < page.index("= same</td>")


def test_flame_graphs_are_apart_and_in_the_order_of_the_rows() -> None:
    plain = make_entry(make_case("b"), 0.5, flame=False)
    several = dataclasses.replace(make_entry(make_case("a"), 0.1), flames=(make_flame("one"), make_flame("two")))
    page = render_report(make_report([several, plain]))
    assert values(page)["flames"] == [[], ["one", "two"]]
    assert len(read_flames(page)["graphs"]) == 2


def test_differences_by_layout_are_drawn_where_sides_took_turns() -> None:
    visits = (LayoutVisits((0.01, 0.02), 0.015, base_s=(1e-6, 1.1e-6), head_s=(1.2e-6, 1.1e-6)),) * 3
    time = dataclasses.replace(make_time(0.02), visits=visits)
    case = make_case("a")
    entry = ReportEntry(
        case, (make_summary(case, None), make_summary(case, None)), make_judgement(case=case, time=time)
    )
    page = values(render_report(make_report([entry])))
    ((_, drawing),) = page["details"][0]["drawings"]
    assert page["texts"][drawing].startswith("<svg")
    assert [packed[0] for packed in page["details"][0]["samples"]] == [6, 6]


def test_sections_of_others_have_their_place() -> None:
    drawing = Drawing("what it shows", '<svg xmlns="http://www.w3.org/2000/svg" id="mine"></svg>')
    section = Section(
        title="Overhead",
        paragraphs=("A word <b>.",),
        columns=("type", "ns"),
        rows=(("Tensor", "0"),),
        drawings=(drawing,),
    )
    page = render_report(dataclasses.replace(make_small(), sections=(section,), remarks=("Mind this.",)))
    text = read(page).text
    assert "Overhead" in text
    assert "A word <b>." in text
    assert "Mind this." in text
    assert html.unescape(page).count('id="mine"') == 1


def test_differences_of_environments_are_marked_and_what_is_alike_is_not() -> None:
    page = render_report(make_small())
    marked = re.findall(r'<tr class="differs"><th scope="row">([^<]*?) <span', page)
    assert marked == ["torch", "Instruction set, counted", "Valgrind", "$OMP_NUM_THREADS"]


def test_a_report_of_nothing_is_a_page_too() -> None:
    empty: ReportData = make_report([])
    assert "There are no cases" in read(render_report(empty)).text


def _is_of_this_world(judgement: CaseJudgement) -> bool:
    """Nothing takes e to the seven hundred times as long as anything else, which the gate has no number for."""
    return judgement.time is None or abs(judgement.time.log_ratio) < 700


@settings(max_examples=40, deadline=None)
@given(
    st.lists(
        random_judgements.filter(_is_of_this_world), max_size=4, unique_by=lambda one: (one.case.suite, one.case.key)
    )
)
def test_whatever_is_judged_makes_a_page_that_holds_together(judgements: list[CaseJudgement]) -> None:
    entries = [ReportEntry(one.case, (make_summary(one.case, None, None), None), one) for one in judgements]
    page = render_report(make_report(entries))
    read(page)
    assert len(values(page)["keys"]) == len(entries)


def test_a_thousand_cases_take_two_kilobytes_each() -> None:
    assert len(render_report(make_many(1000))) < 2_500_000
