"""From the profiles of several layouts to one result: which layout stands for all, and what cannot be trusted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from torchmark.model.caveat import Caveat, OptimisedAway, OtherInstructionSet, SeveralThreads, UnstableCount
from torchmark.model.costs import Profile
from torchmark.model.environment import Environment

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


def middle(totals: Sequence[int]) -> int:
    """The position of the median; of an even number, of the lower of the middle two. So it is one that was seen.

    >>> middle([30, 10, 20]), middle([1, 4, 2, 3])
    (2, 2)
    """
    return sorted(range(len(totals)), key=totals.__getitem__)[(len(totals) - 1) // 2]


def spread(totals: Sequence[int]) -> float:
    """The distance between the smallest and the largest, as a share of the median.

    >>> spread([100, 101, 99])
    0.02
    """
    typical = totals[middle(totals)]
    return (max(totals) - min(totals)) / typical if typical else 0.0


def find_noisy(layouts: Sequence[Profile]) -> frozenset[str]:
    """The functions that did not cost the same in every layout, by label."""
    functions = set().union(*(profile.exclusive for profile in layouts))
    return frozenset(
        function.label
        for function in functions
        if len({profile.exclusive.get(function) or (0,) * len(profile.events) for profile in layouts}) > 1
    )


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
