"""How blocks are cut, and what a visit comes to."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from torchmark.analysis.verdict.visits import (
    BLOCK_S,
    FEWEST_PAIRS,
    MOST_PAIRS,
    VISIT_S,
    WARM_S,
    choose_pace,
    doubt_visits,
    reduce_visit,
)
from torchmark.model.caveats import Interrupted, ManyThreads, PageFaults, SlowSpells, TooLong, TooShort, WildPairs
from torchmark.model.job import SideBlocks, Visit

seconds = st.floats(1e-8, 10.0)


def blocks(times: list[float], faults: list[int] | None = None, switches: list[int] | None = None) -> SideBlocks:
    nothing = [0] * len(times)
    return SideBlocks(tuple(times), tuple(faults or nothing), tuple(switches or nothing))


def visit(base: list[float], head: list[float], number: int = 1) -> Visit:
    return Visit(number, blocks(base), blocks(head))


@given(seconds)
def test_blocks_are_short_and_visits_bounded(run_s: float) -> None:
    pace = choose_pace(run_s)
    assert pace.number == 1 or abs(pace.number * run_s - BLOCK_S) <= run_s / 2 + 1e-12
    assert pace.warm * run_s >= min(WARM_S, run_s) * (1 - 1e-9)
    assert FEWEST_PAIRS <= pace.pairs <= MOST_PAIRS
    length = 2 * pace.pairs * (pace.number + pace.warm) * run_s
    assert length <= VISIT_S or pace.pairs == FEWEST_PAIRS


def test_the_ratio_is_the_median_of_paired_ones() -> None:
    # Ratios 2, 2 and 20: of the medians it would be 2.5, of the means 4.6.
    reduced = reduce_visit(visit([1.0, 2.0, 4.0], [2.0, 4.0, 80.0]))
    assert reduced.log_ratio == pytest.approx(math.log(2))


def test_seconds_are_of_one_run_where_the_machine_is_fast() -> None:
    # Lower quartiles of five blocks: the second smallest.
    reduced = reduce_visit(visit([5.0, 1.0, 2.0, 9.0, 9.0], [10.0, 2.0, 4.0, 18.0, 18.0], number=10))
    assert (reduced.base_s, reduced.head_s) == pytest.approx((0.2, 0.4))


def test_pairs_with_page_faults_do_not_count_where_enough_are_left() -> None:
    faults = [1] * 5 + [0] * 20
    one = Visit(1, blocks([1.0] * 25, faults), blocks([9.0] * 5 + [2.0] * 20))
    assert reduce_visit(one).log_ratio == pytest.approx(math.log(2))
    # With 19 that are left, all count: 9/1 six times and 2/1 19 times still have the median 2; so make them the most.
    few = Visit(1, blocks([1.0] * 25, [1] * 13 + [0] * 12), blocks([9.0] * 13 + [2.0] * 12))
    assert reduce_visit(few).log_ratio == pytest.approx(math.log(9))


@given(st.lists(st.tuples(seconds, seconds), min_size=1, max_size=50))
def test_the_other_way_round_it_is_the_same_with_the_other_sign(pairs: list[tuple[float, float]]) -> None:
    base, head = [b for b, _ in pairs], [h for _, h in pairs]
    there, back = reduce_visit(visit(base, head)), reduce_visit(visit(head, base))
    assert there.log_ratio == pytest.approx(-back.log_ratio, abs=1e-9)
    assert (there.base_s, there.head_s) == (back.head_s, back.base_s)


def test_a_calm_visit_leaves_nothing_to_doubt() -> None:
    assert doubt_visits([reduce_visit(visit([1e-4] * 40, [1e-4] * 40, 80))]) == ()
    assert doubt_visits([]) == ()


def test_slow_spells_are_told_with_their_share_and_size() -> None:
    times = [1e-4] * 20 + [2e-4] * 20
    found = doubt_visits([reduce_visit(visit(times, times, 80))])
    assert found == (SlowSpells(0.5, 2.0),)


def test_what_disturbs_blocks_is_told() -> None:
    many, few = [1] * 30 + [0] * 10, [1, *[0] * 39]
    base = blocks([1e-4] * 40, many, many)
    found = doubt_visits([reduce_visit(Visit(80, base, blocks([1e-4] * 40)))])
    assert found == (PageFaults(30 / 80), Interrupted(30 / 80))
    base = blocks([1e-4] * 40, few, few)
    assert doubt_visits([reduce_visit(Visit(80, base, blocks([1e-4] * 40)))]) == ()


def test_pairs_that_are_far_apart_are_told() -> None:
    head = [1e-4] * 20 + [1.2e-4] * 10 + [0.85e-4] * 10
    found = doubt_visits([reduce_visit(visit([1e-4] * 40, head, 80))])
    assert found == (WildPairs(0.5),)


def test_runs_that_are_too_short_or_too_long_and_threads_are_told() -> None:
    assert doubt_visits([reduce_visit(visit([1e-4] * 9, [1e-4] * 9, 10_000))], threads=2) == (
        ManyThreads(2),
        TooShort(1e-8),
    )
    assert doubt_visits([reduce_visit(visit([0.1] * 9, [0.1] * 9))]) == (TooLong(0.1),)
