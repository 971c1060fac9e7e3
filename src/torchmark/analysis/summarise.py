"""From raw times and counts to summaries, the reasons to doubt them, and an order of statements by time."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from torchmark.errors import UsageError
from torchmark.model.caveats import (
    Caveat,
    Drift,
    FewSamples,
    HighOverhead,
    OptimisedAway,
    OtherInstructionSet,
    SeveralThreads,
    TwoModes,
    UnstableCount,
    Variation,
)
from torchmark.model.environment import Environment
from torchmark.model.outcome import Failure
from torchmark.model.task import Interval, Summary, TaskSpec, Times
from torchmark.stats import distribution
from torchmark.stats.distribution import middle
from torchmark.stats.intervals import PairedRatio, compare_paired

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
    median = distribution.quantile(ordered, 0.5)
    return Summary(
        samples=len(ordered),
        median=median,
        mean=distribution.mean(ordered),
        p25=distribution.quantile(ordered, 0.25),
        p75=distribution.quantile(ordered, 0.75),
        minimum=ordered[0],
        maximum=ordered[-1],
        std=distribution.sample_std(ordered),
        significant_figures=count_significant_figures(ordered, median),
    )


def count_significant_figures(ordered: Sequence[float], median: float) -> int:
    """How many figures of the median the middle half of the samples supports."""
    n = len(ordered)
    middle = ordered[n // 4 : math.ceil(3 * n / 4)]
    half_width = NORMAL_90 * distribution.population_std(middle) / math.sqrt(len(middle))
    ratio = median / max(half_width, SMALLEST_HALF_WIDTH_S)
    # One figure is the least, also where there is no logarithm: of zero, which dividing may give, too.
    return min(max(math.floor(math.log10(max(ratio, 1))), 1), MOST_FIGURES)


def find_median_interval(times: Sequence[float], confidence: float) -> Interval | None:
    """An interval that encloses the true median with this confidence, whatever the distribution.

    None where there are too few samples for it.
    """
    if not 0 < confidence < 1:
        raise UsageError(f"A confidence lies between 0 and 1, not at {confidence!r}.")
    ranks = distribution.median_ranks(len(times), confidence)
    if ranks is None:
        return None
    ordered = sorted(times)
    return Interval(ordered[ranks.low], ordered[ranks.high], ranks.confidence)


# The fewest samples for which a 95 % interval of the median exists.
ENOUGH_SAMPLES = 6
# The interquartile range, as a share of the median, that makes a result suspect, and that makes it unreliable.
SUSPECT_IQR = 0.1
UNRELIABLE_IQR = 0.25
# Block sizes are chosen for an overhead of a hundredth of this; at 1 % it shows in the digits people read.
VISIBLE_OVERHEAD = 0.01


def is_suspect(summary: Summary) -> bool:
    """Whether the middle half of the samples is so wide that the median needs a warning."""
    return summary.iqr_share >= SUSPECT_IQR


def find_caveats(*rounds: Times) -> tuple[Caveat, ...]:
    """Every reason to doubt these times of one thing, whose samples are taken together; the most basic first.

    How many there are and how they scatter is asked of all samples, so that rounds that differ from each other show.
    What is in the order of samples, or in the size of blocks, is asked of each round.
    """
    return tuple(dict.fromkeys(_caveats(*rounds)))


def _caveats(*rounds: Times) -> Iterator[Caveat]:
    if any(times.optimised_away for times in rounds):
        # How the times of nothing scatter is of no interest.
        yield OptimisedAway()
        return
    samples = [t for times in rounds for t in times.per_run]
    if len(samples) < ENOUGH_SAMPLES:
        yield FewSamples(len(samples), ENOUGH_SAMPLES)
    if not samples:
        return
    summary = summarise(samples)
    if is_suspect(summary):
        yield Variation(summary.iqr_share)
    for times in rounds:
        if trend := distribution.find_trend(times.per_run):
            yield Drift(trend.change)
    if modes := distribution.find_modes(samples):
        yield TwoModes(modes.fast, modes.slow, modes.slow_share)
    for times in rounds:
        if times.overhead_s is not None and times.raw_times:
            block = distribution.quantile(sorted(times.raw_times), 0.5)
            if block > 0 and times.overhead_s / block >= VISIBLE_OVERHEAD:
                yield HighOverhead(min(times.overhead_s / block, 1.0))


# Layouts of a well-behaved statement lie within 0.6 % of each other. Above this, the statement itself is in doubt.
UNSTABLE_SPREAD = 0.01

# What KCachegrind's cycle estimation weighs events with: a mispredicted branch or a miss of the first cache costs about
# ten instructions, a miss of the last one about a hundred.
_WEIGHTS = {1: ("Ir",), 10: ("Bcm", "Bim", "I1mr", "D1mr", "D1mw"), 100: ("ILmr", "DLmr", "DLmw")}


def spread(totals: Sequence[int]) -> float:
    """The distance between the smallest and the largest, as a share of the median.

    >>> spread([100, 101, 99])
    0.02
    """
    typical = totals[middle(totals)]
    return (max(totals) - min(totals)) / typical if typical else 0.0


def estimate_cycles(events: Mapping[str, int]) -> int | None:
    """A rough idea of cycles from simulated misses; None where nothing was simulated.

    >>> estimate_cycles({"Ir": 1000, "D1mr": 3, "DLmr": 1})
    1130
    """
    if set(events) <= {"Ir"}:
        return None
    return sum(cycles * events.get(name, 0) for cycles, names in _WEIGHTS.items() for name in names)


def doubt_count(
    totals: Sequence[int], threads: int, environment: Environment | None, *, optimised_away: bool = False
) -> tuple[Caveat, ...]:
    caveats: list[Caveat] = [OptimisedAway()] if optimised_away else []
    if len(totals) > 1 and spread(totals) > UNSTABLE_SPREAD:
        caveats.append(UnstableCount(spread(totals)))
    if threads > 1 and totals:
        caveats.append(SeveralThreads(threads))
    if environment is not None and environment.valgrind is not None:
        native, counted = environment.native_capability, environment.cpu_capability
        if native is not None and counted is not None and native != counted:
            caveats.append(OtherInstructionSet(native, counted))
    return tuple(caveats)


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
        least = math.log1p(SMALLEST_DIFFERENCE)
        close = (i for i, ratio in enumerate(self.ratios) if ratio.low is None or ratio.low <= least)
        return tuple(i for i in close if i != self.fastest)

    @property
    def runner_up(self) -> int:
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
        medians = [distribution.quantile(sorted(times), 0.5) for times in series]
        fastest = medians.index(min(medians))
        logs = [math.log(median) - math.log(medians[fastest]) for median in medians]
        return Standings(fastest, tuple(PairedRatio(log, None, None, 0.0) for log in logs))
    logs = [compare_paired(series[0], times).log_ratio for times in series]
    fastest = logs.index(min(logs))
    confidence = 1 - ERROR_RATE / math.comb(len(series), 2)
    return Standings(fastest, tuple(compare_paired(series[fastest], times, confidence) for times in series))


class TimedStatement(NamedTuple):
    """A statement with its times."""

    spec: TaskSpec
    times: Times

    @property
    def summary(self) -> Summary:
        return summarise(self.times.per_run)

    @property
    def interval(self) -> Interval | None:
        """A 95 % interval of the median; None for too few samples."""
        return find_median_interval(self.times.per_run, 0.95)


@dataclasses.dataclass
class StatementGroup:
    """Results that are compared with each other, in the order the statements were given."""

    results: list[TimedStatement] = dataclasses.field(default_factory=list)
    rounds: list[tuple[float, ...]] | None = None
    """Seconds per run, one series for each result; those at the same position are of one round. None if the results
    were not measured in turns."""
    obstacle: Failure | None = None
    """Why statements that run alone could not share a process, and had processes of their own instead."""

    @property
    def standings(self) -> Standings:
        """Which is the fastest, of one result or more."""
        if len(self.results) == 1:
            return Standings(0, (PairedRatio(0.0, 0.0, 0.0, 0.0),))
        series = [result.times.per_run for result in self.results] if self.rounds is None else self.rounds
        return rank(series, in_turns=self.rounds is not None)
