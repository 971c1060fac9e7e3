from __future__ import annotations

import dataclasses
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.made_contrasts import clock, count_functions, environment, evidence, grown, judgement
from tests.sample_runs import ADD, FAILING, FAILURE
from torchmark.analysis.gate import (
    MOST_FUNCTIONS,
    REST,
    describe_dependencies,
    find_limit,
    hold_against,
    hold_gate,
    make_entry,
    parse_fail_on,
    parse_limit,
)
from torchmark.analysis.verdict.stored import identify
from torchmark.callgrind.profiles import standardise
from torchmark.errors import ExitCode, UsageError
from torchmark.model.costs import Costs, Function, Profile, Tally
from torchmark.model.gate import (
    FailOn,
    GateResult,
    Growth,
    LedgerEntry,
    LedgerStanding,
    Limit,
    Policy,
    Quantity,
    Regression,
    StaleEntry,
)
from torchmark.model.judgement import CaseJudgement, Side, SideFailure, Verdict
from torchmark.report.text.gate import format_limit

TALLY = count_functions(400, 1000)
NOW = describe_dependencies("abc", TALLY, environment())


def accept(tally: Tally) -> LedgerEntry:
    return make_entry(ADD, NOW, tally, standardise, why="Because.", date="2001-12-31")


def test_an_entry_has_all_that_a_count_depends_on_and_comes_to() -> None:
    entry = accept(TALLY)
    assert (entry.suite, entry.key, entry.why, entry.date) == ("standard", ADD.key, "Because.", "2001-12-31")
    assert (entry.total, entry.totals, entry.allocations, entry.tensor_allocations) == (1400, (1400,) * 3, 200, 100)
    assert entry.functions == (("_PyEval_EvalFrameDefault", 1000), ("loop", 400))
    assert entry.rest == 0
    assert (NOW.definition, NOW.python, NOW.torch, NOW.layouts, NOW.number) == (
        "abc",
        "3.11.7",
        "2.13.0",
        (1, 2, 3),
        100,
    )


def test_the_same_count_stands_where_it_was_accepted() -> None:
    assert hold_against(accept(TALLY), ADD, NOW, TALLY, standardise) == LedgerStanding(ADD, 14.0, 14.0)


def test_more_is_told_by_function() -> None:
    found = hold_against(accept(TALLY), ADD, NOW, count_functions(300, 6000), standardise)
    assert found == LedgerStanding(ADD, 14.0, 63.0, (Growth("_PyEval_EvalFrameDefault", 50.0),))


def test_only_the_costliest_functions_are_listed_and_the_rest_adds_up() -> None:
    def count_many(last: int) -> Tally:
        names = range(MOST_FUNCTIONS + 5)
        costs: dict[Function, Costs] = {Function("", f"f{n:03}", ""): (1000 - n,) for n in names}
        costs[Function("", "new", "")] = (last,)
        total = sum(cost[0] for cost in costs.values())
        profile = Profile(("Ir",), costs, {}, {})
        return dataclasses.replace(TALLY, totals=(total,) * 3, events=(("Ir", total),), profile=profile)

    entry = accept(count_many(100))
    assert len(entry.functions) == MOST_FUNCTIONS
    assert entry.rest + sum(cost for _, cost in entry.functions) == entry.total
    found = hold_against(entry, ADD, NOW, count_many(200), standardise)
    assert isinstance(found, LedgerStanding)
    assert found.functions == (Growth(REST, 1.0),)


def test_without_costs_by_function_all_is_rest_and_no_function_is_named() -> None:
    bare = dataclasses.replace(TALLY, profile=None)
    assert (accept(bare).functions, accept(bare).rest) == ((), 1400)
    more = dataclasses.replace(bare, events=(("Ir", 1500),))
    assert hold_against(accept(TALLY), ADD, NOW, more, standardise) == LedgerStanding(ADD, 14.0, 15.0)


@pytest.mark.parametrize(
    ("changes", "difference"),
    [
        ({"definition": "def"}, ("definition", "abc", "def")),
        ({"torch": "2.14.0"}, ("torch", "2.13.0", "2.14.0")),
        ({"cpu_capability": None}, ("cpu_capability", "AVX2", "unknown")),
        ({"layouts": (1,)}, ("layouts", "1,2,3", "1")),
        ({"number": 10}, ("number", "100", "10")),
        ({"hash_seed": "1"}, ("hash_seed", "0", "1")),
    ],
)
def test_a_count_under_other_conditions_makes_the_entry_stale(
    changes: dict[str, Any], difference: tuple[str, str, str]
) -> None:
    now = dataclasses.replace(NOW, **changes)
    assert hold_against(accept(TALLY), ADD, now, TALLY, standardise) == StaleEntry(ADD, (difference,))


