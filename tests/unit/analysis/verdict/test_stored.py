from __future__ import annotations

import dataclasses
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.made_contrasts import count_functions, counted_run, run_of
from tests.random_runs import runs
from tests.sample_runs import ADD, COUNT, FAILING, FAILURE, MISSING, MODEL, ODD, WALL, compile_costs, tally, times
from torchmark.analysis.verdict.stored import (
    CONFIDENCE,
    EQUIVALENCE,
    FLOOR,
    choose_counts,
    compare_runs,
    identify,
    leave_out_incomparable,
    weigh_times,
)
from torchmark.callgrind.profiles import standardise
from torchmark.model.caveats import FewRounds, Incomparable, LeftOut, ManyThreads, NotInTurns
from torchmark.model.judgement import CaseJudgement, Cause, Side, SideFailure, Spread, Verdict
from torchmark.model.outcome import Result
from torchmark.model.plan import Case, Metric, Node, Order, Sampling, Target
from torchmark.model.run import Run

OWN = Target()
Results = dict[tuple[Case, Metric, int], Result]


def compare(base: Run, head: Run) -> tuple[CaseJudgement, ...]:
    return compare_runs(base, OWN, head, OWN, standardise).judgements


def test_counts_are_compared_exactly_with_the_range_of_layouts_and_rounds() -> None:
    base = run_of({(ADD, COUNT, 0): tally(100, 50_000, 50_300, 50_100)}, "base")
    rounds: Results = {
        (ADD, COUNT, 0): tally(100, 55_100, 55_200, 55_000),
        (ADD, COUNT, 1): tally(100, 1, 55_101, 99_999),
    }
    (found,) = compare(base, run_of(rounds, "head"))
    assert found.count is not None
    assert found.count.base == Spread(501.0, 500.0, 503.0)
    assert found.count.head == Spread(551.0, 0.01, 999.99)
    assert found.count.delta == 50.0
    assert (found.count.base_allocations, found.count.head_tensor_allocations) == (3.0, 2.0)
    assert found.time is None
    assert found.caveats == ()


def test_a_changed_count_is_explained_and_an_unchanged_one_is_not() -> None:
    base, head = count_functions(400, 1000), count_functions(400, 6000)
    (changed,) = compare(counted_run("base", base), counted_run("head", head))
    assert changed.explanation is not None
    assert changed.explanation.functions[0].function == "_PyEval_EvalFrameDefault"
    assert changed.explanation.functions[0].delta == 50.0
    assert (changed.verdict, changed.cause) == (Verdict.SLOWER, Cause.COUNT_ALONE)
    (same,) = compare(counted_run("base", base), counted_run("head", base))
    assert (same.verdict, same.explanation) == (Verdict.SAME, None)
    (bare,) = compare(counted_run("base", base), counted_run("head", dataclasses.replace(head, profile=None)))
    assert (bare.verdict, bare.explanation) == (Verdict.SLOWER, None)


def timed(name: str, *rounds: float, case: Case = ADD) -> Run:
    """A run that timed one case once in each round."""
    results: Results = {(case, WALL, n): times(10, t) for n, t in enumerate(rounds)}
    run = run_of(results, name)
    return dataclasses.replace(run, plan=dataclasses.replace(run.plan, sampling=Sampling(repeat=len(rounds))))


def test_three_rounds_a_side_decide_with_the_caveat_that_they_were_not_in_turns() -> None:
    (found,) = compare(timed("base", 1.0, 1.001, 0.999), timed("head", 1.2, 1.201, 1.199))
    assert found.verdict is Verdict.SLOWER
    assert found.caveats == (NotInTurns(),)


def test_fewer_rounds_are_a_caveat_and_decide_nothing() -> None:
    (found,) = compare(timed("base", 1.0, 1.001, 0.999), timed("head", 2.0))
    assert found.verdict is Verdict.UNDECIDED
    assert found.caveats == (NotInTurns(), FewRounds(1, 3))


def test_targets_of_one_run_have_taken_turns() -> None:
    run = timed("both", 1.0, 1.001, 0.999)
    other = Target("other", "/python")
    more = tuple(
        dataclasses.replace(one, order=Order(one.order.case, other, one.order.metric, one.order.round))
        for one in run.outcomes
    )
    both = dataclasses.replace(
        run, plan=dataclasses.replace(run.plan, targets=(OWN, other)), outcomes=(*run.outcomes, *more)
    )
    (found,) = compare_runs(both, OWN, both, other, standardise).judgements
    assert (found.verdict, found.caveats) == (Verdict.SAME, ())


