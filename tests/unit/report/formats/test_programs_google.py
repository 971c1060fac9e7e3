"""The JSON of Google Benchmark."""

from __future__ import annotations

import json

import fastjsonschema
import pytest

from tests.checked_json import read_checked
from tests.sample_runs import ODD, WALL, only, sample_run, times
from torchmark.report.formats.programs import write_google

NAME = "Pointwise / add / Eager / Forward / Python / 1 thread"

# From what Google Benchmark 1.9.5 writes, and what its compare.py reads.
NUMBER = {"type": "number"}

WHOLE = {"type": "integer", "minimum": 0}

GOOGLE_SCHEMA = {
    "type": "object",
    "required": ["context", "benchmarks"],
    "properties": {
        "context": {
            "type": "object",
            "properties": {
                "date": {"type": "string", "pattern": r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d[+-]\d\d:\d\d$"},
                "num_cpus": WHOLE,
                "library_build_type": {"enum": ["release", "debug"]},
                "json_schema_version": {"const": 1},
            },
            "required": ["date", "library_build_type", "json_schema_version"],
        },
        "benchmarks": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "name": {"type": "string"},
                    "run_name": {"type": "string"},
                    "run_type": {"enum": ["iteration", "aggregate"]},
                    "aggregate_name": {"type": "string"},
                    "aggregate_unit": {"enum": ["time", "percentage"]},
                    "time_unit": {"enum": ["ns", "us", "ms", "s"]},
                    "family_index": WHOLE,
                    "per_family_instance_index": WHOLE,
                    "repetitions": WHOLE,
                    "repetition_index": WHOLE,
                    "threads": WHOLE,
                    "iterations": WHOLE,
                },
                "required": [
                    "name", "family_index", "per_family_instance_index", "run_name", "run_type", "repetitions",
                    "threads", "iterations", "real_time", "cpu_time", "time_unit",
                ],
                "additionalProperties": NUMBER,  # counters
                "if": {"properties": {"run_type": {"const": "aggregate"}}},
                "then": {"required": ["aggregate_name", "aggregate_unit"]},
                "else": {"required": ["repetition_index"]},
            },
        },
    },
}  # fmt: skip


def test_google_has_a_repetition_for_each_block_and_aggregates() -> None:
    data = read_checked(write_google(sample_run()), GOOGLE_SCHEMA)
    rows = [row for row in data["benchmarks"] if row["run_name"] == NAME]
    assert [row["iterations"] for row in rows[:10]] == [1000] * 8 + [2000] * 2
    assert [row["repetition_index"] for row in rows[:10]] == list(range(10))
    assert [row["aggregate_name"] for row in rows[10:]] == ["mean", "median", "stddev", "cv"]
    assert rows[8]["real_time"] == rows[8]["cpu_time"] == pytest.approx(1400.0)
    assert rows[0]["instructions"] == 5000.3
    assert "instructions" not in rows[-1]


def test_google_has_no_aggregates_of_a_single_repetition() -> None:
    (row,) = read_checked(write_google(only(ODD, WALL, times(1, 0.25))), GOOGLE_SCHEMA)["benchmarks"]
    assert (row["repetitions"], row["threads"], row["real_time"]) == (1, 2, 0.25e9)


def test_the_schema_refuses_a_repetition_without_its_number() -> None:
    data = json.loads(write_google(only(ODD, WALL, times(1, 0.25))))
    del data["benchmarks"][0]["repetition_index"]
    with pytest.raises(fastjsonschema.JsonSchemaException):
        read_checked(json.dumps(data), GOOGLE_SCHEMA)