def test_the_commit_that_torch_was_built_from_is_no_condition() -> None:
    one, other = (
        describe_dependencies("abc", TALLY, environment(torch_version=f"2.14.0a0+git{commit}"))
        for commit in ("8ac9b20", "0000000")
    )
    assert one == other
    assert one.torch == "2.14.0a0+git"


SLOWER = frozenset({FailOn.SLOWER})


def hold(
    one: CaseJudgement,
    *limits: str,
    fail_on: frozenset[FailOn] = SLOWER,
    standing: LedgerStanding | StaleEntry | None = None,
) -> GateResult:
    ledger = {} if standing is None else {identify(one.case): standing}
    return hold_gate([one], [], ledger, Policy(fail_on, tuple(map(parse_limit, limits))))


def quantities(result: GateResult) -> list[Quantity | None]:
    assert result.exit_code == (ExitCode.REGRESSED if result.regressions else 0)
    return [one.quantity for one in result.regressions]


def test_nothing_stops_that_nobody_asked_to_stop() -> None:
    assert hold(judgement(Verdict.SLOWER, count=evidence(100, 200)), fail_on=frozenset()) == GateResult()


@pytest.mark.parametrize("verdict", [Verdict.SAME, Verdict.FASTER, Verdict.UNDECIDED, Verdict.FAILED])
def test_without_limits_only_the_verdict_slower_stops(verdict: Verdict) -> None:
    assert quantities(hold(judgement(verdict, count=evidence(1000, 1020)))) == []
    assert quantities(hold(judgement(Verdict.SLOWER, count=evidence(1000, 1020)))) == [Quantity.INSTRUCTIONS]
    assert quantities(hold(judgement(Verdict.SLOWER, time=clock(Verdict.SLOWER, 0.1)))) == [Quantity.TIME]
    # Whatever else it may rest on.
    assert quantities(hold(judgement(Verdict.SLOWER, count=evidence(1000, 1000, head_allocations=9)))) == [None]


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
        assert quantities(found) == ([Quantity.INSTRUCTIONS] if stops else [])
    if limit.endswith(("0", "9", "%")):
        found = hold(judgement(Verdict.SLOWER, count=evidence(1000, head)), limit)
        assert bool(found.regressions) == stops


def test_a_limit_on_time_lets_less_through_than_the_verdict() -> None:
    slower = judgement(Verdict.SLOWER, time=clock(Verdict.SLOWER, math.log(1.03)))
    assert quantities(hold(slower, "time:2%")) == [Quantity.TIME]
    assert quantities(hold(slower, "time:4%")) == []
    assert quantities(hold(slower, "time:4%@nn/*")) == [Quantity.TIME]
    undecided = judgement(Verdict.UNDECIDED, time=clock(Verdict.UNDECIDED, math.log(1.5)))
    assert quantities(hold(undecided, "time:2%")) == []
    # The clock alone calls it slower, but it is laid to the layout of memory.
    layout = judgement(Verdict.UNDECIDED, time=clock(Verdict.SLOWER, math.log(1.5)), count=evidence(10, 10))
    assert quantities(hold(layout, "time:2%")) == []


def test_instructions_within_their_limit_do_not_excuse_the_clock() -> None:
    slower = judgement(Verdict.SLOWER, time=clock(Verdict.SLOWER, 0.1), count=evidence(1000, 1100))
    assert quantities(hold(slower, "Ir:20%")) == [Quantity.TIME]
    assert quantities(hold(slower, "Ir:20%", "time:20%")) == []
    assert quantities(hold(slower, "Ir:0", "time:0%")) == [Quantity.INSTRUCTIONS, Quantity.TIME]


def test_a_limit_on_allocations_stops_one_more() -> None:
    one = judgement(Verdict.SAME, count=evidence(1000, 1000, head_allocations=3))
    assert quantities(hold(one)) == []
    assert quantities(hold(one, "allocations:0")) == [Quantity.ALLOCATIONS]
    assert quantities(hold(one, "allocations:1")) == []


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
    assert quantities(hold(confirmed, standing=standing)) == []
    elsewhere = judgement(Verdict.SLOWER, time=clock(Verdict.SLOWER, 0.1), count=evidence(1100, 1100))
    assert quantities(hold(elsewhere, standing=standing)) == [Quantity.TIME]


