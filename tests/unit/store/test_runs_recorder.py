from __future__ import annotations

import dataclasses
import math
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.stored_runs import (
    ADD_CASE,
    BEGAN,
    COMPILED_CASE,
    CPP_CASE,
    INFO,
    KILLED,
    OTHER,
    OWN,
    PLAN,
    make_outcomes,
    make_run,
)
from torchmark.errors import StoreError, UsageError
from torchmark.model.outcome import Failure, FailureKind, Outcome
from torchmark.model.plain import to_plain
from torchmark.model.plan import Metric, Order, Plan
from torchmark.model.task import Times
from torchmark.processes import this_process
from torchmark.store import store_file
from torchmark.store.rows import write_owner
from torchmark.store.runs import Store, open_store

CHANGED_CASE = dataclasses.replace(ADD_CASE, args=dataclasses.replace(ADD_CASE.args, stmt="x + 2"))


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Store]:
    monkeypatch.setattr(store_file, "BUSY_TIMEOUT_S", 0.05)
    with open_store(tmp_path / "results.db", create=True) as store:
        yield store


def record(store: Store, *outcomes: Outcome, plan: Plan = PLAN) -> None:
    with store.begin(plan, INFO) as recorder:
        for outcome in outcomes:
            recorder.append(outcome)
        recorder.finish()


def time_all(plan: Plan) -> tuple[Outcome, ...]:
    return tuple(Outcome(order, Times(1, (0.5,)), BEGAN, BEGAN + 1) for order in plan.orders)


@pytest.mark.parametrize(("more_s", "again"), [(1.0, 1), (0.0, 0), (-1.0, 0)])
def test_what_took_too_long_is_run_again_with_more_time(more_s: float, again: int, store: Store) -> None:
    first, *others = time_all(PLAN)
    record(store, dataclasses.replace(first, result=Failure(FailureKind.TIMED_OUT, "too long")), *others)
    sampling = dataclasses.replace(PLAN.sampling, timeout_s=PLAN.sampling.timeout_s + more_s)
    plan = dataclasses.replace(PLAN, sampling=sampling)
    # Also by the second attempt, if the first did not come so far.
    for _ in range(2):
        with store.resume(INFO.id, plan) as recorder:
            assert recorder.missing == (first.order,) * again


def test_what_is_appended_is_what_is_loaded(store: Store) -> None:
    run = make_run()
    with store.begin(PLAN, INFO) as recorder:
        assert recorder.missing == PLAN.orders
        for activity in run.activities:
            recorder.append(activity)
        for outcome in run.outcomes:
            recorder.append(outcome)
        assert recorder.info == run.info
        done = {outcome.order for outcome in run.outcomes}
        assert recorder.missing == tuple(order for order in PLAN.orders if order not in done)
        recorder.finish()
    assert store.load(INFO.id, profiles=True) == run


@pytest.mark.parametrize(
    "changes",
    [
        {"result": Times(0, (0.5,))},
        {"result": Times(1, (math.nan,))},
        {"result": Times(1, ("x",))},  # type: ignore[arg-type]
        {"result": Times(1, 5)},  # type: ignore[arg-type]
        {"result": "of another kind"},
        {"result": Failure(FailureKind.RAISED, 5)},  # type: ignore[arg-type]
        {"cores": ("x",)},
        {"environment": "somewhere"},
        {"began": math.inf},
    ],
    ids=str,
)
def test_what_could_not_be_read_again_is_kept_as_a_failure_and_costs_no_other(
    store: Store, changes: dict[str, Any]
) -> None:
    first, *others = time_all(PLAN)
    with store.begin(PLAN, INFO) as recorder:
        kept = recorder.append(dataclasses.replace(first, **changes))
        assert isinstance(kept, Outcome)
        assert isinstance(kept.result, Failure)
        assert kept.result.kind is FailureKind.NO_RESULT
        for outcome in others:
            assert recorder.append(outcome) is outcome
        recorder.finish()
    assert set(store.load(INFO.id).outcomes) == {kept, *others}


