from __future__ import annotations

import csv
import dataclasses
import io
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.sample_runs import ADD, CASES, COUNT, FAILURE, ODD, only, sample_run
from torchmark.model.plan import Target
from torchmark.model.run import Run
from torchmark.report.formats.tables import write_csv, write_markdown
from torchmark.report.text.grid import FORMULA_STARTS, guard


def read_csv(run: Run) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(write_csv(run), newline="")))


def test_csv_has_a_line_for_each_case_and_exact_numbers() -> None:
    add, odd, failing, missing, empty, model = read_csv(sample_run())
    assert float(add["min_s"]) == 1.4e-6
    assert add["samples"] == "10"
    assert (add["instructions"], add["allocations"], add["tensor_allocations"]) == ("5000.3", "3.0", "2.0")
    assert (odd["std_s"], odd["low_s"], odd["spread"]) == ("", "", "")
    assert failing["wall_failure"] == failing["count_failure"] == "raised: -1 is no size\nfor a tensor"
    assert missing["missing"] == "wall count"
    assert empty["median_s"] == ""
    assert (model["runtime"], model["compile_cold_s"], model["graph_breaks"]) == ("torch.compile", "2.0", "2")


def test_csv_has_a_line_for_each_target() -> None:
    rows = read_csv(sample_run([Target("old"), Target("new")]))
    assert [row["target"] for row in rows] == ["old", "new"] * len(CASES)


def test_nothing_in_a_csv_is_a_formula() -> None:
    assert read_csv(sample_run())[1]["label"] == "'" + " / ".join(ODD.label)
    for row in read_csv(sample_run()):
        assert not any(value.startswith(FORMULA_STARTS[:-1]) for value in row.values())


@given(st.text(st.sampled_from("a;=+-@'\"\n\t b")))
def test_a_guarded_text_is_what_it_was_without_its_apostrophes(text: str) -> None:
    assert re.sub(r"(?:(?<=[;\n])|^)'", "", guard(text)) == text


@given(st.text(st.sampled_from("a;=+-@'\"\n b")))
def test_a_guarded_text_has_no_formula_behind_a_separator(text: str) -> None:
    for cell in re.split("[;\n]", guard(text))[1:]:
        assert not cell.strip('"').startswith(("=", "+", "-", "@"))


@pytest.mark.parametrize("text", ["a;b", "a; =b", "x - y", "std::f(int) = 3", "a|b", "a,b"])
def test_separators_alone_need_no_guard(text: str) -> None:
    assert guard(text) == text


def test_what_may_separate_cells_is_in_quotes_and_what_cannot_be_seen_is_not_there() -> None:
    case = dataclasses.replace(CASES[0], label=("a;=1+1;", "\x1b]0;x\x07\u202e\tb\n::error::c"), suite="s")
    run = sample_run()
    plan = dataclasses.replace(run.plan, cases=(case,))
    text = write_csv(dataclasses.replace(run, plan=plan, outcomes=()))
    assert text.splitlines()[1].startswith("s,\"a;'=1+1; /  ]0;x   b")
    (row,) = csv.DictReader(io.StringIO(text, newline=""))
    assert row["label"] == "a;'=1+1; /  ]0;x   b\n::error::c"
    assert list(csv.reader(io.StringIO(text), delimiter=";"))[1][1] == "'=1+1"


def test_markdown_is_a_table_of_the_columns_that_tell_something() -> None:
    lines = write_markdown(sample_run()).splitlines()
    assert lines[0] == (
        "| benchmark | runtime | language | threads | time | 95 % interval | compile (empty cache, again) "
        "| instructions | spread | notes |"
    )
    assert len(lines) == 2 + len(CASES)
    assert lines[2].startswith("| Pointwise / add | Eager | Python | 1 | 1.55 us | 1.500 to 1.600 us | – | 5,000 |")
    assert lines[3].startswith('| =cmd()\\|"x" / naïve, <br>\\*new\\* line | Eager | C++ | 2 | 250 ms |')
    assert lines[4].endswith(
        "| wall failed: -1 is no size ...<br>count failed: -1 is no size ...<br>count incomplete |"
    )
    assert lines[5].endswith("| wall missing<br>count missing |")
    assert "| 2.00 s, 1.00 s |" in lines[7]
    assert lines[7].endswith("| wall incomplete<br>count missing |")


def test_markdown_of_one_case_is_short_and_of_one_metric_shorter() -> None:
    lines = write_markdown(only(ADD, COUNT, FAILURE, FAILURE)).splitlines()
    assert lines[0] == "| benchmark | instructions | notes |"
    assert lines[2] == "| Pointwise / add | – | count failed: -1 is no size ... |"


def test_names_are_neither_mentions_nor_links_nor_invisible() -> None:
    case = dataclasses.replace(ADD, label=("@everyone", "https://evil.example #1", "\x1b[2J\u202e~a~"))
    text = write_markdown(only(case, COUNT, FAILURE, FAILURE))
    assert "&#64;everyone / https&#58;//evil.example \\#1 /  \\[2J \\~a\\~" in text
    assert not set(text) & set("@\x1b\u202e")
