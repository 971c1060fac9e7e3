"""From the profiles of several layouts to one result: which layout stands for all, and what varies between them."""

from __future__ import annotations

from collections.abc import Sequence

from torchmark.callgrind.symbols import count_allocations
from torchmark.model.costs import Counts, Profile, Tally
from torchmark.stats.order import middle


def tally(counts: Counts, seeds: Sequence[int]) -> Tally:
    """What the profiles come to. `seeds` are those of the layouts, in their order."""
    totals = tuple(profile.total() for profile in counts.layouts)
    chosen = middle(totals)
    profile = counts.layouts[chosen]
    allocations, tensor_allocations = count_allocations(profile)
    return Tally(
        number=counts.number,
        seeds=tuple(seeds),
        totals=totals,
        events=tuple(zip(profile.events, profile.totals(), strict=True)),
        allocations=allocations,
        tensor_allocations=tensor_allocations,
        baseline=None if counts.baseline is None else counts.baseline.total(),
        noisy=tuple(sorted(find_noisy(counts.layouts))) if len(counts.layouts) > 1 else None,
        optimised_away=counts.optimised_away,
        profile=profile,
        baseline_profile=counts.baseline,
        text=None if counts.texts is None else counts.texts[chosen],
    )


def find_noisy(layouts: Sequence[Profile]) -> frozenset[str]:
    """The functions that did not cost the same in every layout, by label."""
    functions = set().union(*(profile.exclusive for profile in layouts))
    return frozenset(
        function.label
        for function in functions
        if len({profile.exclusive.get(function) or (0,) * len(profile.events) for profile in layouts}) > 1
    )
