from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from torchmark.model.gate import Limit, Quantity

COUNTS = st.integers(0, 10**12)


@given(COUNTS, st.integers(1, 1000))
def test_a_limit_of_nothing_admits_the_same_and_not_one_more_in_a_thousand_runs(total: int, number: int) -> None:
    limit = Limit(Quantity.INSTRUCTIONS)
    assert limit.admits(total / number, total / number)
    if total < 10**10:
        assert not limit.admits(total / number, (total + 1) / number)
    assert limit.admits((total + 1) / number, total / number)


@given(COUNTS, st.integers(1, 1000), st.integers(0, 10**6))
def test_what_is_allowed_exactly_is_admitted_although_quotients_are_rounded(total: int, number: int, more: int) -> None:
    limit = Limit(Quantity.INSTRUCTIONS, amount=more)
    assert limit.admits(total / number, (total + more * number) / number)


def test_a_share_is_of_base() -> None:
    limit = Limit(Quantity.TIME, share=0.02)
    assert limit.admits(100.0, 102.0)
    assert not limit.admits(100.0, 102.001)
    assert not limit.admits(0.0, 1.0)
