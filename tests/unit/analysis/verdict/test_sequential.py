"""From trials with known answers to what can be trusted."""

from __future__ import annotations

import dataclasses
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from torchmark.analysis.verdict.sequential import (
    MOST_VISITS,
    NORMAL_IQR,
    Look,
    StoppingRule,
    confirmation_p,
    fewest_layouts,
    floor_for,
    look,
    predict_visits,
    settle,
    summarise_trials,
)
from torchmark.model.gate import Trial
from torchmark.model.judgement import Verdict
from torchmark.stats import intervals
from torchmark.stats.layered import Layered, variance_of_centre


def trial(injected_s: float, verdict: Verdict, log_ratio: float = 0.0, seconds: float = 1.0) -> Trial:
    return Trial(injected_s, verdict, log_ratio, seconds)


def test_false_alarms_are_those_of_a_build_against_itself() -> None:
    trust = summarise_trials(
        [
            trial(0.0, Verdict.SLOWER, 0.04, 1.0),
            trial(0.0, Verdict.FASTER, -0.02, 2.0),
            trial(0.0, Verdict.SAME, 0.00, 3.0),
            trial(0.0, Verdict.UNDECIDED, 0.02, 4.0),
            trial(0.0, Verdict.SAME, 0.01, 5.0),
            trial(1e-8, Verdict.SLOWER, 0.01, 9.0),
        ]
    )
    assert (trust.trials, trust.false_alarms, trust.same) == (5, 2, 2)
    # Quartiles of -0.02, 0, 0.01, 0.02, 0.04 are 0 and 0.02.
    assert trust.sd == pytest.approx(0.02 / NORMAL_IQR)
    assert trust.seconds == 3.0
    assert trust.most_false > 2 / 5


def test_power_is_told_by_size_and_the_wrong_way_is_not_found() -> None:
    trials = [trial(2e-8, Verdict.SLOWER)] * 9 + [trial(2e-8, Verdict.FASTER)] + [trial(1e-8, Verdict.UNDECIDED)] * 4
    small, large = summarise_trials(trials).powers
    assert (small.injected_s, small.found, small.share) == (1e-8, 0, 0.0)
    assert (large.found, large.wrong_way, large.share) == (9, 1, 0.9)
    assert large.low < 0.9 < large.high


def test_the_smallest_that_is_seen_has_no_larger_one_that_is_not() -> None:
    seen, missed = Verdict.SLOWER, Verdict.SAME
    assert summarise_trials([trial(1.0, seen), trial(2.0, missed), trial(3.0, seen)]).smallest_seen_s == 3.0
    assert summarise_trials([trial(1.0, missed), trial(2.0, seen), trial(3.0, seen)]).smallest_seen_s == 2.0
    assert summarise_trials([trial(1.0, seen), trial(2.0, missed)]).smallest_seen_s is None
    assert summarise_trials([trial(0.0, missed)]).smallest_seen_s is None


# Five looks, each with a confidence of 99 %: round numbers for what is worked by hand.
LOOKS = (2, 4, 6, 10)
RULE = StoppingRule(looks=LOOKS)
SLOWER = [[0.018], [0.020], [0.022]]
RATIOS = st.floats(-0.05, 0.05).map(lambda value: round(value, 6))
VISITS = st.lists(st.lists(RATIOS, max_size=4), max_size=8)
OPPOSITE = {Verdict.SLOWER: Verdict.FASTER, Verdict.FASTER: Verdict.SLOWER}


def test_looks_and_one_more_share_the_error() -> None:
    assert RULE.planned == 5
    assert RULE.confidence == pytest.approx(0.99)
    assert StoppingRule().planned == len(StoppingRule().looks) + 1
    assert StoppingRule(alpha=0.01, looks=(3,)).confidence == pytest.approx(0.995)


# Of t with two degrees of freedom 99 % lie within 0.99 · sqrt(2 / (1 - 0.99²)) = 9.925. So centres that are s apart
# have an interval of plus and minus 9.925 · s / sqrt(3) = 5.730 s.
@pytest.mark.parametrize(
    ("centres", "verdict"),
    [
        ((0.018, 0.020, 0.022), Verdict.SLOWER),  # 0.0085 to 0.0315
        ((-0.018, -0.020, -0.022), Verdict.FASTER),
        ((0.016, 0.020, 0.024), Verdict.UNDECIDED),  # -0.0029 to 0.0429
        ((-0.001, 0.000, 0.001), Verdict.SAME),  # -0.0057 to 0.0057
        ((-0.002, 0.000, 0.002), Verdict.UNDECIDED),  # -0.0115 to 0.0115
        ((0.0049, 0.0050, 0.0051), Verdict.SLOWER),  # all of it is within 1 %, and still it is a change
        ((0.0028, 0.0029, 0.0030), Verdict.SAME),  # clear of zero, and below the floor
        ((0.0030, 0.0030, 0.0030), Verdict.SLOWER),
        ((0.0, 0.0, 0.0), Verdict.SAME),
    ],
)
def test_what_a_look_says_by_hand(centres: tuple[float, ...], verdict: Verdict) -> None:
    seen = look([[centre] for centre in centres], RULE)
    assert seen.verdict is verdict
    assert seen.layered is not None
    middle, half = centres[1], 5.730 * (max(centres) - centres[1])
    assert (seen.layered.low, seen.layered.high) == pytest.approx((middle - half, middle + half), abs=1e-5)


