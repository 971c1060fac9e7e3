"""What holds for all formats."""

from __future__ import annotations

import json

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.sample_runs import ADD, COUNT, EAGER, FAILURE, WALL, make_run, only, sample_run, tally, times
from torchmark.errors import UsageError
from torchmark.model.outcome import Result
from torchmark.model.plan import Case, Metric, Target, TimerArgs
from torchmark.report.formats.registry import FORMATS

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


@example(label=["a"], seconds=[5e-324], totals=[1], number=1)
@example(label=["a"], seconds=[0.0, 5e-324, 5.0], totals=[1], number=1)
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
