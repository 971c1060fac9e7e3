"""From raw times to caveats: the reasons to doubt them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from torchmark.analysis.summarise import summarise
from torchmark.model.caveat import Caveat, Drift, FewSamples, HighOverhead, OptimisedAway, TwoModes, Variation
from torchmark.model.summary import Summary
from torchmark.model.times import Times
from torchmark.stats import order, shape

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


def find_caveats(times: Times) -> tuple[Caveat, ...]:
    """Every reason to doubt these times, the most basic first."""
    return tuple(_caveats(times))


def find_caveats_of_rounds(rounds: Sequence[Times]) -> tuple[Caveat, ...]:
    """The same for several measurements of one thing whose samples are taken together.

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
        if trend := shape.find_trend(times.per_run):
            yield Drift(trend.change)
    if modes := shape.find_modes(samples):
        yield TwoModes(modes.fast, modes.slow, modes.slow_share)
    for times in rounds:
        yield from _doubt_blocks(times)


def _doubt_blocks(times: Times) -> Iterator[Caveat]:
    if times.overhead_s is None or not times.raw_times:
        return
    block = order.quantile(sorted(times.raw_times), 0.5)
    if block > 0 and times.overhead_s / block >= VISIBLE_OVERHEAD:
        yield HighOverhead(min(times.overhead_s / block, 1.0))
