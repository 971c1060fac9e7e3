"""Where a series takes another level."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from torchmark.stats import distribution
from torchmark.stats.distribution import rank
from torchmark.stats.intervals import standardise, two_sided_p

# Up to so many points on the smaller side chances are counted exactly; above, the normal distribution has heavier tails
# than ranks have, and errs on the safe side.
EXACT_SIDE = 6


def count_against(before: int, after: int, rank_sum: float) -> float:
    """Pairs, one point of each side, that are not in the order in which most are; equal ones are halves."""
    wins = rank_sum - before * (before + 1) / 2
    return min(wins, before * after - wins)


def find_p_value(before: int, after: int, against: int) -> float:
    """Mann's and Whitney's: how probable it is that chance alone separates two sides so well, in either direction."""
    small, large = sorted((before, after))
    tail = exact_tail(small, large, against) if small <= EXACT_SIDE else normal_tail(small, large, against)
    return min(2 * tail, 1.0)


def normal_tail(small: int, large: int, against: int) -> float:
    """About what `exact_tail` gives."""
    pairs = small * large
    z = (pairs / 2 - against - 0.5) / math.sqrt(pairs * (small + large + 1) / 12)
    return math.erfc(z / math.sqrt(2)) / 2


@functools.lru_cache(maxsize=10_000)
def exact_tail(small: int, large: int, against: int) -> float:
    """How probable it is that at most so many pairs are against the order, if all orders are equally probable.

    The number of ways to have j of them is the coefficient of q^j in the Gaussian binomial: the product of
    (1 - q^(large + i)) / (1 - q^i) for i from 1 to `small`.

    >>> exact_tail(2, 2, 1) == 2 / 6
    True
    """
    ways = [1] + [0] * against
    for i in range(1, small + 1):
        for j in range(against, large + i - 1, -1):
            ways[j] -= ways[j - large - i]
        for j in range(i, against + 1):
            ways[j] += ways[j - i]
    return sum(ways) / math.comb(small + large, small)


# Points on each side of a change: what is seen in one run is an outlier, and two of those in a row are not rare.
LEAST_SIDE = 3
# Chance of a change where there is none, if noise is normal. It is small because a history is looked at for many cases.
ALPHA = 0.001
# The same for any noise. It is what ranks can show: three points of 80 that are the highest have a chance of one in
# 82160, times two directions, times some 600 tests. Short series cannot show it; there it is enough that both sides do
# not overlap at all, which has a chance of one in nine at most, and in practice of less: the other test has a say too.
ALPHA_RANKS = 0.05
# A smaller shift is not called a change: places of processes in memory alone make some tenths of a per cent.
LEAST_SHIFT = 0.005
# Share of the points that is trimmed at each end: an outlier or two in ten do no harm.
TRIM = 0.2
# A series is searched as a whole and in stretches, each by so much shorter than the next, down to the length in which
# ranks can show something: six points above six others have a chance of one in 924.
SHRINK = math.sqrt(2)
LEAST_STRETCH = 12
# How far a position is moved once all others are known.
REACH = 5
# Positions that depend on each other settle within a few passes, or swing by a run.
MOST_PASSES = 5


class Change(NamedTuple):
    """A new level from `position` on: the trimmed means of both sides, up to the changes next to it.

    `p_value` is of the test on trimmed means, times the number of places that were looked at.
    """

    position: int
    before: float
    after: float
    p_value: float

    @property
    def shift(self) -> float:
        return self.after - self.before


def find_changes(values: Sequence[float], least_shift: float = LEAST_SHIFT) -> tuple[Change, ...]:
    """Changes of level in a series, in their order; none where there is too little to show one.

    The series is split where a change shows within the fewest points, and so are its parts. What is too small to be
    spoken of between its neighbours is undone afterwards, the smallest first.

    >>> [change.position for change in find_changes([0.0, 0.01, 0.0, 0.01, 0.0, 0.51, 0.5, 0.51, 0.5, 0.51])]
    [5]
    """
    positions = _search(values, 0, len(values))
    while True:
        positions = _settle(values, positions)
        edges = [0, *positions, len(values)]
        found = [_compare_means(values[a:c], b - a) for a, b, c in zip(edges, edges[1:], edges[2:], strict=False)]
        changes = [one._replace(position=at) for one, at in zip(found, positions, strict=True)]
        weak = [one for one in changes if abs(one.shift) < least_shift or one.p_value >= ALPHA]
        if not weak:
            return tuple(changes)
        positions.remove(min(weak, key=lambda one: abs(one.shift)).position)


def _search(values: Sequence[float], start: int, end: int) -> list[int]:
    """Positions of changes between two others, each found without knowing of those in its own parts."""
    place = _find_split(values[start:end])
    if place is None:
        return []
    middle = start + place
    return [*_search(values, start, middle), middle, *_search(values, middle, end)]


def _settle(values: Sequence[float], positions: list[int]) -> list[int]:
    """Move each change a little to where points are nearest to the medians of its sides, up to its neighbours."""
    for _ in range(MOST_PASSES):
        settled: list[int] = []
        for position, end in zip(positions, [*positions[1:], len(values)], strict=False):
            start = settled[-1] if settled else 0
            first, last = max(position - REACH, start + LEAST_SIDE), min(position + REACH, end - LEAST_SIDE)
            settled.append(start + _place_best(values[start:end], range(first - start, last - start + 1)))
        if settled == positions:
            break
        positions = settled
    return positions


def _place_best(values: Sequence[float], places: Iterable[int]) -> int:
    """Where points are nearest to the medians of their sides.

    Tests tell that there is a change, and not so well where: a few points on the wrong side are trimmed away.
    """
    return min(places, key=lambda place: _scatter(values[:place]) + _scatter(values[place:]))


def _scatter(values: Sequence[float]) -> float:
    centre = distribution.quantile(sorted(values), 0.5)
    return math.fsum(abs(value - centre) for value in values)


def _find_split(values: Sequence[float]) -> int | None:
    """Where the shortest stretch that shows a change has it; a longer one may have another change in it."""
    stretches = _lay_stretches(len(values))
    tests = sum(len(_list_places(end - start)) for start, end in stretches)
    for start, end in reversed(stretches):
        part = values[start:end]
        sums = [0.0, *itertools.accumulate(rank(part))]
        # Of the whole it is enough that the sides do not overlap, however few points there are.
        least = 0 if len(part) == len(values) else -1
        found = [
            place
            for place, most in zip(_list_places(len(part)), _list_most_against(len(part), tests), strict=True)
            if count_against(place, len(part) - place, sums[place]) <= max(most, least)
            and _compare_means(part, place, tests).p_value < ALPHA
        ]
        if found:
            return start + _place_best(part, found)
    return None


@functools.lru_cache(maxsize=1000)
def _list_most_against(n: int, tests: int) -> tuple[int, ...]:
    """For each place in so many points, how many pairs may be against the order there; -1 where none suffices.

    Searching a long history asks this a hundred thousand times, and a p value for each would take most of its time.
    """
    return tuple(_find_most_against(place, n - place, ALPHA_RANKS / tests) for place in _list_places(n))


def _find_most_against(before: int, after: int, p_value: float) -> int:
    """The most pairs against the order with at most this p value, which grows with them."""
    low, step = -1, 1
    while find_p_value(before, after, low + step) <= p_value:
        low, step = low + step, 2 * step
    while step > 1:
        step = (step + 1) // 2
        if find_p_value(before, after, low + step) <= p_value:
            low += step
    return low


def _list_places(n: int) -> range:
    return range(LEAST_SIDE, n - LEAST_SIDE + 1)


@functools.lru_cache(maxsize=1000)
def _lay_stretches(n: int) -> tuple[tuple[int, int], ...]:
    """The whole of a series, then shorter and shorter stretches that cover it, each by half over the one before."""
    stretches = [(0, n)]
    length = n / SHRINK
    while length >= LEAST_STRETCH:
        size = math.ceil(length)
        number = math.ceil(2 * (n - size) / size) + 1
        starts = dict.fromkeys(round(i * (n - size) / (number - 1)) for i in range(number))
        stretches += [(start, start + size) for start in starts]
        length /= SHRINK
    return tuple(stretches)


def _compare_means(values: Sequence[float], place: int, tests: int | None = None) -> Change:
    """Yuen's and Dixon's t: of trimmed means, with the variance of what is left when tails are pulled in.

    The variance is one for both sides, as it is where nothing changes: three points alone say too little of theirs.
    Without `tests`, all that a series of this length is searched by are corrected for.
    """
    if tests is None:
        tests = sum(len(_list_places(end - start)) for start, end in _lay_stretches(len(values)))
    before, before_squares, before_left = _trim(values[:place])
    after, after_squares, after_left = _trim(values[place:])
    df = before_left + after_left - 2
    error = math.sqrt((before_squares + after_squares) / df * (1 / before_left + 1 / after_left))
    shift = after - before
    return Change(place, before, after, min(two_sided_p(standardise(shift, error), df) * tests, 1.0))


def _trim(values: Sequence[float]) -> tuple[float, float, int]:
    """The trimmed mean, the sum of squares about the mean with tails pulled in, and how many points are left."""
    ordered = sorted(values)
    cut = int(TRIM * len(ordered))
    kept = ordered[cut : len(ordered) - cut]
    pulled = [kept[0]] * cut + kept + [kept[-1]] * cut
    return distribution.mean(kept), (distribution.sample_std(pulled) or 0.0) ** 2 * (len(pulled) - 1), len(kept)
