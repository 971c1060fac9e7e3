"""Pairs of real workers that take turns: what they give, who is blamed for a failure, and what a kill costs."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from tests.shared_workers import DEBIAN
from torchmark.errors import SetupError
from torchmark.model.job import BlockPlan, PairedCase, PairedSide, Place, RunTime, Visit
from torchmark.model.judgement import Side
from torchmark.model.outcome import FailureKind
from torchmark.model.plan import Target
from torchmark.runner.machine import choose_cores
from torchmark.runner.paired_workers import PairedWorkers, run_side_by_side

SETUP = "x, y = torch.ones(4, 4), torch.ones(4, 4)"
PACE = BlockPlan(number=5, warm=2, pairs=6)


def part(stmt: str, setup: str = SETUP) -> PairedSide:
    return PairedSide(stmt, setup, Place("/"))


ADD = part("torch.add(x, y)")


@pytest.fixture(scope="module")
def twins(stub_python: str) -> Iterator[PairedWorkers]:
    """An interpreter that is up at once on both sides."""
    yield from start(stub_python, stub_python, [0, 1])


@pytest.fixture(scope="module")
def siblings() -> Iterator[PairedWorkers]:
    """This interpreter, with the real torch, on both sides."""
    yield from start(sys.executable, sys.executable, [0])


@pytest.fixture(scope="module")
def strangers() -> Iterator[PairedWorkers]:
    """Debian's torch 1.13 against this one."""
    yield from start(DEBIAN, sys.executable, [0])


def start(base: str, head: str, layouts: Sequence[int]) -> Iterator[PairedWorkers]:
    workers = PairedWorkers(Target(python=base), Target(python=head), choose_cores())
    workers.start(layouts)
    yield workers
    workers.close()


def test_both_sides_run_as_many_blocks_as_there_are_pairs(siblings: PairedWorkers) -> None:
    visit = siblings.visit(0, PairedCase(ADD, ADD), PACE)
    assert isinstance(visit, Visit), visit
    assert visit.number == PACE.number
    for blocks in (visit.base, visit.head):
        assert len(blocks.times) == len(blocks.faults) == len(blocks.switches) == PACE.pairs
        assert min(blocks.times) > 0
        assert min(blocks.faults) >= 0


def test_two_of_one_build_lie_alike_in_memory(siblings: PairedWorkers, twins: PairedWorkers) -> None:
    assert siblings.match.alike
    assert twins.layouts == (0, 1)
    assert twins.match.alike


def test_builds_with_other_libraries_are_told_apart(strangers: PairedWorkers) -> None:
    match = strangers.match
    assert not match.alike
    assert not match.refused
    assert any("torch" in name for name in match.libraries)


def test_a_run_is_gauged_on_both_sides(strangers: PairedWorkers) -> None:
    gauge = strangers.gauge(PairedCase(ADD, part("for _ in range(30): torch.add(x, y)")))
    assert isinstance(gauge, RunTime)
    assert 0 < gauge.base_s < gauge.head_s


def test_an_operator_that_one_build_lacks_fails_on_that_side_alone(strangers: PairedWorkers) -> None:
    newer = part("torch.nn.attention.bias.causal_lower_right(2, 3)", "import torch.nn.attention.bias")
    gauged = strangers.gauge(PairedCase(newer, newer))
    assert isinstance(gauged, tuple)
    assert [(one.side, one.failure.kind) for one in gauged] == [(Side.BASE, FailureKind.RAISED)]
    assert "torch.nn.attention" in gauged[0].failure.message


@pytest.mark.parametrize(
    ("stmt", "kind"),
    [
        ("1 / 0", FailureKind.RAISED),
        ("import os; os._exit(3)", FailureKind.EXITED),
        ("import os; os.kill(os.getpid(), 11)", FailureKind.CRASHED),
    ],
)
@pytest.mark.parametrize("side", list(Side))
def test_who_fails_in_the_middle_is_blamed_and_the_other_is_not(
    siblings: PairedWorkers, side: Side, stmt: str, kind: FailureKind
) -> None:
    bad = part(f"n += 1\nif n > 40: {stmt}", "n = 0")
    good = part("pass")
    outcome = siblings.visit(0, PairedCase(bad, good) if side is Side.BASE else PairedCase(good, bad), PACE)
    assert isinstance(outcome, tuple)
    assert [(one.side, one.failure.kind) for one in outcome] == [(side, kind)]
    assert isinstance(siblings.visit(0, PairedCase(good, good), PACE), Visit)


