from __future__ import annotations

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.made_summaries import make_case
from torchmark.analysis.verdict.judge import (
    contrast_instructions,
    expected_seconds,
    find_code_change,
    find_steady_delta,
    is_instruction_change,
    judge,
)
from torchmark.model.caveats import FewLayouts
from torchmark.model.judgement import (
    Cause,
    CountEvidence,
    Explanation,
    FunctionChange,
    Side,
    SideFailure,
    Spread,
    TimeEvidence,
    Verdict,
)
from torchmark.model.outcome import Failure, FailureKind

SAME, SLOWER, FASTER, UNDECIDED = Verdict.SAME, Verdict.SLOWER, Verdict.FASTER, Verdict.UNDECIDED
OPPOSITE = {SLOWER: FASTER, FASTER: SLOWER}
CASE = make_case("add")
COUNTS = st.floats(0, 1e6)


def time(verdict: Verdict, *, confirmed: bool | None = None) -> TimeEvidence:
    log_ratio = {SLOWER: 0.02, FASTER: -0.02}.get(verdict, 0.0)
    return TimeEvidence(
        verdict=verdict,
        log_ratio=log_ratio,
        low=log_ratio - 0.005,
        high=log_ratio + 0.005,
        confidence=0.95,
        base_s=1e-6,
        head_s=1e-6,
        floor=0.003,
        equivalence=0.01,
        confirmed=confirmed,
    )


def count(
    base: float, head: float, *, spread: float = 5, allocations: float = 0, tensor_allocations: float = 0
) -> CountEvidence:
    """Layouts reach `spread` to both sides of the median; allocations are how many head has more."""
    return CountEvidence(
        Spread(base, base - spread, base + spread),
        Spread(head, head - spread, head + spread),
        base_allocations=2.3,
        head_allocations=2.3 + allocations,
        base_tensor_allocations=1.3,
        head_tensor_allocations=1.3 + tensor_allocations,
    )


UNCHANGED = count(10_000, 10_000)
LITTLE_MORE, LITTLE_LESS = count(10_000, 10_080), count(10_000, 9_920)
MUCH_MORE, MUCH_LESS = count(10_000, 10_200), count(10_000, 9_800)


@pytest.mark.parametrize(
    ("counted", "timed", "confirmed", "verdict", "cause"),
    [
        (UNCHANGED, SAME, None, SAME, Cause.UNCHANGED),
        (UNCHANGED, UNDECIDED, None, UNDECIDED, Cause.OPEN),
        (UNCHANGED, SLOWER, True, SLOWER, Cause.NOT_INSTRUCTIONS),
        (UNCHANGED, FASTER, True, FASTER, Cause.NOT_INSTRUCTIONS),
        (UNCHANGED, SLOWER, False, UNDECIDED, Cause.LAYOUT),
        (UNCHANGED, SLOWER, None, UNDECIDED, Cause.LAYOUT),
        (UNCHANGED, FASTER, None, UNDECIDED, Cause.LAYOUT),
        (MUCH_MORE, SAME, None, SLOWER, Cause.BELOW_RESOLUTION),
        (MUCH_MORE, UNDECIDED, None, SLOWER, Cause.BELOW_RESOLUTION),
        (MUCH_LESS, UNDECIDED, None, FASTER, Cause.BELOW_RESOLUTION),
        (LITTLE_MORE, SAME, None, SAME, Cause.BELOW_RESOLUTION),
        (LITTLE_MORE, UNDECIDED, None, UNDECIDED, Cause.BELOW_RESOLUTION),
        (LITTLE_LESS, SAME, None, SAME, Cause.BELOW_RESOLUTION),
        (LITTLE_MORE, SLOWER, True, SLOWER, Cause.CONFIRMED),
        (MUCH_MORE, SLOWER, None, SLOWER, Cause.CONFIRMED),
        (MUCH_LESS, FASTER, None, FASTER, Cause.CONFIRMED),
        (MUCH_MORE, FASTER, True, FASTER, Cause.TRADE_OFF),
        (LITTLE_LESS, SLOWER, None, SLOWER, Cause.TRADE_OFF),
        (None, SAME, None, SAME, Cause.TIME_ALONE),
        (None, SLOWER, True, SLOWER, Cause.TIME_ALONE),
        (None, FASTER, None, FASTER, Cause.TIME_ALONE),
        (None, UNDECIDED, None, UNDECIDED, Cause.OPEN),
        (UNCHANGED, None, None, SAME, Cause.COUNT_ALONE),
        (LITTLE_MORE, None, None, SLOWER, Cause.COUNT_ALONE),
        (MUCH_LESS, None, None, FASTER, Cause.COUNT_ALONE),
        (None, None, None, Verdict.FAILED, Cause.OPEN),
    ],
)
def test_the_table_row_by_row(
    counted: CountEvidence | None, timed: Verdict | None, confirmed: bool | None, verdict: Verdict, cause: Cause
) -> None:
    judgement = judge(CASE, None if timed is None else time(timed, confirmed=confirmed), counted)
    assert (judgement.verdict, judgement.cause) == (verdict, cause)


