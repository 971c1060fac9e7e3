from __future__ import annotations

import dataclasses
import os
import sqlite3
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.made_shards import (
    CASES,
    PLAN,
    carry_out,
    describe,
    load,
    measure,
    run_shard,
    run_shards,
    run_whole,
    without_moments,
)
from tests.store_writer import check_integrity
from tests.stored_runs import BEGAN, ENVIRONMENT, HOST, INFO, make_run
from torchmark.analysis.estimate import pick_orders
from torchmark.errors import StoreError, UsageError
from torchmark.model.outcome import Failure, Outcome
from torchmark.model.plan import Metric, Node, Plan, Target
from torchmark.model.run import Shard, ShardPart, read_parts
from torchmark.store.merge import Merged, merge, new_store, refuse_same
from torchmark.store.runs import Store, open_store

OTHER_HOST = dataclasses.replace(HOST, cpu_model="Zilog Z80")


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """What one machine makes of the plan."""
    return without_moments(run_whole(tmp_path_factory.mktemp("whole") / "whole.db"))


@pytest.mark.parametrize("of", [1, 2, 3, 6])
def test_shards_put_together_are_the_run_of_one_machine(of: int, tmp_path: Path, whole: Any) -> None:
    stores = run_shards(tmp_path, of)
    before = [store.read_bytes() for store in stores]
    (merged,) = merge(list(reversed(stores)), tmp_path / "all.db")
    run = load(tmp_path / "all.db")
    assert without_moments(run) == whole
    assert run.info == merged.info
    assert run.info.finished == max(outcome.ended for outcome in run.outcomes) or of == 1
    assert (merged.repeated, merged.differing, merged.mixtures) == (0, 0, ())
    assert [store.read_bytes() for store in stores] == before
    check_integrity(tmp_path / "all.db")
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([*(one.name for one in stores), "all.db"])


@st.composite
def allotments(draw: st.DrawFn) -> list[set[int]]:
    """Which of three machines have carried out each order; some have been by several of them, some by none."""
    return [draw(st.sets(st.integers(0, 2))) for _ in PLAN.orders]


