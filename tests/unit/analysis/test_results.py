from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.made_contrasts import COUNTED
from tests.sample_runs import ADD, COUNT, FAILING, FAILURE, HOST, ODD, WALL, only, sample_run, tally, times
from torchmark.analysis.results import OWN_MACHINE, choose_rounds, list_kinds, list_nodes, narrow_run, summarise_run
from torchmark.model.caveats import FewSamples, OtherPlaces, TwoModes
from torchmark.model.outcome import Outcome, Result
from torchmark.model.plan import Metric, Node, NodeKind, Order, Target
from torchmark.model.run import CaseSummary, Run
from torchmark.model.task import Times


def test_nothing_given_is_all_of_it() -> None:
    run = sample_run()
    assert narrow_run(run) == run


def test_a_part_has_what_was_asked_for_in_its_old_order() -> None:
    old, new = Target("old"), Target("new")
    part = narrow_run(sample_run([old, new]), cases=[FAILING, ADD], targets=[new], metrics=[WALL])
    assert part.plan.cases == (ADD, FAILING)
    assert part.plan.targets == (new,)
    assert part.plan.sampling.metrics == (WALL,)
    assert {outcome.order.metric for outcome in part.outcomes} == {WALL}
    assert (part.info.orders, part.info.outcomes, part.info.failures) == (4, 4, 2)


def test_what_the_plan_does_not_have_is_not_added() -> None:
    part = narrow_run(sample_run(), cases=[ODD], targets=[Target("other")], metrics=[COUNT])
    assert part.plan.targets == ()
    assert part.outcomes == ()


EPYC, MILAN, XEON = Node("a", "EPYC"), Node("b", "EPYC"), Node("c", "Xeon")


def outcome(
    number: int,
    node: Node | None = None,
    metric: Metric = WALL,
    *,
    began: float | None = None,
    result: Result | None = None,
    **changes: Any,
) -> Outcome:
    """The outcome of one round; `changes` are of its environment."""
    made = times(1, 1.0) if metric is WALL else tally(100, 500)
    start = float(number) if began is None else began
    environment = dataclasses.replace(COUNTED, **changes)
    return Outcome(
        order=Order(ADD, Target(), metric, number),
        result=result or made,
        began=start,
        ended=start + 1,
        environment=environment,
        node=node,
    )


def rounds_of(*outcomes: Outcome) -> tuple[list[int], tuple[OtherPlaces, ...]]:
    chosen = choose_rounds(outcomes, HOST)
    return [one.order.round for one in chosen.outcomes], chosen.caveats


def test_the_largest_group_speaks_and_the_rest_is_counted() -> None:
    nodes = (XEON, EPYC, MILAN, XEON, EPYC)
    kept, caveats = rounds_of(*(outcome(i, node) for i, node in enumerate(nodes)))
    assert kept == [1, 2, 4]
    assert caveats == (OtherPlaces(metric="wall", rounds=2, of=5, what=("cpu",), nodes=("c",)),)
    assert choose_rounds([outcome(0, XEON), outcome(1, XEON)]).caveats == ()


def test_of_groups_of_one_size_the_one_that_was_there_first_speaks() -> None:
    """Whatever the order of rounds, and that in which outcomes are given."""
    late, early = outcome(0, XEON, began=9.0), outcome(1, EPYC, began=3.0)
    assert rounds_of(late, early)[0] == rounds_of(early, late)[0] == [1]


@pytest.mark.parametrize(
    ("changes", "what"),
    [
        ({"cpu_capability": "AVX512"}, "capability"),
        ({"valgrind": "valgrind-3.22.0"}, "valgrind"),
        ({"hash_seed": "1"}, "hash_seed"),
        ({"torch_version": "2.14.0", "torch_commit": "d", "torch_build": "GCC 14"}, "torch"),
        ({"torch_commit": "d", "torch_build": "GCC 14"}, "torch_commit"),
        ({"torch_build": "GCC 14"}, "torch_build"),
        ({"cpu_capability": None}, "capability"),
    ],
)
def test_counts_are_kept_apart_by_all_that_moves_them(changes: dict[str, Any], what: str) -> None:
    others = [outcome(2, EPYC, COUNT, **changes)]
    kept, caveats = rounds_of(outcome(0, EPYC, COUNT), outcome(1, MILAN, COUNT), *others)
    assert kept == [0, 1]
    assert caveats == (OtherPlaces(metric="count", rounds=1, of=3, what=(what,), nodes=("a",)),)


