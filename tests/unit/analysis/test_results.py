from __future__ import annotations

import dataclasses

import pytest

from tests.sample_runs import ADD, COUNT, WALL, only, tally, times
from torchmark.analysis.results import summarise_run
from torchmark.model.caveat import FewSamples, OtherPlaces, TwoModes
from torchmark.model.node import Node
from torchmark.model.run import Run
from torchmark.model.summary import CaseSummary
from torchmark.model.times import Times

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
