from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.made_shards import CASES, GROUPS, PLAN
from tests.made_summaries import make_case
from tests.random_runs import plans
from torchmark.analysis.estimate import (
    COMPILING_LEAST,
    STARTING,
    STARTING_COMPILER,
    TRUST_AFTER_S,
    Estimate,
    Estimator,
    _expect_ms,
    deal,
    estimate,
    expected_seconds,
    find_start_costs,
    list_own_cases,
    pick_orders,
)
from torchmark.model.outcome import Activity, ActivityKind, Failure, FailureKind, Outcome
from torchmark.model.plan import AutogradMode, Case, Metric, Order, Plan, RuntimeMode, Sampling, Target
from torchmark.model.run import Shard
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
    costs = find_start_costs(orders, {})
    assert [cost.seconds for cost in costs if cost.target == HERE] == [
        *(STARTING[metric] for metric in Metric),
        STARTING_COMPILER,
        COMPILING_LEAST,
    ]
    assert len(costs) == 8
    known = {("", CPP.key, metric): 1.0 for metric in Metric}
    assert ActivityKind.COMPILE not in {cost.kind for cost in find_start_costs(orders, known)}


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


NAMES = st.sampled_from("abcdefgh")
SOME_CASES = st.builds(
    make_case,
    NAMES,
    runtime=st.sampled_from(RuntimeMode),
    language=st.sampled_from(Language),
    threads=st.integers(1, 2),
    suite=st.sampled_from(["one.py", "two.py"]),
)
SOME_PLANS = st.builds(
    Plan,
    st.lists(SOME_CASES, max_size=30, unique_by=lambda case: (case.suite, case.key)).map(tuple),
    st.just((Target(), Target("other"))),
    st.builds(Sampling, repeat=st.integers(1, 3)),
)
SIZES = st.integers(1, 12)


def group(case: Case) -> object:
    return case.suite, case.label, case.autolabels.autograd


@given(plan=st.one_of(SOME_PLANS, plans()), of=SIZES)
def test_every_order_is_in_exactly_one_shard(plan: Plan, of: int) -> None:
    picked = [order for n in range(1, of + 1) for order in pick_orders(plan.orders, plan, Shard(n, of))]
    assert len(picked) == len(plan.orders)
    assert set(picked) == set(plan.orders)


@given(plan=SOME_PLANS, of=SIZES)
def test_what_is_compared_stays_together_and_in_the_order_of_the_plan(plan: Plan, of: int) -> None:
    dealt = deal(plan, of)
    assert tuple(dealt) == plan.cases
    for one in plan.cases:
        assert {dealt[case] for case in plan.cases if group(case) == group(one)} == {dealt[one]}


@given(plan=SOME_PLANS, of=SIZES)
def test_shards_are_no_further_apart_than_the_most_expensive_group(plan: Plan, of: int) -> None:
    costs: dict[object, int] = {}
    for case in plan.cases:
        costs[group(case)] = costs.get(group(case), 0) + _expect_ms(case, plan)
    dealt = deal(plan, of)
    loads = [sum(_expect_ms(case, plan) for case in plan.cases if dealt[case] == n + 1) for n in range(of)]
    assert max(loads) - min(loads) <= max(costs.values(), default=0)


@given(plan=SOME_PLANS, of=SIZES)
def test_no_shard_is_empty_while_there_is_a_group_for_it(plan: Plan, of: int) -> None:
    groups = len({group(case) for case in plan.cases})
    assert set(deal(plan, of).values()) == set(range(1, min(of, groups) + 1))


def test_a_plan_dealt_by_hand() -> None:
    # Counting takes 0.2 s and 0.1 s a layout in C++, and compiling 0.3 s; in Python 0.35 s and 0.12 s a layout.
    sampling = Sampling((Metric.COUNT,), layouts=(0, 1), repeat=2)
    cpp, python, script = (
        make_case("a", language=Language.CPP),  # (0.2 + 0.2) * 2 + 0.3
        make_case("b"),  # (0.35 + 0.24) * 2
        make_case("c", runtime=RuntimeMode.JIT),  # (0.7 + 0.4) * 2
    )
    plan = Plan((cpp, python, script), sampling=sampling)
    assert [_expect_ms(case, plan) for case in plan.cases] == [1100, 1180, 2200]
    assert deal(plan, 2) == {cpp: 2, python: 2, script: 1}
    assert deal(plan, 3) == {cpp: 3, python: 2, script: 1}
    assert list_own_cases(plan, Shard(2, 2)) == (cpp, python)
    assert list_own_cases(plan, None) == plan.cases
    assert list_own_cases(plan, Shard(9, 9)) == ()


def test_more_shards_than_groups_are_empty_however_many_they_are() -> None:
    assert len(set(deal(PLAN, 999_999).values())) == GROUPS
    assert pick_orders(PLAN.orders, PLAN, Shard(GROUPS + 1, 999_999)) == ()


@pytest.mark.parametrize("seed", ["0", "12345"])
def test_dealing_does_not_depend_on_the_hash_seed(seed: str) -> None:
    code = "from tests.made_shards import PLAN\nfrom torchmark.analysis.estimate import deal\n"
    code += "print([*deal(PLAN, 3).values()])"
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        cwd=Path(__file__).parents[3],
        env={"PYTHONHASHSEED": seed},
    )
    assert done.stdout.strip() == str([deal(PLAN, 3)[case] for case in CASES]), done.stderr
