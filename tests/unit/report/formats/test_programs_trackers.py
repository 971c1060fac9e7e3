from __future__ import annotations

import dataclasses
import hashlib
import json
from typing import Any

import fastjsonschema
import pytest

from tests.checked_json import read_checked
from tests.sample_runs import ADD, COUNT, MODEL, ODD, WALL, make_run, only, sample_run, tally, times
from torchmark.define.discovery import discover
from torchmark.errors import UsageError
from torchmark.model.outcome import Result
from torchmark.model.plan import Case, Metric, Target
from torchmark.report.formats.programs import STANDARD_MD5, write_bmf, write_github_action, write_upstream

NAME = "Pointwise / add / Eager / Forward / Python / 1 thread"

# As published with the description of the format.
BMF_SCHEMA = {
    "$schema": "http://json-schema.org/draft-07/schema",
    "type": "object",
    "patternProperties": {
        ".+": {
            "type": "object",
            "patternProperties": {
                ".+": {
                    "type": "object",
                    "properties": {
                        "value": {"type": "number"},
                        "lower_value": {"type": "number"},
                        "upper_value": {"type": "number"},
                    },
                    "required": ["value"],
                }
            },
        }
    },
}

# From the action's README and the types of its reader.
ACTION_SCHEMA = {
    "type": "array",
    "minItems": 1,
    "items": {
        "type": "object",
        "properties": {
            "name": {"type": "string", "minLength": 1},
            "unit": {"type": "string", "minLength": 1},
            "value": {"type": "number"},
            "range": {"type": "string"},
            "extra": {"type": "string"},
        },
        "required": ["name", "unit", "value"],
        "additionalProperties": False,
    },
}


@pytest.mark.parametrize(
    ("schema", "wrong"),
    [(BMF_SCHEMA, {"x": {"latency": {"lower_value": 1}}}), (ACTION_SCHEMA, [{"name": "x", "value": 1}])],
)
def test_the_schemas_refuse_what_lacks_a_field(schema: dict[str, Any], wrong: object) -> None:
    with pytest.raises(fastjsonschema.JsonSchemaException):
        read_checked(json.dumps(wrong), schema)


def test_github_action_has_an_item_for_each_metric_in_units_that_stay() -> None:
    items = read_checked(write_github_action(sample_run()), ACTION_SCHEMA)
    by_name = {item["name"]: item for item in items}
    assert len(by_name) == len(items) == 7
    assert by_name[NAME]["unit"] == "ns"
    assert by_name[NAME]["value"] == pytest.approx(1555.0)
    assert by_name[NAME]["range"] == "1500 to 1600"
    assert "97.9% interval" in by_name[NAME]["extra"]
    assert by_name[f"{NAME} (instructions)"]["value"] == 5000.3
    assert "range" not in by_name['=cmd()|"x" / naïve, *new* line / Eager / Forward / C++ / 2 threads']
    assert by_name["model / torch.compile / Forward / Python / 1 thread (compile, empty cache)"]["value"] == 2.0


def test_bmf_has_measures_with_bounds_where_they_are_known() -> None:
    data = read_checked(write_bmf(sample_run()), BMF_SCHEMA)
    add, odd, model = data.values()
    assert add["latency"] == pytest.approx({"value": 1555.0, "lower_value": 1500.0, "upper_value": 1600.0})
    assert add["instructions"] == {"value": 5000.3, "lower_value": 5000.0, "upper_value": 5003.0}
    assert odd == {"latency": {"value": 0.25e9}, "instructions": {"value": 12345.67}}
    assert model["compile-cold"] == {"value": 2.0}


def test_bmf_names_fit_into_what_bencher_takes() -> None:
    longs = [dataclasses.replace(ADD, label=("ü" * 600, end)) for end in ("a", "b")]
    run = make_run({(case, WALL, 0): times(1, 1.0) for case in longs}, longs)
    names = list(json.loads(write_bmf(run)))
    assert len(names) == 2
    assert all(len(name.encode()) <= 1024 for name in names)


def test_upstream_has_times_per_run_and_counts_of_a_hundred() -> None:
    data = json.loads(write_upstream(sample_run()))
    assert list(data) == ["version", "md5", "start_time", "end_time", "values"]
    assert list(data["values"]) == [ADD.key, ODD.key, MODEL.key]
    add = data["values"][ADD.key]
    assert add["times"][8:] == [1.4e-6, 1.7e-6]
    assert add["counts"] == [500_000, 500_300, 500_100, 500_020, 500_040, 500_030]
    assert data["version"] == -1
    other = json.loads(write_upstream(only(ADD, COUNT, tally(50, 250_010))))
    assert other["values"][ADD.key] == {"times": [], "counts": [500_020]}
    assert data["md5"] == hashlib.md5((ADD.key + ODD.key + MODEL.key).encode()).hexdigest()
    assert (data["start_time"], data["end_time"]) == (1_700_000_000, 1_700_000_060)


def test_upstream_knows_the_standard_suite_if_all_of_it_is_there() -> None:
    cases = discover(["standard"]).cases
    results: dict[tuple[Case, Metric, int], Result] = {(case, WALL, 0): times(1, 1.0) for case in cases}
    results |= {(case, COUNT, 0): tally(100, 5) for case in cases}
    data = json.loads(write_upstream(make_run(results, cases)))
    assert (data["version"], data["md5"]) == (0, STANDARD_MD5)
    del results[cases[7], COUNT, 0]
    assert json.loads(write_upstream(make_run(results, cases)))["version"] == -1


def test_upstream_refuses_what_it_cannot_tell_apart() -> None:
    with pytest.raises(UsageError, match="choose one of 'old', 'new' with --env"):
        write_upstream(sample_run([Target("old"), Target("new")]))
    twin = dataclasses.replace(ADD, suite="mine.py")
    with pytest.raises(UsageError, match="same key"):
        write_upstream(make_run({(case, WALL, 0): times(1, 1.0) for case in (ADD, twin)}, [ADD, twin]))
