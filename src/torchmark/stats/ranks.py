"""Ranks: how surely the points before a place are others than those behind it, whatever their distribution."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Sequence
from typing import NamedTuple

# Up to so many points on the smaller side chances are counted exactly; above, the normal distribution has heavier tails
# than ranks have, and errs on the safe side.
EXACT_SIDE = 6


class SplitChance(NamedTuple):
    """How probable it is that chance alone separates two sides so well, in either direction."""

    p_value: float
    apart: bool
    """Whether all points of one side are above all of the other."""


def split_chances(values: Sequence[float]) -> list[SplitChance]:
    """Mann's and Whitney's test of the first k values against the rest, for each k; nothing is said of an empty side.

    >>> split_chances([1.0, 2.0, 3.0, 8.0, 9.0])[3]
    SplitChance(p_value=0.2, apart=True)
    """
    n = len(values)
    sums = [0.0, *itertools.accumulate(rank(values))]
    return [_judge_split(before, n - before, sums[before]) for before in range(n + 1)]


def rank(values: Sequence[float]) -> list[float]:
    """Ranks from 1; equal values share the mean of theirs.

    >>> rank([5.0, 1.0, 5.0, 2.0])
    [3.5, 1.0, 3.5, 2.0]
    """
    ranks: dict[float, float] = {}
    below = 0
    for value, group in itertools.groupby(sorted(values)):
        size = len(list(group))
        ranks[value] = below + (size + 1) / 2
        below += size
    return [ranks[value] for value in values]


def _judge_split(before: int, after: int, rank_sum: float) -> SplitChance:
    if not before or not after:
        return SplitChance(1.0, False)
    pairs = before * after
    wins = rank_sum - before * (before + 1) / 2
    # Pairs, one point of each side, that are not in the order in which most are.
    against = math.ceil(min(wins, pairs - wins))
    small, large = sorted((before, after))
    tail = exact_tail(small, large, against) if small <= EXACT_SIDE else normal_tail(small, large, against)
    return SplitChance(min(2 * tail, 1.0), against == 0)


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
