"""Costs by function of what changed, and of nothing else: they are large."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from torchmark.analysis.contrast import (
    CaseId,
    Contrast,
    CountedCase,
    choose_counts,
    explain_changes,
    identify,
)
from torchmark.callgrind.symbols import standardise
from torchmark.cli.gating import GateOptions, read_entries
from torchmark.cli.sides import StoredSide
from torchmark.model.costs import Tally
from torchmark.model.run import Run
from torchmark.store.runs import Store

# How many cases are loaded at a time: each has thousands of functions, on both sides.
BATCH = 20


def load_functions(
    store: Store, sides: tuple[StoredSide, StoredSide], contrast: Contrast, head: Run, gate: GateOptions
) -> tuple[Contrast, dict[CaseId, CountedCase]]:
    """The contrast with explanations, and head's counts: with functions where they are not what the ledger accepts."""
    counts = choose_counts(head, sides[1].target)
    changed = [identify(one.case) for one in contrast.judgements if one.count is not None and one.count.delta]
    unlike = set(_find_unlike(contrast, counts, gate))
    for batch in split(dict.fromkeys([*changed, *unlike])):
        ours, theirs = (_load_counts(store, side, batch) for side in sides)
        contrast = explain_changes(contrast, _tallies(ours), _tallies(theirs), standardise)
        counts |= {key: counted for key, counted in theirs.items() if key in unlike}
    return contrast, counts


def _load_counts(store: Store, side: StoredSide, keys: frozenset[CaseId]) -> dict[CaseId, CountedCase]:
    run = store.load(side.info.id, profiles=True, select=lambda case: identify(case) in keys)
    return choose_counts(run, side.target)


def _find_unlike(contrast: Contrast, counts: Mapping[CaseId, CountedCase], gate: GateOptions) -> Iterator[CaseId]:
    """Cases whose count is another than the accepted one."""
    for case, entry in read_entries([one.case for one in contrast.judgements], gate).items():
        key = identify(case)
        if key in counts and counts[key].tally.total != entry.total:
            yield key


def split(keys: Iterable[CaseId]) -> Iterator[frozenset[CaseId]]:
    """Cases, as many at a time as are loaded together."""
    ordered = list(keys)
    for start in range(0, len(ordered), BATCH):
        yield frozenset(ordered[start : start + BATCH])


def _tallies(counts: Mapping[CaseId, CountedCase]) -> dict[CaseId, Tally]:
    return {key: counted.tally for key, counted in counts.items()}
