from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from torchmark.measure import steps
from torchmark.measure.steps import R, Steps, carry_out
from torchmark.stats import distribution


class FixedCost:
    """Takes `start` seconds plus `run` seconds a run; moves a clock of its own."""

    def __init__(self, run: float, start: float = 0.0, setup: float = 0.0) -> None:
        self.run, self.start, self.setup = run, start, setup
        self.now = 0.0
        self.calls: list[int] = []

    def timeit(self, number: int) -> float:
        self.calls.append(number)
        elapsed = self.start + self.run * number
        self.now += elapsed + self.setup
        return elapsed


def test_a_block_never_takes_less_than_a_nanosecond() -> None:
    assert carry_out(FixedCost(0.0), steps.time_block(5)) == 1e-9
    assert carry_out(FixedCost(-1.0), steps.time_block(5)) == 1e-9


def test_overhead_is_the_middle_of_five_empty_blocks() -> None:
    class Recorded:
        def __init__(self) -> None:
            self.times = [5e-6, 1e-6, 9e-6, 2e-6, 3e-6]

        def timeit(self, number: int) -> float:
            assert number == 0
            return self.times.pop()

    assert carry_out(Recorded(), steps.measure_overhead()) == 3e-6


def test_the_decade_search_starts_with_five_empty_blocks_and_stops_at_a_thousandth() -> None:
    engine = FixedCost(run=1e-6)
    assert carry_out(engine, steps.decade_block_size(0.2)).number == 1000
    assert engine.calls == [0, 0, 0, 0, 0, 1, 10, 100, 1000]


def test_the_decade_search_goes_on_until_overhead_is_invisible() -> None:
    assert carry_out(FixedCost(run=1e-6, start=1e-6), steps.decade_block_size(0.2)).number == 10_000


def test_the_decade_search_stops_where_a_block_takes_longer_than_asked_for() -> None:
    engine = FixedCost(run=3.0, start=1.0)
    assert carry_out(engine, steps.decade_block_size(2.0)).number == 1
    assert engine.calls == [0, 0, 0, 0, 0, 1]


def test_the_decade_search_stops_before_a_counter_overflows() -> None:
    assert carry_out(FixedCost(run=0.0), steps.decade_block_size(1e9)).number == 10**9


NEVER = math.inf


def test_a_fitted_block_is_hardly_longer_than_needed() -> None:
    engine = FixedCost(run=1.1e-6)
    size = carry_out(engine, steps.fitted_block_size(0.2, lambda: NEVER))
    # 0.2 ms are a thousandth of the time asked for
    assert 0.2e-3 <= size.number * 1.1e-6 <= 0.3e-3


@given(st.floats(1e-9, 1.0), st.floats(0, 1e-4), st.floats(0.001, 10))
def test_a_fitted_block_satisfies_what_a_decade_block_does(run: float, start: float, min_run_time: float) -> None:
    engine = FixedCost(run, start)
    size = carry_out(engine, steps.fitted_block_size(min_run_time, lambda: NEVER))
    t = max(start + run * size.number, 1e-9)
    assert t >= min_run_time or (t >= min_run_time / 1000 and max(start, 1e-9) / t <= 1e-4 * (1 + 1e-9))
    decade = carry_out(FixedCost(run, start), steps.decade_block_size(min_run_time))
    assert size.number <= max(decade.number * 1.3, 10)


@pytest.mark.parametrize(
    ("run", "number"),
    [
        (1e-3, 10),  # one run would be long enough, but ten dilute the first
        (4e-3, 5),  # 0.2 s leave room for ten blocks of five
        (0.03, 1),
        (5.0, 1),
    ],
)
def test_slow_statements_run_several_times_in_a_block_while_ten_blocks_fit(run: float, number: int) -> None:
    assert carry_out(FixedCost(run), steps.fitted_block_size(0.2, lambda: NEVER)).number == number


def test_one_interrupted_block_does_not_end_the_search() -> None:
    class Interrupted(FixedCost):
        def timeit(self, number: int) -> float:
            hiccup = 0.001 if self.calls.count(10) == 0 and number == 10 else 0.0
            return super().timeit(number) + hiccup

    assert carry_out(Interrupted(run=1e-6), steps.fitted_block_size(0.2, lambda: NEVER)).number >= 200
    assert carry_out(Interrupted(run=1e-6), steps.decade_block_size(0.2)).number == 10


