"""What measures on a node: workers that stay warm, cores locked for counting, and pairs timed in turns.

Apart from the fleet: it runs on the node and knows nothing of Ray.
"""

from __future__ import annotations

import contextlib
import dataclasses
import fcntl
import functools
import os
import platform
import socket
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from torchmark import __version__
from torchmark.callgrind.command import find_valgrind
from torchmark.errors import WorkerError
from torchmark.files import Hold, MachineLock, cache_folder, lock_folder, open_lock, try_lock
from torchmark.model.costs import Tally
from torchmark.model.job import PairedCase, PairedSide, RunTime
from torchmark.model.judgement import Side, SideFailure
from torchmark.model.outcome import ActivityKind, Failure, Outcome
from torchmark.model.plan import (
    AutogradMode,
    AutoLabels,
    Case,
    Metric,
    Node,
    Order,
    RuntimeMode,
    Sampling,
    Target,
    TimerArgs,
)
from torchmark.model.task import Language
from torchmark.runner.cluster.libraries import FOLDER, LibraryBuilder, LibraryFolder, PackedLibraries, pack_libraries
from torchmark.runner.cluster.protocol import (
    Build,
    Built,
    Canary,
    CanaryCounted,
    InputTimed,
    LayoutsStarted,
    LibrarySet,
    Measure,
    Measured,
    NodeReply,
    OneRunTimed,
    PairsPrepared,
    PreparePairs,
    Race,
    Request,
    RequestRefused,
    RunSetup,
    StartLayouts,
    Survey,
    Surveyed,
    TimeOneRun,
    Visited,
    VisitPair,
)
from torchmark.runner.lab import Lab, Prepared, carry_out, measure
from torchmark.runner.machine import choose_cores, read_cpu_model
from torchmark.runner.paired_workers import Aliases, Failures, PairedWorkers, WorkerSide
from torchmark.runner.prepare import Made, Models, Preparation, has_compiler, make_parts
from torchmark.runner.spec import travels
from torchmark.runner.worker import Worker, race, retry_if_killed