def test_below_the_floor_and_beyond_equivalence_is_undecided() -> None:
    centres = [[0.0118], [0.0120], [0.0122]]
    assert look(centres, StoppingRule(looks=LOOKS, floor=0.03)).verdict is Verdict.UNDECIDED
    assert look(centres, StoppingRule(looks=LOOKS, floor=0.03, equivalence=0.03)).verdict is Verdict.SAME
    assert look(centres, StoppingRule(looks=LOOKS, floor=0.01)).verdict is Verdict.SLOWER


@pytest.mark.parametrize("visits", [[], [[]], [[0.1, 0.1]]])
def test_fewer_than_two_layouts_show_nothing(visits: list[list[float]]) -> None:
    assert look(visits, RULE) == Look(Verdict.UNDECIDED, None)


def test_layouts_that_may_agree_by_accident_have_an_interval_and_no_verdict() -> None:
    # Two agree by accident in one of eight comparisons, three in one of 32, four in one of 128.
    assert [fewest_layouts(error) for error in (0.5, 0.2, 0.05, 0.03, 0.01, 0.001)] == [2, 2, 3, 4, 4, 6]
    two = look(SLOWER[:1] * 2, RULE)
    assert two.verdict is Verdict.UNDECIDED
    assert two.layered is not None
    assert predict_visits(two, RULE) is None
    assert look(SLOWER, StoppingRule(alpha=0.01, looks=LOOKS)).verdict is Verdict.UNDECIDED
    assert look(SLOWER, StoppingRule(alpha=0.25, looks=(1,))).verdict is Verdict.SLOWER


def test_the_p_value_of_a_confirmation_by_hand() -> None:
    # t = 0.02 / (0.002 / sqrt(3)) = sqrt(300); one tail of two degrees of freedom is (1 - t / sqrt(2 + t²)) / 2.
    tail = (1 - math.sqrt(300 / 302)) / 2
    assert confirmation_p(SLOWER, 1) == pytest.approx(tail)
    assert confirmation_p(SLOWER, 0.02) == pytest.approx(tail)
    assert confirmation_p(SLOWER, -1) == pytest.approx(1 - tail)


def test_too_few_layouts_confirm_nothing() -> None:
    assert confirmation_p([], 1) == 1
    assert confirmation_p([[0.02, 0.02]], 1) == 1
    assert confirmation_p([[0.02], [0.02]], 1) == 1
    assert confirmation_p([[0.02], [0.02], [0.02]], 1) == 0
    assert confirmation_p([[0.0], [0.0], [0.0]], 1) == 0.5


def test_a_change_stands_if_fresh_layouts_confirm_it_and_all_together_show_it() -> None:
    settled = settle(SLOWER, [[0.019], [0.021], [0.021]], True, RULE)
    assert settled.verdict is Verdict.SLOWER
    assert settled.layered is not None
    assert settled.layered.layouts == 6
    assert settled.layered.estimate == pytest.approx(0.121 / 6)


@pytest.mark.parametrize(
    ("first", "fresh", "accepted", "verdict"),
    [
        # Not accepted, although all together exclude zero: within 1 % it is the same, and otherwise open.
        ([0.0049, 0.005, 0.0051], [0.0048, 0.005, 0.0052], False, Verdict.SAME),
        ([0.018, 0.020, 0.022], [0.018, 0.020, 0.022], False, Verdict.UNDECIDED),
        # Accepted, and all together do not show it.
        ([0.018, 0.020, 0.022], [0.001, 0.002, 0.003], True, Verdict.UNDECIDED),
        ([0.0032, 0.0034, 0.0036], [0.0001, 0.0002, 0.0003], True, Verdict.SAME),
        # Seen again with the other sign.
        ([0.0030, 0.0031, 0.0032], [-0.0200, -0.0199, -0.0198] * 9, True, Verdict.UNDECIDED),
        ([], [0.018, 0.020, 0.022], True, Verdict.UNDECIDED),
        ([], [], True, Verdict.UNDECIDED),
    ],
)
def test_a_change_does_not_stand_otherwise(
    first: list[float], fresh: list[float], accepted: bool, verdict: Verdict
) -> None:
    assert settle([[v] for v in first], [[v] for v in fresh], accepted, RULE).verdict is verdict


def undecided(estimate: float, variance: float, layout_variance: float | None, visits: int = 2) -> Look:
    """Three layouts of which the centres have this variance."""
    layout_sd = None if layout_variance is None else math.sqrt(layout_variance)
    se = math.sqrt(variance / 3)
    return Look(
        Verdict.UNDECIDED, Layered(estimate, se, -1.0, 1.0, 0.99, 0.5, layout_sd, 0.1, layouts=3, visits=visits)
    )


