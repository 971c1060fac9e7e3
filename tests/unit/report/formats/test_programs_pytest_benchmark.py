"""The JSON of pytest-benchmark."""

from __future__ import annotations

import json

from tests.sample_runs import ADD, WALL, only, sample_run, times
from torchmark.report.formats.programs import write_pytest_benchmark

NAME = "Pointwise / add / Eager / Forward / Python / 1 thread"


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
