from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.made_contrasts import clock, evidence, grown, judgement
from tests.sample_runs import ADD, FAILING, FAILURE
from torchmark.analysis.gate import REGRESSED, hold_gate, parse_limit
from torchmark.analysis.verdict.stored import identify
from torchmark.model.gate import FailOn, GateResult, Growth, LedgerStanding, Policy, Regression, StaleEntry, Witness
from torchmark.model.judgement import CaseJudgement, Side, SideFailure, Verdict

SLOWER = frozenset({FailOn.SLOWER})


def hold(
    one: CaseJudgement,
    *limits: str,
    fail_on: frozenset[FailOn] = SLOWER,
    standing: LedgerStanding | StaleEntry | None = None,
) -> GateResult:
    ledger = {} if standing is None else {identify(one.case): standing}
    return hold_gate([one], [], ledger, Policy(fail_on, tuple(map(parse_limit, limits))))


def witnesses(result: GateResult) -> list[Witness | None]:
    assert result.exit_code == (REGRESSED if result.regressions else 0)
    return [one.witness for one in result.regressions]


def test_nothing_stops_that_nobody_asked_to_stop() -> None:
    assert hold(judgement(Verdict.SLOWER, count=evidence(100, 200)), fail_on=frozenset()) == GateResult()


@pytest.mark.parametrize("verdict", [Verdict.SAME, Verdict.FASTER, Verdict.UNDECIDED, Verdict.FAILED])
def test_without_limits_only_the_verdict_slower_stops(verdict: Verdict) -> None:
    assert witnesses(hold(judgement(verdict, count=evidence(1000, 1020)))) == []
    assert witnesses(hold(judgement(Verdict.SLOWER, count=evidence(1000, 1020)))) == [Witness.INSTRUCTIONS]
    assert witnesses(hold(judgement(Verdict.SLOWER, time=clock(Verdict.SLOWER, 0.1)))) == [Witness.TIME]
    # Whatever else it may rest on.
    assert witnesses(hold(judgement(Verdict.SLOWER, count=evidence(1000, 1000, head_allocations=9)))) == [None]


@pytest.mark.parametrize(
    ("limit", "head", "stops"),
    [
        ("Ir:0", 1000, False),
        ("Ir:0", 1000.01, True),
        ("Ir:50", 1050, False),
        ("Ir:49", 1050, True),
        ("Ir:5%", 1050, False),
        ("Ir:4.9%", 1050, True),
        ("Ir:0@nn/*", 1050, False),
        ("Ir:0@Pointwise/*", 1050, True),
        ("Ir:0", 900, False),
    ],
)
def test_a_limit_on_instructions_decides_whatever_the_verdict(limit: str, head: float, stops: bool) -> None:
    for verdict in (Verdict.SAME, Verdict.UNDECIDED):
        found = hold(judgement(verdict, count=evidence(1000, head)), limit)
        assert witnesses(found) == ([Witness.INSTRUCTIONS] if stops else [])
    if limit.endswith(("0", "9", "%")):
        found = hold(judgement(Verdict.SLOWER, count=evidence(1000, head)), limit)
        assert bool(found.regressions) == stops


def test_a_limit_on_time_lets_less_through_than_the_verdict() -> None:
    slower = judgement(Verdict.SLOWER, time=clock(Verdict.SLOWER, math.log(1.03)))
    assert witnesses(hold(slower, "time:2%")) == [Witness.TIME]
    assert witnesses(hold(slower, "time:4%")) == []
    assert witnesses(hold(slower, "time:4%@nn/*")) == [Witness.TIME]
    undecided = judgement(Verdict.UNDECIDED, time=clock(Verdict.UNDECIDED, math.log(1.5)))
    assert witnesses(hold(undecided, "time:2%")) == []
    # The clock alone calls it slower, but it is laid to the layout of memory.
    layout = judgement(Verdict.UNDECIDED, time=clock(Verdict.SLOWER, math.log(1.5)), count=evidence(10, 10))
    assert witnesses(hold(layout, "time:2%")) == []


def test_instructions_within_their_limit_do_not_excuse_the_clock() -> None:
    slower = judgement(Verdict.SLOWER, time=clock(Verdict.SLOWER, 0.1), count=evidence(1000, 1100))
    assert witnesses(hold(slower, "Ir:20%")) == [Witness.TIME]
    assert witnesses(hold(slower, "Ir:20%", "time:20%")) == []
    assert witnesses(hold(slower, "Ir:0", "time:0%")) == [Witness.INSTRUCTIONS, Witness.TIME]


