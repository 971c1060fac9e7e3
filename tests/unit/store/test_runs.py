from __future__ import annotations

import dataclasses
import json
import shutil
import sqlite3
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings

from tests.random_runs import runs
from tests.stored_runs import (
    ADD_CASE,
    BEGAN,
    COMPILED_CASE,
    CPP_CASE,
    GOLDEN,
    INFO,
    OWN,
    PLAN,
    TALLY,
    make_outcomes,
    make_run,
)
from torchmark.errors import StoreError, UsageError
from torchmark.model.costs import Tally
from torchmark.model.outcome import Outcome
from torchmark.model.plan import Metric, Order
from torchmark.model.run import Run, RunEntry
from torchmark.model.task import Times
from torchmark.store.documents import export_run, import_run
from torchmark.store.runs import Store, open_store
from torchmark.store.store_file import STEPS, expect_objects

TABLES = [name for kind, name, _, _ in sorted(expect_objects(STEPS)) if kind == "table"]


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    """A store that each example leaves empty."""
    with open_store(tmp_path_factory.mktemp("store") / "results.db", create=True) as store:
        yield store


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with open_store(tmp_path / "results.db", create=True) as store:
        yield store


def count_rows(store: Store) -> dict[str, int]:
    return {table: store._database.rows(f"SELECT count(*) FROM {table}")[0][0] for table in TABLES}


@given(run=runs())
@settings(max_examples=25)
def test_a_run_comes_back_as_it_was_and_leaves_nothing_when_it_is_removed(run: Run, shared: Store) -> None:
    assert shared.add(run) == run.info
    assert shared.load(run.info.id, profiles=True) == run
    assert import_run(json.loads(json.dumps(export_run(run)))) == run
    shared.remove([run.info.id])
    assert set(count_rows(shared).values()) == {0}


def with_id(number: int, **changes: object) -> Run:
    run = make_run()
    info = dataclasses.replace(run.info, id=f"{number:032x}", created=BEGAN + number, **changes)  # type: ignore[arg-type]
    return dataclasses.replace(run, info=info)


def test_runs_are_listed_from_the_newest_on(store: Store) -> None:
    for number in (2, 1, 3):
        store.add(with_id(number, name=f"n{number}"))
    assert [info.name for info in store.list_runs()] == ["n3", "n2", "n1"]
    assert store.find("@1").name == "n2"
    with pytest.raises(UsageError, match="no run 'n4'"):
        store.find("n4")


def test_a_list_says_what_runs_are_of(store: Store) -> None:
    run = with_id(1)
    store.add(run)
    assert store.list_entries() == (
        RunEntry(info=run.info, cases=3, targets=("", "torch 2.1"), torch_versions=("2.2.0+cpu",), writer=None),
    )


def test_a_run_is_there_once(store: Store) -> None:
    store.add(make_run())
    with pytest.raises(UsageError, match="in the store already"):
        store.add(make_run())
    with pytest.raises(UsageError, match="in the store already"):
        store.begin(PLAN, INFO)
    assert store.load(INFO.id, profiles=True) == make_run()


def test_costs_by_function_are_read_on_demand(store: Store) -> None:
    store.add(make_run())
    (light,) = (o.result for o in store.load(INFO.id).outcomes if o.order == Order(ADD_CASE, OWN, Metric.COUNT))
    assert light == dataclasses.replace(TALLY, profile=None, baseline_profile=None, text=None)


def test_what_outcomes_have_in_common_is_kept_and_read_once(store: Store) -> None:
    store.add(make_run())
    assert count_rows(store)["blobs"] == 4  # a profile, its text, its noisy functions, and the baseline
    results = [outcome.result for outcome in store.load(INFO.id, profiles=True).outcomes]
    one, two = (result for result in results if isinstance(result, Tally))
    assert one.baseline_profile is two.baseline_profile


