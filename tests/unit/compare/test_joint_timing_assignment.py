"""Entries of a comparison in several sites: each in one, and in another one if that is lost."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence

import pytest

from tests.places import RAISED, Effect, MortalPlace, paired_case, steady, verdict
from tests.sample_runs import EAGER
from torchmark.compare.comparison import ComparedPair, Comparison, Evidence
from torchmark.compare.experiment import PairSite, Timing
from torchmark.compare.joint_timing import MOST_TRIES, assign_evenly, time_sides
from torchmark.errors import PlaceLost
from torchmark.model.caveats import NotTimed
from torchmark.model.job import PairedCase
from torchmark.model.judgement import Side, Verdict
from torchmark.model.outcome import FailureKind
from torchmark.model.plan import Case, Target, TimerArgs
from torchmark.processes import StopRequest

BASE, HEAD = Target("base", "/a"), Target("head", "/b")
Dies = Callable[[str, int], bool]


def entry(name: str) -> ComparedPair:
    case = Case((name,), EAGER, TimerArgs(name))
    return ComparedPair(case, case)


def name_of(one: ComparedPair) -> str:
    return one.head.args.stmt


class FakeSite:
    """A site with a place where nothing runs; effects are found by the statement."""

    def __init__(self, effects: Mapping[str, Effect], dies: Dies = lambda name, layout: False) -> None:
        self._place = MortalPlace(effects, dies)
        self.known: dict[str, Timing] = {}
        self.log: list[str] = []

    def prepare(self, entries: Sequence[ComparedPair]) -> dict[ComparedPair, PairedCase | Timing]:
        self.log += [name_of(one) for one in entries]
        return {one: self.known.get(name_of(one)) or paired_case(name_of(one)) for one in entries}

    @property
    def place(self) -> PairSite:
        if "opened" not in self.log:
            self.log.append("opened")
        return self._place

    def close(self) -> None:
        raise AssertionError("that is for whoever opened it")


def plant(number: int) -> dict[str, Effect]:
    return {f"case {i}": steady(f"case {i}", 0.03 if i % 3 == 0 else 0.0) for i in range(number)}


def run(effects: Mapping[str, Effect], sites: Sequence[FakeSite], stop: StopRequest | None = None) -> dict[str, Timing]:
    comparison = Comparison(tuple(entry(name) for name in effects), BASE, HEAD)
    evidence = Evidence()
    told = list(time_sides(comparison, sites, evidence, stop or StopRequest()))
    assert Counter(told) == Counter(comparison.entries)
    return {name_of(one): timing for one, timing in evidence.timed.items()}


def verdicts(found: Mapping[str, Timing]) -> dict[str, Verdict]:
    return {name: verdict(timing) for name, timing in found.items()}


def test_each_entry_is_timed_in_one_venue_and_all_have_as_many() -> None:
    effects = plant(10)
    sites = [FakeSite(effects) for _ in range(3)]
    found = run(effects, sites)
    assert sorted(len(site.log) for site in sites) == [4, 4, 5]
    for site in sites:
        assert site.log[-1] == "opened"
        visited = {name for name, _ in site._place.visits}
        assert visited == set(site.log[:-1])
    assert verdicts(found) == verdicts(run(effects, [FakeSite(effects)]))
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
    effects = {"compiles": steady("compiles"), "broken": steady("broken")}
    site = FakeSite(effects)
    site.known = {"compiles": Timing(None, (NotTimed("compiles"),)), "broken": Timing(None, failures=RAISED)}
    assert run(effects, [site]) == site.known
    assert "opened" not in site.log


# --- sites that are lost ----------------------------------------------------------------------------


@pytest.mark.parametrize("layout", [0, 6])
def test_what_is_lost_with_its_venue_is_timed_in_the_others(layout: int) -> None:
    effects = plant(12)
    sites = [FakeSite(effects), FakeSite(effects, lambda name, at: at >= layout), FakeSite(effects)]
    found = run(effects, sites)
    assert verdicts(found) == verdicts(run(effects, [FakeSite(effects)]))
    mortal = {name for name in sites[1].log if name != "opened"}
    again = {name for name in mortal for site in (sites[0], sites[2]) if name in site.log}
    assert again == (mortal if layout == 0 else {name for name in mortal if verdicts(found)[name] is Verdict.SLOWER})
    assert all("opened" in site.log for site in sites)


def test_a_venue_can_be_lost_before_anything_is_timed_there() -> None:
    class Unprepared(FakeSite):
        def prepare(self, entries: Sequence[ComparedPair]) -> dict[ComparedPair, PairedCase | Timing]:
            raise PlaceLost("It is gone.")

    class Unopened(FakeSite):
        @property
        def place(self) -> PairSite:
            raise PlaceLost("It is gone.")

    effects = plant(9)
    found = run(effects, [Unprepared(effects), FakeSite(effects), Unopened(effects)])
    assert verdicts(found) == verdicts(run(effects, [FakeSite(effects)]))


@pytest.mark.parametrize("number", [1, 3])
def test_with_no_venue_left_that_is_what_is_told(number: int) -> None:
    effects = plant(4)
    found = run(effects, [FakeSite(effects, lambda name, layout: True) for _ in range(number)])
    for timing in found.values():
        assert timing.evidence is None
        assert [one.side for one in timing.failures] == list(Side)
        assert {one.failure.kind for one in timing.failures} == {FailureKind.WORKER_DIED}
        assert "Node 7 does not answer." in timing.failures[0].failure.message
    if number == 1:
        assert "no other left" in found["case 0"].failures[0].failure.message


def test_what_takes_one_venue_down_after_the_other_is_not_given_to_all_of_them() -> None:
    effects = plant(20)
    sites = [FakeSite(effects, lambda name, layout: name == "case 7") for _ in range(MOST_TRIES + 2)]
    found = run(effects, sites)
    assert f"{MOST_TRIES} times in a row" in found.pop("case 7").failures[0].failure.message
    expected = verdicts(run(effects, [FakeSite(effects)]))
    del expected["case 7"]
    assert verdicts(found) == expected
    assert sum(site._place.is_gone for site in sites) == MOST_TRIES
    assert sum("case 7" in site.log for site in sites) == MOST_TRIES


def test_once_stopping_is_requested_nothing_is_dealt_again() -> None:
    effects, stop = plant(6), StopRequest()

    def dies(name: str, layout: int) -> bool:
        stop.request()
        return True

    sites = [FakeSite(effects, dies), FakeSite(effects, dies)]
    found = run(effects, sites, stop)
    assert set(found.values()) == {Timing(None)}
    assert sum(len(site.log) for site in sites) == 6 + 2