def test_what_compiling_leaves_is_compared_by_its_steady_times() -> None:
    base: Results = {(MODEL, WALL, 0): compile_costs(times(10, 2e-3))}
    head: Results = {(MODEL, WALL, 0): compile_costs(times(10, 4e-3))}
    (found,) = compare(run_of(base, "base"), run_of(head, "head"))
    assert found.time is not None
    assert (found.time.base_s, found.time.head_s) == pytest.approx((2e-3, 4e-3))


def test_a_failure_is_told_with_its_side_and_what_is_left_is_judged() -> None:
    counted: Results = {(FAILING, COUNT, 0): tally(100, 500)}
    failed: Results = {(FAILING, COUNT, 0): FAILURE, (FAILING, COUNT, 1): FAILURE}
    (found,) = compare(run_of(counted, "base"), run_of(failed, "head"))
    assert found.verdict is Verdict.FAILED
    assert found.failures == (SideFailure(Side.HEAD, FAILURE),)
    partly: Results = {**counted, (FAILING, WALL, 0): FAILURE}
    (found,) = compare(run_of(partly, "base"), run_of(counted, "head"))
    assert found.verdict is Verdict.SAME
    assert found.failures == (SideFailure(Side.BASE, FAILURE),)


def test_cases_of_one_side_are_missing_or_new_and_those_without_outcomes_are_nowhere() -> None:
    one, other = tally(100, 500), tally(100, 500)
    base = run_of({(ADD, COUNT, 0): one, (ODD, COUNT, 0): one}, "base")
    head = run_of({(ADD, COUNT, 0): other, (FAILING, COUNT, 0): FAILURE}, "head")
    planned = dataclasses.replace(head, plan=dataclasses.replace(head.plan, cases=(*head.plan.cases, MISSING)))
    found = compare_runs(base, OWN, planned, OWN, standardise)
    assert [one.case for one in found.judgements] == [ADD]
    assert (found.missing, found.new) == ((ODD,), (FAILING,))


def test_several_threads_are_a_caveat() -> None:
    run = run_of({(ODD, COUNT, 0): tally(100, 500)}, "base")
    assert compare(run, run)[0].caveats == (ManyThreads(2),)


def test_obstacles_are_caveats_of_what_they_are_obstacles_to() -> None:
    head_case = dataclasses.replace(ADD, args=dataclasses.replace(ADD.args, stmt="x + 2"))
    one = tally(100, 500)
    base = run_of({(ADD, COUNT, 0): one, (FAILING, COUNT, 0): one}, "base")
    head = run_of({(head_case, COUNT, 0): one, (FAILING, COUNT, 0): one}, "head")
    found = compare_runs(base, OWN, head, OWN, standardise)
    own = Incomparable("definition", "stmt: x + 1", "stmt: x + 2")
    assert [one.caveats for one in found.judgements] == [(own,), ()]
    assert (found.obstacles, found.case_obstacles) == ((), ((head_case, (own,)),))
    assert [one.case for one in leave_out_incomparable(found).judgements] == [FAILING]

    elsewhere = run_of({(head_case, COUNT, 0): one, (FAILING, COUNT, 0): one}, "head", hash_seed="7")
    found = compare_runs(base, OWN, elsewhere, OWN, standardise)
    common = Incomparable("hash_seed", "0", "7")
    assert [one.caveats for one in found.judgements] == [(common, own), (common,)]
    assert leave_out_incomparable(found).judgements == ()


def test_the_round_in_the_middle_stands_for_all() -> None:
    rounds: Results = {(ADD, COUNT, n): tally(100, total) for n, total in enumerate((900, 100))}
    run = run_of(rounds, "base")
    assert choose_counts(run, OWN)[identify(ADD)].tally.total == 100
    assert choose_counts(run, Target("other")) == {}