def test_a_selection_of_cases_is_a_smaller_plan(store: Store) -> None:
    store.add(make_run())
    run = store.load(INFO.id, select=lambda case: case.suite == "standard")
    assert run.plan.cases == (ADD_CASE, CPP_CASE)
    assert {outcome.order.case for outcome in run.outcomes} == {ADD_CASE, CPP_CASE}
    assert run.info == make_run().info


def test_removing_a_run_leaves_what_others_share_with_it(store: Store) -> None:
    store.add(with_id(1))
    before = count_rows(store)
    store.add(with_id(2))
    store.remove([with_id(2).info.id])
    assert count_rows(store) == before
    assert store.load(with_id(1).info.id, profiles=True) == with_id(1)


def test_the_file_shrinks_when_runs_are_removed(store: Store) -> None:
    empty = store.path.stat().st_size
    noisy = tuple(f"{number * 7919:x}" for number in range(50_000))
    outcome = dataclasses.replace(make_outcomes()[2], result=dataclasses.replace(TALLY, noisy=noisy))
    store.add(Run(INFO, PLAN, (outcome,)))
    store.remove([])
    assert store.path.stat().st_size > empty + 50_000
    store.remove([INFO.id])
    assert store.path.stat().st_size < empty + 10_000


def test_if_one_run_cannot_be_removed_none_is(store: Store) -> None:
    store.add(make_run())
    with pytest.raises(UsageError, match="There is no run f"):
        store.remove([INFO.id, "f" * 32])
    with store.begin(PLAN, with_id(1).info), pytest.raises(UsageError, match="being run by process"):
        store.remove([INFO.id, with_id(1).info.id])
    assert len(store.list_runs()) == 2


def test_durations_are_the_middle_of_the_newest_outcomes_that_did_not_fail(store: Store) -> None:
    for number, seconds in enumerate((100.0, 50.0, 1.0, 2.0, 9.0, 4.0, 3.0)):
        order = Order(ADD_CASE, OWN, Metric.WALL)
        outcome = Outcome(order, Times(1, (0.5,)), BEGAN + 1000 * number, BEGAN + 1000 * number + seconds)
        failed = dataclasses.replace(make_outcomes()[1], began=BEGAN, ended=BEGAN + 1e6)
        store.add(dataclasses.replace(with_id(number), outcomes=(outcome, failed)))
    assert store.durations(PLAN.sampling) == {("standard", ADD_CASE.key, Metric.WALL): 3.0}


def test_durations_follow_how_long_and_how_often_is_measured(store: Store) -> None:
    wall, count = Order(ADD_CASE, OWN, Metric.WALL), Order(ADD_CASE, OWN, Metric.COUNT)
    store.add(
        dataclasses.replace(
            make_run(), outcomes=(Outcome(wall, Times(1, (0.5,)), 0.0, 3.0), Outcome(count, TALLY, 0.0, 3.0))
        )
    )
    then = PLAN.sampling
    longer = dataclasses.replace(then, min_run_time_s=then.min_run_time_s + 20, layouts=tuple(range(1000)))
    known = store.durations(longer)
    assert known["standard", ADD_CASE.key, Metric.WALL] == pytest.approx(23.0)
    assert known["standard", ADD_CASE.key, Metric.COUNT] > 100


def test_durations_of_another_amount_of_work_tell_nothing(store: Store) -> None:
    fixed = dataclasses.replace(PLAN.sampling, number=1000, blocks=100)
    order = Order(ADD_CASE, OWN, Metric.WALL)
    plan = dataclasses.replace(PLAN, sampling=fixed)
    store.add(dataclasses.replace(make_run(), plan=plan, outcomes=(Outcome(order, Times(1, (0.5,)), 0.0, 3.0),)))
    assert store.durations(fixed) == {("standard", ADD_CASE.key, Metric.WALL): 3.0}
    assert store.durations(dataclasses.replace(fixed, blocks=7)) == store.durations(PLAN.sampling) == {}


