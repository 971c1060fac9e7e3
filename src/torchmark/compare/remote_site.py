"""Comparisons on a cluster: nodes time pairs, and decisions are made here."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Generator, Sequence

from torchmark.compare.comparison import ComparedPair, Comparison, Evidence
from torchmark.compare.experiment import Note, PairSite, Timing
from torchmark.compare.joint_timing import time_and_close
from torchmark.compare.local_site import runs_together
from torchmark.model.bout import PairedCase
from torchmark.model.comparison import NotTimed
from torchmark.model.plan import Metric
from torchmark.runner.backend import Backend, StopRequest
from torchmark.runner.cluster.backend import ClusterBackend
from torchmark.runner.cluster.remote_pairs import RemotePairs


class RemoteSite:
    """One node, which is for this comparison alone."""

    def __init__(self, comparison: Comparison, node: RemotePairs) -> None:
        self._comparison = comparison
        self._node = node

    def prepare(self, entries: Sequence[ComparedPair]) -> dict[ComparedPair, PairedCase | Timing]:
        """C++ comes compiled, if another node of its kind was faster."""
        comparison = self._comparison
        found: dict[ComparedPair, PairedCase | Timing] = {
            entry: Timing(None, (NotTimed("compiles"),))
            for entry in entries
            if entry.base.parts is not None or entry.head.parts is not None
        }
        plain = [entry for entry in entries if entry not in found]
        pairs = self._node.prepare(
            [(entry.base, entry.head) for entry in plain],
            comparison.base,
            comparison.head,
            together=runs_together(comparison),
            timeout_s=comparison.timeout_s,
        )
        for entry, pair in zip(plain, pairs, strict=True):
            found[entry] = pair if isinstance(pair, PairedCase) else Timing(None, failures=pair)
        return found

    @property
    def place(self) -> PairSite:
        """The node."""
        return self._node

    def close(self) -> None:
        """Let go of the node."""
        self._node.close()


class ClusterComparison:
    """Counts and times a comparison on a cluster, which is connected to once for both."""

    def __init__(self, backend: ClusterBackend) -> None:
        self._backend = backend
        self._is_open = False

    def try_sides(self, comparison: Comparison, evidence: Evidence) -> Comparison:
        """Nothing is tried: nodes find out what fails."""
        return comparison

    def open_backend(self, comparison: Comparison, cores: Sequence[int], stack: contextlib.ExitStack) -> Backend:
        """To count with."""
        self._open(comparison)
        return self._backend

    def time(
        self, comparison: Comparison, cores: Sequence[int], evidence: Evidence, stop: StopRequest, note: Note
    ) -> Generator[ComparedPair, None, None]:
        """On every node that can measure."""
        self._open(comparison)
        sites = [RemoteSite(comparison, node) for node in self._backend.open_remote_pairs()]
        yield from time_and_close(comparison, sites, evidence, stop, note)

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
