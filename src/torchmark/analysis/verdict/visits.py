"""How blocks of two sides that take turns are cut, what a visit comes to, and what is doubtful about it. Pure."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from torchmark.model.caveats import (
    ComparisonCaveat,
    Interrupted,
    ManyThreads,
    PageFaults,
    SlowSpells,
    TooLong,
    TooShort,
    WildPairs,
)
from torchmark.model.job import BlockPlan, Visit
from torchmark.stats.distribution import quantile

# A machine that is shared flips between a fast and a slow spell, and stays in the fast one for a millisecond or so; and
# it takes 20 us away now and then. The shorter a block, the fewer pairs straddle either: of 80 us blocks 27 % of pairs
# did, of 45 us ones 15 %, with the same error of a visit in four fifths of the time.
BLOCK_S = 45e-6
# After the other process had the core, the first 10 runs of an operator take 40 % longer, the next 10 4.5 %, the third
# 10 0.7 %.
WARM_S = 34e-6
FEWEST_WARM = 3
# A run that lasts longer than a block refills the caches by itself.
FEWEST_WARM_OF_LONG = 1
# Another pair costs a hundredth of what a visit does, and pairs vary eight times as much as visits: about 70 would
# be best where processes have to be started, fewer where they are there.
MOST_PAIRS = 40
FEWEST_PAIRS = 6
# No visit is to last longer than this, unless the fewest pairs do.
VISIT_S = 0.06

# Pairs with a page fault are left out, if that leaves so many.
ENOUGH_PAIRS = 20

# One process in twelve is slower than the others until it ends, by 2 to 3 %: by chance its pages lie badly in real
# memory. A visit is taken for one of these if it is so far from those of other layouts, and so many times as far as
# half of these are.
FAR_OFF = 0.01
TIMES_AS_FAR = 4.0
# With fewer it cannot be told which of them is off.
FEWEST_TO_COMPARE = 4

# A block is slow if it takes so many times what the fastest tenth does.
SLOW_FACTOR = 1.3
FAST_SHARE = 0.1
# A pair is wild if its blocks differ by more than this.
WILD_LOG_RATIO = 0.1
# From these shares on, there is something to say of it.
NOTABLE_SLOW = 0.25
# The median of pairs does not mind fewer than half of them; a machine that is shared has 15 to 30 %.
NOTABLE_WILD = 0.4
NOTABLE_FAULTS = 0.2
NOTABLE_SWITCHES = 0.05
# Below this, the loop is a large part of what is timed; above that, a block is longer than the machine stays the same.
SHORTEST_RUN_S = 50e-9
LONGEST_RUN_S = 20e-3


def choose_pace(run_s: float) -> BlockPlan:
    """How to cut blocks of a statement one run of which takes so long, at best, on the slower side.

    >>> choose_pace(1e-6)
    BlockPlan(number=45, warm=34, pairs=40)
    >>> choose_pace(1e-3)
    BlockPlan(number=1, warm=1, pairs=15)
    """
    run_s = max(run_s, 1e-9)
    number = max(1, round(BLOCK_S / run_s))
    fewest_warm = FEWEST_WARM if number > 1 else FEWEST_WARM_OF_LONG
    warm = max(fewest_warm, math.ceil(WARM_S / run_s - 1e-9))
    fitting = int(VISIT_S / (2 * (number + warm) * run_s))
    return BlockPlan(number, warm, min(MOST_PAIRS, max(FEWEST_PAIRS, fitting)))


class Reduced(NamedTuple):
    """What a visit comes to: how much longer head takes, seconds of a run where the machine is fast, and shares of
    blocks or pairs that something is the matter with."""

    log_ratio: float
    base_s: float
    head_s: float
    slow_share: float
    slow_factor: float
    wild_share: float
    fault_share: float
    switch_share: float


def reduce_visit(visit: Visit) -> Reduced:
    """The median log-ratio of pairs: robust, where means are not."""
    base, head = visit.base, visit.head
    pairs = list(zip(base.times, head.times, base.faults, head.faults, strict=True))
    undisturbed = [(b, h) for b, h, b_faults, h_faults in pairs if not b_faults and not h_faults]
    used = undisturbed if len(undisturbed) >= min(ENOUGH_PAIRS, len(pairs)) else [(b, h) for b, h, *_ in pairs]
    ratios = sorted(math.log(_sane(h)) - math.log(_sane(b)) for b, h in used)
    middle = quantile(ratios, 0.5)
    slow = sorted([*_find_slow(base.times), *_find_slow(head.times)])
    blocks = 2 * len(pairs)
    return Reduced(
        log_ratio=middle,
        base_s=quantile(sorted(b for b, _ in used), 0.25) / visit.number,
        head_s=quantile(sorted(h for _, h in used), 0.25) / visit.number,
        slow_share=len(slow) / blocks,
        slow_factor=quantile(slow, 0.5) if slow else 1.0,
        wild_share=sum(abs(ratio - middle) > WILD_LOG_RATIO for ratio in ratios) / len(ratios),
        fault_share=sum(faults > 0 for faults in (*base.faults, *head.faults)) / blocks,
        switch_share=sum(switches > 0 for switches in (*base.switches, *head.switches)) / blocks,
    )


def _sane(seconds: float) -> float:
    """A clock that stands still has no logarithm."""
    return max(seconds, 1e-9)


def _find_slow(times: Sequence[float]) -> list[float]:
    """How many times as long as fast ones the slow blocks of a side take."""
    fast = _sane(quantile(sorted(times), FAST_SHARE))
    return [t / fast for t in times if t > SLOW_FACTOR * fast]


def find_far_off(log_ratios: Mapping[int, float]) -> list[int]:
    """The layouts whose visit is far from those of the others, in whichever direction.

    >>> find_far_off({0: 0.001, 1: -0.002, 2: 0.0, 3: 0.031, 4: 0.001})
    [3]
    """
    if len(log_ratios) < FEWEST_TO_COMPARE:
        return []
    middle = quantile(sorted(log_ratios.values()), 0.5)
    distances = {layout: abs(ratio - middle) for layout, ratio in log_ratios.items()}
    limit = max(FAR_OFF, TIMES_AS_FAR * quantile(sorted(distances.values()), 0.5))
    return [layout for layout, distance in distances.items() if distance > limit]


def doubt_visits(visits: Sequence[Reduced], threads: int = 1) -> tuple[ComparisonCaveat, ...]:
    if not visits:
        return ()
    base_s = quantile(sorted(visit.base_s for visit in visits), 0.5)
    slow, wild, faults, switches = (
        sum(shares) / len(visits)
        for shares in zip(*((v.slow_share, v.wild_share, v.fault_share, v.switch_share) for v in visits), strict=True)
    )
    factor = quantile(sorted(visit.slow_factor for visit in visits), 0.5)
    found: list[tuple[bool, ComparisonCaveat]] = [
        (threads > 1, ManyThreads(threads)),
        (base_s < SHORTEST_RUN_S, TooShort(base_s)),
        (base_s > LONGEST_RUN_S, TooLong(base_s)),
        (slow > NOTABLE_SLOW, SlowSpells(slow, factor)),
        (wild > NOTABLE_WILD, WildPairs(wild)),
        (faults > NOTABLE_FAULTS, PageFaults(faults)),
        (switches > NOTABLE_SWITCHES, Interrupted(switches)),
    ]
    return tuple(caveat for is_so, caveat in found if is_so)
