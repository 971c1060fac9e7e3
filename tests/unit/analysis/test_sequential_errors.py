"""The errors that the rule promises, by simulation: false alarms, coverage where it stops, wrong sameness, power."""

from __future__ import annotations

import dataclasses
import functools

import numpy as np
import pytest

from tests.sampling import allowed_error, assert_shares
from torchmark.analysis.verdict.sequential import CONFIRM_RATE, Look, StoppingRule, Visits, confirmation_p, look, settle
from torchmark.model.judgement import Verdict
from torchmark.stats.intervals import benjamini_hochberg

TRIALS = 1000
CHANGES = (Verdict.SLOWER, Verdict.FASTER)
RULE = StoppingRule()
# Without a floor the interval alone has to keep what is promised.
BARE = StoppingRule(floor=0.0)


@dataclasses.dataclass(frozen=True)
class World:
    """How far layouts and visits are apart. With modes, either side of a layout is slow or fast, by a coin."""

    layout_sd: float
    visit_sd: float
    layouts: int = 6
    modes: bool = False


QUIET = [World(0.0, 0.005), World(0.0015, 0.005), World(0.0025, 0.004), World(0.0025, 0.004, modes=True)]
LOUD = [World(0.01, 0.004), World(0.02, 0.003, layouts=4, modes=True), World(0.01, 0.005, layouts=3, modes=True)]
WORLDS = QUIET + LOUD
# The interval of two layouts does not hold there, so that nothing may be said on it.
TWO_LAYOUTS = World(0.02, 0.003, layouts=2, modes=True)


@dataclasses.dataclass(frozen=True)
class Trial:
    """The look that stopped it, and what was settled, if that had to be seen again on fresh layouts."""

    screened: Look
    settled: Look


def draw(rng: np.random.Generator, world: World, truth: float, trials: int, visits: int) -> list[list[list[float]]]:
    """Visits have heavy tails: t with three degrees of freedom, which has a variance of 3."""
    shape = (trials, world.layouts, 1)
    if world.modes:
        # The difference of two coins has a variance of 1/2.
        effects = world.layout_sd * np.sqrt(2) * (rng.integers(0, 2, shape) - rng.integers(0, 2, shape))
    else:
        effects = rng.normal(0, world.layout_sd, shape)
    noise = world.visit_sd / np.sqrt(3) * rng.standard_t(3, (trials, world.layouts, visits))
    drawn: list[list[list[float]]] = (truth + effects + noise).tolist()
    return drawn


def look_until_decided(visits: Visits, rule: StoppingRule) -> tuple[Visits, Look]:
    """What had been seen when it stopped, and the look that stopped it."""
    for count in rule.looks:
        seen = [layout[:count] for layout in visits]
        last = look(seen, rule)
        if last.verdict is not Verdict.UNDECIDED:
            break
    return seen, last


@functools.cache
def play(world: World, truth: float, rule: StoppingRule) -> list[Trial]:
    rng = np.random.default_rng(20)
    return [
        confirm(rng, world, truth, rule, *look_until_decided(visits, rule))
        for visits in draw(rng, world, truth, TRIALS, rule.looks[-1])
    ]


def confirm(
    rng: np.random.Generator, world: World, truth: float, rule: StoppingRule, visits: Visits, screened: Look
) -> Trial:
    if screened.layered is None or screened.verdict not in CHANGES:
        return Trial(screened, screened)
    [fresh] = draw(rng, world, truth, 1, len(visits[0]))
    [accepted] = benjamini_hochberg([confirmation_p(fresh, screened.layered.estimate)], CONFIRM_RATE)
    return Trial(screened, settle(visits, fresh, accepted, rule))


def assert_rare(events: list[bool], probability: float) -> None:
    assert sum(events) / len(events) <= probability + allowed_error(probability, len(events))


def covers(seen: Look, truth: float) -> bool:
    assert seen.layered is not None
    return seen.layered.low <= truth <= seen.layered.high


def test_a_single_look_over_normal_layouts_errs_just_as_often_as_it_says() -> None:
    rule = StoppingRule(alpha=0.25, looks=(1,), floor=0.0)
    drawn = np.random.default_rng(3).normal(0.01, 0.02, (4000, 5, 1)).tolist()
    assert rule.confidence == 0.875
    assert_shares([covers(look(visits, rule), 0.01) for visits in drawn], {True: 0.875, False: 0.125})


@pytest.mark.parametrize("world", [*WORLDS, TWO_LAYOUTS], ids=str)
def test_without_a_change_looking_again_raises_no_more_alarms_than_alpha(world: World) -> None:
    assert_rare([trial.screened.verdict in CHANGES for trial in play(world, 0.0, BARE)], BARE.alpha)


def test_many_looks_raise_no_more_alarms_than_alpha() -> None:
    # The hardest case: nothing but noise of visits, so that looks have little in common, and never the same to stop at.
    rule = StoppingRule(looks=(1, 2, 4, 8, 16, 32), floor=0.0, equivalence=0.0)
    drawn = np.random.default_rng(4).normal(0, 0.01, (TRIALS, 6, rule.looks[-1])).tolist()
    assert_rare([look_until_decided(visits, rule)[1].verdict in CHANGES for visits in drawn], rule.alpha)


@pytest.mark.parametrize("world", WORLDS, ids=str)
def test_fresh_layouts_confirm_what_is_not_there_no_more_often_than_their_rate(world: World) -> None:
    drawn = draw(np.random.default_rng(22), world, 0.0, TRIALS, 4)
    assert_rare([confirmation_p(fresh, 1) <= CONFIRM_RATE for fresh in drawn], CONFIRM_RATE)


def test_an_alarm_is_confirmed_by_accident_in_far_fewer_than_one_of_a_hundred_cases() -> None:
    alarms = [trial.settled.verdict in CHANGES for world in WORLDS for trial in play(world, 0.0, BARE)]
    assert_rare(alarms, BARE.alpha * CONFIRM_RATE)
    assert sum(alarms) / len(alarms) < 0.005


@pytest.mark.parametrize("truth", [0.0, 0.004, 0.01])
@pytest.mark.parametrize("world", WORLDS, ids=str)
def test_the_interval_covers_the_truth_where_it_stops_and_where_it_is_settled(world: World, truth: float) -> None:
    trials = play(world, truth, RULE)
    assert_rare([not covers(trial.screened, truth) for trial in trials], RULE.alpha)
    assert_rare([not covers(trial.settled, truth) for trial in trials], RULE.alpha)


@pytest.mark.parametrize("truth", [RULE.equivalence, -1.5 * RULE.equivalence])
@pytest.mark.parametrize("world", WORLDS, ids=str)
def test_a_change_of_equivalence_or_more_is_rarely_called_the_same(world: World, truth: float) -> None:
    assert_rare([trial.settled.verdict is Verdict.SAME for trial in play(world, truth, RULE)], RULE.alpha)


@pytest.mark.parametrize(("truth", "verdict"), [(0.01, Verdict.SLOWER), (-0.015, Verdict.FASTER), (0.0, Verdict.SAME)])
@pytest.mark.parametrize("world", QUIET, ids=str)
def test_clear_changes_are_found_and_sameness_is_shown(world: World, truth: float, verdict: Verdict) -> None:
    verdicts = [trial.settled.verdict for trial in play(world, truth, RULE)]
    assert verdicts.count(verdict) > 0.95 * len(verdicts)
