from __future__ import annotations

import json

import pytest

from tests.made_overrides import SUB, make_override_rows, make_override_run
from torchmark.analysis.overrides import Expectation, hold_to_expectations
from torchmark.report.as_json import plain_overrides


def test_everything_is_there_in_plain_values_with_units() -> None:
    rows = make_override_rows()
    data = json.loads(json.dumps(plain_overrides(make_override_run(rows), rows, hold_to_expectations(rows))))
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
    findings = plain_overrides(make_override_run(rows), rows, hold_to_expectations(rows))["findings"]
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
