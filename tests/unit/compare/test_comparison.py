from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import pytest

from tests.sample_runs import ADD, ENVIRONMENT, FAILING
from torchmark.api.statements import make_case
from torchmark.compare.comparison import ComparedPair, Comparison, Evidence, try_sides
from torchmark.model.judgement import Side
from torchmark.model.outcome import Failure
from torchmark.model.plan import Case, Metric, Order, Target, TimerArgs

BASE, HEAD = Target("base", "/a"), Target("head", "/b")


def test_environments_are_told_by_target_each_once() -> None:
    other = dataclasses.replace(ENVIRONMENT, torch_version="1.13.1")
    found = {(ADD, BASE): ENVIRONMENT, (FAILING, BASE): ENVIRONMENT, (ADD, HEAD): other}
    evidence = Evidence(environments={Order(*key, Metric.COUNT): where for key, where in found.items()})
    assert evidence.list_environments(BASE) == (ENVIRONMENT,)
    assert evidence.find_environment(HEAD) == other
    assert evidence.find_environment(Target("nowhere")) is None


def test_nothing_is_started_for_a_side_whose_other_side_is_not_valid(monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[Case] = []

    def find(cases: Sequence[Case], target: Target) -> dict[Case, Failure]:
        tried.extend(cases)
        return {}

    monkeypatch.setattr("torchmark.compare.comparison.find_faults", find)
    wrong, right, other = (make_case(TimerArgs(stmt)) for stmt in ("x +", "x", "y"))
    comparison, evidence = (
        Comparison((ComparedPair(wrong, right), ComparedPair(other, right)), Target(), Target()),
        Evidence(),
    )
    assert try_sides(comparison, evidence).entries == (ComparedPair(other, right),)
    assert wrong not in tried
    ((entry, timing),) = evidence.timed.items()
    assert entry == ComparedPair(wrong, right)
    assert [failed.side for failed in timing.failures] == [Side.BASE]
    assert "SyntaxError" in timing.failures[0].failure.message
