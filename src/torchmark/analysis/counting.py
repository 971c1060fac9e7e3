"""What can be said of a count, and what cannot be trusted of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from torchmark.model.caveat import Caveat, OptimisedAway, OtherInstructionSet, SeveralThreads, UnstableCount
from torchmark.model.environment import Environment
from torchmark.stats.order import middle

# Layouts of a well-behaved statement lie within 0.6 % of each other. Above this, the statement itself is in doubt.
UNSTABLE_SPREAD = 0.01

# What KCachegrind's cycle estimation weighs events with: a mispredicted branch or a miss of the first cache costs about
# ten instructions, a miss of the last one about a hundred.
_CYCLES = {
    "Ir": 1,
    "Bcm": 10,
    "Bim": 10,
    "I1mr": 10,
    "D1mr": 10,
    "D1mw": 10,
    "ILmr": 100,
    "DLmr": 100,
    "DLmw": 100,
}


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
    return sum(_CYCLES.get(name, 0) * count for name, count in events.items())


def doubt_count(
    totals: Sequence[int], threads: int, environment: Environment | None, *, optimised_away: bool = False
) -> tuple[Caveat, ...]:
    """Every reason to doubt a count."""
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
