"""What measures on a node: workers that stay warm, cores locked for counting, and pairs timed in turns.

Apart from the fleet: it runs on the node and knows nothing of Ray.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import os
import platform
import socket
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from torchmark import __version__
from torchmark.callgrind.command import find_valgrind
from torchmark.errors import WorkerError
from torchmark.files import Hold, MachineLock, cache_folder, lock_folder, open_lock, try_lock
from torchmark.model.costs import Tally
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
from torchmark.model.task import Compiled, Language, Snippet
from torchmark.runner.cluster.libraries import FOLDER, LibraryFolder, PackedLibraries, pack_libraries
from torchmark.runner.cluster.protocol import (
    Build,
    Built,
    Canary,
    CanaryCounted,
    InputTimed,
    LibrarySet,
    Measure,
    Measured,
    NodeReply,
    PairsTimed,
    PreparePairs,
    Race,
    Request,
    RequestRefused,
    RunSetup,
    Survey,
    Surveyed,
    TimePairs,
)
from torchmark.runner.lab import Lab, Prepared, carry_out, measure
from torchmark.runner.machine import choose_cores, read_cpu_model
from torchmark.runner.paired_workers import Aliases, PairedWorkers
from torchmark.runner.prepare import Build as BuildSnippets
from torchmark.runner.prepare import Models, Preparation, has_compiler, prepare
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
                if try_lock(descriptor) is Hold.HELD:
                    self._descriptor, self.core = descriptor, core
                    return
                os.close(descriptor)

    def close(self) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


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
        fetch: Callable[[object], Any],
        environ: Mapping[str, str] = os.environ,
        name: str | None = None,
        make_lab: Callable[..., Lab] = Lab,
    ) -> None:
        """`fetch` gives what was shared with all; `name` is what the node is called."""
        self._run_setup = run_setup
        self._fetch = fetch
        self._environ = choose_environ(environ, dict(run_setup.variables))
        self._make_lab = make_lab
        self._stack = contextlib.ExitStack()
        self._models = self._stack.enter_context(Models(self._environ))
        self._library_folder = LibraryFolder(cache_folder(self._environ) / FOLDER, fetch)
        self._machine_lock = self._stack.enter_context(contextlib.closing(MachineLock()))
        self._aliases = self._stack.enter_context(contextlib.closing(Aliases()))
        self._counters: dict[Target, Worker] = {}
        self._paired_workers: PairedWorkers | None = None
        self.node = Node(name or socket.gethostname(), read_cpu_model(Path("/")))
        if os.path.isdir(run_setup.folder):
            os.chdir(run_setup.folder)

    def answer(self, request: Request) -> NodeReply:
        """Do what is asked for. What a machine lacks is an answer, too: a program, a worker, room on its disk."""
        answers: dict[type, Callable[[Any], NodeReply]] = {
            Survey: self._survey,
            Canary: self._count_canaries,
            Build: self._build,
            Measure: self._measure,
            Race: self._race,
            PreparePairs: self._prepare_pairs,
            TimePairs: self._time_pairs,
        }
        try:
            return answers[type(request)](request)
        except OSError as error:
            return RequestRefused(str(error))

    def close(self) -> None:
        self._stack.close()

    @functools.cached_property
    def _labs(self) -> dict[Target, Lab]:
        targets, run_setup = self._run_setup.targets, self._run_setup
        names = self._aliases.give_targets(targets, self._environ) if run_setup.aligned else {}
        labs = {target: self._make_lab(target, self._environ, names.get(target), run_setup.path) for target in targets}
        for lab in labs.values():
            self._stack.callback(lab.abandon)
        return labs

    # --- what the node is like -----------------------------------------------------------------------

    def _survey(self, _: Survey) -> Surveyed:
        if Metric.COUNT in self._run_setup.sampling.metrics:
            find_valgrind(self._environ.get("PATH", os.defpath))
        for lab in self._labs.values():
            lab.start()
        return Surveyed(
            node=self.node,
            torchmark=__version__,
            libc=" ".join((*platform.libc_ver(), platform.machine())),
            environments=tuple(lab.timer.environment for lab in self._labs.values()),
            cache=str(cache_folder(self._environ)),
            compiles=has_compiler(self._environ),
        )

    def _count_canaries(self, _: Canary) -> CanaryCounted:
        with self._holding(self._machine_lock.share):
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
        return self._stack.enter_context(contextlib.closing(CoreLock(choose_cores())))

    # --- measuring -----------------------------------------------------------------------------------

    def _build(self, request: Build) -> Built:
        """One compiler at a time: the other slots of the node are at work."""
        by_target: list[tuple[Target, PackedLibraries]] = []
        contents: dict[str, bytes] = {}
        with self._holding(self._machine_lock.share):
            for target in self._run_setup.targets:
                made: dict[Snippet, Compiled | Failure] = {}
                for stage in self._prepare(target, self._make_build(target, (), made)).stages(request.cases):
                    if stage.kind in (ActivityKind.SCRIPT, ActivityKind.COMPILE):
                        stage.run(1)
                packed, own = pack_libraries(made)
                by_target.append((target, packed))
                contents |= own
        return Built(tuple(by_target), contents)

    def _make_build(
        self, target: Target, library_sets: Sequence[LibrarySet], made: dict[Snippet, Compiled | Failure]
    ) -> BuildSnippets:
        return functools.partial(self._library_folder.build, target, library_sets, self._environ, made)

    def _prepare(self, target: Target, build: BuildSnippets) -> Preparation:
        timeout_s = self._run_setup.sampling.timeout_s
        return Preparation(self._labs[target], self._models, self._environ, timeout_s, build=build)

    def _measure(self, request: Measure) -> Measured:
        library_sets = list(map(self._fetch, request.library_sets))
        began = time.time()
        with self._holding(self._machine_lock.share):
            ready = {}
            for target in dict.fromkeys(order.target for order in request.orders):
                preparation = self._prepare(target, self._make_build(target, library_sets, {}))
                ready[target] = prepare(request.cases, preparation, 1)
        outcomes: list[Outcome] = []
        is_timed = any(order.metric is Metric.WALL for order in request.orders)
        with self._holding(self._machine_lock.claim if is_timed else self._machine_lock.share):
            # In their order: what is compared is measured one right after the other.
            for order in request.orders:
                outcomes.append(self._carry_out(order, ready[order.target][order.case], began))
                began = time.time()
        return Measured(tuple(outcomes))

    def _carry_out(self, order: Order, prepared: Prepared | Failure, began: float) -> Outcome:
        if isinstance(prepared, Failure):
            return Outcome(order, prepared, began, time.time(), node=self.node)
        counter, cores = None, choose_cores() if order.metric is Metric.WALL else []
        if order.metric is Metric.COUNT and order.case.parts is None:
            counter, cores = self._start_counter(order.target), [self._core_lock.core]
        outcome = carry_out(self._labs[order.target], order, prepared, self._run_setup.sampling, cores, counter)
        return dataclasses.replace(outcome, began=began, node=self.node)

    def _race(self, request: Race) -> InputTimed:
        lab = self._labs[self._run_setup.targets[0]]
        with self._holding(self._machine_lock.claim):
            lab.timer.pin(choose_cores()[-request.job.threads :])
            times = retry_if_killed(lambda: race(lab.timer, request.job, timeout_s=request.timeout_s))
        return InputTimed(times, lab.timer.environment, self.node)

    def _prepare_pairs(self, request: PreparePairs) -> PairsTimed:
        targets = request.base, request.head
        if self._paired_workers is None:
            self._paired_workers = PairedWorkers(
                *targets,
                choose_cores(),
                self._environ,
                together=request.together,
                timeout_s=request.timeout_s,
                labs=self._labs,
            )
            self._stack.callback(self._paired_workers.close)
        library_sets = list(map(self._fetch, request.library_sets))
        builds = [self._make_build(target, library_sets, {}) for target in targets]
        prepared = self._paired_workers.prepare(request.pairs, builds)
        return PairsTimed(prepared, self._paired_workers.layouts, self._paired_workers.match)

    def _time_pairs(self, request: TimePairs) -> PairsTimed:
        workers = self._paired_workers
        assert workers is not None
        with self._holding(self._machine_lock.claim):
            result = getattr(workers, request.method)(*request.arguments)
        return PairsTimed(result, workers.layouts, workers.match)

    @contextlib.contextmanager
    def _holding(self, take: Callable[[], bool]) -> Iterator[None]:
        while not take():
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
    kept = {name: value for name, value in own.items() if not travels(name)}
    return kept | {name: value for name, value in sent.items() if travels(name)}
