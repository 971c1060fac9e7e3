"""Orders become batches: nothing is missing, nothing is there twice, and what is compared goes together."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.fleets import COUNTING, make_case
from torchmark.model.plan import Metric, Order, Plan, Sampling, Target
from torchmark.model.task import Language
from torchmark.runner.cluster import batches as batches_module
from torchmark.runner.cluster.batches import ORDERS_PER_BATCH, BatchQueue, KindGroup, pack
from torchmark.runner.cluster.protocol import MachineKind, Measure
from torchmark.runner.lab import find_group

TWO = (Target("base"), Target("head"))


@st.composite
def plans(draw: st.DrawFn) -> Plan:
    cases = tuple(
        make_case(
            f"{number}",
            draw(st.sampled_from([Language.PYTHON, Language.CPP])),
            f"g{draw(st.integers(0, 3))}",
            check=draw(st.booleans()),
        )
        for number in range(draw(st.integers(0, 40)))
    )
    metrics = draw(st.sampled_from([(Metric.WALL,), (Metric.COUNT,), (Metric.WALL, Metric.COUNT)]))
    return Plan(cases, draw(st.sampled_from([TWO, TWO[:1]])), Sampling(metrics, repeat=draw(st.integers(1, 2))))


@given(plan=plans(), together=st.booleans(), data=st.data())
def test_every_order_is_in_one_batch_with_all_that_it_needs(plan: Plan, together: bool, data: st.DataObject) -> None:
    orders = [order for order in plan.orders if data.draw(st.booleans())] if len(plan.orders) < 40 else plan.orders
    batches = pack(plan, orders, together=together)
    assert Counter(order for batch in batches for order in batch.orders) == Counter(orders)
    firsts = {find_group(case): case for case in reversed(plan.cases) if case.check is not None}
    for batch in batches:
        assert batch.alone == any(order.metric is Metric.WALL for order in batch.orders)
        cases = [order.case for order in batch.orders]
        needed = {firsts[find_group(case)] for case in cases if case.check is not None}
        assert set(batch.cases) == {*cases, *needed}
        assert len(batch.cases) == len(set(batch.cases))
        native = {case for case in batch.cases if case.args.language == Language.CPP}
        assert native <= set(batch.kind_group.sources)
    if together:
        assert len(batches) == bool(orders)
        return
    for batch in batches:
        assert len({(find_group(order.case), order.metric, order.round) for order in batch.orders}) == 1
        assert len(batch.orders) <= max(ORDERS_PER_BATCH, len(plan.targets))
    homes = {(order.case, order.metric, order.round): batch for batch in batches for order in batch.orders}
    assert all(homes[order.case, order.metric, order.round] is batch for batch in batches for order in batch.orders)
    kind_groups: dict[object, KindGroup] = {}
    assert all(
        kind_groups.setdefault(find_group(one.orders[0].case), one.kind_group) is one.kind_group for one in batches
    )


def test_what_others_are_held_to_comes_first() -> None:
    first, second = (make_case(name, group="g", check=True) for name in "ab")
    plan = Plan((first, second), sampling=COUNTING)
    (batch,) = pack(plan, [Order(second, Target(), Metric.COUNT)])
    assert batch.cases == (first, second)


def test_kind_groups_with_native_code_are_as_large_as_what_is_compiled_together(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(batches_module, "SNIPPETS_PER_UNIT", 4)
    # With a check there are two snippets a case.
    cases = [make_case(str(n), Language.CPP, f"g{n}", check=n < 3) for n in range(6)]
    plan = Plan((*cases, make_case("python")), sampling=COUNTING)
    kind_groups = list(dict.fromkeys(batch.kind_group for batch in pack(plan, plan.orders)))
    assert [[case.args.stmt for case in kind_group.sources] for kind_group in kind_groups] == [
        ["0", "1"],
        ["2", "3", "4"],
        ["5"],
        [],
    ]


# --- the queue ---------------------------------------------------------------------------------------

A, B = MachineKind(("a",)), MachineKind(("b",))


def make_batch_queue(names: str, kind_group: KindGroup | None = None) -> BatchQueue:
    plan = Plan(tuple(make_case(name) for name in names), sampling=COUNTING)
    batches = pack(plan, plan.orders)
    for batch in batches:
        batch.kind_group = kind_group or batch.kind_group
    return BatchQueue(batches)


def take_name(batch_queue: BatchQueue, kind: MachineKind) -> str | None:
    batch = batch_queue.take(kind, alone=False)
    return batch.orders[0].case.args.stmt if batch is not None else None


def test_batches_are_taken_in_their_order_and_what_comes_back_first() -> None:
    batch_queue = make_batch_queue("abc")
    batch = batch_queue.take(A, alone=False)
    assert batch is not None
    assert take_name(batch_queue, A) == "b"
    batch_queue.give_back(batch)
    assert [take_name(batch_queue, A) for _ in range(3)] == ["a", "c", None]


def test_what_another_kind_has_begun_is_left_to_it() -> None:
    batch_queue = make_batch_queue("ab", KindGroup())
    assert take_name(batch_queue, A) == "a"
    assert batch_queue.has(B, alone=False)
    assert take_name(batch_queue, B) is None
    assert not batch_queue.has(B, alone=False)
    assert not batch_queue.is_empty
    assert take_name(batch_queue, A) == "b"
    assert batch_queue.is_empty


def test_what_a_kind_has_begun_is_for_all_when_it_is_gone() -> None:
    batch_queue = make_batch_queue("ab", KindGroup())
    assert take_name(batch_queue, A) == "a"
    assert take_name(batch_queue, B) is None
    batch_queue.release(A)
    assert take_name(batch_queue, B) == "b"


def test_nothing_that_needs_libraries_is_taken_before_these_are_there() -> None:
    kind_group = KindGroup((make_case("native", Language.CPP),))
    batch_queue = make_batch_queue("ab", kind_group)
    build = batch_queue.take(A, alone=False)
    assert build is not None
    assert build.is_build
    assert batch_queue.is_building(A)
    assert not batch_queue.is_building(B)
    assert batch_queue.take(A, alone=False) is None
    assert batch_queue.count(alone=False) == 2
    batch_queue.add_libraries(kind_group, "libraries")
    assert not batch_queue.is_building(A)
    batch = batch_queue.take(A, alone=False)
    assert batch is not None
    request = batch.write()
    assert isinstance(request, Measure)
    assert request.library_sets == ("libraries",)
    # All nodes of the kind are gone: it has to be compiled again, and those that come back wait for that.
    batch_queue.give_back(batch)
    batch_queue.release(A)
    again = batch_queue.take(B, alone=False)
    assert again is not None
    assert again.is_build
    assert batch_queue.take(B, alone=False) is None
    batch_queue.add_libraries(kind_group, "other libraries")
    assert {take_name(batch_queue, B), take_name(batch_queue, B)} == {"a", "b"}
    assert batch_queue.is_empty


def test_what_cannot_be_compiled_leaves_nothing_behind() -> None:
    kind_group = KindGroup((make_case("native", Language.CPP),))
    batch_queue = make_batch_queue("ab", kind_group)
    build = batch_queue.take(A, alone=False)
    assert build is not None
    batch_queue.release(A)
    for batch in batch_queue.abandon(build.kind_group):
        batch_queue.finish(batch)
    assert batch_queue.is_empty
    assert batch_queue.take(B, alone=False) is None


def test_what_is_finished_elsewhere_is_not_compiled_any_more() -> None:
    kind_group = KindGroup((make_case("native", Language.CPP),))
    batch_queue = make_batch_queue("a", kind_group)
    batch_queue.take(A, alone=False)
    batch_queue.add_libraries(kind_group, "libraries")
    batch = batch_queue.take(A, alone=False)
    assert batch is not None
    batch_queue.release(A)
    assert batch_queue.has(B, alone=False)
    batch_queue.finish(batch)
    assert not batch_queue.has(B, alone=False)
