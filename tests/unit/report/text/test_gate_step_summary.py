from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.made_judgements import fail, make_count, make_judgement, make_time, random_judgements
from torchmark.model.caveats import LayoutSensitive
from torchmark.model.judgement import CaseJudgement, Side
from torchmark.report.text.gate import MOST_ROWS, summarise_markdown
from torchmark.report.text.grid import escape_markdown

EVIL = "a|b\n<script>alert(`1`)</script> ![x](https://evil.example) @team $x$ </details> &lt;"


def test_a_summary_has_a_headline_the_gate_and_what_changed() -> None:
    judgements = [
        make_judgement("view", time=make_time(0.001), count=make_count(5000, 0)),
        make_judgement("fft", failures=fail(Side.BASE)),
        make_judgement("add", time=make_time(0.41), count=make_count(9154, 3712), caveats=(LayoutSensitive(0.014),)),
    ]
    text = summarise_markdown(judgements, title="2.13 against 1.13", gate=["add: +3,712 instructions, 0 are allowed."])
    assert text.split("\n") == [
        "## 2.13 against 1.13",
        "",
        "3 cases: 1 slower (+41 %, add), 1 same, 1 failed on base.",
        "",
        "- add: +3,712 instructions, 0 are allowed.",
        "",
        "Changes are of head against base, for one run.",
        "",
        "| verdict | case | time | ± | per run | instr. | % |  | why |",
        "| --- | --- | ---: | ---: | ---: | ---: | ---: | --- | --- |",
        "| slower | add | +41% | +40% to +42% | +410 ns | +3,712 | +41% | l | +3,712 instructions (+41 %), "
        "41 % more time: both changed in the same direction. |",
        "",
        "<details><summary>1 failed</summary>",
        "",
        "| verdict | case | why |",
        "| --- | --- | --- |",
        "| failed | fft | on base: It fails when it is run once. AttributeError: module 'torch' has no attribute 'f' |",
        "",
        "</details>",
        "",
        "<details><summary>1 the same</summary>",
        "",
        "| verdict | case | time | ± | per run | instr. | why |",
        "| --- | --- | ---: | ---: | ---: | ---: | --- |",
        "| same | view | +0.1% | ±0.4% | +1 ns | 0 | The same instructions, and the time is the same within 0.5 %. |",
        "",
        "</details>",
        "",
        "- `l` Its time moves by 1.4 % with the layout of memory. More layouts (--layouts) make it firmer.",
        "",
    ]


def test_a_hostile_name_is_inert() -> None:
    judgements = [make_judgement(EVIL, time=make_time(0.5)), make_judgement(EVIL + "2", failures=fail(Side.HEAD))]
    text = summarise_markdown(judgements, title=EVIL, gate=[EVIL], base=EVIL, head=EVIL)
    assert re.search(r"(?<!\\)<(?!/?(details|summary)>)", text) is None
    assert text.count("</details>") == text.count("<details>") == 1
    for active in ("https://", "@team", "&lt;"):
        assert active not in text
    assert re.search(r"(?<!\\)[\[$`]", text) is None
    for line in text.split("\n"):
        if line.startswith("| slower"):
            assert len(re.findall(r"(?<!\\)\|", line)) == len(re.findall(r"\|", text.split("\n\n")[4].split("\n")[0]))


@pytest.mark.parametrize("text", ["# no heading", "- no list", "1. no list", "+ no list", "> no quote", "---"])
def test_no_text_begins_a_block(text: str) -> None:
    assert re.match(r"(\d*)\\", escape_markdown(text))
    assert escape_markdown(text).replace("\\", "") == text


def test_numbers_are_left_alone() -> None:
    assert escape_markdown("+3.5 % and 2.13") == "+3.5 % and 2.13"


def test_nothing_to_show_is_said() -> None:
    assert summarise_markdown([], title="ab") == "## ab\n\nNothing was compared.\n"


def test_a_summary_is_never_larger_than_is_allowed() -> None:
    worst = [make_judgement("&" * 500 + str(i), time=make_time(0.5)) for i in range(2 * MOST_ROWS)]
    text = summarise_markdown(worst, title="&" * 500, gate=["&" * 500] * 2 * MOST_ROWS)
    assert text.count(f"{MOST_ROWS} more are not shown.") == 2
    assert len(text.encode()) < 2**20


@settings(max_examples=50, deadline=None)
@given(st.lists(random_judgements, max_size=5), st.text())
def test_every_table_is_complete(judgements: list[CaseJudgement], title: str) -> None:
    lines = summarise_markdown(judgements, title=title).split("\n")
    rows = [line for line in lines if line.startswith("| ")]
    assert sum(line.startswith("| ---") for line in rows) * 2 + len(judgements) == len(rows)
    columns = 0
    for line in rows:
        number = len(re.findall(r"(?<!\\)(?:\\\\)*\|", line))
        columns = number if line.startswith("| verdict") else columns
        assert number == columns