@pytest.mark.parametrize(
    ("base", "head", "spread", "sign"),
    [
        (1_000, 1_030, 0, 0),
        (1_000, 1_031, 0, 1),
        (1_000, 969, 0, -1),
        # From 10,000 on it is 0.3 % that counts.
        (20_000, 20_060, 0, 0),
        (20_000, 20_061, 0, 1),
        (20_000, 19_939, 0, -1),
        # Layouts from 980 to 1,020 and from 1,020 to 1,060 meet; one instruction less, and they do not.
        (1_000, 1_040, 20, 0),
        (1_000, 1_040, 19.5, 1),
        (1_000, 960, 20, 0),
        (1_000, 960, 19.5, -1),
        (0, 0, 0, 0),
        (0, 31, 0, 1),
    ],
)
def test_other_instructions_are_many_enough_and_in_no_layout_the_same(
    base: float, head: float, spread: float, sign: int
) -> None:
    evidence = count(base, head, spread=spread)
    assert is_instruction_change(evidence) == sign
    assert find_code_change(evidence) == sign


@pytest.mark.parametrize(
    ("allocations", "tensor_allocations", "sign"),
    [(1, 0, 1), (-1, 0, -1), (0, 1, 1), (0, -1, -1), (0.5, 0, 0), (0.5, -0.5, 0), (1, -1, 1), (0.2, -1, -1), (0, 0, 0)],
)
def test_an_allocation_more_is_another_code_where_instructions_do_not_tell(
    allocations: float, tensor_allocations: float, sign: int
) -> None:
    evidence = count(1_000, 1_000, allocations=allocations, tensor_allocations=tensor_allocations)
    assert is_instruction_change(evidence) == 0
    assert find_code_change(evidence) == sign
    fewer = count(1_000, 900, allocations=allocations, tensor_allocations=tensor_allocations)
    assert find_code_change(fewer) == -1


def test_another_allocation_is_heard_like_other_instructions() -> None:
    evidence = count(10_000, 10_000, allocations=1)
    assert judge(CASE, time(SAME), evidence).cause is Cause.BELOW_RESOLUTION
    assert judge(CASE, time(SAME), evidence).verdict is SAME
    assert judge(CASE, time(SLOWER), evidence).cause is Cause.CONFIRMED
    assert judge(CASE, None, evidence).verdict is SLOWER


def test_more_than_one_percent_is_large_and_one_percent_is_not() -> None:
    assert judge(CASE, time(UNDECIDED), count(10_000, 10_100)).verdict is UNDECIDED
    assert judge(CASE, time(UNDECIDED), count(10_000, 10_101)).verdict is SLOWER
    assert judge(CASE, time(UNDECIDED), count(10_000, 9_899)).verdict is FASTER


def test_a_judgement_keeps_all_that_it_is_said_on() -> None:
    failure = SideFailure(Side.BASE, Failure(FailureKind.RAISED, "no"))
    explanation = Explanation((), ())
    other = make_case("other")
    judgement = judge(
        CASE,
        time(SAME),
        None,
        base_case=other,
        caveats=(FewLayouts(3, 6),),
        failures=(failure,),
        explanation=explanation,
    )
    assert (judgement.case, judgement.base_case) == (CASE, other)
    assert (judgement.time, judgement.count) == (time(SAME), None)
    assert judgement.caveats == (FewLayouts(3, 6),)
    assert judgement.explanation is explanation


