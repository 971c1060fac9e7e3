"""From raw times to a summary: what the numbers say, before anybody doubts them."""

from __future__ import annotations

import math
from collections.abc import Sequence

from torchmark.errors import UsageError
from torchmark.model.summary import Interval, Summary
from torchmark.stats import order

# More digits than this are never shown.
MOST_FIGURES = 4
# No clock and no statement is steady to less than this, so scatter below it does not buy more digits.
SMALLEST_HALF_WIDTH_S = 25e-9
# Two-sided 90 % of a normal distribution.
NORMAL_90 = 1.645


def summarise(times: Sequence[float]) -> Summary:
    """Statistics of at least one sample, in seconds per run.

    >>> summarise([3.0, 1.0, 2.0]).median
    2.0
    """
    if not times:
        raise UsageError("A measurement without samples has no statistics.")
    ordered = sorted(times)
    median = order.quantile(ordered, 0.5)
    return Summary(
        samples=len(ordered),
        median=median,
        mean=order.mean(ordered),
        p25=order.quantile(ordered, 0.25),
        p75=order.quantile(ordered, 0.75),
        minimum=ordered[0],
        maximum=ordered[-1],
        std=order.sample_std(ordered),
        significant_figures=count_significant_figures(ordered, median),
    )


def count_significant_figures(ordered: Sequence[float], median: float) -> int:
    """How many figures of the median the middle half of the samples supports."""
    n = len(ordered)
    middle = ordered[n // 4 : math.ceil(3 * n / 4)]
    half_width = NORMAL_90 * order.population_std(middle) / math.sqrt(len(middle))
    ratio = median / max(half_width, SMALLEST_HALF_WIDTH_S)
    # One figure is the least, also where there is no logarithm: of zero, which dividing may give, too.
    return min(max(math.floor(math.log10(max(ratio, 1))), 1), MOST_FIGURES)


def find_median_interval(times: Sequence[float], confidence: float) -> Interval | None:
    """An interval that encloses the true median with this confidence, whatever the distribution.

    None where there are too few samples for it.
    """
    if not 0 < confidence < 1:
        raise UsageError(f"A confidence lies between 0 and 1, not at {confidence!r}.")
    ranks = order.median_ranks(len(times), confidence)
    if ranks is None:
        return None
    ordered = sorted(times)
    return Interval(ordered[ranks.low], ordered[ranks.high], ranks.confidence)