def test_a_zygote_that_is_killed_between_visits_costs_nothing(twins: PairedWorkers) -> None:
    for worker in twins._pairs[0]:
        os.kill(worker.pid, signal.SIGKILL)
    assert isinstance(twins.visit(0, PairedCase(ADD, ADD), PACE), Visit)


@pytest.mark.parametrize("side", [0, 1])
def test_a_zygote_that_is_killed_during_a_visit_costs_that_visit_and_no_more(
    twins: PairedWorkers, tmp_path: Path, side: int
) -> None:
    mark = tmp_path / "begun"
    slow = part("time.sleep(0.05)", f"import time; open({str(mark)!r}, 'a').close()")

    # Both are up, also where an earlier test has killed one.
    pid = [worker.pid for worker in twins._pairs[1]][side]

    def kill() -> None:
        for _ in range(20_000):
            if mark.exists():
                os.kill(pid, signal.SIGKILL)
                return
            time.sleep(0.001)

    killer = threading.Thread(target=kill)
    killer.start()
    outcome = twins.visit(1, PairedCase(slow, slow), BlockPlan(number=1, warm=1, pairs=6))
    killer.join()
    # It was tried once more, with another zygote.
    assert isinstance(outcome, Visit), outcome


def test_a_side_that_never_ends_is_given_up_and_the_other_with_it(stub_python: str) -> None:
    workers = PairedWorkers(Target(python=stub_python), Target(python=stub_python), choose_cores(), timeout_s=1.0)
    try:
        workers.start([0])
        outcome = workers.visit(0, PairedCase(part("while True: pass"), part("pass")), PACE)
        assert isinstance(outcome, tuple)
        assert (Side.BASE, FailureKind.TIMED_OUT) in [(one.side, one.failure.kind) for one in outcome]
        assert isinstance(workers.visit(0, PairedCase(ADD, ADD), PACE), Visit)
    finally:
        workers.close()


def test_a_machine_that_lacks_something_is_a_failure_that_says_so(twins: PairedWorkers, tmp_path: Path) -> None:
    gone = PairedSide("pass", "pass", Place(str(tmp_path / "gone")))
    for outcome in (twins.gauge(PairedCase(gone, gone)), twins.visit(0, PairedCase(gone, gone), PACE)):
        assert isinstance(outcome, tuple)
        assert {(one.side, one.failure.kind) for one in outcome} == {(side, FailureKind.MISSING) for side in Side}
        assert "cannot be used" in outcome[0].failure.message
    assert isinstance(twins.visit(0, PairedCase(ADD, ADD), PACE), Visit)


def test_two_statements_take_turns_in_one_process_of_each_layout(own_stub: str, tmp_path: Path) -> None:
    workers = PairedWorkers(Target(), Target(), choose_cores(), together=True)
    try:
        workers.start([0])
        base, head = workers._pairs[0]
        assert base is head
        setup = f"open({str(tmp_path / 'setups')!r}, 'a').write('x'); x = torch.ones(4)"
        visit = workers.visit(0, PairedCase(part("x + 1", setup), part("x + 2", setup)), PACE)
        assert isinstance(visit, Visit), visit
        assert len(visit.base.times) == len(visit.head.times) == PACE.pairs
        assert (tmp_path / "setups").read_text() == "x"
        assert workers.match.alike
    finally:
        workers.close()


def test_an_interpreter_that_is_not_there_is_told_and_nothing_is_left(stub_python: str, tmp_path: Path) -> None:
    workers = PairedWorkers(Target(python=stub_python), Target(python=str(tmp_path / "nothing")), choose_cores())
    with pytest.raises(SetupError, match="nothing"):
        workers.start([0])
    assert workers.layouts == ()
    workers.close()


def test_the_first_error_of_what_runs_side_by_side_is_told() -> None:
    done: list[int] = []

    def fail() -> None:
        raise ValueError("first")

    with pytest.raises(ValueError, match="first"):
        run_side_by_side([fail, lambda: done.append(1)], 1, lambda _: None)
    assert done == []
    run_side_by_side([lambda: None] * 5, 2, done.append)
    assert done == [1, 2, 3, 4, 5]
