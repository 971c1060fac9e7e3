from __future__ import annotations

import copy
import json
import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from torchmark import Interval, Measurement, StoreError, TaskSpec, UsageError
from torchmark.model.caveats import FewSamples

SPEC = TaskSpec("x + y", "x = 1", label="L", sub_label="S", description="D", env="E", num_threads=4)


def made(times: list[float], number: int = 1, spec: TaskSpec = SPEC) -> Measurement:
    return Measurement(number, times, spec)


def test_task_fields_are_at_hand() -> None:
    m = made([1.0])
    assert (m.stmt, m.setup, m.global_setup) == ("x + y", "x = 1", "")
    assert (m.label, m.sub_label, m.description, m.env, m.num_threads) == ("L", "S", "D", "E", 4)
    assert (m.title, m.as_row_name) == ("L: S", "S")


def test_a_typo_is_an_error() -> None:
    with pytest.raises(AttributeError):
        made([1.0]).taskspec  # type: ignore[attr-defined]  # noqa: B018


@pytest.mark.parametrize(
    ("spec", "name"),
    [(TaskSpec("x", "", sub_label="s"), "s"), (TaskSpec("x", ""), "x"), (TaskSpec("", ""), "[Unknown]")],
)
def test_row_names(spec: TaskSpec, name: str) -> None:
    assert made([1.0], spec=spec).as_row_name == name


def test_statistics_are_per_run() -> None:
    m = made([20.0, 10.0, 30.0, 40.0, 50.0], number=10)
    assert m.times == [2.0, 1.0, 3.0, 4.0, 5.0]
    assert (m.median, m.mean, m.iqr, m.min, m.max) == (3.0, 3.0, 2.0, 1.0, 5.0)
    assert m.std == pytest.approx(2.5**0.5)
    assert m.quantile(0.25) == 2.0


def test_statistics_follow_the_raw_times() -> None:
    m = made([1.0])
    assert m.median == 1.0
    m.raw_times.append(3.0)
    assert m.median == 2.0


def test_a_single_sample_has_no_std() -> None:
    assert made([1.0]).std is None


@pytest.mark.parametrize("name", ["median", "mean", "iqr", "std", "min", "max", "significant_figures"])
def test_statistics_of_nothing_are_refused_with_a_sentence(name: str) -> None:
    with pytest.raises(UsageError, match="without samples"):
        getattr(made([]), name)


def test_what_can_be_said_of_nothing_is_said() -> None:
    empty = made([])
    assert empty.times == []
    assert empty.outliers == []
    assert empty.median_interval() is None
    assert empty.has_warnings is False
    assert empty.caveats == (FewSamples(0, 6),)


@pytest.mark.parametrize("q", [-0.1, 1.1, 95])
def test_a_quantile_that_is_none_is_refused(q: float) -> None:
    with pytest.raises(UsageError, match="between 0 and 1"):
        made([1.0]).quantile(q)


def test_a_quantile_of_nothing_is_refused() -> None:
    with pytest.raises(UsageError, match="no quantiles"):
        made([]).quantile(0.5)


def test_confidence_is_strictly_below_the_threshold() -> None:
    m = made([9.5, 10.0, 10.5])  # quartiles 9.75 and 10.25: 5 %
    assert m.meets_confidence()
    assert not m.meets_confidence(0.05)


def test_warnings_begin_at_a_tenth() -> None:
    assert made([9.5, 9.5, 10.0, 10.5, 10.5]).has_warnings
    assert not made([9.6, 9.6, 10.0, 10.5, 10.5]).has_warnings


def test_the_interval_of_the_median() -> None:
    assert made([60.0, 10.0, 20.0, 50.0, 30.0, 40.0], number=10).median_interval() == Interval(1.0, 6.0, 0.96875)
    assert made([1.0, 2.0]).median_interval(0.5) == Interval(1.0, 2.0, 0.5)


def test_merging_joins_replicates_in_the_order_seen() -> None:
    other = TaskSpec("z", "")
    merged = Measurement.merge([made([2.0], 2), made([5.0], spec=other), made([9.0, 6.0], 3)])
    assert [(m.task_spec, m.number_per_run, m.raw_times) for m in merged] == [
        (SPEC, 1, [1.0, 3.0, 2.0]),
        (other, 1, [5.0]),
    ]
    assert Measurement.merge([]) == []


def test_a_block_of_no_runs_is_refused() -> None:
    with pytest.raises(UsageError, match="at least once"):
        made([1.0], number=0)


def test_copies_are_equal_and_not_hashable() -> None:
    m = Measurement(10, [1.0, 2.0], SPEC, metadata={"commit": "abc"}, overhead_s=1e-7)
    for twin in (
        pickle.loads(pickle.dumps(m)),
        copy.deepcopy(m),
        Measurement.from_dict(json.loads(json.dumps(m.to_dict()))),
    ):
        assert twin == m
    with pytest.raises(TypeError):
        hash(m)


@given(st.lists(st.floats(0, 1e6), max_size=20), st.integers(1, 10**9))
def test_json_keeps_every_bit(times: list[float], number: int) -> None:
    m = made(times, number)
    assert Measurement.from_dict(json.loads(json.dumps(m.to_dict()))) == m


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"schema": "other"}, "its schema is 'other'"),
        ({"schema_version": 99}, "schema version 99"),
        ({"schema_version": None}, "schema version None"),
        ({"raw_times": ["soon"]}, r"'raw_times\[0\]' is 'soon'; expected a finite number"),
        ({"raw_times": "123"}, "'raw_times' is '123'; expected a list"),
        ({"raw_times": [float("nan")]}, r"'raw_times\[0\]' is nan"),
        ({"task_spec": {"statement": "x"}}, "'task_spec.statement' is not known"),
        ({"task_spec": None}, "'task_spec' is None; expected a mapping"),
        ({"number_per_run": 0}, "at least once"),
        ({"number_per_run": 1.9}, "'number_per_run' is 1.9; expected a whole number"),
        ({"number_per_run": True}, "'number_per_run' is True"),
        ({"overhead_s": "x"}, "'overhead_s' is 'x'; expected a finite number"),
        ({"metadata": [1]}, "'metadata' is"),
    ],
)
def test_what_is_no_measurement_is_refused_with_a_reason(change: dict[str, object], message: str) -> None:
    with pytest.raises(StoreError, match=message):
        Measurement.from_dict({**made([1.0]).to_dict(), **change})


def test_what_is_not_even_a_mapping_is_refused() -> None:
    with pytest.raises(StoreError, match="its schema is 'list'"):
        Measurement.from_dict([1])  # type: ignore[arg-type]


def test_task_fields_are_checked() -> None:
    data = made([1.0]).to_dict()
    data["task_spec"]["stmt"] = 5
    with pytest.raises(StoreError, match=r"'task_spec\.stmt' is 5; expected a text"):
        Measurement.from_dict(data)


def test_a_missing_field_is_named() -> None:
    data = made([1.0]).to_dict()
    del data["raw_times"]
    with pytest.raises(StoreError, match="'raw_times'"):
        Measurement.from_dict(data)