@settings(max_examples=30)
@given(runs())
def test_a_run_has_nothing_missing_or_new_beside_itself_and_no_count_that_changed(run: Run) -> None:
    target = run.plan.targets[0]
    found = compare_runs(run, target, run, target, standardise)
    assert (found.missing, found.new, found.case_obstacles) == ((), (), ())
    for judgement in found.judgements:
        assert judgement.count is None or judgement.count.delta == 0
        assert judgement.verdict not in (Verdict.SLOWER, Verdict.FASTER)


EPYC, XEON = Node("a", "EPYC"), Node("b", "Xeon")


def timed_on(name: str, places: dict[Case, Node]) -> Run:
    """A run that timed each case once, on the node that it has."""
    run = run_of({(case, WALL, 0): times(10, 1.0) for case in places}, name)
    outcomes = tuple(dataclasses.replace(one, node=places[one.order.case]) for one in run.outcomes)
    return dataclasses.replace(run, outcomes=outcomes)


def test_the_same_processors_in_both_runs_do_not_make_each_case_comparable() -> None:
    base = timed_on("base", {ADD: EPYC, MODEL: XEON, ODD: EPYC})
    head = timed_on("head", {ADD: XEON, MODEL: XEON, ODD: EPYC})
    found = compare_runs(base, OWN, head, OWN, standardise)
    own = Incomparable("cpu", "EPYC", "Xeon")
    assert (found.obstacles, found.case_obstacles) == ((), ((ADD, (own,)),))
    assert [own in one.caveats for one in found.judgements] == [True, False, False]
    assert [one.case for one in leave_out_incomparable(found).judgements] == [MODEL, ODD]


def test_what_is_the_same_obstacle_to_all_cases_is_told_once() -> None:
    base = timed_on("base", {ADD: EPYC, MODEL: EPYC, ODD: XEON})
    head = timed_on("head", {ADD: XEON, MODEL: XEON})
    found = compare_runs(base, OWN, head, OWN, standardise)
    assert (found.obstacles, found.case_obstacles) == ((Incomparable("cpu", "EPYC", "Xeon"),), ())
    other = timed_on("other", {ADD: Node("c", "Zen"), MODEL: Node("d", "Zilog")})
    found = compare_runs(timed_on("base", {ADD: EPYC, MODEL: XEON}), OWN, other, OWN, standardise)
    assert (found.obstacles, found.case_obstacles) == ((Incomparable("cpu", "EPYC and Xeon", "Zen and Zilog"),), ())


def test_the_count_that_stands_for_a_case_is_of_the_largest_group() -> None:
    rounds: Results = {(ADD, COUNT, n): tally(100, total) for n, total in enumerate((100, 900, 910))}
    run = run_of(rounds, "base")
    first, *others = run.outcomes
    assert first.environment is not None
    odd = dataclasses.replace(first, environment=dataclasses.replace(first.environment, valgrind="valgrind-3.22.0"))
    sampling = dataclasses.replace(run.plan.sampling, repeat=3)
    run = dataclasses.replace(run, plan=dataclasses.replace(run.plan, sampling=sampling), outcomes=(odd, *others))
    counted = choose_counts(run, OWN)[identify(ADD)]
    assert counted.tally.total == 900
    assert counted.environment == others[0].environment
    # The odd round is no obstacle to comparing the others, and not in what is compared.
    (found,) = compare(run, run_of({(ADD, COUNT, 0): tally(100, 900)}, "head"))
    assert found.count is not None
    assert (found.count.base, found.caveats) == (Spread(9.0, 9.0, 9.1), (LeftOut("base", "count", 1, 3),))


def test_targets_that_were_timed_on_different_nodes_took_no_turns() -> None:
    other = Target("other", "/python")
    run = timed_on("both", {ADD: EPYC})
    (one,) = run.outcomes
    elsewhere = Node("z", "EPYC")
    more = dataclasses.replace(one, order=Order(ADD, other, WALL), node=elsewhere)
    both = dataclasses.replace(run, plan=dataclasses.replace(run.plan, targets=(OWN, other)), outcomes=(one, more))
    (found,) = compare_runs(both, OWN, both, other, standardise).judgements
    assert found.caveats == (NotInTurns(), FewRounds(1, 3))
    together = dataclasses.replace(both, outcomes=(one, dataclasses.replace(more, node=EPYC)))
    (found,) = compare_runs(together, OWN, together, other, standardise).judgements
    assert found.caveats == (FewRounds(1, 3),)


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
