from __future__ import annotations

import dataclasses
import random
import threading
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from typing import Any

import pytest

from tests.places import RAISED, Effect, FakePlace, MortalPlace, paired_case, showing, steady, verdict
from tests.sampling import allowed_error
from torchmark.analysis.verdict.sequential import CONFIRM_RATE
from torchmark.compare import joint_timing
from torchmark.compare.experiment import (
    CaseReport,
    LostCase,
    Note,
    SequentialComparison,
    Settings,
    Timing,
    ignore_progress,
)
from torchmark.compare.joint_timing import JointProgress, SiteCases, Stage, confirm_jointly, run_concurrently
from torchmark.errors import PlaceLost, SetupError
from torchmark.model.job import BlockPlan, PairedCase, Visit
from torchmark.model.judgement import Verdict
from torchmark.processes import StopRequest
from torchmark.runner.paired_workers import Failures


def never() -> None:
    raise AssertionError("nobody is to leave")


def giving(*values: int) -> Stage[int]:
    return lambda note: iter(values)


def test_all_that_is_given_arrives_in_the_order_of_each() -> None:
    given = list(run_concurrently([giving(*range(100)), giving(*range(1000, 1100)), giving()], ignore_progress, never))
    assert sorted(given) == [*range(100), *range(1000, 1100)]
    assert [one for one in given if one < 1000] == list(range(100))


def test_nothing_and_one_need_no_thread() -> None:
    def where(note: Note) -> Iterator[threading.Thread]:
        yield threading.current_thread()

    assert list(run_concurrently([], ignore_progress, never)) == []
    assert list(run_concurrently([where], ignore_progress, never)) == [threading.current_thread()]


def test_an_error_has_the_others_leave_and_is_raised() -> None:
    left = threading.Event()

    def wait(note: Note) -> Iterator[int]:
        assert left.wait(60)
        yield 1

    def fail(note: Note) -> Iterator[int]:
        raise ValueError("this one")
        yield 0

    with pytest.raises(ValueError, match="this one"):
        list(run_concurrently([wait, fail], ignore_progress, left.set))
    assert left.is_set()


def test_how_far_they_are_is_told_of_all_together() -> None:
    both = threading.Barrier(2, timeout=60)

    def work(note: Note) -> Iterator[int]:
        note("look 1", 3, 10)
        both.wait()
        note("look 1", 4, 10)
        yield from ()

    heard: list[tuple[str, int, int]] = []
    list(run_concurrently([work, work], lambda *told: heard.append(told), never))
    assert heard[:2] == [("look 1", 3, 10), ("look 1", 6, 20)]
    assert {of for _, _, of in heard[1:]} == {20}


def test_what_was_told_of_several_adds_up() -> None:
    heard: list[tuple[str, int, int]] = []
    sums = JointProgress(lambda *told: heard.append(told))
    sums.add(0, "layouts", 1, 12)
    sums.add(1, "layouts", 2, 12)
    sums.add(0, "look 1", 0, 5)
    sums.add(1, "look 1", 3, 6)
    sums.add(0, "layouts", 4, 12)
    sums.add(0, "confirming", 1, 2)
    sums.end(1)
    sums.end(0)
    assert heard == [
        ("layouts", 1, 12),
        ("layouts", 3, 24),
        # Who is ahead has done all of what the other is at.
        ("layouts", 14, 24),
        ("look 1", 3, 11),
        # What is done for the second time is another thing.
        ("look 1", 8, 11),
        ("look 1", 8, 11),
        ("confirming", 1, 2),
    ]


GONE = LostCase("Node 7 does not answer.")


def site(place: FakePlace, names: Sequence[str], stop: StopRequest | None = None) -> SiteCases:
    experiment = SequentialComparison(place, Settings(), stop=stop, now=lambda: place.now)
    return SiteCases(experiment, tuple(names), lambda: {name: paired_case(name) for name in names})


def more(one: SiteCases, names: Sequence[Hashable]) -> SiteCases:
    """The same place with other names."""
    return SiteCases(one.experiment, tuple(names), lambda: {name: paired_case(str(name)) for name in names})


