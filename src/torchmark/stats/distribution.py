"""Order statistics, and the shape of samples: drift and modes. Standard library only."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from statistics import NormalDist, fmean
from typing import NamedTuple

# Up to here the ranks of the median's interval are found from exact binomial sums in integers, which take a
# few milliseconds; beyond, the normal approximation is off by less than one rank.
EXACT_RANKS_UP_TO = 1000


mean = fmean


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


# A rank correlation of n independent samples has a standard deviation of 1/sqrt(n-1); 3.29 of them are
# exceeded by chance once in a thousand series.
DRIFT_SCORE = 3.29
# With fewer samples not even a perfect rise reaches that score: it is sqrt(n-1).
DRIFT_MIN_SAMPLES = 12
# Half of the variation warning's 10 %: a trend smaller than this does not change what a reader concludes.
DRIFT_MIN_CHANGE = 0.05

# Fewer samples fall into two groups too easily by chance: of twelve exponential ones, one series in twenty.
MODES_MIN_SAMPLES = 20
# A group with less than this share of the samples is a handful of outliers, not a mode.
MODES_MIN_SHARE = 0.15
# Distance of the groups' means in pooled standard deviations. Simulated series of 20 samples from a normal,
# uniform or exponential distribution exceed it at most once in a hundred, longer ones hardly ever (the parts
# of 200 normal samples lie 2.7 apart, of exponential ones 3.5).
MODES_MIN_SEPARATION = 7.0
# Modes closer than this, as a share of the fast one, do not mislead anybody.
MODES_MIN_CHANGE = 0.05

# Tukey's fences: of a normal distribution 0.7 % lie outside.
FENCE = 1.5


class Trend(NamedTuple):
    """A drift: relative change from the first third to the last, and its rank correlation with time."""

    change: float
    correlation: float


class Modes(NamedTuple):
    """Means of the two groups and the share of samples in the slow one."""

    fast: float
    slow: float
    slow_share: float


class Bin(NamedTuple):
    """One bar of a histogram; the last bar includes its upper edge."""

    low: float
    high: float
    samples: int


def find_trend(values: Sequence[float]) -> Trend | None:
    """A monotone drift over time that is both certain and large enough to matter."""
    n = len(values)
    if n < DRIFT_MIN_SAMPLES:
        return None
    correlation = rank_correlation(values)
    third = n // 3
    first = quantile(sorted(values[:third]), 0.5)
    last = quantile(sorted(values[-third:]), 0.5)
    change = last / first - 1 if first else 0.0
    if abs(correlation) * math.sqrt(n - 1) < DRIFT_SCORE or abs(change) < DRIFT_MIN_CHANGE:
        return None
    return Trend(change, correlation)


def rank_correlation(values: Sequence[float]) -> float:
    """Spearman's correlation of the values with their positions; ties share their mean rank.

    >>> rank_correlation([1.0, 5.0, 9.0])
    1.0
    """
    centre = (len(values) + 1) / 2
    ranks = [one - centre for one in rank(values)]
    positions = [i + 1 - centre for i in range(len(values))]
    squares = math.fsum(r * r for r in ranks)
    products = math.fsum(i * r for i, r in zip(positions, ranks))
    return products / math.sqrt(squares * math.fsum(i * i for i in positions)) if squares else 0.0


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


def find_modes(values: Sequence[float]) -> Modes | None:
    """Two groups of samples that are far apart compared with their own width."""
    n = len(values)
    if n < MODES_MIN_SAMPLES:
        return None
    ordered = sorted(values)
    cut = _best_cut(ordered)
    fast, slow = ordered[:cut], ordered[cut:]
    fast_mean, slow_mean = mean(fast), mean(slow)
    width = math.sqrt((population_std(fast) ** 2 * len(fast) + population_std(slow) ** 2 * len(slow)) / n)
    apart = slow_mean - fast_mean
    if apart < MODES_MIN_SEPARATION * width or apart <= MODES_MIN_CHANGE * abs(fast_mean):
        return None
    return Modes(fast_mean, slow_mean, len(slow) / n)


def _best_cut(ordered: Sequence[float]) -> int:
    """Where to cut ascending values in two so that the variance between the parts is largest (Otsu)."""
    n = len(ordered)
    smallest = max(1, math.ceil(MODES_MIN_SHARE * n))
    total = math.fsum(ordered)
    below = math.fsum(ordered[: smallest - 1])
    best, best_between = smallest, -1.0
    for cut in range(smallest, n - smallest + 1):
        below += ordered[cut - 1]
        between = (below / cut - (total - below) / (n - cut)) ** 2 * cut * (n - cut)
        if between > best_between:
            best, best_between = cut, between
    return best


def find_outliers(values: Sequence[float]) -> list[float]:
    """Values more than 1.5 interquartile ranges outside the quartiles, in their original order.

    >>> find_outliers([1.0, 1.1, 1.2, 1.1, 9.0])
    [9.0]
    """
    ordered = sorted(values)
    p25, p75 = quantile(ordered, 0.25), quantile(ordered, 0.75)
    reach = FENCE * (p75 - p25)
    return [v for v in values if not p25 - reach <= v <= p75 + reach]


def histogram(values: Sequence[float], most_bins: int = 24) -> list[Bin]:
    """Bars of equal width over the range of the values; about sqrt(n) of them.

    >>> [b.samples for b in histogram([0.0, 1.0, 1.0, 4.0])]
    [3, 1]
    """
    low, high = min(values), max(values)
    bins = min(most_bins, math.ceil(math.sqrt(len(values))))
    if low == high:
        return [Bin(low, high, len(values))]
    edges = [low + (high - low) * i / bins for i in range(bins + 1)]
    counts = [0] * bins
    for value in values:
        counts[min(int((value - low) / (high - low) * bins), bins - 1)] += 1
    return [Bin(edges[i], edges[i + 1], counts[i]) for i in range(bins)]
