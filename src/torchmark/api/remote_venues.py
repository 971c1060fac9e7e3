"""Nodes of a cluster as venues: bouts are made and held there, and decided on here."""

from __future__ import annotations

from collections.abc import Sequence

from torchmark.api.comparison import Comparison, Entry
from torchmark.api.contest import Timing
from torchmark.api.referee import Place
from torchmark.api.venues import runs_together
from torchmark.cluster.courts import Court
from torchmark.model.bout import Bout
from torchmark.model.comparison import NotTimed


class RemoteVenue:
    """One node, which is for this comparison alone."""

    def __init__(self, comparison: Comparison, court: Court) -> None:
        self._comparison = comparison
        self._court = court

    def prepare(self, entries: Sequence[Entry]) -> dict[Entry, Bout | Timing]:
        """C++ comes compiled, if another node of its kind was faster."""
        comparison = self._comparison
        found: dict[Entry, Bout | Timing] = {
            entry: Timing(None, (NotTimed("compiles"),))
            for entry in entries
            if entry.base.parts is not None or entry.head.parts is not None
        }
        plain = [entry for entry in entries if entry not in found]
        bouts = self._court.prepare(
            [(entry.base, entry.head) for entry in plain],
            comparison.base,
            comparison.head,
            together=runs_together(comparison),
            timeout_s=comparison.timeout_s,
        )
        for entry, bout in zip(plain, bouts, strict=True):
            found[entry] = bout if isinstance(bout, Bout) else Timing(None, failures=bout)
        return found

    @property
    def place(self) -> Place:
        """Where bouts are held."""
        return self._court

    def close(self) -> None:
        """Let go of the node."""
        self._court.close()