def collect(told: Iterator[CaseReport]) -> dict[Any, Timing | LostCase]:
    found: dict[Any, Timing | LostCase] = {}
    for key, one in told:
        assert key not in found
        found[key] = one
    return found


def decided(found: Mapping[Any, Timing | LostCase], name: str) -> Verdict:
    timing = found[name]
    assert isinstance(timing, Timing)
    return verdict(timing)


def without_seconds(timing: Timing | LostCase) -> Timing | LostCase:
    if isinstance(timing, LostCase) or timing.evidence is None:
        return timing
    return dataclasses.replace(timing, evidence=dataclasses.replace(timing.evidence, seconds=0, needed_s=None))


def plant() -> dict[str, Effect | Failures]:
    """Of everything some."""
    effects: dict[str, Effect | Failures] = {f"calm {i}": steady(f"calm {i}") for i in range(8)}
    effects |= {f"slow {i}": steady(f"slow {i}", 0.012) for i in range(6)}
    effects |= {f"fast {i}": steady(f"fast {i}", -0.03) for i in range(3)}
    effects |= {f"loud {i}": steady(f"loud {i}", sd=0.05) for i in range(3)}
    effects |= {f"seen {p}": showing(p) for p in (0.001, 0.004, 0.009, 0.015, 0.02, 0.3)}
    effects["moody"] = lambda layout, number: 0.012 * (-1) ** layout + 0.0001 * (number % 3)
    effects["broken"] = RAISED
    return effects


def test_several_places_say_what_one_says() -> None:
    effects = plant()
    names = list(effects)
    alone = collect(confirm_jointly([site(FakePlace(effects), names)]))
    together = collect(confirm_jointly([site(FakePlace(effects), names[i::4]) for i in range(4)]))
    assert {key: without_seconds(one) for key, one in together.items()} == {
        key: without_seconds(one) for key, one in alone.items()
    }
    assert {decided(alone, name) for name in names if name != "broken"} == {
        Verdict.SAME,
        Verdict.SLOWER,
        Verdict.FASTER,
        Verdict.UNDECIDED,
    }


def call(shares: Sequence[Sequence[float]]) -> set[str]:
    """Which changes are called so that are seen again with these p values, each place its own."""
    effects = [{f"{i} {p}": showing(p) for p in share} for i, share in enumerate(shares)]
    found = collect(confirm_jointly([site(FakePlace(one), list(one)) for one in effects]))
    return {name for name in found if decided(found, name) is Verdict.SLOWER}


def test_a_change_that_its_own_place_would_believe_is_held_to_all() -> None:
    # By itself 0.02 is held to 0.025; as the smaller of two it is held to half of that.
    assert call([[0.02]]) == {"0 0.02"}
    assert call([[0.02], [0.9]]) == set()


def test_a_change_that_its_own_place_would_not_believe_is_believed_with_all() -> None:
    # The smaller of two is held to 0.0125, the third of four to 0.01875.
    assert call([[0.018, 0.9]]) == set()
    assert call([[0.018, 0.9], [0.001, 0.002]]) == {"0 0.018", "1 0.001", "1 0.002"}


# --- places that are lost ----------------------------------------------------------------------------


def test_what_is_final_stays_when_its_place_is_lost_in_screening() -> None:
    effects = {name: steady(name, 0.03 if "slow" in name else 0.0) for name in ("a", "slow", "deadly", "after", "b")}
    mortal = MortalPlace(effects, lambda name, layout: name == "deadly")
    found = collect(confirm_jointly([site(mortal, ["a", "slow", "deadly", "after"]), site(FakePlace(effects), ["b"])]))
    assert decided(found, "a") is Verdict.SAME
    assert decided(found, "b") is Verdict.SAME
    assert {name: found[name] for name in ("slow", "deadly", "after")} == dict.fromkeys(
        ("slow", "deadly", "after"), GONE
    )


def test_those_that_remain_are_corrected_for_those_that_remain() -> None:
    effects: dict[str, Effect] = {"weak": showing(0.02), "none": showing(0.9), "calm": steady("calm")}
    mortal = MortalPlace(effects, lambda name, layout: layout >= 6)
    found = collect(confirm_jointly([site(FakePlace(effects), ["weak"]), site(mortal, ["none", "calm"])]))
    assert found["none"] == GONE
    assert decided(found, "calm") is Verdict.SAME
    assert decided(found, "weak") is Verdict.SLOWER