def test_a_run_is_finished_when_nothing_is_missing(store: Store) -> None:
    record(store, *time_all(PLAN))
    (info,) = store.list_runs()
    assert info.finished is not None
    assert (info.orders, info.outcomes, info.failures) == (12, 12, 0)
    with store.resume(INFO.id, PLAN) as recorder:
        assert recorder.missing == ()
        assert recorder.info.finished == info.finished


def test_an_outcome_takes_the_place_of_an_earlier_one(store: Store) -> None:
    first, *_ = make_outcomes()
    again = dataclasses.replace(first, result=Times(1, (9.0,)))
    record(store, first, again)
    assert store.load(INFO.id).outcomes == (again,)


def test_what_the_surroundings_have_spoilt_is_tried_again(store: Store) -> None:
    spoilt = dataclasses.replace(time_all(PLAN)[3], result=KILLED)
    outcomes = [spoilt if outcome.order == spoilt.order else outcome for outcome in time_all(PLAN)]
    record(store, *outcomes)
    with store.resume(INFO.id, PLAN) as recorder:
        assert list(recorder.missing) == [spoilt.order]
        assert recorder.info.finished is None
        recorder.append(spoilt)
        # Once more is enough for today.
        assert list(recorder.missing) == []


def test_a_case_that_is_defined_otherwise_is_measured_again(store: Store) -> None:
    record(store, *make_outcomes())
    plan = dataclasses.replace(PLAN, cases=(CHANGED_CASE, CPP_CASE, COMPILED_CASE))
    with store.resume(INFO.id, plan) as recorder:
        assert Order(CHANGED_CASE, OTHER, Metric.WALL) in recorder.missing
    run = store.load(INFO.id)
    assert run.plan == plan
    assert {outcome.order.case for outcome in run.outcomes} == {CPP_CASE, COMPILED_CASE}
    with store.resume(INFO.id, PLAN):
        pass
    assert {outcome.order.case for outcome in store.load(INFO.id).outcomes} == {CPP_CASE, COMPILED_CASE}


def test_other_tags_are_no_other_definition(store: Store) -> None:
    record(store, *make_outcomes())
    tagged = dataclasses.replace(ADD_CASE, tags=("new",))
    with store.resume(INFO.id, dataclasses.replace(PLAN, cases=(tagged,))) as recorder:
        assert Order(tagged, OWN, Metric.WALL) not in recorder.missing
    run = store.load(INFO.id)
    assert run.plan.cases == (tagged,)
    assert len(run.outcomes) == 3


@pytest.mark.parametrize(
    "smaller",
    [
        dataclasses.replace(PLAN, cases=(CPP_CASE,)),
        dataclasses.replace(PLAN, targets=(OWN,)),
        dataclasses.replace(PLAN, sampling=dataclasses.replace(PLAN.sampling, metrics=(Metric.COUNT,))),
        dataclasses.replace(PLAN, sampling=dataclasses.replace(PLAN.sampling, repeat=0)),
    ],
)
def test_what_is_no_longer_planned_is_set_aside_until_it_is_again(smaller: Plan, store: Store) -> None:
    record(store, *make_outcomes())
    with store.resume(INFO.id, smaller):
        pass
    run = store.load(INFO.id)
    planned = [outcome for outcome in make_outcomes() if outcome.order in smaller.orders]
    assert [outcome.order for outcome in run.outcomes] == [outcome.order for outcome in planned]
    assert (run.info.orders, run.info.outcomes) == (len(smaller.orders), len(planned))
    with store.resume(INFO.id, PLAN):
        pass
    assert store.load(INFO.id, profiles=True).outcomes == make_outcomes()