def test_counts_have_no_processor_in_them_and_times_neither_valgrind_nor_hash_seed() -> None:
    assert rounds_of(outcome(0, EPYC, COUNT), outcome(1, XEON, COUNT), outcome(2, None, COUNT)) == ([0, 1, 2], ())
    assert rounds_of(outcome(0, EPYC), outcome(1, MILAN, hash_seed="1", valgrind=None)) == ([0, 1], ())


def test_what_torch_says_of_the_machine_is_no_other_build() -> None:
    texts = [f"PyTorch built with:\n  - GCC 13\n  - CPU capability usage: {one}" for one in ("AVX512", "AVX2")]
    counts = [outcome(i, EPYC, COUNT, torch_build=text) for i, text in enumerate(texts)]
    assert rounds_of(*counts) == ([0, 1], ())


def test_the_own_machine_is_of_the_kind_of_nodes_with_its_processor() -> None:
    alike = Node("d", HOST.cpu_model)
    both = [outcome(0), outcome(1, alike)]
    assert rounds_of(*both) == ([0, 1], ())
    assert rounds_of(*both, outcome(2, XEON))[1] == (
        OtherPlaces(metric="wall", rounds=1, of=3, what=("cpu",), nodes=("c",)),
    )
    # Of a machine of which nothing is known, nothing is taken for granted.
    assert [one.order.round for one in choose_rounds(both).outcomes] == [0]


def test_failures_neither_count_nor_are_left_out() -> None:
    failed = [outcome(i, XEON, result=FAILURE) for i in (0, 1)]
    assert rounds_of(*failed, outcome(2, EPYC)) == ([2], ())
    assert rounds_of(*failed) == ([], ())


def test_each_metric_has_a_group_of_its_own() -> None:
    counts = [outcome(i, EPYC, COUNT, valgrind=f"valgrind-3.{i}") for i in range(2)]
    kept, caveats = rounds_of(outcome(0, XEON), outcome(1, EPYC), outcome(2, EPYC), *counts)
    assert kept == [1, 2, 0]
    assert [(one.metric, one.rounds, one.of) for one in caveats] == [("wall", 1, 3), ("count", 1, 2)]


@given(st.lists(st.sampled_from([None, EPYC, MILAN, XEON, Node("d")]), max_size=8))
def test_nothing_is_lost_and_no_other_group_is_larger(nodes: list[Node | None]) -> None:
    chosen = choose_rounds([outcome(i, node) for i, node in enumerate(nodes)], HOST)
    left_out = sum(caveat.rounds for caveat in chosen.caveats)
    assert len(chosen.outcomes) + left_out == len(nodes)
    cpus = [HOST.cpu_model if node is None else node.cpu_model for node in nodes]
    assert len(chosen.outcomes) == max(map(cpus.count, cpus), default=0)


def test_the_nodes_of_a_run_are_named_once_and_the_own_machine_beside_them() -> None:
    assert list_nodes([outcome(0), outcome(1)], HOST) == list_nodes([]) == ()
    found = list_nodes([outcome(0, XEON), outcome(1, EPYC), outcome(2, XEON), outcome(3)], HOST)
    assert found == (EPYC, XEON, Node(OWN_MACHINE, HOST.cpu_model))
    # What failed before it reached a worker was nowhere.
    nowhere = dataclasses.replace(outcome(0), result=FAILURE, environment=None)
    assert list_nodes([nowhere, outcome(1, EPYC)], HOST) == (EPYC,)


def test_kinds_are_told_by_what_differs_the_largest_first() -> None:
    one, other = outcome(0, XEON, COUNT, cpu_capability="AVX512"), outcome(1, MILAN, COUNT)
    assert list_kinds([one, other, outcome(2, EPYC, COUNT)], COUNT) == (
        NodeKind((("capability", "AVX2"),), (EPYC, MILAN)),
        NodeKind((("capability", "AVX512"),), (XEON,)),
    )
    assert list_kinds([one], COUNT) == list_kinds([], COUNT) == list_kinds([one, other], WALL) == ()


