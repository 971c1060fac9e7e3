"""Log-ratios in two layers, visits within layouts of memory: one estimate with an interval.

The layout is the replicate. Visits of one layout share what it does to the time, however many there are, so they only
sharpen the value of their own layout, and the interval comes from how far layouts are apart.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from typing import NamedTuple

from torchmark.stats import distribution, intervals

# A visit can be far off (kurtosis 20 to 60 was measured), so the median stands for a layout, from three visits on.
ENOUGH_FOR_MEDIAN = 3
# The variance of a median is pi/2 times that of a mean, for many values of a normal distribution. It is somewhat less
# for few values, and for heavy tails. So the share of visits is overrated rather than that of layouts.
MEDIAN_FACTOR = math.pi / 2


# In one layout of twelve a statement of many steps took 25 to 100 % longer, and 4 to 9 % in all others: something
# aliases there. Its distance says nothing of the others, and would hide what all of them show. So what is more than so
# many times as far from the median as half of the layouts are counts as if it were just that far, but nothing that is
# nearer than this. Six normal layouts are hardly ever changed by that: their intervals cover what they should.
FAR = 15.0
NEVER_FAR = 0.02
FEWEST_TO_DRAW_IN = 6


class Layered(NamedTuple):
    """The mean over layouts, and what it is known by."""

    estimate: float
    se: float
    """Standard error of the estimate."""
    low: float
    high: float
    confidence: float
    p_value: float
    """Two-sided, of zero."""
    layout_sd: float | None
    """How far layouts are apart, beyond what visits of one layout are; None as `visit_sd`."""
    visit_sd: float | None
    """How far visits of one layout are apart; None where no layout has two."""
    layouts: int
    visits: int
    """The smallest number of visits of a layout."""


def combine_layouts(visits: Sequence[Sequence[float]], confidence: float) -> Layered | None:
    """One estimate of all visits of all layouts. Layouts without visits do not count; None for fewer than two others.

    The interval is that of t with one degree of freedom fewer than layouts, over the layouts' centres. It is exact
    where these are normal. One that is far from all others counts as a less distant one would.

    >>> found = combine_layouts([[0.01, 0.03], [0.04], [0.06]], confidence=0.95)
    >>> round(found.estimate, 3), round(found.low, 3), round(found.high, 3)
    (0.04, -0.01, 0.09)
    """
    visited = [layout for layout in visits if layout]
    if len(visited) < 2:
        return None
    raw = [find_centre(layout) for layout in visited]
    centres = draw_in(raw)
    estimate = distribution.mean(centres)
    spread, raw_spread = distribution.sample_std(centres), distribution.sample_std(raw)
    assert spread is not None
    assert raw_spread is not None
    se = spread / math.sqrt(len(centres))
    half = intervals.quantile((1 + confidence) / 2, len(centres) - 1) * se
    layout_sd, visit_sd = _find_components(visited, raw_spread)
    return Layered(
        estimate,
        se,
        estimate - half,
        estimate + half,
        confidence,
        intervals.two_sided_p(intervals.standardise(estimate, se), len(centres) - 1),
        layout_sd,
        visit_sd,
        layouts=len(visited),
        visits=min(len(layout) for layout in visited),
    )


def draw_in(centres: Sequence[float]) -> list[float]:
    """The same, with those that are far from the others brought nearer to them.

    >>> [round(centre, 3) for centre in draw_in([0.09, 0.10, 0.10, 0.11, 0.11, 0.60])]
    [0.09, 0.1, 0.1, 0.11, 0.11, 0.18]
    """
    if len(centres) < FEWEST_TO_DRAW_IN:
        return list(centres)
    middle = statistics.median(centres)
    limit = max(NEVER_FAR, FAR * statistics.median(abs(centre - middle) for centre in centres))
    return [min(max(centre, middle - limit), middle + limit) for centre in centres]


def find_centre(visits: Sequence[float]) -> float:
    """What at least one visit of a layout says of it.

    >>> find_centre([0.01, 0.03]), find_centre([0.01, 0.02, 0.09])
    (0.02, 0.02)
    """
    return statistics.median(visits) if len(visits) >= ENOUGH_FOR_MEDIAN else distribution.mean(visits)


def variance_of_centre(visits: int) -> float:
    """The variance of a layout's centre by chance, in variances of one visit.

    >>> variance_of_centre(2)
    0.5
    """
    return (MEDIAN_FACTOR if visits >= ENOUGH_FOR_MEDIAN else 1.0) / visits


def more_visits_help(layered: Layered) -> bool:
    """Whether visits add more to the error than layouts do. Otherwise only more layouts make it notably smaller."""
    if layered.layout_sd is None or layered.visit_sd is None:
        return True
    return layered.layout_sd**2 <= layered.visit_sd**2 * variance_of_centre(layered.visits)


def _find_components(visited: Sequence[Sequence[float]], spread: float) -> tuple[float | None, float | None]:
    """Standard deviations of layouts and of visits, by the method of moments.

    Centres vary as layouts do, plus what is left of the variance of visits; that is taken away again.
    """
    freedom = sum(len(layout) - 1 for layout in visited)
    if not freedom:
        return None, None
    squares = math.fsum((distribution.sample_std(layout) or 0.0) ** 2 * (len(layout) - 1) for layout in visited)
    visit_variance = squares / freedom
    by_chance = visit_variance * distribution.mean([variance_of_centre(len(layout)) for layout in visited])
    return math.sqrt(max(0.0, spread**2 - by_chance)), math.sqrt(visit_variance)
