"""A comparison on a cluster: every node that can measure holds duels, and the cases are counted there first."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Sequence

from torchmark.api.abreast import Note
from torchmark.api.comparison import Comparison
from torchmark.api.remote_venues import RemoteVenue
from torchmark.api.venues import Venue
from torchmark.cli.backends import Means
from torchmark.model.plan import Metric
from torchmark.runner.backend import Backend, Stop


class Duelling:
    """Counts and times a comparison on a cluster, which is connected to once for both."""

    def __init__(self, means: Means, comparison: Comparison) -> None:
        # Statements that are compared with each other are counted in one place; a case of a suite is with itself.
        together = any(entry.is_of_two for entry in comparison.entries)
        self._backend = means.make_cluster(aligned=True, together=together)
        self._is_open = False

    def open_backend(self, comparison: Comparison, cores: Sequence[int], stack: contextlib.ExitStack) -> Backend:
        """To count with."""
        self._open(comparison)
        return self._backend

    def open_venues(self, comparison: Comparison, cores: Sequence[int], stop: Stop, note: Note) -> Sequence[Venue]:
        """To time in: every node that can measure is one."""
        self._open(comparison)
        return [RemoteVenue(comparison, court) for court in self._backend.open_courts()]

    def close(self) -> None:
        """Leave the cluster."""
        self._backend.close()

    def _open(self, comparison: Comparison) -> None:
        if not self._is_open:
            counted = Metric.COUNT in comparison.metrics
            sampling = dataclasses.replace(
                comparison.plan.sampling, metrics=(Metric.COUNT if counted else Metric.WALL,)
            )
            self._backend.open(dataclasses.replace(comparison.plan, sampling=sampling))
            self._is_open = True