def test_what_is_lost_and_held_elsewhere_counts_among_all() -> None:
    effects: dict[str, Effect] = {"weak": showing(0.02), "none": showing(0.9)}
    mortal = MortalPlace(effects, lambda name, layout: layout >= 6)
    safe = site(FakePlace(effects), ["weak"])
    heard: list[Mapping[Hashable, LostCase]] = []

    def deal_again(lost: Mapping[Hashable, LostCase]) -> Sequence[SiteCases]:
        heard.append(lost)
        return [more(safe, tuple(lost))]

    found = collect(confirm_jointly([safe, site(mortal, ["none"])], deal_again))
    assert heard == [{"none": GONE}]
    assert {name: decided(found, name) for name in found} == dict.fromkeys(("weak", "none"), Verdict.UNDECIDED)


def test_a_change_that_was_believed_stays_when_its_place_is_lost_afterwards() -> None:
    effects: dict[str, Effect] = {"clear": showing(0.0001), "weak": showing(0.2)}
    mortal = MortalPlace(
        effects,
        lambda name, layout: name == "weak" and all(mortal.visits["weak", fresh] == 2 for fresh in range(6, 12)),
    )
    dealt: list[Sequence[Hashable]] = []
    safe = site(FakePlace(effects), [])

    def deal_again(lost: Mapping[Hashable, LostCase]) -> Sequence[SiteCases]:
        dealt.append(tuple(lost))
        return [more(safe, tuple(lost))]

    found = collect(confirm_jointly([site(mortal, ["weak", "clear"])], deal_again))
    # In the second attempt, which only what was not believed in the first one has.
    assert mortal.is_gone
    assert dealt == [("weak",)]
    assert decided(found, "clear") is Verdict.SLOWER
    assert decided(found, "weak") is Verdict.UNDECIDED


def test_what_more_layouts_have_told_stays_when_their_place_is_lost() -> None:
    def moody(layout: int, number: int) -> float:
        return (0.012 if layout % 2 else -0.012) + 0.0001 * (number % 3)

    mortal = MortalPlace({"moody": moody, "deadly": moody}, lambda name, layout: name == "deadly" and layout >= 6)
    found = collect(confirm_jointly([site(mortal, ["moody", "deadly"])]))
    assert found["deadly"] == GONE
    timing = found["moody"]
    assert isinstance(timing, Timing)
    assert timing.evidence is not None
    assert timing.evidence.layouts == 12


def test_a_place_can_be_lost_while_pairs_are_made() -> None:
    def prepare() -> Mapping[Any, PairedCase | Timing]:
        raise PlaceLost(GONE.reason)

    effects = {"a": steady("a"), "b": steady("b")}
    safe = site(FakePlace(effects), ["a"])
    lost = SiteCases(site(FakePlace({}), []).experiment, ("b",), prepare)
    assert collect(confirm_jointly([safe, lost]))["b"] == GONE
    safe = site(FakePlace(effects), ["a"])
    lost = SiteCases(site(FakePlace({}), []).experiment, ("b",), prepare)
    found = collect(confirm_jointly([safe, lost], lambda gone: [more(safe, tuple(gone))]))
    assert decided(found, "b") is Verdict.SAME


@pytest.mark.parametrize("layout", [0, 6])
def test_all_places_can_be_lost(layout: int) -> None:
    effects = {f"slow {i}": steady(f"slow {i}", 0.03) for i in range(4)}
    places = [MortalPlace(effects, lambda name, at: at >= layout) for _ in range(2)]
    names = list(effects)
    assert collect(confirm_jointly([site(places[0], names[:2]), site(places[1], names[2:])])) == dict.fromkeys(
        names, GONE
    )


# --- stopping ----------------------------------------------------------------------------------------


