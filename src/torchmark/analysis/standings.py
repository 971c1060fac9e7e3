"""Statements that were timed in turns: which is the fastest, how many times as long the others take, and how surely."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence

from torchmark.stats import order
from torchmark.stats.paired import PairedRatio, compare_paired

ERROR_RATE = 0.05
# A block that is shorter than the clock's steps seems to take no time at all.
SHORTEST_S = 1e-15
# All rounds share one process, and where that has things in memory can favour a statement for as long as it lives: from
# process to process, ratios of two calls of a microsecond were seen to differ by 4 %. Stored times have the same floor.
SMALLEST_DIFFERENCE = 0.05


@dataclasses.dataclass(frozen=True)
class Standings:
    """The position of the fastest, and how many times as long each takes, as a logarithm; 0 for the fastest itself."""

    fastest: int
    ratios: tuple[PairedRatio, ...]

    @property
    def rivals(self) -> tuple[int, ...]:
        """Those that these times cannot tell from the fastest."""
        return tuple(i for i, ratio in enumerate(self.ratios) if i != self.fastest and not _is_slower(ratio))

    @property
    def runner_up(self) -> int:
        """The second fastest."""
        others = [i for i in range(len(self.ratios)) if i != self.fastest]
        return min(others, key=lambda i: self.ratios[i].log_ratio)


def rank(series: Sequence[Sequence[float]], *, in_turns: bool = True) -> Standings:
    """Compare two or more series of times, one of each statement. Times at the same position are of one round.

    The fastest is known only afterwards, so the intervals of all pairs hold together. Series that were not taken
    `in_turns` have ratios of medians, without intervals.

    >>> standings = rank([[2.0] * 8, [1.0] * 8])
    >>> standings.fastest, round(math.exp(standings.ratios[0].log_ratio), 3), standings.rivals
    (1, 2.0, ())
    """
    series = [[max(t, SHORTEST_S) for t in times] for times in series]
    if not in_turns:
        medians = [order.quantile(sorted(times), 0.5) for times in series]
        fastest = medians.index(min(medians))
        logs = [math.log(median) - math.log(medians[fastest]) for median in medians]
        return Standings(fastest, tuple(PairedRatio(log, None, None, 0.0) for log in logs))
    logs = [compare_paired(series[0], times).log_ratio for times in series]
    fastest = logs.index(min(logs))
    pairs = len(series) * (len(series) - 1) // 2
    confidence = 1 - ERROR_RATE / pairs
    return Standings(fastest, tuple(compare_paired(series[fastest], times, confidence) for times in series))


def _is_slower(ratio: PairedRatio) -> bool:
    return ratio.low is not None and ratio.low > math.log1p(SMALLEST_DIFFERENCE)
