"""From trials with known answers to how far comparisons can be trusted here. Pure."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence

from torchmark.model.judgement import Verdict
from torchmark.model.selftest import Trial
from torchmark.stats.binomial import binomial_bounds
from torchmark.stats.order import quantile

CONFIDENCE = 0.95
# Found so often, an effect counts as one that can be seen.
SEEN = 0.8
# The interquartile range of a normal distribution, in standard deviations.
NORMAL_IQR = 1.349


@dataclasses.dataclass(frozen=True)
class Power:
    """How often a slowdown of one size was found."""

    injected_s: float
    trials: int
    found: int
    wrong_way: int
    """How often it was called faster, which is worse than not finding it."""
    low: float
    high: float
    """Where the true share lies."""
    seconds: float
    """Median."""

    @property
    def share(self) -> float:
        """Found of all."""
        return self.found / self.trials


@dataclasses.dataclass(frozen=True)
class Trust:
    """All of it."""

    trials: int
    """Of a build against itself."""
    false_alarms: int
    same: int
    most_false: float
    """The true rate of false alarms lies below."""
    sd: float
    """How far log-ratios of a build against itself spread; from quartiles, so that one wild trial does not decide."""
    seconds: float
    powers: tuple[Power, ...]

    @property
    def smallest_seen_s(self) -> float | None:
        """The smallest slowdown from which on every larger one was found often enough; None if there is none."""
        smallest = None
        for power in reversed(self.powers):
            if power.share < SEEN:
                break
            smallest = power.injected_s
        return smallest


def sum_up(trials: Sequence[Trial]) -> Trust:
    """What trials say; some of them are of a build against itself."""
    nulls = [trial for trial in trials if not trial.injected_s]
    sizes = sorted({trial.injected_s for trial in trials if trial.injected_s})
    false = sum(trial.verdict in (Verdict.SLOWER, Verdict.FASTER) for trial in nulls)
    ratios = sorted(trial.log_ratio for trial in nulls)
    return Trust(
        trials=len(nulls),
        false_alarms=false,
        same=sum(trial.verdict is Verdict.SAME for trial in nulls),
        most_false=binomial_bounds(false, len(nulls), CONFIDENCE)[1],
        sd=(quantile(ratios, 0.75) - quantile(ratios, 0.25)) / NORMAL_IQR if ratios else math.inf,
        seconds=_median([trial.seconds for trial in nulls]),
        powers=tuple(_find_power([trial for trial in trials if trial.injected_s == size]) for size in sizes),
    )


def _find_power(trials: Sequence[Trial]) -> Power:
    found = sum(trial.verdict is Verdict.SLOWER for trial in trials)
    low, high = binomial_bounds(found, len(trials), CONFIDENCE)
    return Power(
        trials[0].injected_s,
        len(trials),
        found,
        sum(trial.verdict is Verdict.FASTER for trial in trials),
        low,
        high,
        _median([trial.seconds for trial in trials]),
    )


def _median(values: Sequence[float]) -> float:
    return quantile(sorted(values), 0.5) if values else 0.0
