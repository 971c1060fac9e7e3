"""Comparisons whose answer is known, in a place where nothing runs."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import pytest

from tests.places import FakePlace
from torchmark.api.selftest import SLOWING, choose_slowings, gauge_slowing, gauge_statement, make_part, run_trials
from torchmark.errors import WorkerError
from torchmark.model.job import BlockPlan, PairedCase, RunTime, SideBlocks, Visit
from torchmark.model.judgement import Side, SideFailure, Verdict
from torchmark.model.outcome import Failure, FailureKind
from torchmark.runner.paired_workers import Failures

RUN_S, EACH_S = 1e-6, 2e-9
BROKEN = (SideFailure(Side.BASE, Failure(FailureKind.RAISED, "no torch.add here")),)


def count_slowings(stmt: str) -> int:
    return stmt.split("\n").count(SLOWING)


class ExactPlace(FakePlace):
    """Every assignment takes exactly two nanoseconds, and the machine is twice as slow every other visit."""

    layouts = tuple(range(12))

    def __init__(self, failures: Failures = ()) -> None:
        super().__init__({})
        self._failures = failures
        self._number = 0

    def start(self, layouts: Iterable[int], note: Callable[[int], None] = lambda _: None) -> None:
        raise AssertionError("all have been started")

    def gauge(self, paired_case: PairedCase) -> RunTime | Failures:
        if self._failures:
            return self._failures
        return RunTime(*(RUN_S + EACH_S * count_slowings(part.stmt) for part in (paired_case.base, paired_case.head)))

    def visit(self, layout: int, paired_case: PairedCase, pace: BlockPlan) -> Visit | Failures:
        self._number += 1
        slow = 1 + self._number % 2
        nothing = (0,) * pace.pairs
        base, head = (
            SideBlocks(
                (slow * pace.number * (RUN_S + EACH_S * count_slowings(part.stmt)),) * pace.pairs, nothing, nothing
            )
            for part in (paired_case.base, paired_case.head)
        )
        return Visit(pace.number, base, head)


def test_what_an_assignment_takes_is_found_out_in_spite_of_slow_spells() -> None:
    assert gauge_slowing(ExactPlace()) == pytest.approx(EACH_S)
    assert gauge_statement(ExactPlace()) == RUN_S


def test_sizes_become_whole_numbers_of_assignments() -> None:
    assert choose_slowings(ExactPlace(), [1e-9, 9.9e-9, 20e-9]) == pytest.approx({1: 2e-9, 5: 10e-9, 10: 20e-9})


def test_trials_tell_what_was_put_in_and_what_was_said() -> None:
    trials = list(run_trials(ExactPlace(), {10: 20e-9}, [0, 10, 0]))
    assert [trial.injected_s for trial in trials] == [0.0, 20e-9, 0.0]
    assert [trial.verdict for trial in trials] == [Verdict.SAME, Verdict.SLOWER, Verdict.SAME]
    assert trials[1].log_ratio == pytest.approx(0.0198, abs=1e-4)


def test_a_place_where_nothing_can_be_compared_is_told() -> None:
    with pytest.raises(WorkerError, match=r"no torch\.add here"):
        gauge_slowing(ExactPlace(BROKEN))
    with pytest.raises(WorkerError, match=r"no torch\.add here"):
        next(run_trials(ExactPlace(BROKEN), {}, [0]))


def test_the_statement_stays_what_it_is() -> None:
    assert make_part().stmt == make_part(2).stmt.split("\n")[0]
    assert count_slowings(make_part(3).stmt) == 3
