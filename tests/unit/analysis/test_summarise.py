"""Which of several series that were taken in turns is the fastest, and when that cannot be said."""

from __future__ import annotations

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from torchmark.analysis.summarise import (
    count_significant_figures,
    doubt_count,
    estimate_cycles,
    find_caveats,
    find_median_interval,
    rank,
    spread,
    summarise,
)
from torchmark.errors import UsageError
from torchmark.model.caveats import (
    Caveat,
    Drift,
    FewSamples,
    HighOverhead,
    OtherInstructionSet,
    SeveralThreads,
    TwoModes,
    UnstableCount,
    Variation,
)
from torchmark.model.environment import Environment
from torchmark.model.task import Interval, Times


@pytest.mark.parametrize(("totals", "expected"), [([100], 0), ([100, 101, 99], 0.02), ([0, 0], 0), ([100, 110], 0.1)])
def test_the_spread_is_a_share_of_the_median(totals: list[int], expected: float) -> None:
    assert spread(totals) == expected


def test_cycles_weigh_misses() -> None:
    events = {
        "Ir": 1000,
        "Dr": 400,
        "Bcm": 1,
        "Bim": 1,
        "I1mr": 1,
        "D1mr": 1,
        "D1mw": 1,
        "ILmr": 1,
        "DLmr": 1,
        "DLmw": 1,
    }
    assert estimate_cycles(events) == 1000 + 5 * 10 + 3 * 100
    assert estimate_cycles({"Ir": 1000}) is None
    assert estimate_cycles({}) is None


def environment(counted: str | None, native: str | None) -> Environment:
    return Environment(
        python="python",
        python_version="3",
        torch_version="2",
        cpu_capability=counted,
        native_capability=native,
        valgrind="valgrind-3",
    )


@pytest.mark.parametrize(
    ("totals", "threads", "where", "expected"),
    [
        ([1000, 1010, 1000], 1, None, ()),
        ([1000, 1011, 1000], 1, None, (UnstableCount(0.011),)),
        ([1000], 2, None, (SeveralThreads(2),)),
        ([], 2, None, ()),
        ([], 1, environment("AVX2", "AVX512"), (OtherInstructionSet("AVX512", "AVX2"),)),
        ([], 1, environment("AVX2", "AVX2"), ()),
        ([], 1, environment("AVX2", None), ()),
    ],
)
def test_doubts(totals: list[int], threads: int, where: Environment | None, expected: tuple[object, ...]) -> None:
    assert doubt_count(totals, threads, where) == expected


STEADY = (1.0, 1.01, 0.99, 1.0, 1.02, 0.98)


def kinds(times: Times) -> list[type[Caveat]]:
    return [type(caveat) for caveat in find_caveats(times)]


def test_a_steady_result_has_no_caveats() -> None:
    assert find_caveats(Times(10, STEADY, 1e-6)) == ()


def test_five_samples_are_few_and_six_are_not() -> None:
    assert find_caveats(Times(1, STEADY[:5])) == (FewSamples(5, 6),)
    assert find_caveats(Times(1, STEADY[:6])) == ()


def test_no_samples_at_all_are_few() -> None:
    assert find_caveats(Times(1, ())) == (FewSamples(0, 6),)


def test_variation_begins_at_a_tenth_of_the_median() -> None:
    # quartiles at positions 1.5 and 4.5 of seven values
    (caveat,) = find_caveats(Times(1, (9.5, 9.5, 9.5, 10.0, 10.5, 10.5, 10.5)))
    assert caveat == Variation(0.1)
    assert find_caveats(Times(1, (9.6, 9.6, 9.6, 10.0, 10.5, 10.5, 10.5))) == ()


def test_a_drift_carries_its_size() -> None:
    (caveat,) = find_caveats(Times(2, tuple(10 + i / 10 for i in range(12))))
    assert isinstance(caveat, Drift)
    assert caveat.change == pytest.approx(10.95 / 10.15 - 1)


def test_two_modes_are_told_in_seconds_per_run() -> None:
    caveats = find_caveats(Times(100, (1.0,) * 12 + (2.0,) * 8 + (1.0,) * 10))
    modes = next(c for c in caveats if isinstance(c, TwoModes))
    assert (modes.fast_s, modes.slow_s) == (0.01, 0.02)
    assert modes.slow_share == pytest.approx(8 / 30)


