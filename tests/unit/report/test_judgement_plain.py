from __future__ import annotations

import dataclasses
import json
import math

import pytest
from hypothesis import given, settings

from tests.made_judgements import DOUBTS, fail, make_count, make_judgement, make_time, make_visits, random_judgements
from tests.made_summaries import make_case
from torchmark.model.judgement import CaseJudgement, Explanation, FunctionChange, Side, StageChange
from torchmark.report.as_json import plain_judgement


def test_everything_is_there_under_its_name() -> None:
    judgement = make_judgement(
        case=make_case("Math", "add", suite="standard", stmt="x + y"),
        base_case=make_case("Math", "add", stmt="x.add(y)"),
        time=make_time(0.5, 0.1),
        count=make_count(1000, 250, (3, 5), spread=10),
        caveats=DOUBTS[3:4],
    )
    plain = plain_judgement(judgement)
    assert plain["case"] == "Math / add, Python"
    assert (plain["key"], plain["suite"]) == (judgement.case.key, "standard")
    assert (plain["verdict"], plain["cause"]) == ("slower", "confirmed")
    assert plain["time"]["ratio"] == pytest.approx(1.5)
    assert plain["time"]["change"] == pytest.approx(0.5)
    assert plain["time"]["low"] == pytest.approx(1.5 * math.exp(-0.1) - 1)
    assert plain["time"]["high"] == pytest.approx(1.5 * math.exp(0.1) - 1)
    assert plain["time"]["delta_s"] == pytest.approx(5e-7)
    assert (plain["time"]["layouts"], plain["time"]["visits"], plain["time"]["p_value"]) == (6, 4, 0.001)
    assert plain["instructions"] == {
        "base": 1000,
        "head": 1250,
        "delta": 250,
        "change": 0.25,
        "base_range": [990, 1010],
        "head_range": [1240, 1260],
    }
    assert plain["allocations"] == {
        "base": 3,
        "head": 5,
        "delta": 2,
        "base_tensors": 1,
        "head_tensors": 1,
        "delta_tensors": 0,
    }
    assert plain["caveats"] == [
        {
            "kind": "layout_sensitive",
            "layout_sd": 0.014,
            "text": "Its time moves by 1.4 % with the layout of memory. More layouts (--layouts) make it firmer.",
        }
    ]
    assert (plain["stmt"], plain["base_stmt"]) == ("x + y", "x.add(y)")


def test_what_was_not_measured_is_null() -> None:
    plain = plain_judgement(make_judgement("f", failures=fail(Side.BASE)))
    nulls = {name for name, value in plain.items() if value is None}
    assert nulls == {"time", "instructions", "allocations", "explanation", "base_stmt"}
    (failure,) = plain["failures"]
    assert (failure["side"], failure["kind"]) == ("base", "raised")
    assert failure["message"] == "It fails when it is run once."
    assert failure["traceback"].endswith("no attribute 'f'")


def test_an_interval_without_ends_has_none() -> None:
    time = plain_judgement(make_judgement("a", time=make_time(0.0, math.inf)))["time"]
    assert (time["low"], time["high"], time["change"]) == (None, None, 0.0)


def test_layouts_have_their_visits() -> None:
    time = dataclasses.replace(make_time(0.02), visits=make_visits([[0.02, 0.04]], fresh=[[-0.01]]))
    first, fresh = plain_judgement(make_judgement("a", time=time))["time"]["by_layout"]
    assert first["visits"] == pytest.approx([0.02, 0.04])
    assert (first["fresh"], first["change"]) == (False, pytest.approx(0.03))
    assert fresh["visits"] == pytest.approx([-0.01])
    assert (fresh["fresh"], fresh["base_s"], fresh["head_s"]) == (True, [1e-6], pytest.approx([0.99e-6]))
    assert plain_judgement(make_judgement("a", time=make_time(0.02)))["time"]["by_layout"] == []


def test_an_explanation_comes_along() -> None:
    functions = (FunctionChange("f", "dispatcher", 10, 60),)
    explanation = Explanation(functions, (StageChange("dispatcher", 10, 60),))
    judgement = dataclasses.replace(make_judgement("a", count=make_count(10, 50)), explanation=explanation)
    plain = plain_judgement(judgement)["explanation"]
    assert plain["functions"][0]["function"] == "f"
    assert plain["delta"] == 50


@settings(deadline=None)
@given(random_judgements)
def test_every_judgement_is_json(judgement: CaseJudgement) -> None:
    plain = plain_judgement(judgement)
    assert json.loads(json.dumps(plain, allow_nan=False)) == plain
