"""How far shares may be from probabilities by chance."""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping
from typing import Any

# How often a test would fail though all is well, if its seeds were not fixed.
FALSE_ALARMS = 1e-6
Z = statistics.NormalDist().inv_cdf(1 - FALSE_ALARMS / 2)


def allowed_error(probability: float, draws: int) -> float:
    """By how much the share of what has this probability may be off.

    >>> round(allowed_error(0.5, 10_000), 4)
    0.0245
    """
    return Z * math.sqrt(probability * (1 - probability) / draws)


def assert_shares(values: Iterable[Hashable], probabilities: Mapping[Any, float]) -> None:
    """Each value occurs as often as its probability says, and no other does."""
    counts = Counter(values)
    draws = counts.total()
    assert set(counts) <= set(probabilities)
    for value, probability in probabilities.items():
        share = counts[value] / draws
        assert abs(share - probability) <= allowed_error(probability, draws), f"{value!r}: {share} of {draws}"
