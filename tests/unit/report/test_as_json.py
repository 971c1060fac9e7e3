from __future__ import annotations

import dataclasses
import json
import math

import pytest
from hypothesis import given, settings

from tests.made_histories import ADD, make_days
from tests.made_judgements import DOUBTS, fail, make_count, make_judgement, make_time, make_visits, random_judgements
from tests.made_overrides import SUB, make_override_rows, make_override_run
from tests.made_summaries import make_case
from tests.sample_runs import COUNT, WALL
from torchmark.analysis.history import confirm, trace_histories
from torchmark.analysis.overrides import Expectation, hold_to_expectations
from torchmark.model.judgement import CaseJudgement, Explanation, FunctionChange, Side, StageChange
from torchmark.report.as_json import to_json_history, to_json_judgement, to_json_overrides


def test_series_and_changes_are_plain() -> None:
    runs = make_days([1.0] * 10 + [1.1] * 9 + [None], [5000] * 10 + [5500] * 10)
    (history,) = map(confirm, trace_histories(runs))
    plain = json.loads(json.dumps(to_json_history(history)))
    assert plain["key"] == ADD.key
    assert [anchor["name"] for anchor in plain["anchors"]] == ["day-0"]
    assert plain["points"][0]["log_ratio"] == 0.0
    assert plain["points"][0]["instructions_per_run"] == {"value": 5000.0, "low": 4996.0, "high": 5004.0}
    assert (plain["points"][-1]["log_ratio"], plain["points"][-1]["segment"]) == (None, None)
    count, time = plain["changes"]
    assert (count["metrics"], count["run"]["name"], count["standing"], count["share"]) == (
        ["count"], "day-10", "confirmed", pytest.approx(0.1),
    )  # fmt: skip
    assert (time["metrics"], time["ground"], time["previous"]["name"]) == (["wall"], "instructions", "day-9")
    assert "seconds" not in json.dumps(plain)


def test_only_what_was_asked_for_is_there() -> None:
    (history,) = trace_histories(make_days([1.0] * 5, [5000, 6000, 6000, 6000, 6000]))
    assert set(to_json_history(history, [WALL])["points"][0]) == {"run", "log_ratio", "segment"}
    assert to_json_history(history, [WALL])["changes"] == []
    assert set(to_json_history(history, [COUNT])["points"][0]) == {"run", "instructions_per_run"}


def test_everything_is_there_under_its_name() -> None:
    judgement = make_judgement(
        case=make_case("Math", "add", suite="standard", stmt="x + y"),
        base_case=make_case("Math", "add", stmt="x.add(y)"),
        time=make_time(0.5, 0.1),
        count=make_count(1000, 250, (3, 5), spread=10),
        caveats=DOUBTS[3:4],
    )
    plain = to_json_judgement(judgement)
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
    plain = to_json_judgement(make_judgement("f", failures=fail(Side.BASE)))
    nulls = {name for name, value in plain.items() if value is None}
    assert nulls == {"time", "instructions", "allocations", "explanation", "base_stmt"}
    (failure,) = plain["failures"]
    assert (failure["side"], failure["kind"]) == ("base", "raised")
    assert failure["message"] == "It fails when it is run once."
    assert failure["traceback"].endswith("no attribute 'f'")


def test_an_interval_without_ends_has_none() -> None:
    time = to_json_judgement(make_judgement("a", time=make_time(0.0, math.inf)))["time"]
    assert (time["low"], time["high"], time["change"]) == (None, None, 0.0)


def test_layouts_have_their_visits() -> None:
    time = dataclasses.replace(make_time(0.02), visits=make_visits([[0.02, 0.04]], fresh=[[-0.01]]))
    first, fresh = to_json_judgement(make_judgement("a", time=time))["time"]["by_layout"]
    assert first["visits"] == pytest.approx([0.02, 0.04])
    assert (first["fresh"], first["change"]) == (False, pytest.approx(0.03))
    assert fresh["visits"] == pytest.approx([-0.01])
    assert (fresh["fresh"], fresh["base_s"], fresh["head_s"]) == (True, [1e-6], pytest.approx([0.99e-6]))
    assert to_json_judgement(make_judgement("a", time=make_time(0.02)))["time"]["by_layout"] == []


def test_an_explanation_comes_along() -> None:
    functions = (FunctionChange("f", "dispatcher", 10, 60),)
    explanation = Explanation(functions, (StageChange("dispatcher", 10, 60),))
    judgement = dataclasses.replace(make_judgement("a", count=make_count(10, 50)), explanation=explanation)
    plain = to_json_judgement(judgement)["explanation"]
    assert plain["functions"][0]["function"] == "f"
    assert plain["delta"] == 50


@settings(deadline=None)
@given(random_judgements)
def test_every_judgement_is_json(judgement: CaseJudgement) -> None:
    plain = to_json_judgement(judgement)
    assert json.loads(json.dumps(plain, allow_nan=False)) == plain


def test_everything_is_there_in_plain_values_with_units() -> None:
    rows = make_override_rows()
    data = json.loads(json.dumps(to_json_overrides(make_override_run(rows), rows, hold_to_expectations(rows))))
    assert (data["schema"], data["schema_version"]) == ("torchmark.overrides", 1)
    assert (data["nreps"], data["nrepreps"]) == (1000, 100)
    assert len(data["lines"]) == 4
    (sub,) = (case for case in data["cases"] if case["label"] == list(SUB.label))
    assert (sub["call"], sub["operands"], sub["stmt"]) == ("add", "SubTensor", "torch.add(x, y)")
    assert sub["wall"]["min_s"] == pytest.approx(1.5e-6)
    overhead = sub["overhead"]
    assert overhead["against"] == ["add", "Tensor"]
    assert overhead["min_s"] == pytest.approx(0.5e-6)
    assert overhead["instructions"] == 3000
    assert sum(stage["delta"] for stage in overhead["explanation"]["stages"]) == 3000
    assert sum(sub["stages"].values()) == sub["count"]["instructions_per_run"]


def test_findings_tell_their_numbers_and_the_cases_they_are_of() -> None:
    rows = make_override_rows()
    findings = to_json_overrides(make_override_run(rows), rows, hold_to_expectations(rows))["findings"]
    assert [one["expectation"] for one in findings] == [one.value for one in Expectation]
    assert all(one["is_met"] and one["text"].startswith("Met: ") for one in findings)
    assert [one["unit"] for one in findings] == ["instructions", "instructions", "s", "s", "s"]
    assert findings[0]["least"] == {"label": ["add", "WithTorchFunction"], "value": 1800}
    assert [one["label"][1] for one in findings[-1]["order"]] == [
        "Tensor",
        "SubTensor",
        "SubWithTorchFunction",
        "WithTorchFunction",
    ]
