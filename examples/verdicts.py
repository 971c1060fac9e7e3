"""Whether one build is faster than another on an input, judged by replicates of both."""

from __future__ import annotations

import enum
import math
import statistics
from collections.abc import Sequence
from typing import NamedTuple

from torchmark.stats.distribution import median_ranks

# Five replicates that all agree are as sure as 94 %; 95 % would take six.
CONFIDENCE = 0.9
FEWEST = 3
# Where there are too few to be that sure, a change has to be so many times the noise. Simulated with two sides that are
# the same and replicates that scatter by 8 %, three of them then make 2 false alarms in 100 inputs, instead of 9.
CAUTION = 2


class Verdict(enum.Enum):
    """What became of an input's time."""

    IMPROVED = "improved"
    REGRESSED = "regressed"
    UNCHANGED = "unchanged"


class Judgement(NamedTuple):
    """The time of head in relation to that of base, and how much of that is chance."""

    base_s: float
    ratio: float
    """The median over replicates: below 1 where head is faster."""
    low: float
    high: float
    """The interval of that median."""
    noise: float
    """How far replicates are apart, as a share: those of the same build, or the ratios of pairs if these are closer."""
    verdict: Verdict


def judge(base: Sequence[float], head: Sequence[float], threshold: float) -> Judgement:
    """A change is one that replicates agree on, and larger than `threshold` and than the noise.

    base, head: seconds, a pair for each replicate, measured one right after the other.
    threshold: 0.05 for five percent.

    >>> judge([1.0, 1.01, 1.0, 1.0, 1.02], [1.2, 1.2, 1.21, 1.19, 1.2], 0.05).verdict
    <Verdict.REGRESSED: 'regressed'>
    """
    if len(base) != len(head) or len(base) < FEWEST:
        raise ValueError(f"Each side needs the same number of replicates, at least {FEWEST}.")
    logs = [math.log(h / b) for b, h in zip(base, head, strict=True)]
    middle = statistics.median(logs)
    low, high = _enclose(logs)
    apart = [upper - lower for lower, upper in (_enclose([math.log(t) for t in side]) for side in (base, head))]
    # A slow spell of the machine moves all that is measured in it, and cancels in a ratio.
    noise = min(max(apart), high - low)
    verdict = Verdict.UNCHANGED
    margin = noise if median_ranks(len(logs), CONFIDENCE) else CAUTION * noise
    if not low <= 0 <= high and abs(middle) > max(math.log1p(threshold), margin):
        verdict = Verdict.REGRESSED if middle > 0 else Verdict.IMPROVED
    return Judgement(
        statistics.median(base), math.exp(middle), math.exp(low), math.exp(high), math.expm1(noise), verdict
    )


def _enclose(values: Sequence[float]) -> tuple[float, float]:
    """The interval of the median; from the smallest to the largest where there are too few for the confidence."""
    ordered, ranks = sorted(values), median_ranks(len(values), CONFIDENCE)
    return (ordered[ranks.low], ordered[ranks.high]) if ranks else (ordered[0], ordered[-1])
