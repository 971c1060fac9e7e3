from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.made_summaries import make_case
from torchmark.analysis.estimate import (
    COMPILING_LEAST,
    STARTING,
    STARTING_COMPILER,
    TRUST_AFTER_S,
    Estimate,
    Estimator,
    estimate,
    expected_seconds,
    find_chores,
)
from torchmark.model.case import AutogradMode, Case, RuntimeMode
from torchmark.model.outcome import Activity, ActivityKind, Failure, FailureKind, Outcome
from torchmark.model.plan import Metric, Order, Plan, Sampling, Target
from torchmark.model.task import Language

HERE = Target()
SAMPLING = Sampling()
PYTHON, CPP = make_case("a"), make_case("a", language=Language.CPP)
SCRIPT, COMPILED = make_case("a", runtime=RuntimeMode.JIT), make_case("a", runtime=RuntimeMode.COMPILE)
BACKWARD = make_case("a", autograd=AutogradMode.FORWARD_BACKWARD)


def outcome(order: Order, seconds: float) -> Outcome:
    return Outcome(order, Failure(FailureKind.RAISED, "no"), 100.0, 100.0 + seconds)


@pytest.mark.parametrize(
    ("case", "metric", "seconds"),
    [
        (PYTHON, Metric.WALL, 0.35),
        (COMPILED, Metric.WALL, 15.0),
        (PYTHON, Metric.COUNT, 0.95),
        (CPP, Metric.COUNT, 0.7),
        (BACKWARD, Metric.COUNT, 2.375),
        (SCRIPT, Metric.COUNT, 1.7),
        (COMPILED, Metric.COUNT, 12.0),
    ],
)
def test_what_is_not_known_is_guessed_by_its_kind(case: Case, metric: Metric, seconds: float) -> None:
    expected, known = expected_seconds(Order(case, HERE, metric), SAMPLING, {})
    assert expected == pytest.approx(seconds)
    assert not known


def test_a_fixed_number_of_runs_takes_longer_the_more_there_are() -> None:
    order = Order(PYTHON, HERE, Metric.WALL)
    few, many = (expected_seconds(order, Sampling(number=1000, blocks=n), {})[0] for n in (100, 1000))
    assert few < 1 < many


def test_what_was_measured_before_takes_as_long_again() -> None:
    history = {("", PYTHON.key, Metric.COUNT): 7.0}
    assert expected_seconds(Order(PYTHON, HERE, Metric.COUNT), SAMPLING, history) == (7.0, True)
    assert not expected_seconds(Order(PYTHON, HERE, Metric.WALL), SAMPLING, history)[1]


def test_counting_shares_the_cores_and_timing_does_not() -> None:
    history = {("", PYTHON.key, Metric.COUNT): 1000.0, ("", PYTHON.key, Metric.WALL): 10.0}
    orders = Plan((PYTHON,)).orders
    start = sum(STARTING.values())
    assert estimate(orders, SAMPLING, history, 4) == Estimate(start + 260.0, start + 1010.0, 2, 2)
    assert estimate((), SAMPLING, history, 4) == Estimate(0.0, 0.0, 0, 0)


def test_a_little_counting_is_done_by_one_worker() -> None:
    history = {("", PYTHON.key, Metric.COUNT): 300.0}
    orders = [Order(PYTHON, HERE, Metric.COUNT)]
    assert estimate(orders, SAMPLING, history, 4).clock_s == STARTING[Metric.COUNT] + 300.0


def test_chores_are_those_that_the_orders_need_once_for_each_target() -> None:
    orders = Plan((PYTHON, CPP, COMPILED), (HERE, Target("other"))).orders
    chores = find_chores(orders, {})
    assert [chore.seconds for chore in chores if chore.target == HERE] == [
        *(STARTING[metric] for metric in Metric),
        STARTING_COMPILER,
        COMPILING_LEAST,
    ]
    assert len(chores) == 8
    known = {("", CPP.key, metric): 1.0 for metric in Metric}
    assert ActivityKind.COMPILE not in {chore.kind for chore in find_chores(orders, known)}


def test_what_remains_is_corrected_by_what_the_others_took() -> None:
    cases = tuple(make_case(str(i)) for i in range(4))
    orders = [Order(case, HERE, Metric.WALL) for case in cases]
    history = {("", case.key, Metric.WALL): TRUST_AFTER_S for case in cases}
    estimator = Estimator(orders, SAMPLING, history, 8)
    assert estimator.remaining_s() == STARTING[Metric.WALL] + 4 * TRUST_AFTER_S
    estimator.add(Activity(ActivityKind.START, HERE, 0.0, 1.0))
    assert estimator.remaining_s() == 4 * TRUST_AFTER_S
    # Three times as long as was expected; half of that is believed.
    estimator.add(outcome(orders[0], 3 * TRUST_AFTER_S))
    assert estimator.remaining_s() == 3 * TRUST_AFTER_S * 2
    estimator.add(outcome(orders[0], 3 * TRUST_AFTER_S))
    assert estimator.remaining_s() == 3 * TRUST_AFTER_S * 2


def test_a_result_tells_that_its_worker_has_started() -> None:
    orders = Plan((PYTHON, CPP)).orders
    estimator = Estimator(orders, SAMPLING, {}, 1)
    before = estimator.remaining_s()
    estimator.add(outcome(Order(PYTHON, HERE, Metric.COUNT), 1.0))
    assert before - estimator.remaining_s() >= STARTING[Metric.COUNT]


@given(st.lists(st.floats(0, 1e4), min_size=1, max_size=6), st.integers(1, 64))
def test_nothing_remains_when_all_is_done(durations: list[float], cores: int) -> None:
    orders = [Order(make_case(str(i)), HERE, metric) for i in range(len(durations)) for metric in Metric]
    estimator = Estimator(orders, SAMPLING, {}, cores)
    for order, seconds in zip(orders, [*durations, *durations], strict=True):
        assert estimator.remaining_s() > 0
        estimator.add(outcome(order, seconds))
    assert estimator.remaining_s() == 0
