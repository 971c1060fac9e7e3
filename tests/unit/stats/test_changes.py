from __future__ import annotations

import itertools
import math
import random
from collections.abc import Callable, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from torchmark.stats import changes
from torchmark.stats.changes import ALPHA, LEAST_SHIFT, LEAST_SIDE, find_changes
from torchmark.stats.intervals import two_sided_p

VALUES = st.lists(st.floats(-1, 1), max_size=40)
# Steps between levels, each with noise of one in a hundred.
LEVELS = st.lists(st.tuples(st.sampled_from([0.0, 0.5, 1.0, -0.7]), st.integers(4, 12)), min_size=1, max_size=4)


def positions(values: Sequence[float]) -> list[int]:
    return [change.position for change in find_changes(values)]


def make_noise(n: int, seed: int = 1, sd: float = 0.01) -> list[float]:
    draw = random.Random(seed)
    return [draw.gauss(0, sd) for _ in range(n)]


def test_the_statistic_of_two_sides_by_hand() -> None:
    # Means 1 and 5, squares about them 2 and 2, pooled 4 / 4 = 1, error sqrt(1/3 + 1/3): t = 4 / 0.8165.
    (t, df), places = (4 / math.sqrt(2 / 3), 4), 7
    change = changes._compare_means([0, 1, 2, 4, 5, 6], 3, places)
    assert change[:3] == (3, 1, 5)
    assert change.p_value == pytest.approx(places * two_sided_p(t, df))
    assert change.shift == 4


def test_trimming_by_hand() -> None:
    # Of five, one at each end: 2, 3, 4 are left; 1 becomes 2 and 100 becomes 4, with squares 1 + 1 + 0 + 1 + 1.
    assert changes._trim([100, 1, 2, 3, 4]) == pytest.approx((3, 4, 3))
    assert changes._trim([1, 2, 6]) == pytest.approx((3, 14, 3))


def test_stretches_cover_a_series_by_half() -> None:
    assert changes._lay_stretches(17) == ((0, 17), (0, 13), (4, 17))
    assert changes._lay_stretches(5) == ((0, 5),)
    for n in (24, 80, 301):
        by_size = itertools.groupby(changes._lay_stretches(n), key=lambda stretch: stretch[1] - stretch[0])
        for size, group in by_size:
            starts = [start for start, _ in group]
            assert (starts[0], starts[-1] + size) == (0, n)
            assert all(second - first <= (size + 1) // 2 for first, second in itertools.pairwise(starts))


@pytest.mark.parametrize("n", range(2 * LEAST_SIDE))
def test_too_few_points_show_nothing(n: int) -> None:
    assert find_changes([0.0, 1.0, 0.0, 5.0, 5.0][:n]) == ()


def test_six_points_show_what_is_clear() -> None:
    (change,) = find_changes([0.0, 0.001, -0.001, 0.5, 0.501, 0.499])
    assert change[:3] == pytest.approx((3, 0, 0.5))
    assert change.p_value < ALPHA


def test_levels_without_noise_are_found_to_the_point() -> None:
    found = find_changes([0.0] * 8 + [0.3] * 8 + [0.1] * 8)
    assert [(change.position, change.p_value) for change in found] == [(8, 0.0), (16, 0.0)]
    assert [change.before for change in found] == pytest.approx([0, 0.3])
    assert [change.after for change in found] == pytest.approx([0.3, 0.1])


def test_a_shift_that_is_too_small_to_be_spoken_of_is_none() -> None:
    small = [0.0] * 10 + [LEAST_SHIFT * 0.9] * 10
    assert find_changes(small) == ()
    assert len(find_changes(small, least_shift=0.0)) == 1
    # What comes after it is found all the same, against the level of both.
    assert positions([*small, *[0.1] * 10]) == [20]


@pytest.mark.parametrize("place", [0, 3, 20, 37, 38, 39])
@pytest.mark.parametrize("size", [0.2, -5.0])
def test_one_outlier_is_no_change_and_hides_none(place: int, size: float) -> None:
    noise = make_noise(40)
    noise[place] += size
    assert find_changes(noise) == ()
    stepped = [value + 0.1 * (i >= 25) for i, value in enumerate(noise)]
    assert [abs(position - 25) <= 1 for position in positions(stepped)] == [True]


NOISES: dict[str, Callable[[random.Random], float]] = {
    "normal": lambda draw: draw.gauss(0, 0.01),
    "heavy tails": lambda draw: 0.01 * draw.gauss(0, 1) / math.sqrt(draw.gammavariate(1, 1)),
    "two speeds": lambda draw: draw.choice([0.0, 0.64]) + draw.gauss(0, 0.01),
    "slow at times": lambda draw: 0.64 * (draw.random() < 0.1) + draw.gauss(0, 0.01),
    "skewed": lambda draw: 0.01 * draw.lognormvariate(0, 1.5),
}


@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize("n", [6, 9, 13, 80])
def test_noise_raises_a_change_in_at_most_one_series_of_twenty(noise: str, n: int) -> None:
    # Long series take as much longer.
    draw, trials = random.Random(11), 400 if n == 80 else 1000
    false = sum(bool(find_changes([NOISES[noise](draw) for _ in range(n)])) for _ in range(trials))
    assert false <= 0.05 * trials
    if noise == "normal":
        # Three in a thousand are within sampling error of ALPHA.
        assert false <= 5


def test_a_step_of_three_deviations_is_found_within_two_runs() -> None:
    draw, trials, hits, false = random.Random(5), 300, 0, 0
    for _ in range(trials):
        found = positions([draw.gauss(0, 0.01) + 0.03 * (i >= 60) for i in range(80)])
        hits += any(abs(position - 60) <= 2 for position in found)
        false += len(found) > 1
    assert hits >= 0.9 * trials
    assert false <= 0.05 * trials


@given(VALUES)
def test_changes_are_in_order_and_have_room(values: list[float]) -> None:
    found = find_changes(values)
    edges = [0, *(change.position for change in found), len(values)]
    assert all(end - start >= LEAST_SIDE for start, end in itertools.pairwise(edges)) or not found
    for change in found:
        assert abs(change.shift) >= LEAST_SHIFT
        assert change.p_value < ALPHA


@given(LEVELS, st.floats(-5, 5), st.sampled_from([-1.0, 1.0]))
def test_only_distances_matter(levels: list[tuple[float, int]], offset: float, sign: float) -> None:
    steps = [level for level, size in levels for _ in range(size)]
    values = [value + noise for value, noise in zip(steps, make_noise(len(steps)), strict=True)]
    moved = [sign * value + offset for value in values]
    assert positions(values) == positions(moved)


@given(st.lists(st.sampled_from([0.0, 0.5, 1.0, -0.7]), min_size=1, max_size=4), st.integers(10, 20))
def test_clear_steps_are_found_also_where_others_follow(levels: list[float], size: int) -> None:
    steps = [level for level in levels for _ in range(size)]
    expected = [i for i in range(1, len(steps)) if steps[i] != steps[i - 1]]
    assert positions([a + b for a, b in zip(steps, make_noise(len(steps), sd=0.001), strict=True)]) == expected