# Half of the interval is 9.925 · sqrt(variance / 3), so that 1 % takes a variance of 3.0457e-6. A visit has twice the
# variance of a mean of two, and it takes pi/2 times as many visits for medians.
@pytest.mark.parametrize(
    ("seen", "expected"),
    [
        (undecided(0.0, 1e-5, 0.0), 11),  # pi/2 · 2e-5 / 3.0457e-6 = 10.3
        (undecided(0.0, 1e-5, 1e-6), 14),  # pi/2 · 1.8e-5 / 2.0457e-6 = 13.8
        (undecided(0.0, 1e-5, 3.1e-6), None),
        (undecided(0.0, 1e-5, None), 11),
        (undecided(0.009, 1e-5, 0.0), 13),  # 0.9 % for a change is 2.4670e-6; 0.1 % for sameness would take more
        (undecided(0.004, 1e-5, 0.0), 29),  # 0.6 % for sameness is 1.0964e-6; 0.4 % for a change would take more
        (undecided(0.0, 3e-6, 0.0, visits=10), 11),
        (undecided(0.01, 1e-5, 0.0), 11),
        (Look(Verdict.UNDECIDED), None),
    ],
)
def test_how_many_visits_might_decide_by_hand(seen: Look, expected: int | None) -> None:
    assert predict_visits(seen, RULE) == expected


def test_no_number_of_visits_decides_what_lies_between_equivalence_and_floor() -> None:
    assert predict_visits(undecided(0.02, 1e-5, 0.0), StoppingRule(looks=LOOKS, floor=0.03)) is None


def test_more_visits_than_anybody_waits_for_are_none() -> None:
    assert predict_visits(undecided(0.0, 1.0, 0.0), RULE) is None


def test_what_is_decided_takes_no_more_visits() -> None:
    assert predict_visits(look(SLOWER, RULE), RULE) == 1


@given(st.floats(-0.03, 0.03), st.floats(1e-7, 1e-3), st.floats(0, 1), st.integers(3, 20))
def test_the_predicted_number_of_visits_is_the_smallest_that_suffices(
    estimate: float, variance: float, share: float, visits: int
) -> None:
    of_visit = (1 - share) * variance / variance_of_centre(visits)
    enough = max(abs(estimate) if abs(estimate) >= RULE.floor else 0, RULE.equivalence - abs(estimate))

    def half_width(count: int) -> float:
        centre = share * variance + of_visit * variance_of_centre(count)
        return intervals.quantile(0.995, 2) * math.sqrt(centre / 3)

    needed = predict_visits(undecided(estimate, variance, share * variance, visits), RULE)
    if needed is None:
        assert half_width(MOST_VISITS) > enough * (1 - 1e-9)
        return
    assert half_width(needed) <= enough * (1 + 1e-9)
    if needed > visits + 1:
        assert half_width(needed - 1) > enough * (1 - 1e-9)


@pytest.mark.parametrize(
    ("base_s", "self_test_sd", "expected"),
    [
        (1e-3, None, 0.003),
        (1e-6, None, 0.003),
        (1e-7, None, math.log(1.03)),
        (3e-10, None, math.log(11)),
        (1e-3, 0.001, 0.003),
        (1e-3, 0.004, 0.008),
    ],
)
def test_the_floor_is_the_largest_of_three(base_s: float, self_test_sd: float | None, expected: float) -> None:
    assert floor_for(base_s, self_test_sd) == pytest.approx(expected)


@given(VISITS)
def test_swapping_sides_swaps_slower_and_faster(visits: list[list[float]]) -> None:
    there, back = look(visits, RULE), look([[-v for v in layout] for layout in visits], RULE)
    assert back.verdict is OPPOSITE.get(there.verdict, there.verdict)


@given(VISITS, st.floats(0, 0.02), st.floats(0.001, 0.05))
def test_a_verdict_is_what_the_interval_allows(visits: list[list[float]], floor: float, equivalence: float) -> None:
    seen = look(visits, StoppingRule(looks=LOOKS, floor=floor, equivalence=equivalence))
    if seen.layered is None:
        assert seen.verdict is Verdict.UNDECIDED
        return
    low, high, estimate = seen.layered.low, seen.layered.high, seen.layered.estimate
    if seen.verdict is Verdict.SAME:
        assert -equivalence <= low <= high <= equivalence
    if seen.verdict in OPPOSITE:
        assert abs(estimate) >= floor
        assert (low > 0) if seen.verdict is Verdict.SLOWER else (high < 0)


@given(VISITS, VISITS, st.booleans())
def test_settling_calls_no_change_that_was_not_accepted_or_is_not_in_all_layouts(
    first: list[list[float]], fresh: list[list[float]], accepted: bool
) -> None:
    last = dataclasses.replace(RULE, looks=())
    settled, pooled = settle(first, fresh, accepted, RULE), look([*first, *fresh], last)
    assert settled.layered == pooled.layered
    if settled.verdict in OPPOSITE:
        assert accepted
        assert settled.verdict is pooled.verdict


@given(VISITS)
def test_confirming_one_sign_refutes_the_other(fresh: list[list[float]]) -> None:
    more, less = confirmation_p(fresh, 1), confirmation_p(fresh, -1)
    assert more + less == pytest.approx(1) or more == less == 1
