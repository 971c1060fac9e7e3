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
from torchmark.analysis.estimate import _expect_ms, deal, list_own_cases, pick_orders
from torchmark.model.case import Case, RuntimeMode
from torchmark.model.plan import Metric, Plan, Sampling, Target
from torchmark.model.shard import Shard
from torchmark.model.task import Language

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