@pytest.mark.parametrize(
    ("statement", "told"),
    [
        ("UPDATE runs SET info = '{'", "no JSON"),
        ("UPDATE runs SET info = x'00'", "a row has"),
        ("UPDATE runs SET created = 'today'", "a row has"),
        ("UPDATE runs SET sampling = '{\"repeat\": -1}'", "sampling"),
        ("UPDATE runs SET targets = '[]'", "belongs to no order"),
        ("UPDATE subjects SET name = number", "name"),
        ("UPDATE subjects SET name = json_array('standard', 'k' || number)", "is defined as"),
        ("UPDATE definitions SET body = replace(body, '1', '2')", "a definition has another content"),
        ("UPDATE definitions SET body = x'00'", "a row has"),
        ("UPDATE outcomes SET metric = 'weight' WHERE number = 1", "metric"),
        ("UPDATE outcomes SET environment = 99", "environment is missing"),
        ("UPDATE outcomes SET body = '[' || body || ']'", "'outcome'"),
        ("UPDATE environments SET body = '{}'", "environment.python"),
        ("UPDATE activities SET body = 5", "'activity'"),
        ("UPDATE parts SET role = 'pickle' WHERE role = 'text'", "'pickle'"),
        ("UPDATE blobs SET body = x'80049500'", "cannot be read"),
        ("UPDATE blobs SET body = 'text'", "are missing"),
        ("DELETE FROM blobs", "are missing"),
    ],
)
def test_nothing_in_a_row_is_believed(statement: str, told: str, tmp_path: Path) -> None:
    path = Path(shutil.copy(GOLDEN / "store_v1.db", tmp_path))
    connection = sqlite3.connect(path)
    connection.execute(statement)
    connection.commit()
    connection.close()
    with open_store(path, read_only=True) as store, pytest.raises(StoreError, match=told) as caught:
        store.load(INFO.id, profiles=True)
    assert str(caught.value).startswith(f"{path}: ")


def test_two_cases_of_one_name_are_refused(store: Store) -> None:
    twin = dataclasses.replace(ADD_CASE, tags=("other",))
    with pytest.raises(UsageError, match="the same name"):
        store.begin(dataclasses.replace(PLAN, cases=(ADD_CASE, twin)), INFO)
    with pytest.raises(UsageError, match="target is there twice"):
        store.begin(dataclasses.replace(PLAN, targets=(OWN, OWN)), INFO)
    assert set(count_rows(store).values()) == {0}


def test_what_is_not_planned_cannot_be_added(store: Store) -> None:
    fewer = dataclasses.replace(PLAN, cases=(COMPILED_CASE,))
    with pytest.raises(UsageError, match="no part of the plan"):
        store.add(dataclasses.replace(make_run(), plan=fewer))
    assert set(count_rows(store).values()) == {0}


def test_a_run_from_the_future_is_the_newest_only_until_the_store_gets_another(store: Store) -> None:
    now = time.time()
    moments = {"a": now - 300, "future": 5e10, "b": now - 200, "later": 6e10, "imported": now - 400, "soon": now + 60}
    for place, (name, created) in enumerate(moments.items()):
        info = dataclasses.replace(INFO, id=f"{place:032x}", name=name, created=created)
        store.add(dataclasses.replace(make_run(), info=info))
        if name == "later":
            assert store.find("@").name == "later"
    assert [info.name for info in store.list_runs()] == ["soon", "later", "b", "future", "a", "imported"]
    assert store.find("@").name == "soon"


def test_cases_may_be_named_and_others_are_not_even_read(store: Store) -> None:
    store.add(make_run())
    whole = store.load(INFO.id, profiles=True)
    name = ADD_CASE.suite, ADD_CASE.key
    run = store.load(INFO.id, profiles=True, names=[name, ("standard", "no such case")])
    assert run == store.load(INFO.id, profiles=True, select=lambda case: (case.suite, case.key) == name)
    assert run.plan.cases == (ADD_CASE,)
    none = store.load(INFO.id, names=())
    assert (none.plan.cases, none.outcomes, none.plan.targets) == ((), (), whole.plan.targets)
