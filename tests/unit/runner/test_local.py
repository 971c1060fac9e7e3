"""The order of things on a machine that is not there: workers are pretended, time and threads are real."""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from torchmark.errors import SetupError, WorkerError
from torchmark.files import MachineLock
from torchmark.model.costs import Tally
from torchmark.model.environment import Environment
from torchmark.model.outcome import Activity, ActivityKind, Begun, Event, Failure, FailureKind, Outcome
from torchmark.model.plan import (
    AutogradMode,
    AutoLabels,
    Case,
    Check,
    CompileMode,
    CompileParts,
    Metric,
    Order,
    Plan,
    RuntimeMode,
    Sampling,
    Target,
    TimerArgs,
)
from torchmark.model.task import Language, Times
from torchmark.processes import StopRequest
from torchmark.runner import local
from torchmark.runner.lab import Prepared
from torchmark.runner.local import Execution, Site, list_cases_with_variants
from torchmark.runner.prepare import Made, Stage

HERE = Environment("python", "3.11", "2.13")
TALLY = Tally(
    number=100, seeds=(0,), totals=(5,), events=(("Ir", 5),), allocations=0, tensor_allocations=0, baseline=None
)
GIVEN_UP = WorkerError("given up", kind="abandoned")


def case(name: str, language: Language = Language.PYTHON, threads: int = 1, *, compiled: bool = False) -> Case:
    runtime = RuntimeMode.COMPILE if compiled else RuntimeMode.EAGER
    labels = AutoLabels(runtime, AutogradMode.FORWARD, language, CompileMode() if compiled else None)
    parts = CompileParts("", "", CompileMode()) if compiled else None
    return Case((name,), labels, TimerArgs("x", language=language, num_threads=threads), parts=parts)


