from __future__ import annotations

import dataclasses
import gc
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from torchmark.measure.source import user_traceback
from torchmark.model.job import Place, RaceJob
from torchmark.model.task import Times
from torchmark.worker.time_jobs import FEWEST_ROUNDS, TOO_SLOW, is_spent, race, take_turns

CLOCK_S = 1e-7


def last_for(min_run_time_s: float, max_run_time_s: float) -> RaceJob:
    return RaceJob((), "", Place("/"), min_run_time_s=min_run_time_s, max_run_time_s=max_run_time_s)


class World:
    """A clock that only moves while one of its statements runs, and a record of who ran how often."""

    def __init__(self, *costs: float) -> None:
        self.time_s = 0.0
        self.blocks: list[tuple[int, int]] = []
        self.engines = [Runner(self, i, cost) for i, cost in enumerate(costs)]

    def now(self) -> float:
        return self.time_s

    def race(self, min_run_time_s: float = 0.02, max_run_time_s: float = 10.0) -> tuple[Times, ...]:
        raced = take_turns(self.engines, last_for(min_run_time_s, max_run_time_s), self.now).results
        self.rounds = len(raced[0].raw_times)
        assert [len(one.raw_times) for one in raced] == [self.rounds] * len(self.engines)
        return raced

    def orders(self) -> list[list[int]]:
        """Who ran in each round, in order."""
        size = len(self.engines)
        turns = [who for who, _ in self.blocks[-size * self.rounds :]]
        return [turns[i : i + size] for i in range(0, len(turns), size)]


class Runner:
    """A statement that takes a while, the first time another while."""

    def __init__(self, world: World, who: int, cost: float, first: float = 0.0) -> None:
        self.world, self.who, self.cost, self.first = world, who, cost, first

    def timeit(self, number: int) -> float:
        seconds = CLOCK_S + number * self.cost + self.first
        self.first = 0.0
        self.world.time_s += seconds
        self.world.blocks.append((self.who, number))
        return seconds


def test_each_round_has_one_block_of_each_in_an_order_of_its_own() -> None:
    world = World(1e-6, 1e-6, 1e-6)
    raced = world.race()
    orders = world.orders()
    assert all(sorted(order) == [0, 1, 2] for order in orders)
    assert {order[0] for order in orders} == {0, 1, 2}
    assert all(time == CLOCK_S + one.number_per_run * 1e-6 for one in raced for time in one.raw_times)


def test_the_same_job_has_the_same_orders_again() -> None:
    one, two = World(1e-6, 1e-5), World(1e-6, 1e-5)
    assert one.race() == two.race()
    assert one.orders() == two.orders()


def test_rounds_go_on_until_each_statement_has_run_long_enough() -> None:
    raced = World(1e-6, 1e-3).race(min_run_time_s=0.1)
    totals = [sum(one.raw_times) for one in raced]
    assert min(totals) >= 0.1
    assert any(sum(one.raw_times[:-1]) < 0.1 for one in raced)


@pytest.mark.parametrize("min_run_time_s", [0.001, 0.02, 1.0])
def test_blocks_are_long_enough_for_the_clock_and_short_enough_for_six_rounds(min_run_time_s: float) -> None:
    raced = World(1e-8, 1e-6, 1e-5).race(min_run_time_s)
    for times in [one.raw_times for one in raced]:
        assert min(times) >= min(1e-3, min_run_time_s / 10)
        assert max(times) <= min_run_time_s / FEWEST_ROUNDS


def test_blocks_of_a_slow_statement_are_single_runs() -> None:
    assert World(0.05, 1e-6).race()[0].number_per_run == 1


def test_a_first_run_that_loads_something_does_not_make_a_statement_a_slow_one() -> None:
    plain, loading = World(1e-6), World(1e-6)
    loading.engines[0].first = 0.3
    sizes = [[one.number_per_run for one in world.race()] for world in (loading, plain)]
    assert sizes[0] == sizes[1]
    assert all(time < 0.1 for time in loading.race()[0].raw_times)


@pytest.mark.parametrize("costs", [(1e-6, 1e-5), (1e-3, 0.02), (0.3, 1e-6)])
def test_all_of_it_takes_no_longer_than_it_may(costs: tuple[float, ...]) -> None:
    world = World(*costs)
    world.race(min_run_time_s=100.0, max_run_time_s=5.0)
    assert world.time_s <= 5.0
    assert world.rounds >= FEWEST_ROUNDS


def test_six_rounds_are_run_although_time_is_up() -> None:
    world = World(1.0, 1e-6)
    world.race(max_run_time_s=3.0)
    assert world.rounds == FEWEST_ROUNDS


def test_a_fast_statement_behind_a_slow_one_still_has_blocks_that_tell_something() -> None:
    raced = World(20.0, 1e-6).race(max_run_time_s=10.0)
    assert raced[1].raw_times[0] > 1e-3