def test_what_failed_by_one_witness_is_judged_by_the_other() -> None:
    failure = SideFailure(Side.HEAD, Failure(FailureKind.CRASHED, "no"))
    half = judge(CASE, time(SLOWER), None, failures=(failure,))
    assert (half.verdict, half.failures) == (SLOWER, (failure,))
    whole = judge(CASE, None, None, failures=(failure,))
    assert (whole.verdict, whole.failures) == (Verdict.FAILED, (failure,))


def test_twelve_instructions_are_expected_to_take_a_nanosecond() -> None:
    assert expected_seconds(12) == pytest.approx(1e-9)
    assert expected_seconds(-600) == pytest.approx(-50e-9)


SPREADS = st.tuples(COUNTS, COUNTS, COUNTS).map(sorted).map(lambda three: Spread(three[1], three[0], three[2]))
ALLOCATIONS = st.integers(0, 5)


def counts() -> st.SearchStrategy[CountEvidence]:
    return st.builds(CountEvidence, SPREADS, SPREADS, ALLOCATIONS, ALLOCATIONS, ALLOCATIONS, ALLOCATIONS)


def swap(evidence: CountEvidence) -> CountEvidence:
    return CountEvidence(
        base=evidence.head,
        head=evidence.base,
        base_allocations=evidence.head_allocations,
        head_allocations=evidence.base_allocations,
        base_tensor_allocations=evidence.head_tensor_allocations,
        head_tensor_allocations=evidence.base_tensor_allocations,
    )


@given(counts(), st.sampled_from([SAME, SLOWER, FASTER, UNDECIDED]), st.sampled_from([True, False, None]))
def test_every_combination_has_a_verdict_that_some_witness_gave(
    counted: CountEvidence, timed: Verdict, confirmed: bool | None
) -> None:
    judgement = judge(CASE, time(timed, confirmed=confirmed), counted)
    code = {0: SAME, 1: SLOWER, -1: FASTER}[find_code_change(counted)]
    assert judgement.verdict in {timed, code, UNDECIDED}
    if judgement.verdict is SAME:
        assert timed is SAME
    if judgement.cause is Cause.UNCHANGED:
        assert (timed, code) == (SAME, SAME)


@given(st.sampled_from([UNCHANGED, LITTLE_MORE, MUCH_MORE]), st.sampled_from([SAME, SLOWER, FASTER, UNDECIDED]))
def test_swapping_sides_swaps_slower_and_faster(counted: CountEvidence, timed: Verdict) -> None:
    there = judge(CASE, time(timed, confirmed=True), counted)
    back = judge(CASE, time(OPPOSITE.get(timed, timed), confirmed=True), swap(counted))
    assert back.verdict is OPPOSITE.get(there.verdict, there.verdict)
    assert back.cause is there.cause


@given(counts())
def test_ranges_that_meet_are_no_change_of_instructions(counted: CountEvidence) -> None:
    wide = dataclasses.replace(counted, base=dataclasses.replace(counted.base, low=0.0, high=1e6))
    assert is_instruction_change(wide) == 0


@pytest.mark.parametrize(("leaning", "verdict"), [(-0.002, SLOWER), (-0.003, UNDECIDED), (0.05, SLOWER)])
def test_instructions_alone_do_not_decide_against_what_the_clock_leans_to(leaning: float, verdict: Verdict) -> None:
    undecided = dataclasses.replace(time(UNDECIDED), log_ratio=leaning, low=-0.2, high=0.2)
    judged = judge(CASE, undecided, count(10_000, 10_500))
    assert (judged.verdict, judged.cause) == (verdict, Cause.BELOW_RESOLUTION)
    # Below the floor too, if the whole interval does.
    leaning_surely = dataclasses.replace(undecided, log_ratio=-0.002, high=-0.001)
    assert judge(CASE, leaning_surely, count(10_000, 10_500)).verdict is UNDECIDED