def test_once_stopping_is_requested_all_places_tell_what_they_know() -> None:
    stop = StopRequest()
    effects = {name: steady(name, sd=0.05) for name in ("a", "b", "c", "d")}

    def stopping(layout: int, number: int) -> float:
        stop.request()
        return 0.0

    places = [FakePlace({**effects, "b": stopping}) for _ in range(2)]
    found = collect(confirm_jointly([site(places[0], ["a", "b"], stop), site(places[1], ["c", "d"], stop)]))
    assert sorted(found) == ["a", "b", "c", "d"]
    assert not any(isinstance(one, LostCase) for one in found.values())
    assert places[0].visits["b", 0] + places[0].visits["b", 1] <= 6


class SlowPlace(FakePlace):
    """A place whose visits of some paired_cases last until they are let go on."""

    def __init__(self, effects: Mapping[str, Effect | Failures], slow: str) -> None:
        super().__init__(effects)
        self.slow = slow
        self.is_reached, self.may_go_on = threading.Event(), threading.Event()
        self.thread = threading.current_thread()

    def visit(self, layout: int, one: PairedCase, pace: BlockPlan) -> Visit | Failures:
        if one.base.stmt == self.slow:
            self.thread = threading.current_thread()
            self.is_reached.set()
            assert self.may_go_on.wait(60)
        return super().visit(layout, one, pace)


def test_nothing_more_is_begun_after_it_was_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(joint_timing, "PARTING_S", 0.0)
    effects = {name: steady(name) for name in ("a", "b", "c")}
    places = [SlowPlace(effects, slow) for slow in ("b", "c")]
    told = confirm_jointly([site(places[0], ["a", "b"]), site(places[1], ["c"])])
    assert next(told)[0] == "a"
    for place in places:
        assert place.is_reached.wait(60)
    told.close()
    for place in places:
        place.may_go_on.set()
        place.thread.join(60)
        assert not place.thread.is_alive()
        # The visit that was under way, and no other.
        assert sum(number for (name, _), number in place.visits.items() if name == place.slow) == 1


def test_threads_are_waited_for_when_it_is_closed() -> None:
    before = set(threading.enumerate())
    effects = {str(i): steady(str(i), sd=0.05) for i in range(20_000)}
    effects |= {name: steady(name) for name in ("first", "second")}
    places = [FakePlace(effects) for _ in range(2)]
    names = list(effects)[:-2]
    told = confirm_jointly([site(places[0], ["first", *names[::2]]), site(places[1], ["second", *names[1::2]])])
    assert next(told)[0] in ("first", "second")
    assert set(threading.enumerate()) - before
    told.close()
    assert set(threading.enumerate()) <= before


def test_what_a_place_lacks_is_an_error_for_all() -> None:
    class Lacking(FakePlace):
        def start(self, *_: Any) -> None:
            raise SetupError("No python3.", missing="python", advice="Name another.")

    effects = {name: steady(name) for name in ("a", "b")}
    with pytest.raises(SetupError, match=r"No python3\."):
        collect(confirm_jointly([site(FakePlace(effects), ["a"]), site(Lacking(effects), ["b"])]))


def test_one_place_has_no_thread_and_several_have_one_each() -> None:
    class Watched(FakePlace):
        threads: set[threading.Thread]

        def visit(self, layout: int, one: PairedCase, pace: BlockPlan) -> Visit | Failures:
            self.threads = {threading.current_thread()}
            return super().visit(layout, one, pace)

    effects = {name: steady(name, sd=0.05) for name in ("a", "b")}
    alone, *several = (Watched(effects) for _ in range(3))
    told: list[threading.Thread] = []
    note: Note = lambda what, done, of: told.append(threading.current_thread())  # noqa: E731
    collect(confirm_jointly([site(alone, ["a", "b"])], note=note))
    assert alone.threads == {threading.current_thread()}
    collect(confirm_jointly([site(place, [name]) for place, name in zip(several, "ab", strict=True)], note=note))
    assert len({threading.current_thread()}.union(*(place.threads for place in several))) == 3
    # Who shows how far it is need not care for threads.
    assert set(told) == {threading.current_thread()}


# --- how often it is wrong ---------------------------------------------------------------------------