def test_overhead_is_a_share_of_a_block_and_not_of_a_run() -> None:
    assert kinds(Times(1000, STEADY, overhead_s=0.009)) == []
    (caveat,) = find_caveats(Times(1000, STEADY, overhead_s=0.01))
    assert caveat == HighOverhead(0.01)


def test_overhead_is_never_more_than_all_of_a_block() -> None:
    (caveat,) = find_caveats(Times(1, STEADY, overhead_s=5.0))
    assert caveat == HighOverhead(1.0)


def test_unknown_overhead_is_not_doubted() -> None:
    assert kinds(Times(1, STEADY, overhead_s=None)) == []


def test_times_of_zero_are_no_reason_to_fail() -> None:
    assert kinds(Times(1, (0.0,) * 30, overhead_s=1e-9)) == []


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


def test_a_summary_by_hand() -> None:
    summary = summarise([4.0, 1.0, 3.0, 2.0, 5.0])
    assert (summary.samples, summary.median, summary.mean) == (5, 3.0, 3.0)
    assert (summary.p25, summary.p75, summary.iqr, summary.iqr_share) == (2.0, 4.0, 2.0, 2 / 3)
    assert (summary.minimum, summary.maximum) == (1.0, 5.0)
    assert summary.std == pytest.approx(2.5**0.5)


def test_a_single_sample_has_a_median_and_no_spread() -> None:
    summary = summarise([3.0])
    assert (summary.median, summary.mean, summary.iqr, summary.std) == (3.0, 3.0, 0.0, None)


def test_no_samples_are_refused_with_a_sentence() -> None:
    with pytest.raises(UsageError, match="without samples"):
        summarise([])


@pytest.mark.parametrize(
    ("times", "figures"),
    [
        ([1.0] * 5, 4),  # 1 s / 25 ns would be 7 figures: capped
        ([1e-6] * 5, 1),  # 1 us / 25 ns = 40
        ([2.5e-6] * 5, 2),  # exactly 100 times the floor
        ([20e-9], 1),  # below the floor: at least one
        ([0.0, 5e-324, 5.0], 1),  # the smallest number there is, divided by 2.2 s, is zero
        # middle half of eight: 2..6; population std of (98, 100, 100, 102) = sqrt(2); 1.645 * sqrt(2) / 2 = 1.163
        ([90.0, 95.0, 98.0, 100.0, 100.0, 102.0, 105.0, 110.0], 1),
        # the same with a tenth of the scatter: 100 / 0.1163 = 860
        ([99.0, 99.5, 99.8, 100.0, 100.0, 100.2, 100.5, 101.0], 2),
    ],
)
def test_significant_figures_by_hand(times: list[float], figures: int) -> None:
    ordered = sorted(times)
    assert count_significant_figures(ordered, ordered[len(ordered) // 2]) == figures


@pytest.mark.parametrize("median", [0.0, -1.0])
def test_a_median_that_is_not_positive_has_one_figure(median: float) -> None:
    assert count_significant_figures([median], median) == 1


@given(st.lists(st.floats(1e-9, 1e3), min_size=1, max_size=50))
def test_a_summary_is_in_order(times: list[float]) -> None:
    s = summarise(times)
    assert s.minimum <= s.p25 <= s.median <= s.p75 <= s.maximum
    assert 1 <= s.significant_figures <= 4


def test_the_interval_of_the_median_is_made_of_samples() -> None:
    times = [9.0, 1.0, 8.0, 2.0, 7.0, 3.0, 6.0, 4.0, 5.0]
    assert find_median_interval(times, 0.95) == Interval(2.0, 8.0, 1 - 20 / 512)


def test_too_few_samples_have_no_interval() -> None:
    assert find_median_interval([], 0.95) is None
    assert find_median_interval([1.0] * 5, 0.95) is None


@pytest.mark.parametrize("confidence", [0.0, 1.0, 95])
def test_a_confidence_that_is_none_is_refused(confidence: float) -> None:
    with pytest.raises(UsageError, match="between 0 and 1"):
        find_median_interval([1.0] * 9, confidence)
