"""CSV."""

from __future__ import annotations

import csv
import dataclasses
import io
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.sample_runs import CASES, ODD, sample_run
from torchmark.model.plan import Target
from torchmark.model.run import Run
from torchmark.report.formats.tables import write_csv
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