class Log:
    """When anything ran that takes a core: nothing may run beside what is timed."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.running: list[str] = []
        self.seen: list[tuple[str, ...]] = []

    def run(self, kind: str) -> None:
        with self._lock:
            self.running.append(kind)
            self.seen.append(tuple(self.running))
        time.sleep(0.0005)
        with self._lock:
            self.running.remove(kind)


class PretendedWorker:
    def __init__(self, lab: PretendedLab) -> None:
        self.lab = lab
        self.users = 0

    def start(self) -> None:
        self.lab.log.run("start")
        if self.lab.start_problem is not None:
            raise self.lab.start_problem

    def pin(self, cores: Sequence[int]) -> None:
        self.lab.pinned.append(tuple(cores))


class PretendedLab:
    """A `Lab` whose workers answer at once."""

    def __init__(self, log: Log, target: Target | None = None) -> None:
        self.log, self.target = log, target or Target()
        self.results: dict[tuple[str, Metric], list[Any]] = {}
        self.start_problem: Exception | None = None
        self.unprepared: dict[str, Failure] = {}
        self.pinned: list[tuple[int, ...]] = []
        self.counters = 0
        self.abandoned = threading.Event()
        self.hangs_in = "nothing"
        self.before: Callable[[str], object] = self._hang

    def _hang(self, what: str) -> None:
        if what.startswith(self.hangs_in):
            self.abandoned.wait(30)

    def make_counter(self) -> PretendedWorker:
        self.counters += 1
        return PretendedWorker(self)

    def time(self, prepared: Prepared, sampling: Sampling, cores: Sequence[int]) -> tuple[Any, Environment]:
        return self._answer(prepared.case, Metric.WALL, Times(1, (1.0,))), HERE

    def count(self, prepared: Prepared, sampling: Sampling, counter: PretendedWorker | None) -> tuple[Any, Environment]:
        if counter is not None:
            counter.users += 1
            assert counter.users == 1, "a worker does one job at a time"
        try:
            return self._answer(prepared.case, Metric.COUNT, TALLY), HERE
        finally:
            if counter is not None:
                counter.users -= 1

    def _answer(self, case: Case, metric: Metric, default: Any) -> Any:
        self.before(f"{metric.value} {case.label[0]}")
        self.log.run(metric.value)
        prepared = self.results.get((case.label[0], metric))
        return prepared.pop(0) if prepared else default

    def abandon(self) -> None:
        self.abandoned.set()


class PretendedPreparation:
    def __init__(self, lab: PretendedLab) -> None:
        self.lab = lab

    def stages(self, cases: Sequence[Case]) -> Iterator[Stage]:
        python = [one for one in cases if one.args.language == Language.PYTHON]
        native = [one for one in cases if one.args.language == Language.CPP]
        yield Stage(ActivityKind.CHECK, len(python), lambda _: self._make(python))
        if native:
            yield Stage(ActivityKind.COMPILE, len(native), lambda _: self._make([]))
            yield Stage(ActivityKind.CHECK, len(native), lambda _: self._make(native))

    def _make(self, cases: Sequence[Case]) -> Made:
        self.lab.before("prepare")
        self.lab.log.run("prepare")
        return {one: self.lab.unprepared.get(one.label[0]) or Prepared(one) for one in cases}


@pytest.fixture
def pretended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("torchmark.runner.local.Preparation", lambda lab, *_: PretendedPreparation(lab))


def execute(
    plan: Plan,
    labs: Sequence[PretendedLab],
    cores: Sequence[int],
    stop: StopRequest | None = None,
    *,
    gives_way: bool = False,
) -> Iterator[Event]:
    sites = []
    for lab in labs:
        own = [order for order in plan.orders if order.target == lab.target]
        sites.append(Site(lab, plan.sampling, own, plan.cases, None, {}))  # type: ignore[arg-type]
    execution = Execution(sites, plan.orders, plan.sampling, cores, stop or StopRequest(), gives_way=gives_way)
    try:
        yield from execution.run()
    finally:
        execution.give_up()


def outcomes(events: Sequence[Event]) -> list[Outcome]:
    return [event for event in events if isinstance(event, Outcome)]


@given(
    kinds=st.lists(st.sampled_from(["python", "cpp", "compiled", "wide"]), min_size=1, max_size=8),
    cores=st.integers(1, 4),
    targets=st.integers(1, 2),
    metrics=st.sampled_from([(Metric.WALL,), (Metric.COUNT,), (Metric.WALL, Metric.COUNT)]),
    repeat=st.integers(1, 2),
)
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_every_order_has_one_outcome_and_nothing_runs_beside_what_is_timed(
    pretended: None, kinds: list[str], cores: int, targets: int, metrics: tuple[Metric, ...], repeat: int
) -> None:
    cases = tuple(
        case(
            f"{kind}{number}",
            Language.CPP if kind == "cpp" else Language.PYTHON,
            2 if kind == "wide" else 1,
            compiled=kind == "compiled",
        )
        for number, kind in enumerate(kinds)
    )
    log = Log()
    labs = [PretendedLab(log, Target(f"env{n}")) for n in range(targets)]
    plan = Plan(cases, tuple(lab.target for lab in labs), Sampling(metrics, repeat=repeat))
    events = list(execute(plan, labs, range(cores)))
    assert sorted(map(plan.orders.index, (one.order for one in outcomes(events)))) == list(range(len(plan.orders)))
    assert all(len(running) == 1 or "wall" not in running for running in log.seen)
    assert max(map(len, log.seen)) <= cores
    begun = [event.what for event in events if isinstance(event, Begun) and isinstance(event.what, Order)]
    assert len(begun) == len(set(begun)) == len(plan.orders)


def test_targets_are_timed_case_by_case(pretended: None) -> None:
    log = Log()
    labs = [PretendedLab(log, Target(name)) for name in ("base", "branch")]
    plan = Plan((case("a"), case("b")), tuple(lab.target for lab in labs), Sampling((Metric.WALL,), repeat=2))
    timed = [
        (one.order.round, one.order.case.label[0], one.order.target.name)
        for one in outcomes(list(execute(plan, labs, [0])))
    ]
    assert timed == list(itertools.product((0, 1), ("a", "b"), ("base", "branch")))


def test_more_threads_than_cores_are_refused_in_words_and_still_counted(pretended: None) -> None:
    plan = Plan((case("wide", threads=3),))
    results = {one.order.metric: one.result for one in outcomes(list(execute(plan, [PretendedLab(Log())], [0, 1])))}
    assert results[Metric.COUNT] == TALLY
    refused = results[Metric.WALL]
    assert isinstance(refused, Failure)
    assert "3 threads" in refused.message
    assert "2 cores" in refused.message


def test_a_case_that_cannot_be_prepared_fails_in_every_metric_and_costs_no_other(pretended: None) -> None:
    lab = PretendedLab(Log())
    lab.unprepared["bad"] = Failure(FailureKind.NOT_COMPILED, "no")
    plan = Plan((case("bad", Language.CPP), case("good", Language.CPP)))
    results = {
        (one.order.case.label[0], one.order.metric): one.result for one in outcomes(list(execute(plan, [lab], [0, 1])))
    }
    assert results["bad", Metric.WALL] == results["bad", Metric.COUNT] == lab.unprepared["bad"]
    assert results["good", Metric.COUNT] == TALLY


def test_without_anybody_to_count_each_count_says_why_and_times_are_taken(pretended: None) -> None:
    lab = PretendedLab(Log())
    lab.start_problem = SetupError("No Valgrind.", missing="valgrind", advice="Install it.")
    plan = Plan((case("a"), case("b", Language.CPP)))
    found = outcomes(list(execute(plan, [lab], [0])))
    assert [one.result for one in found if one.order.metric is Metric.WALL] == [Times(1, (1.0,))] * 2
    for one in found:
        if one.order.metric is Metric.COUNT:
            assert one.result == Failure(FailureKind.MISSING, "No Valgrind. Install it.")


def test_what_cannot_be_counted_nor_prepared_fails_once(pretended: None) -> None:
    lab = PretendedLab(Log())
    lab.start_problem = SetupError("No Valgrind.", missing="valgrind", advice="Install it.")
    lab.unprepared["bad"] = Failure(FailureKind.NOT_COMPILED, "no")
    # Nobody counts, and that is known before the compiler says no.
    lab.before = lambda what: time.sleep(0.02 if what == "prepare" else 0.0)
    plan = Plan((case("bad", Language.CPP),))
    found = outcomes(list(execute(plan, [lab], [0, 1])))
    assert sorted(one.order.metric.value for one in found) == ["count", "wall"]
    assert [one.result for one in found] == [lab.unprepared["bad"]] * 2


def test_two_runs_whose_results_are_taken_in_turns_give_way_to_each_other(
    pretended: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("torchmark.runner.local.MachineLock", lambda: MachineLock(tmp_path))
    plan = Plan((case("a"), case("b"), case("c")))
    runs = [execute(plan, [PretendedLab(Log())], [0, 1], gives_way=True) for _ in range(2)]
    taken = [(event for event in run if isinstance(event, Outcome)) for run in runs]
    # Whoever has an outcome of one waits for one of the other.
    pairs = list(zip(*taken, strict=True))
    assert len(pairs) == len(plan.orders)


KILLED = Failure(FailureKind.CRASHED, "The process was ended by SIGKILL.")
FAULTY = Failure(FailureKind.CRASHED, "The process was ended by SIGSEGV.")


@pytest.mark.parametrize(
    ("answers", "expected"),
    [([KILLED, TALLY], TALLY), ([KILLED, KILLED, TALLY], KILLED), ([FAULTY, TALLY], FAULTY)],
)
def test_what_was_killed_is_tried_once_more(pretended: None, answers: list[Any], expected: Any) -> None:
    lab = PretendedLab(Log())
    lab.results["a", Metric.COUNT] = list(answers)
    plan = Plan((case("a"),), sampling=Sampling((Metric.COUNT,)))
    assert [one.result for one in outcomes(list(execute(plan, [lab], [0])))] == [expected]


def test_after_a_request_to_stop_what_has_begun_is_finished_and_nothing_begins(pretended: None) -> None:
    lab, stop = PretendedLab(Log()), StopRequest()
    plan = Plan(tuple(case(f"c{n}") for n in range(6)), sampling=Sampling((Metric.COUNT,)))
    events = []
    for event in execute(plan, [lab], [0, 1], stop):
        events.append(event)
        if isinstance(event, Outcome):
            stop.request()
    begun = [event.what for event in events if isinstance(event, Begun) and isinstance(event.what, Order)]
    assert begun
    assert {one.order for one in outcomes(events)} == set(begun)
    assert len(begun) < 6


def test_stopping_does_not_wait_for_what_is_no_result(pretended: None) -> None:
    lab, stop = PretendedLab(Log()), StopRequest()
    # Something like a compiler that would take for ever, until it is told to end.
    lab.hangs_in = "prepare"
    events = []
    for event in execute(Plan((case("a"),)), [lab], [0], stop):
        events.append(event)
        stop.request()
    assert outcomes(events) == []
    assert lab.abandoned.is_set()


def test_a_request_to_stop_is_noticed_while_nothing_happens(pretended: None) -> None:
    lab, stop = PretendedLab(Log()), StopRequest()
    lab.hangs_in = "prepare"
    for _ in execute(Plan((case("a"),)), [lab], [0], stop):
        # As an interrupt comes: after the event, while the next one is waited for.
        threading.Timer(0.05, stop.request).start()
    assert lab.abandoned.is_set()


def test_leaving_in_the_middle_ends_the_workers(pretended: None) -> None:
    lab = PretendedLab(Log())
    lab.hangs_in = "count"
    run = execute(Plan((case("a"),), sampling=Sampling((Metric.COUNT,))), [lab], [0])
    for event in run:
        if isinstance(event, Begun) and isinstance(event.what, Order):
            break
    run.close()  # type: ignore[attr-defined]
    assert lab.abandoned.is_set()


def test_a_bug_is_not_swallowed(pretended: None) -> None:
    lab = PretendedLab(Log())

    def fail(what: str) -> None:
        if what.startswith("count"):
            raise ZeroDivisionError("a bug")

    lab.before = fail
    with pytest.raises(ZeroDivisionError):
        list(execute(Plan((case("a"),), sampling=Sampling((Metric.COUNT,))), [lab], [0]))


@pytest.mark.parametrize(("worth", "expected"), [(0.0, 3), (1e9, 1)])
def test_more_workers_count_where_there_is_enough_to_do(
    pretended: None, monkeypatch: pytest.MonkeyPatch, worth: float, expected: int
) -> None:
    monkeypatch.setattr(local, "WORTH_STARTING_S", worth)
    lab = PretendedLab(Log())
    lab.before = lambda what: time.sleep(0.005) if what.startswith("count") else None
    plan = Plan(tuple(case(f"c{n}") for n in range(30)), sampling=Sampling((Metric.COUNT,)))
    found = outcomes(list(execute(plan, [lab], [4, 5, 6])))
    assert len(found) == 30
    assert lab.counters == expected
    assert {one.cores for one in found} <= {(4,), (5,), (6,)}


def test_activities_tell_what_else_was_done(pretended: None) -> None:
    plan = Plan((case("a"), case("b", Language.CPP)))
    done = [event for event in execute(plan, [PretendedLab(Log())], [0, 1]) if isinstance(event, Activity)]
    assert sorted(one.kind.value for one in done) == ["check", "check", "compile", "start"]
    assert all(one.began <= one.ended for one in done)


def test_what_is_resumed_is_held_to_the_first_of_its_group_again() -> None:
    check = Check("", "")
    first, second, third = (
        Case(("g",), AutoLabels(RuntimeMode.EAGER, AutogradMode.FORWARD, language), TimerArgs(stmt), check=check)
        for stmt, language in (("a", Language.PYTHON), ("b", Language.CPP), ("c", Language.CPP))
    )
    other = case("other")
    plan = Plan((first, second, other, third))
    orders = [Order(third, Target(), Metric.WALL), Order(other, Target(), Metric.WALL)]
    assert list_cases_with_variants(plan, orders) == [first, other, third]