def test_what_is_no_part_of_the_plan_is_refused(store: Store) -> None:
    first, *_ = make_outcomes()
    with store.begin(PLAN, INFO) as recorder:
        with pytest.raises(UsageError, match="no part of the plan"):
            recorder.append(dataclasses.replace(first, order=Order(CHANGED_CASE, OWN, Metric.WALL)))
        with pytest.raises(StoreError, match="belongs to no order"):
            recorder.append(dataclasses.replace(first, order=Order(ADD_CASE, OWN, Metric.WALL, 1)))
        assert recorder.info.outcomes == 0


def test_a_run_that_a_living_process_is_at_is_left_alone(store: Store) -> None:
    with store.begin(PLAN, INFO):
        assert store.list_entries()[0].writer == os.getpid()
        with pytest.raises(UsageError, match=f"being run by process {os.getpid()}"):
            store.resume(INFO.id, PLAN)
    assert store.list_entries()[0].writer is None
    store.resume(INFO.id, PLAN)


def test_a_run_whose_process_is_gone_can_be_resumed(store: Store) -> None:
    recorder = store.begin(PLAN, INFO)
    gone = subprocess.Popen(["true"])
    gone.wait()
    for dead in (
        dataclasses.replace(this_process(), pid=gone.pid),
        dataclasses.replace(this_process(), started=1),
        dataclasses.replace(this_process(), boot="another"),
    ):
        store._database.change("UPDATE runs SET writer = ?", write_owner(dead))
        assert store.list_entries()[0].writer is None
        store.resume(INFO.id, PLAN)
    store._database.change("UPDATE runs SET writer = ?", write_owner(dead))
    with pytest.raises(StoreError, match="taken over by another process"):
        recorder.append(make_outcomes()[0])


def test_a_run_that_was_removed_takes_nothing_more(store: Store) -> None:
    with store.begin(PLAN, INFO) as recorder:
        store._database.change("DELETE FROM runs")
        with pytest.raises(StoreError, match="has been removed"):
            recorder.append(make_outcomes()[0])


def test_an_unknown_run_cannot_be_resumed(store: Store) -> None:
    with pytest.raises(UsageError, match="There is no run"):
        store.resume("f" * 32, PLAN)


def test_a_full_disk_costs_only_what_does_not_fit(store: Store) -> None:
    outcomes = time_all(PLAN)
    with store.begin(PLAN, INFO) as recorder:
        recorder.append(outcomes[0])
        store._database.rows("PRAGMA max_page_count = 1")  # as many as there are
        large = dataclasses.replace(outcomes[1], unchecked="x" * 100_000)
        with pytest.raises(StoreError, match=r"The disk is full.*make room"):
            recorder.append(large)
        assert large.order in recorder.missing
        store._database.rows("PRAGMA max_page_count = 100000")
        recorder.append(large)
    assert store.load(INFO.id).outcomes == (outcomes[0], large)


def test_a_store_that_is_locked_says_so(store: Store) -> None:
    with open_store(store.path) as other, store.begin(PLAN, INFO) as recorder:
        with other._database.transaction(), pytest.raises(StoreError, match="Another process keeps it locked"):
            recorder.append(make_outcomes()[0])
        recorder.append(make_outcomes()[0])
    assert len(store.load(INFO.id).outcomes) == 1


def test_an_interrupt_in_the_middle_saves_all_or_nothing(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(part: object) -> tuple[str, bytes]:
        raise KeyboardInterrupt

    with store.begin(PLAN, INFO) as recorder:
        with monkeypatch.context() as patch:
            patch.setattr("torchmark.store.documents.pack", interrupt)
            with pytest.raises(KeyboardInterrupt):
                recorder.append(make_outcomes()[2])
        assert recorder.info.outcomes == 0
        recorder.append(make_outcomes()[2])
        assert recorder.info.outcomes == 1


def test_an_owner_is_plain() -> None:
    assert to_plain(this_process())["pid"] == os.getpid()