@pytest.mark.parametrize(("cost", "rounds"), [(4.0, FEWEST_ROUNDS), (6.0, 1), (100.0, 1)])
def test_a_statement_for_which_six_rounds_are_far_too_many_has_fewer(cost: float, rounds: int) -> None:
    world = World(cost, 1e-6)
    world.race(max_run_time_s=10.0)
    assert world.rounds == rounds


@given(st.integers(1, 20), st.floats(0, 100), st.floats(0.001, 10), st.lists(st.floats(0, 1), max_size=3))
def test_it_is_over_for_a_reason(rounds: int, elapsed_s: float, round_s: float, totals: Sequence[float]) -> None:
    spent = is_spent(last_for(0.5, 5.0), totals, rounds, elapsed_s, round_s)
    late, satisfied = elapsed_s + round_s > 5.0, all(total >= 0.5 for total in totals)
    if rounds >= FEWEST_ROUNDS:
        assert spent == (late or satisfied)
    else:
        assert spent == (late and FEWEST_ROUNDS * round_s > TOO_SLOW * 5.0)


def job(*stmts: str, setup: str = "pass") -> RaceJob:
    return RaceJob(stmts, setup, Place("/"), min_run_time_s=1e-5, max_run_time_s=1e-3)


def fail(*stmts: str, setup: str = "pass") -> str:
    with pytest.raises((ArithmeticError, SyntaxError)) as caught:
        race(job(*stmts, setup=setup), {})
    return user_traceback(caught.value)


def test_all_statements_see_what_one_setup_made() -> None:
    seen: dict[str, Any] = {"made": [], "seen": set()}
    setup = "x = object()\nmade.append(x)\ndef note(v): seen.add(id(v)), made[0] is x"
    raced = race(job("note(x)", "y = x; note(y)", setup=setup), seen)
    assert len(raced.results) == 2
    assert seen["seen"] == {id(one) for one in seen["made"]}
    assert len(seen["made"]) == 1


@pytest.mark.parametrize("stmt", ["n += 1; note(n)", "n += 1; (lambda: note(n))()", "globals = n; n = n + 1; note(n)"])
def test_a_statement_may_assign_what_the_setup_made_and_other_statements_do_not_see_it(stmt: str) -> None:
    seen: dict[str, list[int]] = {"mine": [], "others": []}
    race(job(stmt, "look(n)", setup="n = 0\nnote, look = mine.append, others.append"), seen)
    assert seen["mine"] == list(range(1, len(seen["mine"]) + 1))
    assert set(seen["others"]) == {0}


@pytest.mark.parametrize(("setup", "expected"), [("import gc", False), ("import gc; gc.enable()", True)])
def test_the_collector_is_off_unless_the_setup_switches_it_on(setup: str, expected: bool) -> None:
    states: list[bool] = []
    note: Callable[[bool], None] = states.append
    race(job("note(gc.isenabled())", setup=f"{setup}; note(gc.isenabled())"), {"note": note})
    assert set(states) == {expected}
    assert gc.isenabled()


def test_a_traceback_tells_which_statement_failed_and_where() -> None:
    text = fail("f(1)", "y = 0\nf(y)", setup="def f(v):\n    return 1 / v")
    assert text.startswith(
        "Traceback (most recent call last):\n"
        '  File "<stmt 2>", line 2, in <module>\n'
        "    f(y)\n"
        '  File "<setup>", line 2, in f\n'
        "    return 1 / v\n"
    )


def test_a_setup_that_fails_is_told_as_such() -> None:
    text = fail("pass", setup="a = 1\nb = a / 0")
    assert text.startswith('Traceback (most recent call last):\n  File "<setup>", line 2, in <module>\n    b = a / 0\n')


def test_what_makes_an_input_runs_before_the_setup_and_does_not_shift_its_lines() -> None:
    making = dataclasses.replace(job("x", setup="x / y"), making="x = 1\ny = 0")
    with pytest.raises(ZeroDivisionError) as caught:
        race(making, {})
    assert 'File "<setup>", line 1, in <module>\n    x / y\n' in user_traceback(caught.value)
    with pytest.raises(NameError) as missing:
        race(dataclasses.replace(making, making="x = 1\ny = none"), {})
    assert 'File "<input>", line 2, in <module>\n    y = none\n' in user_traceback(missing.value)


@pytest.mark.parametrize(
    ("stmt", "setup", "name"),
    [("x = = 1", "pass", "<stmt 2>"), ("from os import *", "pass", "<stmt 2>"), ("pass", "return", "<setup>")],
)
def test_what_does_not_compile_is_named(stmt: str, setup: str, name: str) -> None:
    assert f'File "{name}", line 1' in fail("pass", stmt, setup=setup)