def test_fewer_than_accepted_ask_to_be_accepted_and_never_stop() -> None:
    found = hold(judgement(Verdict.SAME, count=evidence(1000, 1000)), "Ir:0", standing=LedgerStanding(ADD, 1120, 1000))
    assert (found.exit_code, found.regressions) == (0, ())
    assert [(one.accepted, one.head) for one in found.improvements] == [(1120, 1000)]


def test_a_stale_entry_is_told_and_base_is_what_counts() -> None:
    stale = StaleEntry(ADD, (("torch", "2.12", "2.13"),))
    found = hold(judgement(Verdict.SAME, count=evidence(1000, 1050)), "Ir:0", standing=stale)
    assert found.stale == (stale,)
    assert quantities(found) == [Quantity.INSTRUCTIONS]


@given(st.floats(0, 1e9), st.floats(0, 1e9), st.sampled_from(["Ir:0", "Ir:1%", "Ir:7"]))
def test_improvements_never_stop(base: float, head: float, limit: str) -> None:
    base, head = max(base, head), min(base, head)
    faster = judgement(Verdict.FASTER, time=clock(Verdict.FASTER, -0.1), count=evidence(base, head))
    for standing in (None, LedgerStanding(ADD, base, head)):
        assert hold(faster, limit, "time:0%", "allocations:0", standing=standing).exit_code == 0


IR = Quantity.INSTRUCTIONS


@pytest.mark.parametrize(
    ("text", "limit"),
    [
        ("Ir:0.3%", Limit(IR, share=0.003)),
        ("ir:0", Limit(IR)),
        ("Ir:50", Limit(IR, amount=50)),
        (" Ir:.5 %@nn/* ", Limit(IR, share=0.005, pattern="nn/*")),
        ("time:2%@training/*", Limit(Quantity.TIME, share=0.02, pattern="training/*")),
        ("allocations:1@a@b", Limit(Quantity.ALLOCATIONS, amount=1, pattern="a@b")),
    ],
)
def test_a_limit_has_a_witness_a_size_and_cases(text: str, limit: Limit) -> None:
    assert parse_limit(text) == limit


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Ir",
        "Ir:",
        "Ir:%",
        "Ir:-1",
        "Ir:1e3",
        "Ir:nan",
        "cycles:5",
        "time:3",
        "time:0",
        "Ir:5@",
        "Ir:5%%",
        "9" * 400,
    ],
)
def test_nonsense_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(UsageError, match=r"Ir:0\.3%"):
        parse_limit(text)
    with pytest.raises(UsageError):
        parse_limit(f"Ir:{'9' * 400}")


@given(st.sampled_from(Quantity), st.integers(0, 10**6), st.booleans(), st.none() | st.just("nn/*"))
def test_a_limit_is_read_back_as_it_is_spelt(quantity: Quantity, size: int, percent: bool, pattern: str | None) -> None:
    share = percent or quantity is Quantity.TIME
    limit = Limit(quantity, share=size / 1000 / 100, pattern=pattern) if share else Limit(quantity, None, size, pattern)
    found = parse_limit(format_limit(limit))
    assert dataclasses.replace(found, share=None) == dataclasses.replace(limit, share=None)
    assert found.share == (pytest.approx(limit.share) if share else None)


def test_a_pattern_goes_before_none_and_the_last_one_wins() -> None:
    limits = [parse_limit(text) for text in ("Ir:1@Pointwise/*", "Ir:2@*/add", "Ir:3", "Ir:4@nn/*", "time:5%")]
    assert find_limit(limits, IR, ADD) == limits[1]
    assert find_limit(limits[2:], IR, ADD) == limits[2]
    assert find_limit(limits[3:], IR, ADD) is None
    assert find_limit(limits, Quantity.ALLOCATIONS, ADD) is None


def test_what_stops_is_told_by_commas() -> None:
    assert parse_fail_on("Slower,missing") == {FailOn.SLOWER, FailOn.MISSING}
    with pytest.raises(UsageError, match="slower, undecided, failed, missing"):
        parse_fail_on("slower,worse")
    with pytest.raises(UsageError):
        parse_fail_on("")
