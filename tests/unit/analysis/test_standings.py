"""Which of several series that were taken in turns is the fastest, and when that cannot be said."""

from __future__ import annotations

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from torchmark.analysis.summarise import rank

SERIES = st.integers(2, 5).flatmap(
    lambda size: st.lists(st.lists(st.floats(1e-9, 1.0), min_size=size, max_size=size), min_size=1, max_size=30)
)


def test_ratios_are_to_the_fastest_round_by_round() -> None:
    standings = rank([[3.0, 6.0] * 4, [1.0, 2.0] * 4, [2.0, 4.0] * 4])
    assert standings.fastest == 1
    assert [round(math.exp(ratio.log_ratio), 9) for ratio in standings.ratios] == [3.0, 1.0, 2.0]
    assert (standings.runner_up, standings.rivals) == (2, ())


@pytest.mark.parametrize(("factor", "rivals"), [(1.0, 1), (1.04, 1), (1.06, 0)])
def test_a_difference_that_the_layout_of_memory_can_make_is_not_called_one(factor: float, rivals: int) -> None:
    times = [1.0, 1.1, 1.2, 1.3, 1.4, 1.5, 1.6, 1.7]
    assert len(rank([times, [t * factor for t in times]]).rivals) == rivals


def test_five_rounds_are_too_few_to_tell() -> None:
    standings = rank([[1.0] * 5, [9.0] * 5])
    assert (standings.fastest, standings.rivals) == (0, (1,))
    assert standings.ratios[1].low is None


def test_more_statements_take_more_rounds_because_their_intervals_hold_together() -> None:
    assert rank([[1.0] * 6, [2.0] * 6]).rivals == ()
    assert rank([[1.0] * 6, [2.0] * 6, [3.0] * 6]).rivals == (1, 2)
    assert rank([[1.0] * 12] + [[2.0] * 12] * 9).rivals == ()


def test_times_that_were_not_taken_in_turns_have_ratios_without_intervals() -> None:
    standings = rank([[4.0, 2.0, 3.0], [1.5]], in_turns=False)
    assert (standings.fastest, standings.rivals) == (1, (0,))
    assert math.exp(standings.ratios[0].log_ratio) == pytest.approx(2.0)
    assert standings.ratios[0].low is None


@pytest.mark.parametrize("in_turns", [True, False])
def test_a_block_that_the_clock_cannot_see_is_no_error(in_turns: bool) -> None:
    assert rank([[0.0] * 8, [1.0] * 8], in_turns=in_turns).fastest == 0


@pytest.mark.parametrize("size", [2, 4])
def test_equal_statements_are_rarely_called_different(size: int) -> None:
    chance = random.Random(7)
    called = 0
    for _ in range(300):
        rounds = [chance.gauss(0, 0.1) for _ in range(40)]
        series = [[math.exp(common + chance.gauss(0, 0.1)) for common in rounds] for _ in range(size)]
        called += not rank(series).rivals
    assert called <= 300 * 0.05


@given(SERIES)
def test_the_fastest_takes_as_long_as_itself(rounds: list[list[float]]) -> None:
    standings = rank(list(zip(*rounds, strict=True)))
    assert standings.ratios[standings.fastest].log_ratio == 0
    assert standings.fastest not in (*standings.rivals, standings.runner_up)
