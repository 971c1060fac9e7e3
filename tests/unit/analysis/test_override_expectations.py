from __future__ import annotations

import pytest

from tests.made_overrides import (
    LIKE,
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
from torchmark.analysis.overrides import (
    NEGLIGIBLE_INSTRUCTIONS,
    SUBCLASS_LIMIT_S,
    TENSOR_LIKE_LIMIT_S,
    Expectation,
    OverrideFinding,
    hold_to_expectations,
)
from torchmark.model.case import Case

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