def test_a_limit_on_allocations_stops_one_more() -> None:
    one = judgement(Verdict.SAME, count=evidence(1000, 1000, head_allocations=3))
    assert witnesses(hold(one)) == []
    assert witnesses(hold(one, "allocations:0")) == [Witness.ALLOCATIONS]
    assert witnesses(hold(one, "allocations:1")) == []


def test_functions_that_grew_are_named_the_largest_first() -> None:
    explained = judgement(Verdict.SAME, count=evidence(1000, 1050), explanation=grown(f=20, g=40, h=-10))
    (found,) = hold(explained, "Ir:0").regressions
    assert found.functions == (Growth("g", 40), Growth("f", 20))
    assert (found.base, found.head, found.limit, found.accepted) == (1000, 1050, parse_limit("Ir:0"), False)


def test_undecided_failed_and_missing_stop_where_that_is_asked_for() -> None:
    every = frozenset(FailOn)
    assert hold(judgement(Verdict.UNDECIDED), fail_on=every).regressions == (Regression(ADD, FailOn.UNDECIDED),)
    in_head = judgement(Verdict.FAILED, failures=(SideFailure(Side.HEAD, FAILURE),))
    assert hold(in_head, fail_on=every).regressions == (Regression(ADD, FailOn.FAILED),)
    in_base = judgement(Verdict.FAILED, failures=(SideFailure(Side.BASE, FAILURE),))
    assert hold(in_base, fail_on=every).regressions == ()
    assert hold_gate([], [FAILING], {}, Policy(every)).regressions == (Regression(FAILING, FailOn.MISSING),)
    assert hold_gate([], [FAILING], {}, Policy(SLOWER)).regressions == ()


def test_an_accepted_count_takes_the_place_of_base() -> None:
    slower = judgement(Verdict.SLOWER, count=evidence(1000, 1050))
    assert hold(slower, "Ir:0", standing=LedgerStanding(ADD, 1050, 1050)) == GateResult(accepted=(ADD,))
    assert hold(slower, standing=LedgerStanding(ADD, 1050, 1050)).exit_code == 0
    growth = (Growth("f", 10),)
    (found,) = hold(slower, standing=LedgerStanding(ADD, 1040, 1050, growth)).regressions
    assert (found.base, found.head, found.accepted, found.functions) == (1040, 1050, True, growth)
    assert found.limit == parse_limit("Ir:0")
    assert hold(slower, "Ir:1%", standing=LedgerStanding(ADD, 1040, 1050)).regressions == ()
    # What did not change since base may be more than was accepted.
    assert (
        hold(judgement(Verdict.SAME, count=evidence(1050, 1050)), standing=LedgerStanding(ADD, 1040, 1050)).exit_code
        == 3
    )


def test_accepting_instructions_accepts_their_time_and_no_other() -> None:
    standing = LedgerStanding(ADD, 1100, 1100)
    confirmed = judgement(Verdict.SLOWER, time=clock(Verdict.SLOWER, 0.1), count=evidence(1000, 1100))
    assert witnesses(hold(confirmed, standing=standing)) == []
    elsewhere = judgement(Verdict.SLOWER, time=clock(Verdict.SLOWER, 0.1), count=evidence(1100, 1100))
    assert witnesses(hold(elsewhere, standing=standing)) == [Witness.TIME]


def test_fewer_than_accepted_ask_to_be_accepted_and_never_stop() -> None:
    found = hold(judgement(Verdict.SAME, count=evidence(1000, 1000)), "Ir:0", standing=LedgerStanding(ADD, 1120, 1000))
    assert (found.exit_code, found.regressions) == (0, ())
    assert [(one.accepted, one.head) for one in found.improvements] == [(1120, 1000)]


def test_a_stale_entry_is_told_and_base_is_what_counts() -> None:
    stale = StaleEntry(ADD, (("torch", "2.12", "2.13"),))
    found = hold(judgement(Verdict.SAME, count=evidence(1000, 1050)), "Ir:0", standing=stale)
    assert found.stale == (stale,)
    assert witnesses(found) == [Witness.INSTRUCTIONS]


@given(st.floats(0, 1e9), st.floats(0, 1e9), st.sampled_from(["Ir:0", "Ir:1%", "Ir:7"]))
def test_improvements_never_stop(base: float, head: float, limit: str) -> None:
    base, head = max(base, head), min(base, head)
    faster = judgement(Verdict.FASTER, time=clock(Verdict.FASTER, -0.1), count=evidence(base, head))
    for standing in (None, LedgerStanding(ADD, base, head)):
        assert hold(faster, limit, "time:0%", "allocations:0", standing=standing).exit_code == 0
