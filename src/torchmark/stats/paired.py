"""Two series of times that were taken in turns: by how much one takes longer, and how surely.

What disturbs one round disturbs both of its times, so each round is compared with itself.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from torchmark.stats import order


class PairedRatio(NamedTuple):
    """The median logarithm of the ratios, and an interval of it; None at both ends where there are too few pairs."""

    log_ratio: float
    low: float | None
    high: float | None
    confidence: float
    """What the interval really covers, at least what was asked for; 0 where there is none."""


def compare_paired(base: Sequence[float], other: Sequence[float], confidence: float = 0.95) -> PairedRatio:
    """How many times as long `other` takes as `base`, as a natural logarithm. Times are positive.

    The interval holds whatever the distribution; at 95 % it takes six pairs.

    >>> compare_paired([1.0, 2.0, 4.0], [1.0, 2.0, 8.0]).log_ratio
    0.0
    """
    if len(base) != len(other):
        raise ValueError(f"Pairs need as many times on both sides, not {len(base)} and {len(other)}.")
    if not base:
        raise ValueError("There are no pairs to compare.")
    # A difference, not the logarithm of a ratio: the other way round it is the same number with the other sign.
    ordered = sorted(math.log(theirs) - math.log(ours) for ours, theirs in zip(base, other, strict=True))
    middle = order.quantile(ordered, 0.5)
    ranks = order.median_ranks(len(ordered), confidence)
    if ranks is None:
        return PairedRatio(middle, None, None, 0.0)
    return PairedRatio(middle, ordered[ranks.low], ordered[ranks.high], ranks.confidence)
