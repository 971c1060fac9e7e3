from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.sampling import Z
from torchmark.stats.intervals import benjamini_hochberg

P_VALUES = st.lists(st.floats(0, 1), max_size=30)


@pytest.mark.parametrize(
    ("p_values", "accepted"),
    [
        # Ranks are held to 0.01, 0.02, 0.03, 0.04 and 0.05.
        ([0.001, 0.015, 0.039, 0.2, 0.9], [True, True, False, False, False]),
        # The first passes by the last: 0.04 is more than 0.02 and than 0.03, and no more than 0.04.
        ([0.04, 0.009, 0.04, 0.04, 0.06], [True, True, True, True, False]),
        ([0.05, 0.05, 0.05, 0.05, 0.05], [True] * 5),
        ([0.051, 0.05, 0.05, 0.05, 0.05], [False] * 5),
        ([0.05], [True]),
        ([0.0501], [False]),
        ([0.03, 0.03], [True, True]),
        ([1.0, 0.0], [False, True]),
        ([], []),
    ],
)
def test_the_largest_that_passes_takes_all_below_it_along(p_values: list[float], accepted: list[bool]) -> None:
    assert benjamini_hochberg(p_values, rate=0.05) == tuple(accepted)


@given(P_VALUES, st.floats(0, 1))
def test_what_is_accepted_is_below_the_rate_and_below_all_that_is_not(p_values: list[float], rate: float) -> None:
    accepted = benjamini_hochberg(p_values, rate)
    assert len(accepted) == len(p_values)
    inside = [p for p, yes in zip(p_values, accepted, strict=True) if yes]
    outside = [p for p, yes in zip(p_values, accepted, strict=True) if not yes]
    assert all(p <= rate for p in inside)
    assert max(inside, default=0) < min(outside, default=2)


@given(P_VALUES, st.floats(0, 1))
def test_as_many_are_accepted_as_bonferroni_would_accept_or_more(p_values: list[float], rate: float) -> None:
    accepted = benjamini_hochberg(p_values, rate)
    assert all(yes for p, yes in zip(p_values, accepted, strict=True) if p <= rate / len(p_values))


@given(P_VALUES)
def test_the_order_does_not_matter(p_values: list[float]) -> None:
    expected = dict(zip(p_values, benjamini_hochberg(p_values, 0.1), strict=True))
    turned = p_values[::-1]
    assert dict(zip(turned, benjamini_hochberg(turned, 0.1), strict=True)) == expected


def test_on_average_as_many_of_those_accepted_are_false_as_the_rate_says() -> None:
    # Fourteen of twenty are false, with p values that are anything alike. The share of false ones among those accepted
    # has an expectation of 14/20 of the rate, however small the other six are.
    rng, rate, false, suites = np.random.default_rng(5), 0.2, 14, 4000
    shares = []
    for true_p, false_p in zip(rng.beta(0.1, 5, (suites, 6)), rng.uniform(size=(suites, false)), strict=True):
        accepted = benjamini_hochberg([*true_p, *false_p], rate)
        shares.append(sum(accepted[6:]) / max(1, sum(accepted)))
    error = Z * np.std(shares) / np.sqrt(suites)
    assert np.mean(shares) == pytest.approx(rate * false / 20, abs=error)
    assert error < 0.02
