"""Welch's t interval: how far the means of two independent samples are apart, whatever the spread of each."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from torchmark.stats import student
from torchmark.stats.order import mean, sample_std


class Difference(NamedTuple):
    """The second mean less the first, with an interval, and the two-sided p value of no difference."""

    estimate: float
    low: float
    high: float
    df: float
    p_value: float


def contrast_means(first: Sequence[float], second: Sequence[float], confidence: float) -> Difference:
    """An interval of this confidence for samples of at least two values each, from normal distributions.

    >>> found = contrast_means([1.0, 2.0, 3.0], [3.0, 4.0, 5.0], 0.95)
    >>> found.estimate, found.df, round(found.low, 2), round(found.high, 2)
    (2.0, 4.0, -0.27, 4.27)
    """
    estimate = mean(second) - mean(first)
    parts = [_squared_error(values) for values in (first, second)]
    variance = sum(parts)
    if variance == 0:
        # Nothing varies, so nothing is uncertain.
        df = float(len(first) + len(second) - 2)
        return Difference(estimate, estimate, estimate, df, 1.0 if estimate == 0 else 0.0)
    # Satterthwaite's. As shares, because squares of small variances vanish.
    shares = [(part / variance) ** 2 / (len(values) - 1) for part, values in zip(parts, (first, second), strict=True)]
    df = 1 / sum(shares)
    error = math.sqrt(variance)
    half = student.quantile((1 + confidence) / 2, df) * error
    return Difference(estimate, estimate - half, estimate + half, df, student.two_sided_p(estimate / error, df))


def _squared_error(values: Sequence[float]) -> float:
    """Of the mean."""
    deviation = sample_std(values)
    assert deviation is not None, "a single value has no spread"
    return deviation**2 / len(values)
