from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.made_overrides import (
    LIKE,
    MIXED,
    NEG,
    NEG_SUB,
    NUMBERS,
    OVERRIDING,
    PLAIN,
    SUB,
    WITHIN,
    make_override,
    make_override_rows,
)
from tests.made_summaries import make_summary
from torchmark.analysis.overrides import (
    NEGLIGIBLE_INSTRUCTIONS,
    SUBCLASS_LIMIT_S,
    TENSOR_LIKE_LIMIT_S,
    Expectation,
    OverrideFinding,
    add_plain,
    find_overheads,
    find_plain,
    hold_to_expectations,
)
from torchmark.analysis.verdict.explain import ALLOCATION, INTERPRETER, OVERRIDES
from torchmark.callgrind.profiles import standardise
from torchmark.model.plan import Case

Numbers = dict[Case, tuple[float, int, int, int]]


def find(expectation: Expectation, changes: Numbers | None = None) -> OverrideFinding:
    findings = hold_to_expectations(make_override_rows({**NUMBERS, **(changes or {})}))
    (found,) = (finding for finding in findings if finding.expectation is expectation)
    return found


def test_everything_is_as_expected_where_it_is() -> None:
    findings = hold_to_expectations(make_override_rows())
    assert [finding.expectation for finding in findings] == list(Expectation)
    assert all(finding.is_met for finding in findings)


def test_nothing_is_found_where_nothing_was_measured() -> None:
    assert hold_to_expectations(()) == ()
    assert [one.expectation for one in hold_to_expectations(make_override_rows({NEG: NUMBERS[NEG]}))] == [
        Expectation.NOTHING_FOR_PLAIN
    ]


def test_another_type_that_is_cheaper_than_plain_tensors_is_found() -> None:
    finding = find(Expectation.PLAIN_IS_CHEAPEST, {NEG_SUB: (1.0, 800, 0, 50)})
    assert not finding.is_met
    assert finding.of - finding.met == 1
    assert (finding.least.row.case, finding.least.value) == (NEG_SUB, -50)


def test_plain_tensors_within_something_are_no_other_type_and_nothing_is_expected_of_the_users() -> None:
    mine = make_override("add", "mine:Mine", "given")
    cheap = {WITHIN: (0.5, 800, 0, 50), mine: (0.1, 1, 0, 0)}
    assert find(Expectation.PLAIN_IS_CHEAPEST, cheap).is_met


def test_plain_tensors_that_pay_for_overrides_are_found() -> None:
    assert find(Expectation.NOTHING_FOR_PLAIN).most.value == 50
    limit = int(NEGLIGIBLE_INSTRUCTIONS)
    assert find(Expectation.NOTHING_FOR_PLAIN, {NEG: (0.9, 800, limit - 1, 50)}).is_met
    finding = find(Expectation.NOTHING_FOR_PLAIN, {NEG: (0.9, 800, limit, 50)})
    assert not finding.is_met
    assert finding.most.row.case == NEG


@pytest.mark.parametrize(
    ("expectation", "case", "limit_s"),
    [
        (Expectation.SMALL_FOR_SUBCLASSES, OVERRIDING, SUBCLASS_LIMIT_S),
        (Expectation.COUPLE_FOR_TENSOR_LIKES, LIKE, TENSOR_LIKE_LIMIT_S),
    ],
)
def test_limits_are_held_call_by_call(expectation: Expectation, case: Case, limit_s: float) -> None:
    us = limit_s / 1e-6 + NUMBERS[PLAIN][0]
    below, above = (find(expectation, {case: (us + more, 3200, 900, 100)}) for more in (-0.01, 0.01))
    assert below.is_met
    assert not above.is_met
    assert above.of - above.met == 1
    assert above.most.row.case == case


def test_the_order_is_from_tensors_over_subclasses_to_tensor_likes() -> None:
    assert [one.row.case for one in find(Expectation.ORDER).order] == [PLAIN, SUB, OVERRIDING, LIKE]
    finding = find(Expectation.ORDER, {LIKE: (1.2, 2000, 700, 100)})
    assert not finding.is_met
    assert [one.row.case for one in finding.order] == [PLAIN, LIKE, SUB, OVERRIDING]


ALL = tuple(NUMBERS)


def test_a_call_is_held_against_plain_tensors_in_the_call_that_its_label_ends_with() -> None:
    plain = find_plain(ALL)
    assert (plain[SUB], plain[MIXED], plain[WITHIN], plain[NEG_SUB]) == (PLAIN, PLAIN, PLAIN, NEG)
    assert not {PLAIN, NEG} & set(plain)


def test_a_call_that_nobody_makes_with_plain_tensors_has_no_overhead() -> None:
    lonely = make_override("sum", "SubTensor")
    (row,) = find_overheads([make_summary(lonely)], {}, standardise)
    assert row.overhead is None
    assert row.stages == {}


def test_what_is_chosen_comes_with_what_it_is_held_against() -> None:
    assert add_plain([MIXED, NEG_SUB], ALL) == (PLAIN, MIXED, NEG, NEG_SUB)
    assert add_plain([NEG], ALL) == (NEG,)
    assert add_plain([], ALL) == ()


def test_what_is_new_stands_with_others_of_its_call() -> None:
    mine = make_override("add", "mine:Mine", "given")
    assert add_plain([mine, NEG, SUB], (*ALL, mine)) == (PLAIN, SUB, mine, NEG)


@given(st.lists(st.sampled_from(ALL), unique=True))
def test_nothing_that_is_chosen_is_lost_and_every_call_is_in_one_piece(chosen: list[Case]) -> None:
    planned = add_plain(chosen, ALL)
    assert set(chosen) <= set(planned)
    assert len(set(planned)) == len(planned)
    calls = [case.label[0] for case in planned]
    assert len(dict.fromkeys(calls)) == sum(a != b for a, b in zip(calls, [None, *calls], strict=False))
    plain = find_plain(ALL)
    assert {plain[case] for case in planned if case in plain} <= set(planned)


def test_overhead_is_told_in_time_and_in_instructions() -> None:
    rows = {row.case: row for row in make_override_rows()}
    overhead = rows[SUB].overhead
    assert overhead is not None
    assert overhead.plain == PLAIN
    assert overhead.seconds == pytest.approx(0.5e-6)
    # Samples grow from the minimum on by 0.1 %, so that the fifth of nine is 0.4 % above it.
    assert overhead.median_seconds == pytest.approx(0.5e-6 * 1.004)
    assert overhead.instructions == 3000
    assert rows[PLAIN].overhead is None


def test_stages_add_up_to_the_overhead() -> None:
    for row in make_override_rows():
        if row.overhead is not None:
            assert row.overhead.explanation is not None
            assert sum(stage.delta for stage in row.overhead.explanation.stages) == row.overhead.instructions
        assert sum(row.stages.values()) == row.summary.count.instructions  # type: ignore[union-attr]
    (like,) = (row for row in make_override_rows() if row.case == LIKE)
    assert {stage: n for stage, n in like.stages.items() if n} == {INTERPRETER: 2000, OVERRIDES: 700, ALLOCATION: 100}


def test_what_was_not_measured_of_both_is_not_compared() -> None:
    summaries = [make_summary(PLAIN, time=None), make_summary(SUB, instructions=None)]
    overhead = find_overheads(summaries, {}, standardise)[1].overhead
    assert overhead is not None
    assert (overhead.seconds, overhead.median_seconds, overhead.instructions, overhead.explanation) == (None,) * 4
