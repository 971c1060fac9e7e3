"""Order statistics and moments of plain floats, in double precision and without torch.

Loaded in the measured process too, so it imports nothing but the standard library.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import NormalDist
from typing import NamedTuple

# Up to here the ranks of the median's interval are found from exact binomial sums in integers, which take a
# few milliseconds; beyond, the normal approximation is off by less than one rank.
EXACT_RANKS_UP_TO = 1000


class RankInterval(NamedTuple):
    """Zero-based ranks between which a median lies, and how surely."""

    low: int
    high: int
    confidence: float


def quantile(ordered: Sequence[float], q: float) -> float:
    """Quantile of ascending values at position q·(n−1), linear between neighbours.

    >>> quantile([1.0, 2.0, 4.0], 0.75)
    3.0
    """
    position = q * (len(ordered) - 1)
    below = math.floor(position)
    above = min(below + 1, len(ordered) - 1)
    fraction = position - below
    low, high = ordered[below], ordered[above]
    # Interpolating from the nearer end keeps the result between its neighbours and exact at both of them.
    if fraction < 0.5:
        return low + (high - low) * fraction
    return high - (high - low) * (1.0 - fraction)


def mean(values: Sequence[float]) -> float:
    """Arithmetic mean with a correctly rounded sum."""
    return math.fsum(values) / len(values)


def population_std(values: Sequence[float]) -> float:
    """Root mean squared distance from the mean."""
    return math.sqrt(_squared_distances(values) / len(values))


def sample_std(values: Sequence[float]) -> float | None:
    """Standard deviation with n−1 in the denominator; None for fewer than two values."""
    return math.sqrt(_squared_distances(values) / (len(values) - 1)) if len(values) > 1 else None


def _squared_distances(values: Sequence[float]) -> float:
    """Sum of squared distances from the mean, corrected for the mean's own rounding: 0 for equal values."""
    centre = mean(values)
    distances = [v - centre for v in values]
    return max(0.0, math.fsum(d * d for d in distances) - math.fsum(distances) ** 2 / len(values))


def median_ranks(n: int, confidence: float = 0.95) -> RankInterval | None:
    """Ranks whose values enclose the median of any distribution with at least this confidence.

    The number of samples below the median is binomial (n, ½), whatever the distribution. None where even the
    extremes do not reach the confidence: 95 % takes six samples.

    >>> median_ranks(6)
    RankInterval(low=0, high=5, confidence=0.96875)
    >>> median_ranks(5) is None
    True
    """
    if n <= EXACT_RANKS_UP_TO:
        return _exact_median_ranks(n, confidence)
    normal = NormalDist(n / 2, math.sqrt(n) / 2)
    low = math.floor(normal.inv_cdf((1 - confidence) / 2) - 0.5)
    return RankInterval(low, n - 1 - low, 1 - 2 * normal.cdf(low + 0.5))


def _exact_median_ranks(n: int, confidence: float) -> RankInterval | None:
    total = 2**n
    tail = 0
    best = None
    for rank in range((n + 1) // 2):
        tail += math.comb(n, rank)
        covered = 1 - 2 * tail / total
        if covered < confidence:
            break
        best = RankInterval(rank, n - 1 - rank, covered)
    return best


def middle(totals: Sequence[int]) -> int:
    """The position of the median; of an even number, of the lower of the middle two. So it is one that was seen.

    >>> middle([30, 10, 20]), middle([1, 4, 2, 3])
    (2, 2)
    """
    return sorted(range(len(totals)), key=totals.__getitem__)[(len(totals) - 1) // 2]
