"""The file of PyTorch's CI."""

from __future__ import annotations

import dataclasses
import hashlib
import json

import pytest

from tests.sample_runs import ADD, COUNT, MODEL, ODD, WALL, make_run, only, sample_run, tally, times
from torchmark.define.discovery import discover
from torchmark.errors import UsageError
from torchmark.model.case import Case
from torchmark.model.outcome import Result
from torchmark.model.plan import Metric, Target
from torchmark.report.formats.trackers import STANDARD_MD5, write_upstream


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