class Fool(SequentialComparison):
    """An experiment in which nothing is a change, and whose p values are drawn at random."""

    def __init__(self, chance: random.Random, lives: float) -> None:
        self._chance = chance
        self._lives = lives
        self._to_see: list[Hashable] = []
        self._seen: list[tuple[Hashable, float]] = []
        self._called: list[Hashable] = []
        self.is_wrong = False
        self.is_lost = False

    @property
    def is_busy(self) -> bool:
        return bool(self._to_see)

    @property
    def p_values(self) -> tuple[float, ...]:
        return tuple(p for _, p in self._seen)

    def pursue(
        self, paired_cases: Mapping[Hashable, PairedCase], attempt: int, note: Note
    ) -> Iterator[tuple[Hashable, Timing]]:
        self._to_see += paired_cases
        if self._chance.random() > self._lives:
            raise PlaceLost(GONE.reason)
        self._seen += [(key, self._chance.random()) for key in self._to_see]
        self._to_see = []
        yield from ()

    def settle(self, accepted: Sequence[bool]) -> None:
        for (key, _), is_accepted in zip(self._seen, accepted, strict=True):
            (self._called if is_accepted else self._to_see).append(key)
        self._seen = []
        self.is_wrong = self.is_wrong or any(accepted)

    def conclude(self) -> Iterator[tuple[Hashable, Timing]]:
        yield from ((key, Timing(None)) for key in (*self._to_see, *self._called))

    def give_up(self, lost: LostCase) -> Iterator[CaseReport]:
        self.is_lost = True
        keys, called = [*self._to_see, *(key for key, _ in self._seen)], self._called
        self._to_see, self._seen, self._called = [], [], []
        yield from ((key, Timing(None)) for key in called)
        yield from ((key, lost) for key in keys)

    def leave(self) -> None:
        raise AssertionError("nobody leaves")


def one_by_one(stages: Sequence[Stage[CaseReport]], note: Note, leave: Callable[[], None]) -> Iterator[CaseReport]:
    """Without threads, for speed."""
    for stage in stages:
        yield from stage(note)


@pytest.mark.parametrize("lives", [1.0, 0.8])
def test_where_nothing_changed_anything_is_called_so_no_more_often_than_promised(
    lives: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(joint_timing, "run_concurrently", one_by_one)
    juries, wrong = 4000, 0
    for seed in range(juries):
        fools = [Fool(random.Random(f"{seed} {number}"), lives) for number in range(4)]

        def seat(keys: Sequence[Hashable], fools: Sequence[Fool] = fools) -> list[SiteCases]:
            left = [fool for fool in fools if not fool.is_lost]
            shares = [tuple(keys[i :: len(left)]) for i in range(len(left))]
            return [more(SiteCases(fool, (), dict), share) for fool, share in zip(left, shares, strict=True) if share]

        def seat_again(
            lost: Mapping[Hashable, LostCase], seat: Callable[..., list[SiteCases]] = seat
        ) -> list[SiteCases]:
            return seat(tuple(lost))

        found = collect(confirm_jointly(seat(range(12)), seat_again))
        assert len(found) == 12
        wrong += any(fool.is_wrong for fool in fools)
    # Four places that each keep to the rate by themselves would be wrong in 18 of 100 cases.
    assert abs(wrong / juries - CONFIRM_RATE) <= allowed_error(CONFIRM_RATE, juries)


def test_in_several_places_no_more_of_what_did_not_change_is_called_changed_than_promised() -> None:
    # Layouts are further apart than visits are: that is what screening is misled by.
    def of_layout(name: str) -> Effect:
        centres = [random.Random(f"{name} {layout}").gauss(0, 0.006) for layout in range(12)]
        return lambda layout, number: centres[layout] + 0.0001 * (number % 3)

    names = [str(i) for i in range(300)]
    effects = {name: of_layout(name) for name in names}
    found = collect(confirm_jointly([site(FakePlace(effects), names[i::4]) for i in range(4)]))
    called = sum(decided(found, name) in (Verdict.SLOWER, Verdict.FASTER) for name in names)
    assert called / len(names) <= 0.0025 + allowed_error(0.0025, len(names))
    assert any(one.evidence.confirmed is False for one in found.values() if isinstance(one, Timing) and one.evidence)
