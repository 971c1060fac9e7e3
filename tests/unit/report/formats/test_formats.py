"""What each format says of the same run, and what holds for all of them."""

from __future__ import annotations

import csv
import dataclasses
import hashlib
import io
import json
from typing import Any

import fastjsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.sample_runs import (
    ADD,
    CASES,
    COUNT,
    EAGER,
    FAILURE,
    MODEL,
    ODD,
    WALL,
    make_run,
    only,
    sample_run,
    tally,
    times,
)  # fmt: skip
from torchmark.define.discovery import discover
from torchmark.errors import UsageError
from torchmark.model.case import Case, TimerArgs
from torchmark.model.outcome import Result
from torchmark.model.plan import Metric, Target
from torchmark.model.run import Run
from torchmark.report.formats.google import write_google
from torchmark.report.formats.pyperf import write_pyperf
from torchmark.report.formats.pytest_benchmark import write_pytest_benchmark
from torchmark.report.formats.registry import FORMATS
from torchmark.report.formats.spreadsheet import FORMULA_STARTS, guard, write_csv
from torchmark.report.formats.table import write_markdown
from torchmark.report.formats.trackers import write_bmf, write_github_action
from torchmark.report.formats.upstream import STANDARD_MD5, write_upstream

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


def read_checked(text: str, schema: dict[str, Any]) -> Any:
    """The values in a text that a schema admits."""
    data = json.loads(text)
    fastjsonschema.compile(schema)(data)
    return data


@pytest.mark.parametrize("schema", [BMF_SCHEMA, ACTION_SCHEMA, GOOGLE_SCHEMA])
def test_the_schemas_admit_what_was_written_and_nothing_else(schema: dict[str, Any]) -> None:
    check = fastjsonschema.compile(schema)
    with pytest.raises(fastjsonschema.JsonSchemaException):
        check([{"name": "x"}] if schema is ACTION_SCHEMA else {"context": {"x": {"value": "1"}}})


def test_pyperf_has_a_run_for_each_round_and_a_value_for_each_block() -> None:
    suite = json.loads(write_pyperf(sample_run()))
    names = [benchmark["metadata"]["name"] for benchmark in suite["benchmarks"]]
    assert names[:2] == [NAME, f"{NAME} (instructions)"]
    assert len(names) == 5
    wall, count, *_ = suite["benchmarks"]
    assert [run["metadata"]["loops"] for run in wall["runs"]] == [1000, 2000]
    assert wall["runs"][1]["values"] == [1.4e-6, 1.7e-6]
    assert wall["metadata"]["unit"] == "second"
    assert wall["metadata"]["tags"] == ["quick"]
    assert count["runs"][0]["values"] == [5000, 5003, 5001]
    assert count["metadata"]["unit"] == "integer"
    assert suite["metadata"]["cpu_model_name"] == "A Fine CPU @ 2.30GHz"
    assert suite["benchmarks"][-1]["metadata"]["compile_cold_s"] == 2.0


def test_pyperf_gets_no_value_that_it_refuses() -> None:
    run = make_run({(ADD, WALL, 0): times(1, 0.0, 1.0), (ADD, COUNT, 0): tally(1, 4)}, [ADD])
    (count,) = json.loads(write_pyperf(run))["benchmarks"]
    assert count["metadata"]["unit"] == "integer"


def test_pyperf_is_not_told_of_an_interpreter_that_changed_between_rounds() -> None:
    run = only(ADD, WALL, times(1, 1.0), times(1, 1.0))
    first, second = run.outcomes
    assert first.environment is not None
    newer = dataclasses.replace(first.environment, python_version="3.12.1")
    run = dataclasses.replace(run, outcomes=(first, dataclasses.replace(second, environment=newer)))
    (benchmark,) = json.loads(write_pyperf(run))["benchmarks"]
    assert "python_version" not in benchmark["metadata"]
    assert benchmark["metadata"]["torch_version"] == "2.13.0"


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


