"""This machine: where the pairs of a comparison are timed and counted."""

from __future__ import annotations

import contextlib
import functools
import os
import time
from collections.abc import Generator, Hashable, Mapping, Sequence

from torchmark.compare.comparison import ComparedPair, Comparison, Evidence
from torchmark.compare.experiment import Note, PairSite, SequentialComparison, Timing, ignore_progress
from torchmark.model.bout import PairedCase, PairedSide
from torchmark.model.case import Case
from torchmark.model.comparison import NotTimed
from torchmark.model.judgement import Side, SideFailure
from torchmark.model.outcome import Failure
from torchmark.model.task import Language
from torchmark.runner.backend import Backend, StopRequest
from torchmark.runner.folders import MachineLock
from torchmark.runner.lab import Lab
from torchmark.runner.local import LocalBackend
from torchmark.runner.paired_workers import Aliases, PairedWorkers, WorkerSide
from torchmark.runner.prepare import Models, make_parts

WAITING_S = 0.25


class LocalSite:
    """This machine."""

    def __init__(
        self,
        comparison: Comparison,
        cores: Sequence[int],
        environ: Mapping[str, str] = os.environ,
        *,
        stop: StopRequest | None = None,
        note: Note = ignore_progress,
    ) -> None:
        """`note` hears of waiting for other runs of torchmark, which ends once `stop` is requested."""
        self._comparison = comparison
        self._cores = cores
        self._environ = environ
        self._stop = stop or StopRequest()
        self._note = note
        self._stack = contextlib.ExitStack()

    def prepare(self, entries: Sequence[ComparedPair]) -> dict[ComparedPair, PairedCase | Timing]:
        """TorchScript is made and C++ compiled where that is needed, for both sides."""
        parts = [
            self._make_parts(side, [entry.base if side is Side.BASE else entry.head for entry in entries])
            for side in Side
        ]
        return {entry: _prepare(entry, *parts) for entry in entries}

    @functools.cached_property
    def place(self) -> PairSite:
        """Workers in several layouts of memory; none is started before that is asked for."""
        workers = self._open_workers()
        self._stack.callback(workers.close)
        claim_machine(self._stack, self._stop, self._note)
        return workers

    def close(self) -> None:
        """End all workers, and leave the machine to others."""
        self._stack.close()

    def _make_parts(self, side: Side, cases: Sequence[Case]) -> dict[Case, PairedSide | Failure]:
        comparison = self._comparison
        lab = Lab(comparison.base if side is Side.BASE else comparison.head, self._environ)
        self._stack.callback(lab.abandon)
        plain = list(dict.fromkeys(case for case in cases if case.parts is None))
        return make_parts(plain, lab, self._models, self._environ, comparison.timeout_s)

    @functools.cached_property
    def _models(self) -> Models:
        return self._stack.enter_context(Models(self._environ))

    def _open_workers(self) -> PairedWorkers:
        comparison = self._comparison
        return PairedWorkers(
            WorkerSide(comparison.base.python),
            WorkerSide(comparison.head.python),
            self._cores,
            self._environ,
            together=runs_together(comparison),
            timeout_s=comparison.timeout_s,
        )


def count_here(comparison: Comparison, cores: Sequence[int], stack: contextlib.ExitStack) -> Backend:
    """This machine, to count with. The length of a path moves counts: both sides have names of one length."""
    aliases = stack.enter_context(contextlib.closing(Aliases()))
    names = aliases.give_targets(comparison.plan.targets, os.environ)
    backend = LocalBackend(cores, make_lab=lambda target, environ: Lab(target, environ, names.get(target)))
    stack.enter_context(contextlib.closing(backend))
    backend.open(comparison.plan)
    return backend


def runs_together(comparison: Comparison) -> bool:
    """Whether both sides run in one process: that takes half of the workers, and is a little sharper.

    Two statements of Python can do so.
    """
    here = comparison.base == comparison.head
    python = all(entry.head.args.language == Language.PYTHON for entry in comparison.entries)
    return here and python and all(entry.is_of_two for entry in comparison.entries)


def _prepare(
    entry: ComparedPair, bases: Mapping[Case, PairedSide | Failure], heads: Mapping[Case, PairedSide | Failure]
) -> PairedCase | Timing:
    if entry.base.parts is not None or entry.head.parts is not None:
        return Timing(None, (NotTimed("compiles"),))
    base, head = bases[entry.base], heads[entry.head]
    if isinstance(base, PairedSide) and isinstance(head, PairedSide):
        return PairedCase(base, head)
    sides = zip(Side, (base, head), strict=True)
    return Timing(None, failures=tuple(SideFailure(side, one) for side, one in sides if isinstance(one, Failure)))


def claim_machine(stack: contextlib.ExitStack, stop: StopRequest, note: Note) -> None:
    """Have the machine for this alone, as far as other runs of torchmark go, until the stack is left."""
    turns = MachineLock()
    stack.callback(turns.close)
    while not turns.claim() and not stop.requested:
        note("waiting", 0, 0)
        time.sleep(WAITING_S)
    stack.callback(turns.leave)


def time_here(
    comparison: Comparison, site: LocalSite, evidence: Evidence, stop: StopRequest, note: Note = ignore_progress
) -> Generator[ComparedPair, None, None]:
    """Time all cases in turns; gives each as soon as there is no more to find out. The caller closes the site."""
    pairs: dict[Hashable, PairedCase] = {}
    for entry, prepared in site.prepare(comparison.entries).items():
        if isinstance(prepared, PairedCase):
            pairs[entry] = prepared
        else:
            evidence.timed[entry] = prepared
            yield entry
    if not pairs:
        return
    experiment = SequentialComparison(site.place, comparison.settings, stop=stop)
    for key, timing in experiment.decide(pairs, note):
        assert isinstance(key, ComparedPair)
        evidence.timed[key] = timing
        yield key