class SlowSetup(FixedCost):
    """Pays its setup once where blocks share it."""

    sharing = False
    paid = False

    def timeit(self, number: int) -> float:
        setup, self.setup = self.setup, 0.0 if self.sharing and self.paid else self.setup
        elapsed = super().timeit(number)
        self.setup, self.paid = setup, True
        return elapsed

    def follow(self, steps: Steps[R]) -> R:
        self.sharing, self.paid = True, False
        result = carry_out(self, steps)
        self.sharing = False
        return result


@pytest.mark.parametrize("limit", [0.0, 0.5, 1.0, 2.5, 6.5, 100.0])
# An engine that runs its setup before every block may be within its five empty blocks when the time ends.
@pytest.mark.parametrize(("kind", "beyond"), [(FixedCost, 5.1), (SlowSetup, 1.1)])
def test_the_fitted_search_ends_when_the_time_does(kind: type[FixedCost], beyond: float, limit: float) -> None:
    engine = kind(run=1e-6, setup=1.0)
    carry_out(engine, steps.fitted_block_size(0.2, lambda: limit - engine.now))
    # One empty block is always timed.
    assert engine.now <= max(limit, 1.0) + beyond


def test_finding_the_block_size_takes_two_setups() -> None:
    engine = SlowSetup(run=1e-6, setup=2.0)
    carry_out(engine, steps.fitted_block_size(0.2, lambda: 100.0 - engine.now))
    assert engine.now < 2 * 2.0 + 0.1


def test_a_slow_setup_makes_longer_blocks() -> None:
    engine = SlowSetup(run=1e-6, setup=2.0)
    size = carry_out(engine, steps.fitted_block_size(0.2, lambda: 12.0 - engine.now))
    # 8 s are left for blocks that cost 2 s each: the four of them should add up to 0.2 s
    assert 0.05 <= size.number * 1e-6 <= 0.1


def test_the_preferred_search_goes_one_two_five() -> None:
    engine = FixedCost(run=0.01)
    assert carry_out(engine, steps.search_preferred(0.15)) == (20, 0.2)
    assert engine.calls == [1, 2, 5, 10, 20]


def test_the_preferred_search_stops_before_a_counter_overflows() -> None:
    assert carry_out(FixedCost(run=0.0), steps.search_preferred(1.0))[0] < 2**31


def test_blocks_are_timed_until_they_add_up() -> None:
    seen: list[tuple[int, float]] = []
    times = carry_out(FixedCost(run=0.1), steps.measure(3, min_run_time=1.0, callback=lambda n, t: seen.append((n, t))))
    assert len(times) == 4
    assert seen == [(3, t) for t in times]


def test_no_time_at_all_gives_one_block() -> None:
    assert len(carry_out(FixedCost(run=0.1), steps.measure(1, min_run_time=0.0))) == 1


def test_a_stop_rule_can_ask_for_more_and_the_clock_can_refuse() -> None:
    measuring = steps.measure(1, min_run_time=0.0, should_stop=lambda t: False, out_of_time=lambda total: total > 6)
    times = carry_out(FixedCost(run=1.0), measuring)
    assert len(times) == 7


def test_steady_enough_takes_four_samples_and_a_narrow_middle() -> None:
    rule = steps.SteadyEnough(1, threshold=0.1)
    assert [rule(t) for t in (1.0, 1.0, 1.0, 1.0)] == [False, False, False, True]
    rule = steps.SteadyEnough(1, threshold=0.1)
    assert [rule(t) for t in (1.0, 2.0, 1.0, 2.0, 1.5, 1.5, 1.5, 1.5, 1.5)][-1]
    assert not steps.SteadyEnough(1, threshold=0.0)(1.0)


@pytest.mark.parametrize("threshold", [0.05, 0.5])
def test_steady_enough_agrees_with_quartiles_of_all_samples(threshold: float) -> None:
    times = [1.0, 1.4, 1.1, 1.2, 0.9, 1.05, 1.0, 1.01, 1.02, 1.0]
    rule = steps.SteadyEnough(10, threshold)
    for i, t in enumerate(times, start=1):
        ordered = sorted(times[:i])
        low, middle, high = (distribution.quantile(ordered, q) for q in (0.25, 0.5, 0.75))
        assert rule(t) == (i > 3 and (high - low) / middle < threshold)