def test_builds_that_differ_within_a_version_are_numbered() -> None:
    """Another version is another build; here, one version has two."""
    versions = (("2.13.0", "x"), ("2.14.0", "y"), ("2.14.0", "z"))
    counts = [
        outcome(i, Node(str(i)), COUNT, torch_version=version, torch_build=build)
        for i, (version, build) in enumerate(versions)
    ]
    told = [dict(kind.traits) for kind in list_kinds(counts, COUNT)]
    assert told == [{"torch": version, "torch_build": str(i + 1)} for i, (version, _) in enumerate(versions)]
    assert [dict(kind.traits) for kind in list_kinds(counts[:2], COUNT)] == [{"torch": "2.13.0"}, {"torch": "2.14.0"}]


NARROW = [1.0 + n / 1000 for n in range(20)]


def summarise_times(*rounds: Times) -> CaseSummary:
    (summary,) = summarise_run(only(ADD, WALL, *rounds))
    return summary


def test_samples_of_all_rounds_are_enough_if_they_are_together() -> None:
    few = times(10, 1.0, 1.001, 1.002)
    assert FewSamples(3, 6) in summarise_times(few).caveats
    both = summarise_times(few, few)
    assert both.caveats == ()
    assert both.wall is not None
    assert both.wall.interval is not None


def test_rounds_that_differ_are_told_although_each_is_steady() -> None:
    slower = [t * 1.5 for t in NARROW]
    summary = summarise_times(times(10, *NARROW), times(10, *slower))
    assert TwoModes in {type(caveat) for caveat in summary.caveats}
    assert summarise_times(times(10, *NARROW)).caveats == ()


def test_an_interval_is_no_narrower_than_what_rounds_say() -> None:
    """The samples of the slower round are a third: too few to show in the interval of them all."""
    slower = [t * 1.5 for t in NARROW]
    wall = summarise_times(times(10, *NARROW, *NARROW), times(10, *slower)).wall
    assert wall is not None
    assert wall.interval is not None
    assert wall.interval.low <= 1.0095
    assert wall.interval.high == pytest.approx(1.0095 * 1.5)


def test_spread_is_of_the_layouts_of_all_rounds() -> None:
    (summary,) = summarise_run(only(ADD, COUNT, tally(100, 1000, 1001), tally(100, 1100, 1101)))
    assert summary.count is not None
    assert summary.count.spread == pytest.approx(101 / 1001)


def spread_over(run: Run, *nodes: Node) -> Run:
    """The run with an outcome on each node."""
    pairs = zip(run.outcomes, nodes, strict=True)
    return dataclasses.replace(run, outcomes=tuple(dataclasses.replace(one, node=node) for one, node in pairs))


def test_rounds_of_another_processor_are_not_in_the_result() -> None:
    slower = times(10, *(t * 1.5 for t in NARROW))
    run = spread_over(only(ADD, WALL, times(10, *NARROW), slower), Node("a", "EPYC"), Node("b", "Xeon"))
    (summary,) = summarise_run(run)
    assert summary.wall is not None
    assert summary.wall.samples_s == pytest.approx(NARROW)
    assert summary.caveats == (OtherPlaces(metric="wall", rounds=1, of=2, what=("cpu",), nodes=("b",)),)
    assert summary.nodes == (Node("a", "EPYC"),)
    assert summary.missing == ()


def test_rounds_of_alike_nodes_are_taken_together() -> None:
    nodes = Node("a", "EPYC"), Node("b", "EPYC")
    (summary,) = summarise_run(spread_over(only(ADD, WALL, times(10, *NARROW), times(10, *NARROW)), *nodes))
    assert summary.wall is not None
    assert (summary.wall.times.samples, summary.nodes, summary.caveats) == (40, nodes, ())


def test_a_count_of_another_torch_does_not_move_the_median() -> None:
    run = only(ADD, COUNT, tally(100, 1000), tally(100, 5000))
    first, second = run.outcomes
    assert second.environment is not None
    upgraded = dataclasses.replace(second.environment, torch_version="2.14.0")
    mixed = dataclasses.replace(run, outcomes=(first, dataclasses.replace(second, environment=upgraded)))
    (summary,) = summarise_run(mixed)
    assert summary.count is not None
    assert (summary.count.instructions, summary.count.spread) == (10.0, None)
    assert summary.caveats == (OtherPlaces("count", 1, 2, ("torch",)),)
