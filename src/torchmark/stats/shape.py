"""The shape of a series of samples: does it drift, does it have two modes, what lies far out, a histogram.

Each finding needs both evidence and a size that matters, so that long series do not raise trifles.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from torchmark.stats import order

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
    first = order.quantile(sorted(values[:third]), 0.5)
    last = order.quantile(sorted(values[-third:]), 0.5)
    change = last / first - 1 if first else 0.0
    if abs(correlation) * math.sqrt(n - 1) < DRIFT_SCORE or abs(change) < DRIFT_MIN_CHANGE:
        return None
    return Trend(change, correlation)


def rank_correlation(values: Sequence[float]) -> float:
    """Spearman's correlation of the values with their positions; ties share their mean rank.

    >>> rank_correlation([1.0, 5.0, 9.0])
    1.0
    """
    ranks = _mean_ranks(values)
    centre = (len(values) - 1) / 2
    products = math.fsum((i - centre) * (r - centre) for i, r in enumerate(ranks))
    squares = math.fsum((r - centre) ** 2 for r in ranks)
    positions = math.fsum((i - centre) ** 2 for i in range(len(values)))
    return products / math.sqrt(squares * positions) if squares else 0.0


def _mean_ranks(values: Sequence[float]) -> list[float]:
    by_value = sorted(range(len(values)), key=values.__getitem__)
    ranks = [0.0] * len(values)
    start = 0
    while start < len(by_value):
        end = start
        while end < len(by_value) and values[by_value[end]] == values[by_value[start]]:
            end += 1
        for index in by_value[start:end]:
            ranks[index] = (start + end - 1) / 2
        start = end
    return ranks


def find_modes(values: Sequence[float]) -> Modes | None:
    """Two groups of samples that are far apart compared with their own width."""
    n = len(values)
    if n < MODES_MIN_SAMPLES:
        return None
    ordered = sorted(values)
    cut = _best_cut(ordered)
    fast, slow = ordered[:cut], ordered[cut:]
    fast_mean, slow_mean = order.mean(fast), order.mean(slow)
    width = math.sqrt((order.population_std(fast) ** 2 * len(fast) + order.population_std(slow) ** 2 * len(slow)) / n)
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
    p25, p75 = order.quantile(ordered, 0.25), order.quantile(ordered, 0.75)
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
