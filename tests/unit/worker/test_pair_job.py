"""One side's part of a comparison: whose turn it is, and what is timed."""

from __future__ import annotations

import itertools
import socket
import threading
from collections.abc import Callable, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from torchmark.measure.steps import Steps, carry_out
from torchmark.model.job import GaugeJob, PairJob, Place, SideBlocks
from torchmark.worker import pair_job
from torchmark.worker.pair_job import (
    PartnerGone,
    await_turn,
    gauge,
    hand_over,
    list_turns,
    take_part,
    time_pair,
)
from torchmark.worker.protocol import Failed, PairTimed, decode, encode


def job_for(firsts: Sequence[int], side: int = 0, partner: str | None = None, setup: str = "pass") -> PairJob:
    return PairJob(
        stmt="log.append(side)",
        setup=setup,
        place=Place("/"),
        number=3,
        warm=2,
        firsts=tuple(firsts),
        side=side,
        partner=partner,
    )


class Engine:
    """Something that runs as long as a function says."""

    def __init__(self, timeit: Callable[[int], float]) -> None:
        self.timeit = timeit


class Sides:
    """Both sides in two threads of this process; `runs` has who ran how often, in the order in which it happened."""

    def __init__(self, firsts: Sequence[int]) -> None:
        self.runs: list[tuple[int, int]] = []
        ends = socket.socketpair()
        self.blocks: list[SideBlocks | None] = [None, None]
        threads = [threading.Thread(target=self._run, args=(firsts, side, ends[side])) for side in (0, 1)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(20)
            assert not thread.is_alive()
        for end in ends:
            end.close()

    def _run(self, firsts: Sequence[int], side: int, end: socket.socket) -> None:
        steps: Steps[SideBlocks] = take_part(job_for(firsts, side), end)
        reply = None
        while True:
            try:
                number = steps.send(reply)
            except StopIteration as stop:
                self.blocks[side] = stop.value
                return
            assert isinstance(number, int)
            self.runs.append((side, number))
            reply = 1.0


@given(st.lists(st.integers(0, 1), min_size=1, max_size=12))
def test_both_sides_keep_to_the_order_that_was_drawn(firsts: list[int]) -> None:
    sides = Sides(firsts)
    warm, number = 2, 3
    # Before the first turn both settle, in whatever order.
    timed = [
        (side, first, second)
        for (side, first), (other, second) in zip(sides.runs, sides.runs[1:], strict=False)
        if side == other and (first, second) == (warm, number)
    ]
    assert [side for side, _, _ in timed] == list_turns(firsts)
    for blocks in sides.blocks:
        assert blocks is not None
        assert blocks.times == (1.0,) * len(firsts)
        assert len(blocks.faults) == len(blocks.switches) == len(firsts)


def test_a_side_whose_rival_is_gone_says_so() -> None:
    ours, theirs = socket.socketpair()
    theirs.close()
    answer = time_pair(job_for([0, 1]), {"log": [], "side": 0}, ours)
    assert isinstance(answer, Failed)
    assert answer.failure == "no_result"
    assert "other side" in answer.message


def test_two_statements_of_one_process_share_their_setup_and_take_turns() -> None:
    log: list[str] = []
    job = PairJob(
        stmt="log.append('a')",
        setup="made = []",
        place=Place("/"),
        number=1,
        warm=1,
        firsts=(0, 1, 1),
        side=0,
        partner="log.append('b'); made.append(1)",
    )
    answer = time_pair(job, {"log": log}, None)
    assert isinstance(answer, PairTimed)
    assert [len(side.times) for side in answer.sides] == [3, 3]
    # One run to warm up and one that is timed, for each block of the pairs ab, ba, ba.
    assert "".join(log[-12:]) == "aabbbbaabbaa"


def test_the_times_of_a_pair_survive_the_protocol() -> None:
    answer = PairTimed((SideBlocks((1.0, 2.0), (0, 1), (0, 0)),))
    assert decode(encode(answer)) == answer
    job = job_for((0, 1), side=1)
    assert decode(encode(job)) == job


@pytest.mark.parametrize("seconds", [1e-9, 3e-7, 2e-5, 0.5])
def test_a_gauge_finds_the_time_of_a_run_without_running_slow_ones_often(seconds: float) -> None:
    asked: list[int] = []

    def run(number: int) -> float:
        asked.append(number)
        return number * seconds

    assert carry_out(Engine(run), pair_job._gauge()).run_s == pytest.approx(seconds)
    if seconds > pair_job.LONG_ENOUGH_S * pair_job.LARGEST_STEP:
        assert asked == [pair_job.FIRST_RUNS, 1]
    assert sum(asked) * seconds < max(10 * pair_job.LONG_ENOUGH_S * pair_job.ATTEMPTS, 6 * seconds)


def test_a_block_that_an_interrupt_made_longer_does_not_fool_the_gauge() -> None:
    calls = itertools.count(1)
    engine = Engine(lambda number: number * 1e-6 + (1e-3 if next(calls) % 5 == 0 else 0.0))
    assert carry_out(engine, pair_job._gauge()).run_s == pytest.approx(1e-6)


def test_a_statement_is_gauged_after_its_setup() -> None:
    found = gauge(GaugeJob("x.append(1)", "x = []", Place("/")), {})
    assert 0 < found.run_s < 1


def test_settling_ends_though_pages_never_do(monkeypatch: pytest.MonkeyPatch) -> None:
    faults = iter(range(100_000))
    monkeypatch.setattr(pair_job, "read_disturbances", lambda: (next(faults), 0))
    monkeypatch.setattr(pair_job, "SETTLING_S", 1e9)
    assert len(list(pair_job.settle(5))) == pair_job.SETTLING_BLOCKS


def test_settling_ends_when_some_blocks_in_a_row_used_no_new_page(monkeypatch: pytest.MonkeyPatch) -> None:
    # Read before and after each block: one new page in the first and in the third, none later.
    readings = iter([0, 1, 1, 1, 1, 2, 2, 2, 2, 2, 2, 2])
    monkeypatch.setattr(pair_job, "read_disturbances", lambda: (next(readings), 0))
    monkeypatch.setattr(pair_job, "SETTLING_S", 1e9)
    assert list(pair_job.settle(5)) == [5] * 6


def test_a_rival_that_ends_without_having_read_its_turn_is_gone() -> None:
    ours, theirs = socket.socketpair()
    with ours:
        hand_over(ours)
        theirs.close()
        with pytest.raises(PartnerGone):
            await_turn(ours)