STEADY = dataclasses.replace(count(10_000, 10_050), steady_delta=50.0)


@pytest.mark.parametrize(
    ("counted", "decisive", "verdict"),
    [
        # Half a per cent more, in functions that do not depend on addresses.
        (STEADY, 0.003, SLOWER),
        # Unless somebody asks for less, a whole per cent is needed.
        (STEADY, 0.01, SAME),
        # Of what is not known of functions, nothing is said.
        (count(10_000, 10_050), 0.003, SAME),
        # All of it is in look-ups and allocators: another heap.
        (dataclasses.replace(count(10_000, 10_090), steady_delta=3.0), 0.003, SAME),
        # Another heap hides it in the sum.
        (dataclasses.replace(count(10_000, 10_000), steady_delta=50.0), 0.003, SLOWER),
        (dataclasses.replace(count(10_000, 9_950), steady_delta=-50.0), 0.003, FASTER),
        # Less than the smallest that is told.
        (dataclasses.replace(count(1_000, 1_029), steady_delta=29.0), 0.003, SAME),
        (dataclasses.replace(count(10_000, 10_500), steady_delta=500.0), 0.003, SLOWER),
    ],
)
def test_instructions_decide_earlier_where_that_is_asked_for(
    counted: CountEvidence, decisive: float, verdict: Verdict
) -> None:
    assert judge(CASE, time(SAME), counted, decisive=decisive).verdict is verdict


def test_against_steady_instructions_the_clock_has_to_be_sure() -> None:
    leaning = dataclasses.replace(time(UNDECIDED), log_ratio=-0.004)
    assert judge(CASE, leaning, STEADY, decisive=0.003).verdict is SLOWER
    sure = dataclasses.replace(leaning, low=-0.006, high=-0.001)
    assert judge(CASE, sure, STEADY, decisive=0.003).verdict is UNDECIDED


def change(name: str, delta: float) -> FunctionChange:
    return FunctionChange(name, "interpreter", 100.0, 100.0 + delta)


@pytest.mark.parametrize(
    "name", ["_PyType_Lookup", "unicodekeys_lookup_unicode", "_int_free", "malloc", "PyObject_Free"]
)
def test_what_depends_on_addresses_is_left_out(name: str) -> None:
    assert find_steady_delta([change(name, 400.0), change("_PyEval_EvalFrameDefault", 50.0)]) == 50.0


@pytest.mark.parametrize("name", ["_PyEval_EvalFrameDefault", "at::native::malloc_it", "c10::alloc_cpu", "my_malloc"])
def test_what_does_not_is_counted(name: str) -> None:
    assert find_steady_delta([change(name, -7.0)]) == -7.0


def test_nothing_is_no_difference() -> None:
    assert find_steady_delta([]) == 0


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ((5000, 4990, 5010), (5031, 5021, 5041), True),
        ((5000, 4990, 5010), (5030, 5020, 5040), False),  # not more than 30
        ((5000, 4990, 5025), (5040, 5020, 5050), False),  # some layout has as many as some of the other
        ((5000, 4990, 5010), (4960, 4950, 4970), True),
        ((100_000, 100_000, 100_000), (100_300, 100_300, 100_300), False),  # not more than 0.3 %
        ((100_000, 100_000, 100_000), (100_301, 100_301, 100_301), True),
        ((0, 0, 0), (31, 31, 31), True),
    ],
)
def test_counts_differ_by_more_than_layouts_do(
    before: tuple[float, float, float], after: tuple[float, float, float], expected: bool
) -> None:
    assert bool(contrast_instructions(Spread(*before), Spread(*after))) is expected


@given(st.floats(0, 1e9), st.floats(0, 1e9), st.floats(0, 100))
def test_a_count_that_lies_within_the_layouts_of_another_is_the_same(a: float, b: float, spread: float) -> None:
    low, high = min(a, b), max(a, b)
    assert not contrast_instructions(Spread(a, low, high + spread), Spread(b, low, high + spread))
