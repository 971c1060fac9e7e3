from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from torchmark.analysis.verdict.stored import CONFIDENCE, EQUIVALENCE, FLOOR, weigh_times
from torchmark.model.judgement import Verdict

STEADY = [[1.0], [1.0001], [0.9999]]


def scale(rounds: list[list[float]], factor: float) -> list[list[float]]:
    return [[t * factor for t in times] for times in rounds]


@pytest.mark.parametrize(
    ("factor", "verdict"),
    [
        (1.2, Verdict.SLOWER),
        (1 / 1.2, Verdict.FASTER),
        (1.0, Verdict.SAME),
        (1.03, Verdict.SAME),
        (1.0513, Verdict.SLOWER),
    ],
)
def test_three_steady_processes_a_side_decide(factor: float, verdict: Verdict) -> None:
    found = weigh_times(STEADY, scale(STEADY, factor))
    assert found is not None
    assert found.verdict is verdict
    assert found.log_ratio == pytest.approx(math.log(factor))
    assert (found.confidence, found.floor, found.equivalence) == (CONFIDENCE, FLOOR, EQUIVALENCE)
    assert found.layouts == 0


def test_the_interval_is_students_on_the_logarithms_of_medians() -> None:
    # Logarithms 0, 1, 2 and 2, 3, 4: errors of 1/3 each, four degrees of freedom, whose 0.995 quantile is 4.604.
    base = [[math.exp(n)] for n in (0, 1, 2)]
    head = [[1e-9, math.exp(n), 1e9] for n in (2, 3, 4)]
    found = weigh_times(base, head)
    assert found is not None
    assert found.log_ratio == pytest.approx(2.0)
    assert found.high == pytest.approx(2 + 4.604 * math.sqrt(2 / 3), abs=1e-3)
    assert found.verdict is Verdict.UNDECIDED
    assert (found.base_s, found.head_s) == pytest.approx((math.e, math.exp(3)))


def test_a_change_below_the_floor_is_none_however_clear_it_is() -> None:
    found = weigh_times(STEADY, scale(STEADY, 1.049))
    assert found is not None
    assert found.low > 0
    assert found.verdict is not Verdict.SLOWER


def test_two_processes_decide_nothing_and_give_the_bounds_of_both() -> None:
    base = [[1.0, 1.1, 1.2, 1.3, 1.4, 1.5], [2.0] * 6]
    found = weigh_times(base, [[10.0] * 6, [11.0] * 6, [12.0] * 6])
    assert found is not None
    assert found.verdict is Verdict.UNDECIDED
    assert found.low == pytest.approx(math.log(10 / 2))
    assert found.high == pytest.approx(math.log(12 / 1))
    # Six samples enclose the median with 1 - 2/64, on both sides.
    assert found.confidence == pytest.approx(1 - 2 * 2 / 64)
    assert found.p_value is None


def test_single_samples_bound_nothing() -> None:
    found = weigh_times([[1.0]], [[2.0]])
    assert found is not None
    assert (found.verdict, found.confidence) == (Verdict.UNDECIDED, 0.0)
    assert (found.low, found.high) == (-math.inf, math.inf)


@pytest.mark.parametrize("nothing", [[], [[]], [[0.0]], [[0.0, -1.0]]])
def test_without_times_there_is_no_evidence(nothing: list[list[float]]) -> None:
    assert weigh_times(nothing, STEADY) is None
    assert weigh_times(STEADY, nothing) is None


ROUNDS = st.lists(st.lists(st.floats(1e-9, 1e3), min_size=1, max_size=9), min_size=1, max_size=5)


@given(ROUNDS, ROUNDS)
def test_the_ratio_lies_in_its_interval_and_a_change_is_beyond_the_floor(
    base: list[list[float]], head: list[list[float]]
) -> None:
    found = weigh_times(base, head)
    assert found is not None
    assert found.low - 1e-9 <= found.log_ratio <= found.high + 1e-9
    assert 0 <= found.confidence < 1
    if found.verdict is Verdict.SLOWER:
        assert found.log_ratio >= FLOOR
    if found.verdict is Verdict.SAME:
        assert max(abs(found.low), abs(found.high)) <= EQUIVALENCE
