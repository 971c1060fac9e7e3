"""What stored times say: two sides that did not take turns, each timed in a few processes.

The process is what is repeated, not the block: blocks of one process have more in common than those of two.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from torchmark.analysis.summarise import find_median_interval
from torchmark.model.judgement import TimeEvidence, Verdict
from torchmark.model.summary import Interval
from torchmark.stats.order import quantile
from torchmark.stats.welch import contrast_means

# A spread takes three processes: of two, Student's interval is as wide as no change is.
FEWEST_ROUNDS = 3
# As for a gate in CI.
CONFIDENCE = 0.99
# Processes of one build differ by 0.8 to 3 %, for as long as they live, and a machine may be slower for minutes. A rule
# of 5 % on what is timed one after the other is still wrong often; anything smaller is wrong most of the time.
FLOOR = 0.05
EQUIVALENCE = 0.05
# Of the median within one process, where processes cannot be compared.
WITHIN = 0.95

Rounds = Sequence[Sequence[float]]
"""Seconds per run of each block, process by process."""


def weigh_times(base: Rounds, head: Rounds) -> TimeEvidence | None:
    """What the clock says of both; None where one of them has no times."""
    base, head = _usable(base), _usable(head)
    if not base or not head:
        return None
    if min(len(base), len(head)) < FEWEST_ROUNDS:
        return _bound(base, head)
    found = contrast_means(_log_medians(base), _log_medians(head), CONFIDENCE)
    if abs(found.estimate) >= FLOOR and (found.low > 0 or found.high < 0):
        verdict = Verdict.SLOWER if found.estimate > 0 else Verdict.FASTER
    else:
        within = found.low >= -EQUIVALENCE and found.high <= EQUIVALENCE
        verdict = Verdict.SAME if within else Verdict.UNDECIDED
    return TimeEvidence(
        verdict, found.estimate, found.low, found.high, CONFIDENCE,
        base_s=_typical(base), head_s=_typical(head), floor=FLOOR, equivalence=EQUIVALENCE, p_value=found.p_value,
    )  # fmt: skip


def _usable(rounds: Rounds) -> list[list[float]]:
    """Rounds that have a logarithm. A clock that is coarse may give nothing but zeros."""
    ordered = (sorted(times) for times in rounds if times)
    return [times for times in ordered if quantile(times, 0.5) > 0]


def _log_medians(rounds: Rounds) -> list[float]:
    return [math.log(quantile(times, 0.5)) for times in rounds]


def _typical(rounds: Rounds) -> float:
    return math.exp(sum(_log_medians(rounds)) / len(rounds))


def _bound(base: Rounds, head: Rounds) -> TimeEvidence:
    """All ratios that the intervals of both sides allow.

    How far processes are apart is not in them, so nothing is decided.
    """
    ours, theirs = _enclose(base), _enclose(head)
    base_s, head_s = _typical(base), _typical(head)
    # Both have to hold.
    confidence = max(0.0, ours.confidence + theirs.confidence - 1)
    low, high = math.log(theirs.low / ours.high), math.log(theirs.high / ours.low)
    return TimeEvidence(
        Verdict.UNDECIDED,
        math.log(head_s / base_s),
        # One or two samples of each side exclude nothing.
        low if confidence > 0 else -math.inf,
        high if confidence > 0 else math.inf,
        confidence,
        base_s,
        head_s,
        FLOOR,
        EQUIVALENCE,
    )


def _enclose(rounds: Rounds) -> Interval:
    """From the lowest to the highest that the median of any round may be."""
    found = [_find_interval(times) for times in rounds]
    low, high = min(one.low for one in found), max(one.high for one in found)
    return Interval(low, high, min(one.confidence for one in found))


def _find_interval(times: Sequence[float]) -> Interval:
    """Of few samples all of them, with what confidence that gives; none of a single one."""
    found = find_median_interval(times, WITHIN)
    if found is None:
        # The median lies outside if all samples are on one side of it.
        found = Interval(times[0], times[-1], 1 - 2.0 ** (1 - len(times)))
    # Times that no clock can have given have no logarithm.
    positive = [t for t in times if t > 0]
    return Interval(max(found.low, positive[0]), found.high, found.confidence)
