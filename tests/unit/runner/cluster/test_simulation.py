"""Whole runs on clusters that are not there: whatever happens to nodes, every order has one outcome, the same one."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.fleets import (
    COUNTING,
    WatchingFleet,
    make_case,
    make_plan,
    make_result,
    open_backend,
    open_dispatcher,
    outcomes,
)
from tests.simulated_fleet import SimulatedFaults, SimulatedFleet
from torchmark.model.outcome import Failure, FailureKind
from torchmark.model.plan import Case, Metric, Order, Plan, Sampling, Target
from torchmark.model.task import Language
from torchmark.processes import StopRequest
from torchmark.runner.cluster import batches as batches_module
from torchmark.runner.cluster.batches import MOST_LOSSES, BatchQueue, GivenUp, KindGroup, Returned, pack
from torchmark.runner.cluster.dispatch import Dispatcher
from torchmark.runner.cluster.nodes import Member
from torchmark.runner.cluster.protocol import Build, MachineKind, Measure, Measured

# A minute for each node, of which what counts needs a third to start.
MANY_FAULTS = SimulatedFaults(60.0, repair_s=20.0, crash=0.02, lost=0.02, slow=0.2, odd=0.1)


def test_thirty_thousand_cases_on_thirty_nodes_that_come_and_go() -> None:
    plan = make_plan(map(str, range(30_000)))
    chance = random.Random(0)
    # 1.12 in the mean, as the standard suite.
    costs = [chance.uniform(0.24, 2.0) for _ in plan.cases]
    fleet = SimulatedFleet(
        30,
        2,
        lambda order: costs[int(order.case.args.stmt)],
        make_result,
        SimulatedFaults(900.0, crash=1e-4, lost=1e-4, slow=0.02, odd=0.005),
        seed=0,
    )
    found = outcomes(open_backend(fleet, plan).execute(plan, plan.orders, StopRequest()))
    assert fleet.died > 10
    assert sorted(int(one.order.case.args.stmt) for one in found) == list(range(30_000))
    assert all(one.result == make_result(one.order) for one in found)
    # Starting what counts takes 20 of some 600 seconds.
    assert fleet.utilisation > 0.9


any_faults = st.builds(
    SimulatedFaults,
    st.sampled_from([None, 60.0, 600.0]),
    repair_s=st.sampled_from([1.0, 20.0]),
    notice_s=st.sampled_from([0.0, 5.0, 15.0]),
    crash=st.sampled_from([0.0, 0.02]),
    lost=st.sampled_from([0.0, 0.02]),
    slow=st.sampled_from([0.0, 0.2]),
    odd=st.sampled_from([0.0, 0.1]),
    kinds=st.sampled_from([1, 3]),
)


def take_a_second(order: Order) -> float:
    """Somewhat more, or less."""
    return 0.2 + make_result(order).raw_times[0] % 20 / 10


def check_results(
    orders: tuple[Order, ...],
    results: list[tuple[Order, object]],
    fleet: WatchingFleet,
    kind_groups: dict[Order, KindGroup],
) -> None:
    """Each order has one, and it is the only one that it can have."""
    assert Counter(order for order, _ in results) == Counter(orders)
    for order, result in results:
        if isinstance(result, Failure):
            assert result.kind is FailureKind.WORKER_DIED
            assert is_often_lost(order, fleet) or (
                kind_groups and is_often_lost(Build(kind_groups[order].sources), fleet)
            )
        else:
            assert result == make_result(order)


def is_often_lost(what: object, fleet: WatchingFleet) -> bool:
    losses = Counter(fleet.losses.get(what, []))
    return any(losses[loss] >= most for loss, most in MOST_LOSSES.items())


@given(seed=st.integers(0, 10**6), faults=st.just(MANY_FAULTS) | any_faults, slots=st.sampled_from([1, 4]))
@settings(max_examples=25, suppress_health_check=[HealthCheck.too_slow])
def test_whatever_fails_every_order_has_one_outcome(seed: int, faults: SimulatedFaults, slots: int) -> None:
    groups = (f"g{number // 5}" for number in range(500))
    plan = Plan(tuple(make_case(str(n), group=group) for n, group in enumerate(groups)), sampling=COUNTING)
    fleet = WatchingFleet(12, slots, take_a_second, make_result, faults, seed)
    found = outcomes(open_backend(fleet, plan).execute(plan, plan.orders, StopRequest()))
    check_results(plan.orders, [(one.order, one.result) for one in found], fleet, {})


@pytest.fixture
def released(monkeypatch: pytest.MonkeyPatch) -> list[MachineKind]:
    """The kinds that died out, in that order. And few snippets are compiled together."""
    monkeypatch.setattr(batches_module, "SNIPPETS_PER_UNIT", 4)
    kinds: list[MachineKind] = []
    release = BatchQueue.release

    def note(batch_queue: BatchQueue, kind: MachineKind) -> None:
        kinds.append(kind)
        release(batch_queue, kind)

    monkeypatch.setattr(BatchQueue, "release", note)
    return kinds


@given(seed=st.integers(0, 10**6), faults=st.just(MANY_FAULTS) | any_faults)
@settings(max_examples=25, suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture])
def test_whatever_fails_what_is_compared_is_measured_alike(
    released: list[MachineKind], seed: int, faults: SimulatedFaults
) -> None:
    released.clear()
    plan = Plan(
        tuple(_make_variants(12)),
        (Target("base"), Target("head")),
        Sampling((Metric.WALL, Metric.COUNT), repeat=2),
    )
    fleet = WatchingFleet(8, 2, take_a_second, make_result, faults, seed)
    dispatcher = open_dispatcher(fleet, plan)
    batches = pack(plan, plan.orders)
    kind_groups = {order: batch.kind_group for batch in batches for order in batch.orders}
    results: list[tuple[Order, object]] = []
    counts: dict[MachineKind | None, tuple[int, ...]] = {}
    for report in dispatcher.run(BatchQueue(batches), StopRequest()):
        if isinstance(report, Returned):
            assert isinstance(report.reply, Measured)
            results += ((one.order, one.result) for one in report.reply.outcomes)
            member = _find_member(report, kind_groups, dispatcher)
            assert member.canary is not None
            assert counts.setdefault(member.kind, member.canary.counts) == member.canary.counts
        elif isinstance(report, GivenUp):
            failure = Failure(FailureKind.WORKER_DIED, report.message)
            results += ((order, failure) for order in report.batch.orders)
    check_results(plan.orders, results, fleet, kind_groups)
    _check_pairs(fleet, plan)
    # Each kind group is compiled once, and once more for each time that all nodes of its kind were gone.
    builds = Counter(build.cases for build in fleet.built)
    assert set(builds) <= {kind_group.sources for kind_group in kind_groups.values() if kind_group.sources}
    assert all(number <= 1 + len(released) for number in builds.values())
    assert faults.node_lifetime_s is not None or set(builds.values()) == {1}


def _make_variants(groups: int) -> Iterator[Case]:
    for number in range(groups):
        for variant in range(6):
            language = Language.CPP if number % 3 == 0 and variant % 2 else Language.PYTHON
            yield make_case(f"{number} {variant}", language, f"g{number}", check=number % 2 == 0)


def _find_member(report: Returned, kind_groups: dict[Order, KindGroup], dispatcher: Dispatcher) -> Member:
    """Who measured it: a node that is there, of the kind that measures all of its kind group."""
    (kind_group,) = {kind_groups[order] for order in report.batch.orders}
    assert report.batch.kind_group is kind_group
    assert isinstance(report.reply, Measured)
    (node,) = {one.node for one in report.reply.outcomes}
    assert node is not None
    (member,) = [member for member in dispatcher.nodes.usable if member.name == node.name]
    assert member.kind == kind_group.kind
    return member


def _check_pairs(fleet: WatchingFleet, plan: Plan) -> None:
    """Both targets of a case are always in one batch, and no metric is with another."""
    for asked in fleet.log:
        if isinstance(asked.request, Measure):
            sides = Counter((order.case, order.metric, order.round) for order in asked.request.orders)
            assert set(sides.values()) == {len(plan.targets)}
            assert len({order.metric for order in asked.request.orders}) == 1
            assert {order.case for order in asked.request.orders} <= set(asked.request.cases)


def test_without_losses_each_kind_group_is_compiled_once_and_before_it_is_measured() -> None:
    plan = Plan(tuple(_make_variants(6)), sampling=COUNTING)
    fleet = WatchingFleet(5, 2, take_a_second, make_result, SimulatedFaults(kinds=2), 1)
    found = outcomes(open_backend(fleet, plan).execute(plan, plan.orders, StopRequest()))
    assert len(found) == len(plan.orders)
    (build,) = [asked for asked in fleet.log if isinstance(asked.request, Build)]
    assert isinstance(build.request, Build)
    assert set(build.request.cases) == {case for case in plan.cases if case.args.language == Language.CPP}
    for asked in fleet.log:
        if isinstance(asked.request, Measure) and set(asked.request.cases) & set(build.request.cases):
            assert asked.moment > build.moment
            assert len(asked.request.library_sets) == 1


def test_the_same_seed_makes_the_same_run() -> None:
    plan = make_plan(map(str, range(60)))
    runs = []
    for _ in range(2):
        fleet = SimulatedFleet(4, 2, take_a_second, make_result, MANY_FAULTS, 5)
        found = outcomes(open_backend(fleet, plan).execute(plan, plan.orders, StopRequest()))
        runs.append([(one.order, one.began, one.node) for one in found])
    assert runs[0] == runs[1]
