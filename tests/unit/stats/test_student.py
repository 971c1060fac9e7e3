from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from torchmark.stats import intervals

FREEDOM = st.integers(1, 60)


def test_one_degree_of_freedom_is_cauchys_distribution() -> None:
    # P(T <= t) = 1/2 + arctan(t) / pi, so that 3/4 lie below tan(pi/4) = 1.
    assert intervals.quantile(0.75, 1) == pytest.approx(1)
    assert intervals.quantile(0.9, 1) == pytest.approx(math.tan(0.4 * math.pi))
    assert intervals.one_sided_p(1, 1) == pytest.approx(0.25)
    assert intervals.two_sided_p(-1, 1) == pytest.approx(0.5)


def test_two_degrees_of_freedom_have_a_formula_too() -> None:
    # P(T <= t) = 1/2 + t / (2 sqrt(2 + t²)), at t = sqrt(2) 1/2 + 1/(2 sqrt(2)).
    assert intervals.one_sided_p(math.sqrt(2), 2) == pytest.approx(0.5 - 1 / math.sqrt(8))
    # Solved for t with a = 2p - 1: t = a sqrt(2 / (1 - a²)).
    assert intervals.quantile(0.975, 2) == pytest.approx(0.95 * math.sqrt(2 / (1 - 0.95**2)))


@pytest.mark.parametrize(("p", "df", "expected"), [(0.975, 5, 2.5706), (0.995, 5, 4.0321), (0.95, 10, 1.8125)])
def test_quantiles_are_those_of_printed_tables(p: float, df: int, expected: float) -> None:
    assert intervals.quantile(p, df) == pytest.approx(expected, abs=5e-5)


def test_nothing_lies_beyond_infinity() -> None:
    assert intervals.two_sided_p(math.inf, 3) == 0
    assert intervals.two_sided_p(-math.inf, 3) == 0
    assert intervals.one_sided_p(-math.inf, 3) == 1
    assert intervals.two_sided_p(0, 3) == 1


@given(st.floats(0.001, 0.999), FREEDOM)
def test_a_quantile_has_its_tail(p: float, df: int) -> None:
    assert intervals.one_sided_p(intervals.quantile(p, df), df) == pytest.approx(1 - p, abs=1e-9)


@given(st.floats(-50, 50), FREEDOM)
def test_both_tails_together_are_everything(t: float, df: int) -> None:
    assert intervals.one_sided_p(t, df) + intervals.one_sided_p(-t, df) == pytest.approx(1)
    assert intervals.two_sided_p(t, df) == intervals.two_sided_p(-t, df)
