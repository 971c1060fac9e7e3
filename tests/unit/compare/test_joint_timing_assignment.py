"""Entries of a comparison in several nodes: each in one, and in another one if that is lost."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence

import pytest

from tests.compiled_cases import make_case as make_compiled
from tests.places import RAISED, Effect, MortalPlace, paired_case, steady, verdict
from tests.sample_runs import EAGER
from torchmark.compare.comparison import ComparedPair, Comparison, Evidence
from torchmark.compare.experiment import Timing, ignore_progress
from torchmark.compare.joint_timing import MOST_TRIES, assign_evenly, time_sides
from torchmark.errors import PlaceLost
from torchmark.model.caveats import NotTimed
from torchmark.model.job import PairedCase
from torchmark.model.judgement import Side, Verdict
from torchmark.model.outcome import FailureKind
from torchmark.model.plan import Case, Target, TimerArgs
from torchmark.processes import StopRequest
from torchmark.runner.paired_workers import Failures

BASE, HEAD = Target("base", "/a"), Target("head", "/b")
Dies = Callable[[str, int], bool]


def entry(name: str) -> ComparedPair:
    case = Case((name,), EAGER, TimerArgs(name))
    return ComparedPair(case, case)


def name_of(one: ComparedPair) -> str:
    return one.head.args.stmt


class FakeNode(MortalPlace):
    """A place where nothing runs; effects are found by the statement."""

    def __init__(self, effects: Mapping[str, Effect], dies: Dies = lambda name, layout: False) -> None:
        super().__init__(effects, dies)
        self.known: dict[str, Failures] = {}
        self.assigned: list[str] = []

    def prepare(self, pairs: Sequence[tuple[Case, Case]]) -> Sequence[PairedCase | Failures]:
        names = [head.args.stmt for _, head in pairs]
        self.assigned += names
        return [self.known.get(name) or paired_case(name) for name in names]


def plant(number: int) -> dict[str, Effect]:
    return {f"case {i}": steady(f"case {i}", 0.03 if i % 3 == 0 else 0.0) for i in range(number)}


def run(effects: Mapping[str, Effect], nodes: Sequence[FakeNode], stop: StopRequest | None = None) -> dict[str, Timing]:
    comparison = Comparison(tuple(entry(name) for name in effects), BASE, HEAD)
    evidence = Evidence()
    told = list(time_sides(comparison, nodes, evidence, stop or StopRequest(), ignore_progress))
    assert all(node.is_closed for node in nodes)
    assert Counter(told) == Counter(comparison.entries)
    return {name_of(one): timing for one, timing in evidence.timed.items()}


def verdicts(found: Mapping[str, Timing]) -> dict[str, Verdict]:
    return {name: verdict(timing) for name, timing in found.items()}


def test_each_entry_is_timed_in_one_venue_and_all_have_as_many() -> None:
    effects = plant(10)
    nodes = [FakeNode(effects) for _ in range(3)]
    found = run(effects, nodes)
    assert sorted(len(node.assigned) for node in nodes) == [3, 3, 4]
    for node in nodes:
        assert {name for name, _ in node.visits} == set(node.assigned)
    assert verdicts(found) == verdicts(run(effects, [FakeNode(effects)]))
    assert set(verdicts(found).values()) == {Verdict.SAME, Verdict.SLOWER}


def test_hands_are_the_same_each_time_and_in_order() -> None:
    assert assign_evenly("abcdef", 1) == [list("abcdef")]
    hands = assign_evenly(range(100), 4)
    assert hands == assign_evenly(range(100), 4)
    assert sorted(number for hand in hands for number in hand) == list(range(100))
    assert all(hand == sorted(hand) and len(hand) == 25 for hand in hands)
    # What alternates is not all in one hand.
    assert all(5 < sum(number % 2 for number in hand) < 20 for hand in hands)


def test_what_cannot_be_held_is_told_and_no_place_is_opened_for_it() -> None:
    compiled = make_compiled("eager")
    comparison, evidence = Comparison((ComparedPair(compiled, compiled), entry("broken")), BASE, HEAD), Evidence()
    node = FakeNode({})
    node.known = {"broken": RAISED}
    told = list(time_sides(comparison, [node], evidence, StopRequest(), ignore_progress))
    assert [evidence.timed[one] for one in told] == [
        Timing(None, (NotTimed("compiles"),)),
        Timing(None, failures=RAISED),
    ]
    assert node.assigned == ["broken"]
    assert node.layouts == ()


# --- nodes that are lost ----------------------------------------------------------------------------


@pytest.mark.parametrize("layout", [0, 6])
def test_what_is_lost_with_its_venue_is_timed_in_the_others(layout: int) -> None:
    effects = plant(12)
    nodes = [FakeNode(effects), FakeNode(effects, lambda name, at: at >= layout), FakeNode(effects)]
    found = run(effects, nodes)
    assert verdicts(found) == verdicts(run(effects, [FakeNode(effects)]))
    mortal = set(nodes[1].assigned)
    again = {name for name in mortal for node in (nodes[0], nodes[2]) if name in node.assigned}
    assert again == (mortal if layout == 0 else {name for name in mortal if verdicts(found)[name] is Verdict.SLOWER})


def test_a_venue_can_be_lost_before_anything_is_timed_there() -> None:
    class Unprepared(FakeNode):
        def prepare(self, pairs: Sequence[tuple[Case, Case]]) -> Sequence[PairedCase | Failures]:
            raise PlaceLost("It is gone.")

    class Unopened(FakeNode):
        def start(self, layouts: Iterable[int], note: Callable[[int], None] = lambda _: None) -> None:
            raise PlaceLost("It is gone.")

    effects = plant(9)
    found = run(effects, [Unprepared(effects), FakeNode(effects), Unopened(effects)])
    assert verdicts(found) == verdicts(run(effects, [FakeNode(effects)]))


@pytest.mark.parametrize("number", [1, 3])
def test_with_no_venue_left_that_is_what_is_told(number: int) -> None:
    effects = plant(4)
    found = run(effects, [FakeNode(effects, lambda name, layout: True) for _ in range(number)])
    for timing in found.values():
        assert timing.evidence is None
        assert [one.side for one in timing.failures] == list(Side)
        assert {one.failure.kind for one in timing.failures} == {FailureKind.WORKER_DIED}
        assert "Node 7 does not answer." in timing.failures[0].failure.message
    if number == 1:
        assert "no other left" in found["case 0"].failures[0].failure.message


def test_what_takes_one_venue_down_after_the_other_is_not_given_to_all_of_them() -> None:
    effects = plant(20)
    nodes = [FakeNode(effects, lambda name, layout: name == "case 7") for _ in range(MOST_TRIES + 2)]
    found = run(effects, nodes)
    assert f"{MOST_TRIES} times in a row" in found.pop("case 7").failures[0].failure.message
    expected = verdicts(run(effects, [FakeNode(effects)]))
    del expected["case 7"]
    assert verdicts(found) == expected
    assert sum(node.is_gone for node in nodes) == MOST_TRIES
    assert sum("case 7" in node.assigned for node in nodes) == MOST_TRIES


def test_once_stopping_is_requested_nothing_is_dealt_again() -> None:
    effects, stop = plant(6), StopRequest()

    def dies(name: str, layout: int) -> bool:
        stop.request()
        return True

    nodes = [FakeNode(effects, dies), FakeNode(effects, dies)]
    found = run(effects, nodes, stop)
    assert set(found.values()) == {Timing(None)}
    assert sum(len(node.assigned) for node in nodes) == 6
