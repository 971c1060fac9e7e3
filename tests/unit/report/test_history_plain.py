from __future__ import annotations

import json

import pytest

from tests.made_histories import ADD, make_days
from tests.sample_runs import COUNT, WALL
from torchmark.analysis.history import confirm, trace_histories
from torchmark.report.as_json import plain_history


def test_series_and_changes_are_plain() -> None:
    runs = make_days([1.0] * 10 + [1.1] * 9 + [None], [5000] * 10 + [5500] * 10)
    (history,) = map(confirm, trace_histories(runs))
    plain = json.loads(json.dumps(plain_history(history)))
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
    assert set(plain_history(history, [WALL])["points"][0]) == {"run", "log_ratio", "segment"}
    assert plain_history(history, [WALL])["changes"] == []
    assert set(plain_history(history, [COUNT])["points"][0]) == {"run", "instructions_per_run"}