class CoreLock:
    """One of these cores that nobody else sits on; the last, if there is none. The system frees it for who is gone.

    Where files cannot be locked, all sit on the last.
    """

    def __init__(self, cores: Sequence[int], folder: Path | None = None) -> None:
        self._descriptor: int | None = None
        self.core = cores[-1]
        folder = folder or lock_folder()
        if folder is None:
            return
        for core in cores:
            with contextlib.suppress(OSError):
                descriptor = open_lock(folder / f"core{core}")
                if try_lock(descriptor, fcntl.LOCK_EX) is Hold.HELD:
                    self._descriptor, self.core = descriptor, core
                    return
                os.close(descriptor)

    def close(self) -> None:
        """Leave it to others."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


class PairTimer:
    """Times pairs of cases of two targets on this node."""

    def __init__(
        self,
        asked: PreparePairs,
        labs: Mapping[Target, Lab],
        models: Models,
        environ: Mapping[str, str],
        cores: Sequence[int],
    ) -> None:
        self._targets = asked.base, asked.head
        self._labs = labs
        self._models = models
        self._environ = environ
        self._timeout_s = asked.timeout_s
        base, head = (WorkerSide(target.python) for target in self._targets)
        self._workers = PairedWorkers(base, head, cores, environ, together=asked.together, timeout_s=asked.timeout_s)

    def prepare(
        self, pairs: Sequence[tuple[Case, Case]], library_folder: LibraryFolder, library_sets: Sequence[LibrarySet]
    ) -> tuple[PairedCase | Failures, ...]:
        """What both sides of each pair run, or which of them cannot."""
        sides: list[dict[Case, PairedSide | Failure]] = []
        for number, target in enumerate(self._targets):
            cases = list(dict.fromkeys(pair[number] for pair in pairs))
            builder = LibraryBuilder(library_folder, target, library_sets, self._environ)
            made = make_parts(cases, self._labs[target], self._models, self._environ, self._timeout_s, builder.build)
            sides.append(made)
        return tuple(_match(sides[0][base], sides[1][head]) for base, head in pairs)

    def start(self, layouts: Sequence[int]) -> LayoutsStarted:
        """Have more layouts."""
        self._workers.start(layouts)
        return LayoutsStarted(self._workers.layouts, self._workers.match)

    def gauge(self, paired_case: PairedCase) -> RunTime | Failures:
        """How long a run takes on each side."""
        return self._workers.gauge(paired_case)

    def visit(self, asked: VisitPair) -> Visited:
        """Both sides in turns."""
        return Visited(self._workers.visit(asked.layout, asked.paired_case, asked.pace))

    def close(self) -> None:
        """End all workers, at once."""
        self._workers.close()


def _match(base: PairedSide | Failure, head: PairedSide | Failure) -> PairedCase | Failures:
    if isinstance(base, PairedSide) and isinstance(head, PairedSide):
        return PairedCase(base, head)
    return tuple(
        SideFailure(side, one) for side, one in zip(Side, (base, head), strict=True) if isinstance(one, Failure)
    )


# How often to look whether another run of torchmark on this node is done with timing.
LOOKING_INTERVAL_S = 0.25

# Counted on every node before anything else. It goes through Python, the dispatcher, an allocation and a kernel.
CANARY = Case(
    ("canary",),
    AutoLabels(RuntimeMode.EAGER, AutogradMode.FORWARD, Language.PYTHON),
    TimerArgs("torch.add(x, 1).sum()", "x = torch.ones(64)"),
)
CANARY_LAYOUT = 1


class NodeServer:
    """Answers what is asked of it, one thing after the other."""

    def __init__(
        self,
        run_setup: RunSetup,
        fetch: Callable[[object], object],
        environ: Mapping[str, str] = os.environ,
        name: str | None = None,
        make_lab: Callable[..., Lab] = Lab,
    ) -> None:
        """`fetch` gives what was shared with all; `name` is what the node is called."""
        self._run_setup = run_setup
        self._fetch = fetch
        self._environ = choose_environ(environ, dict(run_setup.variables))
        self._make_lab = make_lab
        self._models = Models(self._environ)
        self._library_folder = LibraryFolder(
            cache_folder(self._environ) / FOLDER, lambda handle: _as_bytes(fetch(handle))
        )
        self._machine_lock = MachineLock()
        self._aliases = Aliases()
        self._counters: dict[Target, Worker] = {}
        self._pair_timer: PairTimer | None = None
        self.node = Node(name or socket.gethostname(), read_cpu_model(Path("/")))
        if os.path.isdir(run_setup.folder):
            os.chdir(run_setup.folder)

    def answer(self, request: Request) -> NodeReply:
        """Do what is asked for. What a machine lacks is an answer, too: a program, a worker, room on its disk."""
        try:
            return self._answer(request)
        except OSError as error:
            return RequestRefused(str(error))

    def close(self) -> None:
        """End all workers, at once."""
        for lab in self._labs.values() if "_labs" in self.__dict__ else ():
            lab.abandon()
        if self._pair_timer is not None:
            self._pair_timer.close()
        if "_core_lock" in self.__dict__:
            self._core_lock.close()
        self._models.close()
        self._aliases.close()
        self._machine_lock.close()

    def _answer(self, request: Request) -> NodeReply:
        if isinstance(request, Survey):
            return self._survey()
        if isinstance(request, Canary):
            return self._count_canaries()
        if isinstance(request, Build):
            return self._build(request.cases)
        if isinstance(request, Measure):
            return self._measure(request)
        if isinstance(request, Race):
            return self._race(request)
        return self._time_pairs(request)

    @functools.cached_property
    def _labs(self) -> dict[Target, Lab]:
        targets, run_setup = self._run_setup.targets, self._run_setup
        names = self._aliases.give_targets(targets, self._environ) if run_setup.aligned else {}
        return {target: self._make_lab(target, self._environ, names.get(target), run_setup.path) for target in targets}

    # --- what the node is like -----------------------------------------------------------------------

    def _survey(self) -> Surveyed:
        if Metric.COUNT in self._run_setup.sampling.metrics:
            find_valgrind(self._environ.get("PATH", os.defpath))
        for lab in self._labs.values():
            lab.start()
        libc = " ".join((*platform.libc_ver(), platform.machine()))
        environments = tuple(lab.timer.environment for lab in self._labs.values())
        folder = str(cache_folder(self._environ))
        return Surveyed(
            node=self.node,
            torchmark=__version__,
            libc=libc,
            environments=environments,
            cache=folder,
            compiles=has_compiler(self._environ),
        )

    def _count_canaries(self) -> CanaryCounted:
        with self._sharing():
            counts = [self._count_canary(target) for target in self._run_setup.targets]
        return CanaryCounted(tuple(counts), tuple(counter.environment for counter in self._counters.values()))

    def _count_canary(self, target: Target) -> int:
        counter = self._start_counter(target)
        sampling = Sampling((Metric.COUNT,), layouts=(CANARY_LAYOUT,), timeout_s=self._run_setup.sampling.timeout_s)
        result, _ = measure(lambda: self._labs[target].count(Prepared(CANARY), sampling, counter))
        if isinstance(result, Tally):
            return result.total
        assert isinstance(result, Failure)
        raise WorkerError(f"Nothing can be counted: {result.message}", kind="canary")

    def _start_counter(self, target: Target) -> Worker:
        if target not in self._counters:
            self._counters[target] = self._labs[target].make_counter()
        self._counters[target].start()
        self._counters[target].pin((self._core_lock.core,))
        return self._counters[target]

    @functools.cached_property
    def _core_lock(self) -> CoreLock:
        return CoreLock(choose_cores())

    # --- measuring -----------------------------------------------------------------------------------

    def _build(self, cases: Sequence[Case]) -> Built:
        """One compiler at a time: the other slots of the node are at work."""
        by_target: list[tuple[Target, PackedLibraries]] = []
        contents: dict[str, bytes] = {}
        with self._sharing():
            for target in self._run_setup.targets:
                builder = LibraryBuilder(self._library_folder, target, (), self._environ)
                for stage in self._prepare(target, builder).stages(cases):
                    if stage.kind in (ActivityKind.SCRIPT, ActivityKind.COMPILE):
                        stage.run(1)
                packed, own = pack_libraries(builder.made)
                by_target.append((target, packed))
                contents |= own
        return Built(tuple(by_target), contents)

    def _prepare(self, target: Target, builder: LibraryBuilder) -> Preparation:
        timeout_s = self._run_setup.sampling.timeout_s
        return Preparation(self._labs[target], self._models, self._environ, timeout_s, build=builder.build)

    def _measure(self, request: Measure) -> Measured:
        library_sets = [self._fetch_library_set(handle) for handle in request.library_sets]
        began = time.time()
        with self._sharing():
            targets = dict.fromkeys(order.target for order in request.orders)
            ready = {target: self._make_ready(target, request.cases, library_sets) for target in targets}
        outcomes: list[Outcome] = []
        is_timed = any(order.metric is Metric.WALL for order in request.orders)
        with self._claiming() if is_timed else self._sharing():
            # In their order: what is compared is measured one right after the other.
            for order in request.orders:
                outcomes.append(self._carry_out(order, ready[order.target][order.case], began))
                began = time.time()
        return Measured(tuple(outcomes))

    def _make_ready(self, target: Target, cases: Sequence[Case], library_sets: Sequence[LibrarySet]) -> Made:
        ready: Made = {}
        for stage in self._prepare(
            target, LibraryBuilder(self._library_folder, target, library_sets, self._environ)
        ).stages(cases):
            ready |= stage.run(1)
        return ready

    def _fetch_library_set(self, handle: object) -> LibrarySet:
        library_set = self._fetch(handle)
        assert isinstance(library_set, LibrarySet)
        return library_set

    def _carry_out(self, order: Order, prepared: Prepared | Failure, began: float) -> Outcome:
        if isinstance(prepared, Failure):
            return Outcome(order, prepared, began, time.time(), node=self.node)
        cores, counter = choose_cores(), None
        if order.metric is Metric.COUNT:
            cores = []
            if order.case.parts is None:
                counter, cores = self._start_counter(order.target), [self._core_lock.core]
        outcome = carry_out(self._labs[order.target], order, prepared, self._run_setup.sampling, cores, counter)
        return dataclasses.replace(outcome, began=began, node=self.node)

    def _race(self, request: Race) -> InputTimed:
        lab = self._labs[self._run_setup.targets[0]]
        with self._claiming():
            lab.timer.pin(choose_cores()[-request.job.threads :])
            times = retry_if_killed(lambda: race(lab.timer, request.job, timeout_s=request.timeout_s))
        return InputTimed(times, lab.timer.environment, self.node)

    # --- timed pairs ---------------------------------------------------------------------------------

    def _time_pairs(self, request: PreparePairs | StartLayouts | TimeOneRun | VisitPair) -> NodeReply:
        if isinstance(request, PreparePairs):
            if self._pair_timer is None:
                self._pair_timer = PairTimer(request, self._labs, self._models, self._environ, choose_cores())
            library_sets = [self._fetch_library_set(handle) for handle in request.library_sets]
            return PairsPrepared(self._pair_timer.prepare(request.pairs, self._library_folder, library_sets))
        assert self._pair_timer is not None
        with self._claiming():
            if isinstance(request, StartLayouts):
                return self._pair_timer.start(request.layouts)
            if isinstance(request, TimeOneRun):
                return OneRunTimed(self._pair_timer.gauge(request.paired_case))
            return self._pair_timer.visit(request)

    # --- other runs on the same node -----------------------------------------------------------------

    @contextlib.contextmanager
    def _sharing(self) -> Iterator[None]:
        while not self._machine_lock.share():
            time.sleep(LOOKING_INTERVAL_S)
        try:
            yield
        finally:
            self._machine_lock.leave()

    @contextlib.contextmanager
    def _claiming(self) -> Iterator[None]:
        while not self._machine_lock.claim():
            time.sleep(LOOKING_INTERVAL_S)
        try:
            yield
        finally:
            self._machine_lock.leave()


def choose_environ(own: Mapping[str, str], sent: Mapping[str, str]) -> dict[str, str]:
    """A node's variables, of which those that change what is measured are as they are where the run was begun.

    >>> choose_environ({"PATH": "/bin", "OMP_NUM_THREADS": "1"}, {"MKL_DEBUG": "2", "PATH": "/other"})
    {'PATH': '/bin', 'MKL_DEBUG': '2'}
    """
    return {
        **{name: value for name, value in own.items() if not travels(name)},
        **{name: value for name, value in sent.items() if travels(name)},
    }


def _as_bytes(value: object) -> bytes:
    assert isinstance(value, bytes)
    return value
