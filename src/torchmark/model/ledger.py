"""A count that somebody has accepted, with the reason: what later counts of the case are held against, exactly."""

from __future__ import annotations

import dataclasses


@dataclasses.dataclass(frozen=True)
class Dependencies:
    """All that a count depends on besides the code: a count under other conditions is another count."""

    definition: str
    """The hash of what is measured."""
    python: str
    torch: str
    cpu_capability: str | None
    valgrind: str | None
    hash_seed: str | None
    layouts: tuple[int, ...]
    number: int
    """How many runs were counted in each layout."""


@dataclasses.dataclass(frozen=True)
class LedgerEntry:
    """What was accepted of one case. Counts are of all runs together, so that they are whole numbers."""

    suite: str
    key: str
    depends_on: Dependencies
    total: int
    """Instructions of the layout that stands for all."""
    totals: tuple[int, ...]
    """Instructions in each layout."""
    allocations: int
    tensor_allocations: int
    functions: tuple[tuple[str, int], ...]
    """Instructions by function, in alphabetical order: those with most of them."""
    rest: int
    """Instructions of all other functions."""
    why: str
    date: str
    """The day on which it was accepted, as 2001-12-31."""
