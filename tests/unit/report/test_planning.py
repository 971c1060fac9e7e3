from __future__ import annotations

from tests.made_summaries import make_case
from torchmark.analysis.estimate import Estimate
from torchmark.model.plan import Metric, Plan, Sampling, Target
from torchmark.report.text.plan import render_plan

CASES = make_case("a"), make_case("b")


def test_a_plan_says_what_where_and_for_how_long() -> None:
    text = render_plan(Plan(CASES), Estimate(75.0, 130.0, 0, 4), 2, 80, of=9)
    assert text.splitlines() == [
        "2 of 9 cases: 2 Python; 2 Eager",
        "Timed: one after the other, each for 200 ms or more",
        "Counted: in 5 memory layouts",
        "Where: 2 cores",
        "4 results: about 75 s, 2 min of processor time (a rough guess: none of these has",
        "  been measured here)",
    ]


def test_a_plan_names_environments_and_rounds_and_leaves_out_what_is_not_asked_for() -> None:
    plan = Plan(CASES, (Target("old"), Target()), Sampling((Metric.COUNT,), layouts=(1,), repeat=3))
    lines = render_plan(plan, Estimate(75.0, 130.0, 5, 12), 1, 80).splitlines()
    assert lines[1:4] == [
        "Counted: in 1 memory layout",
        "Rounds: 3",
        "Where: 1 core; 2 environments: old, this one",
    ]
    assert "from 5 of 12 earlier durations" in lines[4]


def test_nothing_left_to_measure_is_said() -> None:
    assert render_plan(Plan(CASES), Estimate(0.0, 0.0, 0, 0), 1, 80).endswith("Nothing is left to measure.")