@given(machines=allotments(), places=st.permutations(range(3)))
@settings(max_examples=10)
def test_whatever_each_has_carried_out_all_of_it_is_kept(
    machines: list[set[int]], places: list[int], whole: Any
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        stores = []
        for place in range(3):
            orders = [order for order, who in zip(PLAN.orders, machines, strict=True) if place in who]
            stores.append(Path(folder, f"{place}.db"))
            with open_store(stores[-1], create=True) as store:
                carry_out(store, describe(Shard(place + 1, 3), place + 1), PLAN, orders)
        (merged,) = merge([stores[place] for place in places], Path(folder, "all.db"))
        run = load(Path(folder, "all.db"))
        ids = merge(stores, Path(folder, "again.db"))[0].info.id
    done = [bool(who) for who in machines]
    expected = {**whole, "outcomes": [one for one, there in zip(whole["outcomes"], done, strict=True) if there]}
    found = without_moments(run)
    assert found["outcomes"] == expected["outcomes"]
    assert found["cases"] == expected["cases"]
    assert (run.info.finished is not None) == all(done)
    # Its own id unless all of it was put together, and the same in whatever order.
    assert merged.info.id == ids
    assert merged.repeated == sum(len(who) > 1 for who in machines)
    # What counts are depends on the order alone here.
    assert merged.differing == 0


def test_steps_lead_to_the_same_run(tmp_path: Path, whole: Any) -> None:
    one, two, three = run_shards(tmp_path, 3)
    (first,) = merge([two, one], tmp_path / "some.db")
    assert read_parts(load(tmp_path / "some.db").info) == (
        ShardPart(Shard(1, 3), f"{1:032x}"),
        ShardPart(Shard(2, 3), f"{2:032x}"),
    )
    assert first.info.finished is None
    # One that is in it already does no harm, and neither does what is complete.
    merge([three, tmp_path / "some.db", two], tmp_path / "all.db")
    (at_once,) = merge([one, two, three], tmp_path / "at_once.db")
    (again,) = merge([tmp_path / "all.db", one, two, three], tmp_path / "again.db")
    assert load(tmp_path / "all.db") == load(tmp_path / "at_once.db") == load(tmp_path / "again.db")
    assert again.repeated == 0
    assert at_once.info.id != first.info.id
    assert without_moments(load(tmp_path / "all.db")) == whole


def test_what_is_missing_can_be_gone_on_with(tmp_path: Path, whole: Any) -> None:
    one, _, three = run_shards(tmp_path, 3)
    (merged,) = merge([one, three], tmp_path / "some.db")
    with open_store(tmp_path / "some.db") as store, store.resume(merged.info.id, PLAN) as recorder:
        assert recorder.missing == pick_orders(PLAN.orders, PLAN, Shard(2, 3))
        for order in recorder.missing:
            recorder.append(
                Outcome(order=order, result=measure(order), began=BEGAN, ended=BEGAN + 1, environment=ENVIRONMENT)
            )
        recorder.finish()
    # It is whole now: later shards of the same name are none of its.
    late = run_shard(tmp_path / "late.db", Shard(1, 3), run_id=9)
    assert len(merge([tmp_path / "some.db", late], tmp_path / "two.db")) == 2
    assert {str(one) for one in without_moments(load(tmp_path / "some.db"))["outcomes"]} == {
        str(one) for one in whole["outcomes"]
    }


def test_a_shard_that_was_killed_and_gone_on_with_is_like_any_other(tmp_path: Path, whole: Any) -> None:
    killed, other = Shard(1, 2), run_shard(tmp_path / "2.db", Shard(2, 2))
    orders = pick_orders(PLAN.orders, PLAN, killed)
    pid = os.fork()
    if pid == 0:
        store = open_store(tmp_path / "1.db", create=True)
        recorder = store.begin(PLAN, describe(killed, 1))
        for order in orders[:3]:
            recorder.append(
                Outcome(order=order, result=measure(order), began=BEGAN, ended=BEGAN + 1, environment=ENVIRONMENT)
            )
        os._exit(9)
    os.waitpid(pid, 0)
    (partial,) = merge([tmp_path / "1.db", other], tmp_path / "some.db")
    assert partial.info.outcomes == len(PLAN.orders) - len(orders) + 3
    with open_store(tmp_path / "1.db") as store, store.resume(f"{1:032x}", PLAN) as recorder:
        for order in pick_orders(recorder.missing, PLAN, killed):
            recorder.append(
                Outcome(order=order, result=measure(order), began=BEGAN, ended=BEGAN + 1, environment=ENVIRONMENT)
            )
        recorder.finish()
    (complete,) = merge([tmp_path / "1.db", other, tmp_path / "some.db"], tmp_path / "all.db")
    assert complete.repeated == 0
    assert complete.info.id == partial.info.id
    assert without_moments(load(tmp_path / "all.db")) == whole


def test_a_lone_shard_stays_one_unless_nothing_is_missing(tmp_path: Path) -> None:
    (lone,) = merge([run_shard(tmp_path / "1.db", Shard(1, 2))], tmp_path / "lone.db")
    assert load(tmp_path / "lone.db") == load(tmp_path / "1.db")
    assert lone.parts == (ShardPart(Shard(1, 2), lone.info.id),)
    single = dataclasses.replace(PLAN, cases=CASES[:1])
    merge([run_shard(tmp_path / "all_of_it.db", Shard(1, 2), single)], tmp_path / "single.db")
    assert read_parts(load(tmp_path / "single.db").info) == ()


def test_other_runs_are_copied_as_they_are_and_once(tmp_path: Path) -> None:
    for name in ("1.db", "2.db"):
        with open_store(tmp_path / name, create=True) as store:
            store.add(make_run())
    with open_store(tmp_path / "2.db") as store:
        # Of the same name and plan: another night.
        store.add(dataclasses.replace(make_run(), info=dataclasses.replace(make_run().info, id="f" * 32)))
    assert len(merge([tmp_path / "1.db", tmp_path / "2.db"], tmp_path / "all.db")) == 2
    with open_store(tmp_path / "all.db", read_only=True) as store:
        assert store.load("f" * 32, profiles=True).outcomes == make_run().outcomes
        found = store.load(make_run().info.id, profiles=True)
    assert dataclasses.replace(found, outcomes=()) == dataclasses.replace(make_run(), outcomes=())
    assert sorted(map(str, found.outcomes)) == sorted(map(str, make_run().outcomes))


def test_two_copies_of_a_run_are_one_with_all_that_either_has(tmp_path: Path) -> None:
    outcomes, info = make_run().outcomes, make_run().info
    for name, some in (("1.db", outcomes[:4]), ("2.db", outcomes[2:])):
        with open_store(tmp_path / name, create=True) as store:
            store.add(dataclasses.replace(make_run(), outcomes=some))
    (merged,) = merge([tmp_path / "1.db", tmp_path / "2.db"], tmp_path / "all.db")
    assert merged.repeated == 0
    assert merged.info == info
    assert len(load(tmp_path / "all.db").outcomes) == len(outcomes)


def test_where_results_come_from_is_not_lost(tmp_path: Path) -> None:
    one = run_shard(tmp_path / "1.db", Shard(1, 2))
    other = run_shard(tmp_path / "2.db", Shard(2, 2), host=OTHER_HOST)
    merge([one, other], tmp_path / "all.db")
    run = load(tmp_path / "all.db")
    assert run.info.host == HOST
    for number, cpu in ((1, HOST.cpu_model), (2, OTHER_HOST.cpu_model)):
        own = set(pick_orders(PLAN.orders, PLAN, Shard(number, 2)))
        nodes = {outcome.node for outcome in run.outcomes if outcome.order in own}
        assert nodes == {Node(f"shard {number}/2", cpu)}


def test_what_is_known_of_the_lowest_shard_is_kept_and_the_first_moment(tmp_path: Path) -> None:
    options = dict(describe(None, 0).options)
    for number, created, folder in ((1, BEGAN + 5, "."), (2, BEGAN, "..")):
        info = describe(Shard(number, 2), number, created=created, torchmark=f"0.{number}")
        # Where files lie as seen from the store does not tell runs apart.
        info = dataclasses.replace(info, options=(*info.options, ("folder", (folder,))))
        with open_store(tmp_path / f"{number}.db", create=True) as store:
            carry_out(store, info, PLAN, pick_orders(PLAN.orders, PLAN, Shard(number, 2)))
    (merged,) = merge([tmp_path / "2.db", tmp_path / "1.db"], tmp_path / "all.db")
    assert (merged.info.created, merged.info.torchmark) == (BEGAN, "0.1")
    assert dict(merged.info.options) == {**options, "folder": (".",)}


def test_time_limits_and_tags_may_be_others(tmp_path: Path, whole: Any) -> None:
    sampling = dataclasses.replace(PLAN.sampling, timeout_s=5.0)
    tagged = tuple(dataclasses.replace(case, tags=("new",)) for case in PLAN.cases)
    one = run_shard(tmp_path / "1.db", Shard(1, 2))
    other = run_shard(tmp_path / "2.db", Shard(2, 2), Plan(tagged, PLAN.targets, sampling))
    merge([one, other], tmp_path / "all.db")
    assert load(tmp_path / "all.db").plan == dataclasses.replace(PLAN, sampling=sampling)
    assert without_moments(load(tmp_path / "all.db"))["outcomes"] == whole["outcomes"]


OTHERWISE = dataclasses.replace(CASES[1], args=dataclasses.replace(CASES[1].args, stmt="g(x)"))
OTHER_PLANS = {
    "the case 'add' (Eager, Forward, C++) of 'a.py' is defined otherwise": (CASES[0], OTHERWISE, *CASES[2:]),
    "only one has the case 'add' (Eager, Forward, Python) of 'b.py'": CASES[:-1],
    "their cases come in another order": CASES[::-1],
}


@pytest.mark.parametrize(("difference", "cases"), OTHER_PLANS.items())
def test_shards_of_other_plans_are_refused_and_it_is_told_what_differs(
    difference: str, cases: tuple[Any, ...], tmp_path: Path
) -> None:
    one = run_shard(tmp_path / "1.db", Shard(1, 2))
    other = run_shard(tmp_path / "2.db", Shard(2, 2), dataclasses.replace(PLAN, cases=cases))
    with pytest.raises(UsageError, match="are not of the same run") as refused:
        merge([one, other], tmp_path / "all.db")
    assert difference in str(refused.value)
    assert not (tmp_path / "all.db").exists()


def test_shards_of_other_samplings_targets_or_options_are_refused(tmp_path: Path) -> None:
    one = run_shard(tmp_path / "1.db", Shard(1, 2))
    longer = dataclasses.replace(PLAN, sampling=dataclasses.replace(PLAN.sampling, min_run_time_s=7.5))
    elsewhere = dataclasses.replace(PLAN, targets=(Target(), Target("other", "/usr/python")))
    for number, (plan, changes, words) in enumerate(
        [
            (longer, {}, "min_run_time_s of the sampling is 0.2 in one and 7.5 in the other"),
            (elsewhere, {}, "other interpreters"),
            (PLAN, {"seed": 8}, "hash seeds"),
        ]
    ):
        other = run_shard(tmp_path / f"2{number}.db", Shard(2, 2), plan, **changes)
        with pytest.raises(UsageError, match=words):
            merge([one, other], tmp_path / "all.db")
    with open_store(tmp_path / "k.db", create=True) as store:
        info = describe(Shard(2, 2), 2)
        carry_out(store, dataclasses.replace(info, options=(*info.options, ("k", ("add",)))), PLAN, ())
    with pytest.raises(UsageError, match="the option 'k' is 'not given' in one and 'add' in the other"):
        merge([one, tmp_path / "k.db"], tmp_path / "all.db")


def test_what_has_another_name_or_all_its_shards_is_another_run(tmp_path: Path) -> None:
    other_plan = dataclasses.replace(PLAN, cases=CASES[:-1])
    for folder in ("new", "old", "named"):
        (tmp_path / folder).mkdir()
    stores = run_shards(tmp_path / "new", 2)
    stores += [run_shard(tmp_path / "old" / f"{n}.db", Shard(n, 2), other_plan, run_id=10 + n) for n in (1, 2)]
    stores.append(run_shard(tmp_path / "named" / "1.db", Shard(1, 2), other_plan, run_id=20, name="named"))
    merged = merge(stores, tmp_path / "all.db")
    assert sorted((one.info.outcomes, one.info.orders) for one in merged)[-2:] == [(40, 40), (48, 48)]
    assert len(merged) == 3


def test_one_shard_twice_is_united_from_two_stores_and_refused_in_one(tmp_path: Path) -> None:
    one, two = run_shards(tmp_path, 2)
    again = run_shard(tmp_path / "again.db", Shard(2, 2), run_id=9, created=BEGAN + 60)
    (merged,) = merge([one, two, again], tmp_path / "all.db")
    assert merged.repeated == len(pick_orders(PLAN.orders, PLAN, Shard(2, 2)))
    run_shard(two, Shard(2, 2), run_id=9)
    with pytest.raises(UsageError, match=r"Shard 2/2 of 'before' is there twice \(0{8} and 0{8}\)"):
        merge([one, two], tmp_path / "other.db")


def test_a_run_of_one_id_and_two_plans_is_refused(tmp_path: Path) -> None:
    one = run_shard(tmp_path / "1.db", Shard(1, 2))
    other = run_shard(tmp_path / "2.db", Shard(2, 2), dataclasses.replace(PLAN, cases=CASES[:-1]), run_id=1)
    with pytest.raises(UsageError, match=r"is not the same in .*: only one has the case"):
        merge([one, other], tmp_path / "all.db")
    with open_store(tmp_path / "3.db", create=True) as store:
        store.add(make_run())
    with open_store(tmp_path / "4.db", create=True) as store:
        store.begin(PLAN, make_run().info).__exit__(None, None, None)
    with pytest.raises(UsageError, match=r"The run 018b\w+ is not the same in .*3\.db and .*4\.db"):
        merge([tmp_path / "3.db", tmp_path / "4.db"], tmp_path / "all.db")


def test_a_run_that_a_living_process_is_at_is_refused(tmp_path: Path) -> None:
    with (
        open_store(tmp_path / "1.db", create=True) as store,
        store.begin(PLAN, describe(Shard(1, 2), 1)),
        pytest.raises(UsageError, match="is being run by process"),
    ):
        merge([tmp_path / "1.db"], tmp_path / "all.db")
    assert merge([tmp_path / "1.db"], tmp_path / "all.db")


def damage_blob(path: Path) -> None:
    connection = sqlite3.connect(path)
    connection.execute("UPDATE blobs SET body = x'00' WHERE hash IN (SELECT blob FROM parts WHERE role = 'profile')")
    connection.commit()
    connection.close()


def damage_body(path: Path) -> None:
    connection = sqlite3.connect(path)
    connection.execute("UPDATE outcomes SET body = '{'")
    connection.commit()
    connection.close()


@pytest.mark.parametrize(
    "damage", [damage_blob, damage_body, lambda path: path.write_text("no store"), lambda path: path.unlink()]
)
def test_what_is_damaged_is_named_and_nothing_is_left_behind(damage: Callable[[Path], Any], tmp_path: Path) -> None:
    one, two = run_shards(tmp_path, 2)
    damage(two)
    before = sorted(tmp_path.iterdir())
    with pytest.raises(StoreError) as refused:
        merge([one, two], tmp_path / "all.db")
    assert str(two) in str(refused.value)
    assert str(one) not in str(refused.value)
    assert ".part" not in str(refused.value)
    assert sorted(tmp_path.iterdir()) == before


def outcome(place: int, result: Any, ended: float) -> Outcome:
    return Outcome(order=PLAN.orders[place], result=result, began=ended - 1, ended=ended, environment=ENVIRONMENT)


def test_a_result_beats_a_failure_and_the_first_result_the_others(tmp_path: Path) -> None:
    assert [order.metric for order in PLAN.orders[:4]] == [Metric.WALL, Metric.WALL, Metric.COUNT, Metric.COUNT]
    failure = measure(next(order for order in PLAN.orders if isinstance(measure(order), Failure)))
    tally = measure(next(o for o in PLAN.orders if o.metric is Metric.COUNT and not isinstance(measure(o), Failure)))
    other = dataclasses.replace(tally, totals=(1,))  # type: ignore[arg-type]
    times = measure(next(o for o in PLAN.orders if o.metric is Metric.WALL and not isinstance(measure(o), Failure)))
    runs = {
        1: [outcome(0, failure, 10.0), outcome(1, times, 30.0), outcome(2, tally, 20.0), outcome(3, tally, 5.0)],
        2: [outcome(0, times, 20.0), outcome(1, times, 20.0), outcome(2, other, 10.0), outcome(3, tally, 6.0)],
    }
    for number, outcomes in runs.items():
        path, info = tmp_path / f"{number}.db", describe(Shard(number, 2), number)
        with open_store(path, create=True) as store, store.begin(PLAN, info) as recorder:
            for one in outcomes:
                recorder.append(one)
    merged: tuple[Merged, ...] = merge([tmp_path / "1.db", tmp_path / "2.db"], tmp_path / "all.db")
    assert load(tmp_path / "all.db").outcomes == (*runs[2][:3], runs[1][3])
    assert [(one.repeated, one.differing) for one in merged] == [(4, 1)]


def test_what_changes_numbers_and_differs_is_told(tmp_path: Path) -> None:
    one = run_shard(tmp_path / "1.db", Shard(1, 2))
    order, newer = (
        pick_orders(PLAN.orders, PLAN, Shard(2, 2))[0],
        dataclasses.replace(ENVIRONMENT, torch_version="2.3.0"),
    )
    info = describe(Shard(2, 2), 2)
    with open_store(tmp_path / "2.db", create=True) as store, store.begin(PLAN, info) as recorder:
        recorder.append(Outcome(order=order, result=measure(order), began=BEGAN, ended=BEGAN, environment=newer))
    (merged,) = merge([one, tmp_path / "2.db"], tmp_path / "all.db")
    assert merged.mixtures == (("torch", ("2.2.0+cpu", "2.3.0")),)


def test_all_stores_that_are_not_there_are_told_together_and_nothing_is_written(tmp_path: Path) -> None:
    run_whole(tmp_path / "there.db")
    paths = [tmp_path / "one.db", tmp_path / "there.db", tmp_path / "two.db"]
    message = f"There is no store at {tmp_path}/one.db and {tmp_path}/two.db. Was that shard run"
    with pytest.raises(StoreError, match=message):
        merge(paths, tmp_path / "merged.db")
    assert not (tmp_path / "merged.db").exists()


def test_a_run_from_the_future_keeps_its_place_among_the_others(tmp_path: Path) -> None:
    moments = {"old": BEGAN, "future": 5e10, "new": BEGAN + 100}
    with open_store(tmp_path / "results.db", create=True) as store:
        for place, (name, created) in enumerate(moments.items()):
            info = dataclasses.replace(make_run().info, id=f"{place:032x}", name=name, created=created)
            store.add(dataclasses.replace(make_run(), info=info))
    merged = merge([tmp_path / "results.db"], tmp_path / "all.db")
    with open_store(tmp_path / "all.db", read_only=True) as store:
        names = [info.name for info in store.list_runs()]
    assert names == [one.info.name for one in merged] == ["new", "future", "old"]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A store with a run in it."""
    with open_store(tmp_path / "results.db", create=True) as store:
        store.add(make_run())
    return tmp_path / "results.db"


def list_runs(path: Path) -> list[str]:
    with open_store(path, read_only=True) as store:
        return [info.id for info in store.list_runs()]


def test_a_store_is_there_when_it_is_complete(tmp_path: Path) -> None:
    path = tmp_path / ".torchmark" / "new.db"
    with new_store(path, force=False) as database:
        Store(database).add(make_run())
        assert not path.exists()
    assert list_runs(path) == [INFO.id]
    check_integrity(path)
    assert sorted(one.name for one in path.parent.iterdir()) == [".gitignore", "new.db"]


@pytest.mark.parametrize("force", [False, True])
def test_if_anything_goes_wrong_nothing_has_happened(force: bool, path: Path) -> None:
    path = path if force else path.with_name("new.db")
    before = sorted(path.parent.iterdir())
    with pytest.raises(ZeroDivisionError), new_store(path, force=force):
        raise ZeroDivisionError
    assert sorted(path.parent.iterdir()) == before


def test_a_name_that_is_taken_is_refused_unless_it_is_to_be_replaced(path: Path) -> None:
    with pytest.raises(UsageError, match="is there already"), new_store(path, force=False):
        raise AssertionError("not reached")
    link = path.with_name("link.db")
    link.symlink_to(path)
    with new_store(link, force=True):
        assert list_runs(path) == [INFO.id]
    assert list_runs(path) == []
    assert link.is_symlink()
    assert sorted(one.name for one in path.parent.iterdir()) == ["link.db", "results.db"]


def test_what_came_to_be_in_the_meantime_stays(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="is there already"), new_store(tmp_path / "new.db", force=False):
        (tmp_path / "new.db").write_text("mine")
    assert [one.name for one in tmp_path.iterdir()] == ["new.db"]


def test_what_is_no_store_is_never_replaced(tmp_path: Path) -> None:
    (tmp_path / "notes").write_text("mine")
    with pytest.raises(StoreError, match="no store of torchmark's"), new_store(tmp_path / "notes", force=True):
        raise AssertionError("not reached")
    with pytest.raises(UsageError, match="is a folder"), new_store(tmp_path, force=True):
        raise AssertionError("not reached")
    (tmp_path / "empty").touch()
    with new_store(tmp_path / "empty", force=True):
        pass
    assert list_runs(tmp_path / "empty") == []


def test_a_store_that_is_in_use_is_not_replaced(path: Path) -> None:
    with open_store(path) as store:
        store.list_runs()
        with pytest.raises(UsageError, match="is in use"), new_store(path, force=True):
            pass
    assert list_runs(path) == [INFO.id]


def test_what_a_store_that_is_gone_has_left_does_not_get_into_the_new_one(path: Path) -> None:
    with open_store(path) as old:
        with old._database.transaction():
            old._database.change("DELETE FROM runs")
        log = Path(f"{path}-wal").read_bytes()
    path.unlink()
    Path(f"{path}-wal").write_bytes(log)
    Path(f"{path}-shm").write_bytes(bytes(32768))
    with new_store(path, force=False) as database:
        Store(database).add(make_run())
    assert list_runs(path) == [INFO.id]
    # It may have somebody's results in it.
    (left,) = (one for one in path.parent.iterdir() if one != path)
    assert left.name.startswith("results.db-wal.left-")
    assert left.read_bytes() == log


def test_what_is_not_an_ordinary_file_is_never_replaced(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(UsageError, match="not an ordinary file"), new_store(tmp_path / "pipe", force=True):
        raise AssertionError("not reached")
    assert (tmp_path / "pipe").is_fifo()


def test_a_file_that_is_read_is_not_written_however_it_is_spelt(path: Path) -> None:
    path.with_name("link.db").symlink_to(path)
    os.link(path, path.with_name("hard.db"))
    for name in ("results.db", "link.db", "hard.db", "../" + path.parent.name + "/results.db"):
        with pytest.raises(UsageError, match="one of the stores that are read"):
            refuse_same(path.parent / name, [path.with_name("hard.db"), path])
    refuse_same(path.with_name("new.db"), [path])


def test_a_folder_that_cannot_be_written_is_told_by_the_name_that_was_meant(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    path = tmp_path / "file" / "new.db"
    with pytest.raises(StoreError, match=r"file/new\.db: It cannot be made"), new_store(path, force=False):
        raise AssertionError("not reached")
