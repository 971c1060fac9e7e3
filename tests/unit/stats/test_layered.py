from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.sampling import assert_shares
from torchmark.stats import intervals
from torchmark.stats.intervals import standardise
from torchmark.stats.layered import Layered, combine_layouts, draw_in, more_visits_help, variance_of_centre

RATIOS = st.floats(-1, 1).map(lambda value: round(value, 6))
VISITS = st.lists(st.lists(RATIOS, max_size=6), max_size=8)


def test_the_interval_over_three_layouts_by_hand() -> None:
    # Centres 1, 2 and 6, the first a mean of two: mean 3, variance (4 + 1 + 9) / 2 = 7, standard error sqrt(7/3).
    # With two degrees of freedom 95 % lie within 4.30265, so that half of the interval is 6.5725.
    found = combine_layouts([[0.0, 2.0], [2.0], [6.0]], confidence=0.95)
    assert found is not None
    assert found.estimate == 3
    assert found.se == pytest.approx(math.sqrt(7 / 3))
    assert found.low == pytest.approx(3 - 6.5725, abs=1e-3)
    assert found.high == pytest.approx(3 + 6.5725, abs=1e-3)
    # t = 3 / 1.5275 = 1.96396; two tails of two degrees of freedom: 1 - t / sqrt(2 + t²).
    assert found.p_value == pytest.approx(1 - 1.96396 / math.sqrt(2 + 1.96396**2), abs=1e-5)
    assert (found.confidence, found.layouts, found.visits) == (0.95, 3, 1)


def test_from_three_visits_on_the_median_stands_for_a_layout() -> None:
    found = combine_layouts([[1.0, 100.0, 2.0], [4.0, 5.0, 7.0, -90.0]], confidence=0.9)
    assert found is not None
    assert found.estimate == (2 + 4.5) / 2
    assert found.visits == 3


def test_the_components_of_means_by_hand() -> None:
    # Within layouts the squares are 2, 2 and 8 of one degree of freedom each: 4 on average.
    # Means 1, 5 and 12 have a variance of (25 + 1 + 36) / 2 = 31; chance makes 4 / 2 of it.
    found = combine_layouts([[0.0, 2.0], [4.0, 6.0], [10.0, 14.0]], confidence=0.95)
    assert found is not None
    assert found.visit_sd == pytest.approx(2)
    assert found.layout_sd == pytest.approx(math.sqrt(29))


def test_the_components_of_medians_by_hand() -> None:
    # Squares 2 and 2 with two degrees of freedom each: 1. Medians 1 and 5 have a variance of 8, chance pi/2 · 1 / 3.
    found = combine_layouts([[0.0, 1.0, 2.0], [4.0, 5.0, 6.0]], confidence=0.95)
    assert found is not None
    assert found.visit_sd == pytest.approx(1)
    assert found.layout_sd == pytest.approx(math.sqrt(8 - math.pi / 6))


def test_the_components_of_unequal_numbers_of_visits_by_hand() -> None:
    # Squares 2 and 0 with one degree of freedom in all: 2. Centres 1 and 5, variance 8, chance 2 · (1/2 + 1) / 2.
    found = combine_layouts([[0.0, 2.0], [5.0]], confidence=0.95)
    assert found is not None
    assert found.layout_sd == pytest.approx(math.sqrt(8 - 1.5))


def test_layouts_that_differ_less_than_visits_do_have_no_deviation_of_their_own() -> None:
    found = combine_layouts([[-3.0, 3.0], [-2.0, 2.1]], confidence=0.95)
    assert found is not None
    assert found.layout_sd == 0


def test_one_visit_each_does_not_tell_layouts_from_visits() -> None:
    found = combine_layouts([[1.0], [2.0]], confidence=0.95)
    assert found is not None
    assert (found.layout_sd, found.visit_sd) == (None, None)
    assert more_visits_help(found)


def test_layouts_without_visits_do_not_count() -> None:
    visits = [[1.0, 2.0], [3.0, 5.0]]
    assert combine_layouts([[], *visits, []], 0.95) == combine_layouts(visits, 0.95)


@pytest.mark.parametrize("visits", [[], [[]], [[1.0, 2.0]], [[1.0], []]])
def test_fewer_than_two_layouts_have_no_estimate(visits: list[list[float]]) -> None:
    assert combine_layouts(visits, 0.95) is None


def test_ties_make_an_interval_without_width() -> None:
    found = combine_layouts([[0.1, 0.3]] * 7, 0.99)
    assert found is not None
    assert found.se == 0
    assert found.low == found.estimate == found.high == pytest.approx(0.2)
    assert found.p_value == 0
    nothing = combine_layouts([[0.0]] * 3, 0.99)
    assert nothing is not None
    assert nothing.p_value == 1


