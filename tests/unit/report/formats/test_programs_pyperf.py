"""A suite for pyperf."""

from __future__ import annotations

import dataclasses
import json

from tests.sample_runs import ADD, COUNT, WALL, make_run, only, sample_run, tally, times
from torchmark.report.formats.programs import write_pyperf

NAME = "Pointwise / add / Eager / Forward / Python / 1 thread"


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
