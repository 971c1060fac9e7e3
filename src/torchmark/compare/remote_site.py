"""Comparisons on a cluster: nodes time pairs, and decisions are made here."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Sequence

from torchmark.compare.comparison import ComparedPair, Comparison
from torchmark.compare.confirm import Note, Timing
from torchmark.compare.experiment import PairSite
from torchmark.compare.timing_sites import TimingSite, runs_together
from torchmark.model.bout import PairedCase
from torchmark.model.comparison import NotTimed
from torchmark.model.plan import Metric
from torchmark.runner.backend import Backend, StopRequest
from torchmark.runner.cluster.backend import ClusterBackend
from torchmark.runner.cluster.remote_pairs import RemotePairs


class RemoteSite:
    """One node, which is for this comparison alone."""

    def __init__(self, comparison: Comparison, remote_pairs: RemotePairs) -> None:
        self._comparison = comparison
        self._remote_pairs = remote_pairs

    def prepare(self, entries: Sequence[ComparedPair]) -> dict[ComparedPair, PairedCase | Timing]:
        """C++ comes compiled, if another node of its kind was faster."""
        comparison = self._comparison
        found: dict[ComparedPair, PairedCase | Timing] = {
            entry: Timing(None, (NotTimed("compiles"),))
            for entry in entries
            if entry.base.parts is not None or entry.head.parts is not None
        }
        plain = [entry for entry in entries if entry not in found]
        paired_cases = self._remote_pairs.prepare(
            [(entry.base, entry.head) for entry in plain],
            comparison.base,
            comparison.head,
            together=runs_together(comparison),
            timeout_s=comparison.timeout_s,
        )
        for entry, paired_case in zip(plain, paired_cases, strict=True):
            found[entry] = paired_case if isinstance(paired_case, PairedCase) else Timing(None, failures=paired_case)
        return found

    @property
    def place(self) -> PairSite:
        """Where pairs are timed."""
        return self._remote_pairs

    def close(self) -> None:
        """Let go of the node."""
        self._remote_pairs.close()


class ClusterComparison:
    """Counts and times a comparison on a cluster, which is connected to once for both."""

    def __init__(self, backend: ClusterBackend) -> None:
        self._backend = backend
        self._is_open = False

    def open_backend(self, comparison: Comparison, cores: Sequence[int], stack: contextlib.ExitStack) -> Backend:
        """To count with."""
        self._open(comparison)
        return self._backend

    def open_sites(
        self, comparison: Comparison, cores: Sequence[int], stop: StopRequest, note: Note
    ) -> Sequence[TimingSite]:
        """To time in: every node that can measure is one."""
        self._open(comparison)
        return [RemoteSite(comparison, remote_pairs) for remote_pairs in self._backend.open_remote_pairs()]

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
