from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from torchmark.model.judgement import Explanation, FunctionChange, StageChange
from torchmark.report.text.counts import fit_name, render_explanation, to_json_explanation
from torchmark.report.text.terminal import measure


def make_explanation(*functions: FunctionChange) -> Explanation:
    stages: dict[str, StageChange] = {}
    for change in functions:
        before = stages.get(change.stage, StageChange(change.stage, 0.0, 0.0))
        stages[change.stage] = StageChange(change.stage, before.base + change.base, before.head + change.head)
    return Explanation(functions, tuple(stages.values()))


EXPLANATION = make_explanation(
    FunctionChange("_PyEval_EvalFrameDefault", "interpreter", 1000.0, 1250.5),
    FunctionChange("at::native::add", "kernel", 300.0, 200.0),
    FunctionChange("malloc", "allocation", 80.0, 90.0),
    FunctionChange("_int_malloc", "allocation", 50.0, 40.0),
    FunctionChange("c10::Dispatcher::call", "dispatcher", 70.0, 71.5),
    FunctionChange("free", "teardown", 60.0, 60.0),
)


def test_stages_and_functions_end_with_the_whole_difference() -> None:
    assert render_explanation(EXPLANATION, 70, most=2).splitlines() == [
        "instructions per run     base     head  change",
        "interpreter           1,000.0  1,250.5  +250.5",
        "kernel                  300.0    200.0  -100.0",
        "dispatcher               70.0     71.5    +1.5",
        "in all                1,560.0  1,712.0  +152.0",
        "",
        "change  stage        function",
        "+250.5  interpreter  _PyEval_EvalFrameDefault",
        "-100.0  kernel       at::native::add",
        "  +1.5               in 3 other functions",
        "+152.0               in all",
    ]


def test_nothing_is_left_over_where_all_are_shown() -> None:
    assert "other function" not in render_explanation(EXPLANATION, 70)


def test_on_a_narrow_terminal_changes_and_names_remain() -> None:
    lines = render_explanation(EXPLANATION, 40, most=1).splitlines()
    assert lines[:2] == ["instructions per run  change", "interpreter           +250.5"]
    assert lines[-3:] == ["+250.5  _PyEval_EvalFrameDefault", " -98.5  in 4 other functions", "+152.0  in all"]


def test_no_difference_is_no_error() -> None:
    same = make_explanation(FunctionChange("f", "kernel", 5.0, 5.0))
    assert render_explanation(same, 60).splitlines() == [
        "instructions per run  base  head  change",
        "in all                 5.0   5.0    +0.0",
        "",
        "change  stage  function",
        "  +0.0         in all",
    ]
    assert render_explanation(Explanation((), ()), 60).splitlines()[-1].endswith("in all")


def test_it_is_told_where_a_build_has_no_names() -> None:
    stripped = make_explanation(
        FunctionChange("(no name) in libtorch_cpu.so", "other", 30.0, 2.0), FunctionChange("f", "kernel", 70.0, 98.0)
    )
    (note,) = (line for line in render_explanation(stripped, 90).splitlines() if line.startswith("Note"))
    assert note == "Note: 30% of base's instructions are in functions whose names its libraries lack."


@pytest.mark.parametrize(
    ("name", "width", "fitted"),
    [
        ("at::native::add", 20, "at::native::add"),
        ("at::sum<std::vector<int, std::allocator<int>>>::call", 36, "at::sum<std::vector<…>>::call"),
        ("f<a<b>, c<d>>::g<e>", 19, "f<a<b>, c<d>>::g<e>"),
        ("f<a<b>, c<d<e>>>::g<e>", 21, "f<a<…>, c<…>>::g<e>"),
        ("f<a<b>, c<d>>::g<e>", 12, "f<…>::g<…>"),
        ("c10::operator<< <char>::x<int>", 28, "c10::operator<< <…>::x<…>"),
        ("a_very_long_name_in_c", 11, "a_ver…_in_c"),
        ("at::f\x1b[31m", 20, "at::f [31m"),
    ],
)
def test_template_arguments_give_way_before_names_do(name: str, width: int, fitted: str) -> None:
    assert fit_name(name, width) == fitted


CHANGES = st.builds(
    FunctionChange,
    st.text(max_size=60) | st.sampled_from(["at::f<g<h>>::i", "(no name) in a.so"]),
    st.sampled_from(["interpreter", "argument parsing", "other"]),
    st.floats(0, 1e12),
    st.floats(0, 1e12),
)


@given(st.lists(CHANGES, max_size=12), st.integers(44, 120))
def test_no_line_is_wider_than_the_terminal(changes: list[FunctionChange], width: int) -> None:
    text = render_explanation(make_explanation(*changes), width, most=5)
    assert max(map(measure, text.splitlines())) <= width


@given(st.lists(CHANGES, max_size=12), st.integers(0, 15))
def test_plain_functions_and_the_rest_add_up(changes: list[FunctionChange], most: int) -> None:
    plain = json.loads(json.dumps(to_json_explanation(make_explanation(*changes), most)))
    assert len(plain["functions"]) + plain["rest"]["functions"] == len(changes)
    for key in ("base", "head", "delta"):
        shown = sum(function[key] for function in plain["functions"])
        assert shown + plain["rest"][key] == pytest.approx(plain[key], abs=1)
        assert sum(stage[key] for stage in plain["stages"]) == pytest.approx(plain[key], abs=1)


def test_plain_entries_have_names_stages_and_numbers() -> None:
    plain = to_json_explanation(EXPLANATION, most=1)
    assert plain["functions"] == [
        {"function": "_PyEval_EvalFrameDefault", "stage": "interpreter", "base": 1000.0, "head": 1250.5, "delta": 250.5}
    ]
    assert plain["stages"][0] == {"stage": "interpreter", "base": 1000.0, "head": 1250.5, "delta": 250.5}
    assert plain["rest"] == {"functions": 5, "base": 560.0, "head": 461.5, "delta": -98.5}
    assert (plain["base"], plain["head"], plain["delta"]) == (1560.0, 1712.0, 152.0)