def test_pytest_benchmark_groups_variants_and_has_the_statistics() -> None:
    data = json.loads(write_pytest_benchmark(sample_run()))
    assert [bench["group"] for bench in data["benchmarks"]] == [
        "Pointwise / add", '=cmd()|"x" / naïve, *new* line', "model",
    ]  # fmt: skip
    add, odd, model = data["benchmarks"]
    assert add["fullname"] == f"standard::{NAME}"
    assert add["params"] == {"runtime": "Eager", "autograd": "Forward", "language": "Python", "threads": 1}
    assert add["extra_info"]["instructions"] == 5000.3
    assert add["stats"]["rounds"] == len(add["stats"]["data"]) == 10
    assert add["stats"]["min"] <= add["stats"]["ld15iqr"] <= add["stats"]["q1"] <= add["stats"]["median"]
    assert odd["stats"]["stddev"] == 0
    assert odd["stats"]["ops"] == 4
    assert model["extra_info"]["compile_warm_s"] == 1.0
    assert data["commit_info"] == {"id": "c0ffee", "dirty": True}


def test_the_outliers_of_pytest_benchmark_are_counted_by_both_rules() -> None:
    run = only(ADD, WALL, times(1, 1.0, 1.0, 1.1, 1.1, 1.1, 1.2, 1.2, 9.0))
    stats = json.loads(write_pytest_benchmark(run))["benchmarks"][0]["stats"]
    assert stats["outliers"] == "1;1"
    assert (stats["ld15iqr"], stats["hd15iqr"]) == (1.0, 1.2)


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


@given(st.text())
def test_a_guarded_text_is_what_it_was_without_its_apostrophe(text: str) -> None:
    guarded = guard(text)
    assert (guarded[1:] if guarded.startswith("'") else guarded) == text


def test_markdown_is_a_table_of_the_columns_that_tell_something() -> None:
    lines = write_markdown(sample_run()).splitlines()
    assert lines[0] == (
        "| benchmark | runtime | language | threads | time | 95 % interval | compile (empty cache, again) "
        "| instructions | spread | notes |"
    )
    assert len(lines) == 2 + len(CASES)
    assert lines[2].startswith("| Pointwise / add | Eager | Python | 1 | 1.55 us | 1.50 to 1.60 us | – | 5,000 |")
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


EVERYWHERE = sorted(set(FORMATS) - {"upstream"})


@pytest.mark.parametrize("name", sorted(set(FORMATS) - {"csv", "markdown"}))
def test_a_run_that_only_failed_is_refused(name: str) -> None:
    with pytest.raises(UsageError, match="has no times"):
        FORMATS[name].write(only(ADD, WALL, FAILURE))


@pytest.mark.parametrize("name", ["google", "pytest-benchmark"])
def test_counts_alone_are_refused_where_there_must_be_times(name: str) -> None:
    with pytest.raises(UsageError, match="no times to export"):
        FORMATS[name].write(only(ADD, COUNT, tally(100, 5)))


@pytest.mark.parametrize("name", EVERYWHERE)
def test_targets_are_told_apart(name: str) -> None:
    text = FORMATS[name].write(sample_run([Target("old"), Target("new")]))
    assert "old" in text
    assert "new" in text


def refuse_constant(constant: str) -> None:
    pytest.fail(f"{constant} is no JSON")


@given(
    label=st.lists(st.text(max_size=8), min_size=1, max_size=3),
    seconds=st.lists(st.floats(0, 1e6, allow_nan=False), min_size=1, max_size=4),
    totals=st.lists(st.integers(0, 10**12), min_size=1, max_size=3),
    number=st.integers(1, 1000),
)
def test_any_label_and_any_numbers_can_be_written(
    label: list[str], seconds: list[float], totals: list[int], number: int
) -> None:
    case = Case(tuple(label), EAGER, TimerArgs("x"))
    results: dict[tuple[Case, Metric, int], Result] = {
        (case, WALL, 0): times(number, *seconds),
        (case, COUNT, 0): tally(number, *totals),
    }
    run = make_run(results, [case])
    for kind in FORMATS.values():
        text = kind.write(run)
        assert text.endswith("\n")
        if kind.suffix == ".json":
            json.loads(text, parse_constant=refuse_constant)