def test_an_estimate_without_error_is_infinitely_many_of_them_away_from_zero() -> None:
    assert standardise(3.0, 1.5) == 2
    assert standardise(3.0, 0.0) == math.inf
    assert standardise(-3.0, 0.0) == -math.inf
    assert standardise(0.0, 0.0) == 0


def test_centres_vary_less_with_more_visits_of_one_kind() -> None:
    assert [variance_of_centre(n) for n in (1, 2)] == [1, 0.5]
    assert [variance_of_centre(n) for n in (3, 10)] == pytest.approx([math.pi / 6, math.pi / 20])


@pytest.mark.parametrize(
    ("layout_sd", "visit_sd", "visits", "helps"),
    [
        (1.0, 2.0, 2, True),  # 1 against 4 / 2
        (1.0, 2.0, 4, True),  # 1 against 4 · 1.57 / 4
        (1.0, 2.0, 8, False),  # 1 against 4 · 1.57 / 8
        (1.0, 0.0, 2, False),
        (0.0, 1.0, 100, True),
    ],
)
def test_more_visits_help_until_layouts_add_more(layout_sd: float, visit_sd: float, visits: int, helps: bool) -> None:
    found = Layered(0.0, 1.0, -1.0, 1.0, 0.95, 1.0, layout_sd, visit_sd, layouts=6, visits=visits)
    assert more_visits_help(found) is helps


@given(VISITS)
def test_the_other_way_round_it_is_the_negative(visits: list[list[float]]) -> None:
    there, back = combine_layouts(visits, 0.95), combine_layouts([[-v for v in layout] for layout in visits], 0.95)
    if there is None or back is None:
        assert there is back
        return
    turned = (-there.estimate, there.se, -there.high, -there.low, *there[4:])
    assert back == turned


@given(VISITS, RATIOS)
def test_adding_a_constant_shifts_the_interval_and_nothing_else(visits: list[list[float]], shift: float) -> None:
    plain, shifted = combine_layouts(visits, 0.95), combine_layouts([[v + shift for v in one] for one in visits], 0.95)
    if plain is None or shifted is None:
        assert plain is shifted
        return
    # The error of rounding, times the largest quantile of t.
    for name in ("estimate", "low", "high"):
        assert getattr(shifted, name) == pytest.approx(getattr(plain, name) + shift, abs=1e-6)
    assert shifted.se == pytest.approx(plain.se, abs=1e-7)


@given(VISITS, st.floats(0.5, 0.999))
def test_zero_is_outside_of_the_interval_just_if_its_p_value_is_small(visits: list[list[float]], level: float) -> None:
    found = combine_layouts(visits, level)
    if found is not None and abs(found.p_value - (1 - level)) > 1e-6:
        assert (found.low > 0 or found.high < 0) == (found.p_value < 1 - level)
        assert found.low <= found.estimate <= found.high


@given(VISITS)
def test_the_half_width_is_the_quantile_times_the_error(visits: list[list[float]]) -> None:
    found = combine_layouts(visits, 0.9)
    if found is not None:
        half = intervals.quantile(0.95, found.layouts - 1) * found.se
        assert found.high - found.low == pytest.approx(2 * half, abs=1e-12)


def test_a_layout_that_is_far_from_all_others_does_not_hide_what_they_show() -> None:
    # The median is 0.0905, and half of the layouts lie within 0.0005 of it; 15 times that is less than 0.02.
    near = [0.090, 0.090, 0.0905, 0.0905, 0.091]
    assert draw_in([*near, 0.60]) == pytest.approx([*near, 0.1105])
    assert draw_in([*near, -0.60]) == pytest.approx([*near, 0.0705], abs=6e-4)
    found = combine_layouts([[centre] for centre in (*near, 0.60)], 0.99)
    assert found is not None
    assert found.low > 0.07
    # How far layouts are apart is told as it is.
    visited = combine_layouts([[centre, centre] for centre in (*near, 0.60)], 0.99)
    assert visited is not None
    assert visited.layout_sd is not None
    assert visited.layout_sd > 0.2


def test_few_layouts_and_those_that_are_only_two_per_cent_apart_stay_as_they_are() -> None:
    assert draw_in([0.1, 0.1, 0.1, 0.1, 0.9]) == [0.1, 0.1, 0.1, 0.1, 0.9]
    assert draw_in([0.0, 0.0, 0.0, 0.0, 0.0, 0.0199]) == [0.0, 0.0, 0.0, 0.0, 0.0, 0.0199]


@pytest.mark.parametrize("layouts", [6, 12])
@pytest.mark.parametrize("sd", [0.003, 0.05])
def test_intervals_of_normal_layouts_cover_as_often_as_they_say(layouts: int, sd: float) -> None:
    drawn = np.random.default_rng(11).normal(0.01, sd, (4000, layouts, 1)).tolist()
    found = [combine_layouts(visits, 0.95) for visits in drawn]
    assert_shares([one is not None and one.low <= 0.01 <= one.high for one in found], {True: 0.95, False: 0.05})
