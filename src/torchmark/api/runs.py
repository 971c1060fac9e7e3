"""A run from its request to its stored results; `api/resume.py` finds the one to go on with."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import shutil
import sys
import time
import uuid
from collections.abc import Callable, Generator, Hashable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TypeAlias

from torchmark import __version__
from torchmark.analysis.estimate import Estimator, pick_orders
from torchmark.compare.comparison import Comparison
from torchmark.compare.experiment import Note
from torchmark.compare.session import Observer
from torchmark.define.discovery import DEFAULT_SUITES, list_suites
from torchmark.define.selection import CaseOptions
from torchmark.errors import ExitCode, UsageError
from torchmark.model.outcome import Begun, Event, Failure, Outcome
from torchmark.model.plan import SUITE_LAYOUTS, Case, Metric, Order, Plan, Sampling, Target
from torchmark.model.run import SHARD, Run, RunInfo, Shard
from torchmark.processes import StopRequest, Terminated, interrupts_stop
from torchmark.report.progress import Advance, PairedAdvance, Progress, make_progress
from torchmark.runner.backend import Backend
from torchmark.runner.machine import describe_host, describe_sources
from torchmark.runner.spec import FIXED, choose_layouts
from torchmark.runner.worker import DEFAULT_TIMEOUT_S
from torchmark.store.plain import content_hash
from torchmark.store.runs import Recorder, Store, seal

NAMES = "names"
FOLDER = "folder"
TYPES = "types"
PROGRAM = "program"
DICTIONARY = "dictionary"


@dataclasses.dataclass(frozen=True)
class RunRequest:
    """What a user asks for."""

    names: tuple[str, ...]
    chosen: CaseOptions
    metrics: tuple[Metric, ...]
    targets: tuple[Target, ...]
    repeat: int = 1
    min_run_time: float = 0.0
    layouts: int = SUITE_LAYOUTS
    timeout: float = DEFAULT_TIMEOUT_S
    number: int | None = None
    """Runs in a block, where that is fixed; and how many blocks."""
    blocks: int | None = None
    types: tuple[str, ...] = ()
    """Types of the user's, which `torchmark overrides` was given."""
    shard: Shard | None = None
    """The part of the plan that is to be carried out; None for all of it."""
    program: tuple[str, ...] = ()
    """What no option of the command says: that cases are those of a dictionary, or whether all are checked."""

    def make_plan(self, cases: Sequence[Case]) -> Plan:
        sampling = Sampling(
            metrics=self.metrics,
            min_run_time_s=self.min_run_time,
            layouts=choose_layouts(self.layouts),
            repeat=self.repeat,
            timeout_s=self.timeout,
            number=self.number,
            blocks=self.blocks,
        )
        return Plan(tuple(cases), self.targets, sampling)

    def options(self, store_path: Path) -> tuple[tuple[str, tuple[str, ...]], ...]:
        """How cases are chosen, and where their files are, in a form that can be kept."""
        chosen: Mapping[str, tuple[str, ...]] = dataclasses.asdict(self.chosen)
        names = () if DICTIONARY in self.program else self.names or DEFAULT_SUITES
        given = {NAMES: names, FOLDER: (locate_folder(store_path),), **chosen, TYPES: self.types}
        given |= {SHARD: (str(self.shard),) if self.shard else (), PROGRAM: self.program}
        return tuple((name, values) for name, values in given.items() if values)


def plan_targets(python: str | None, envs: Sequence[tuple[str, str]]) -> tuple[Target, ...]:
    """The interpreters that are meant, each once."""
    if python is not None and envs:
        raise UsageError("--python and --env both say where to measure: give every interpreter with --env.")
    names = [name for name, _ in envs]
    for name in names:
        if names.count(name) > 1:
            raise UsageError(f"--env names {name!r} more than once.")
    return tuple(Target(name, path) for name, path in envs) or (Target(python=python),)


def locate_folder(store_path: Path) -> str:
    """The working folder as seen from the store: the same after both have moved."""
    return os.path.relpath(os.getcwd(), os.path.dirname(os.path.realpath(store_path)))


def check_name(name: str | None) -> None:
    """Refuse a name that a run could not be found by, or that could not be told or typed."""
    if name is not None and (not name.strip() or name[0] in "@-" or not name.isprintable()):
        raise UsageError(
            f"{name!r} cannot be the name of a run: begin with a letter or a digit, without control characters."
        )


def describe_run(request: RunRequest, plan: Plan, name: str | None, store_path: Path) -> RunInfo:
    """A new run: what is known of it before it begins."""
    run_id = uuid.uuid4().hex
    return RunInfo(
        id=run_id,
        name=name or "+".join(Path(one).stem or one for one in request.names or DEFAULT_SUITES),
        created=time.time(),
        finished=None,
        torchmark=__version__,
        host=describe_host(os.environ),
        sources=describe_sources(case.suite for case in plan.cases),
        seed=int(FIXED["PYTHONHASHSEED"]),
        options=request.options(store_path),
        seal=seal(list_sealed(run_id, dataclasses.replace(request, targets=plan.targets)), os.environ),
    )


def resolve_names(names: Sequence[str]) -> list[str]:
    """Suites as they are called, files and folders however they are spelt."""
    return [name if name in list_suites() else os.path.realpath(name) for name in names]


def locate_programs(targets: Sequence[Target]) -> list[tuple[str, str]]:
    """The program that each target starts; this program's own interpreter by its own name."""
    path = os.environ.get("PATH", os.defpath)
    pythons = [target.python and (shutil.which(target.python, path=path) or target.python) for target in targets]
    return [
        (target.name, os.path.abspath(python or sys.executable))
        for target, python in zip(targets, pythons, strict=True)
    ]


def list_sealed(run_id: str, request: RunRequest) -> list[object]:
    """All that decides what a run starts and imports, as it is found from here."""
    return [
        run_id,
        os.getcwd(),
        resolve_names(request.names or DEFAULT_SUITES),
        locate_programs(request.targets),
        request.types,
        dataclasses.asdict(request.chosen),
    ]


def identify_order(order: Order) -> Hashable:
    """An order by what is measured: tags may be others."""
    return order.case.suite, content_hash(order.case), order.target, order.metric, order.round


Display: TypeAlias = Callable[[Advance], Progress[Event]]
"""Makes what shows how far a run is."""


@dataclasses.dataclass
class RunTask:
    """A run from its plan to its last outcome; it is kept in a store if there is one."""

    store: Store | None
    plan: Plan
    request: RunRequest
    resumed: RunInfo | None = None
    """The run that goes on; None for a new one."""
    name: str | None = None
    recorder: Recorder | None = dataclasses.field(default=None, init=False)
    """Writes to the store, once the run has begun there."""

    def pick(self, orders: Iterable[Order]) -> tuple[Order, ...]:
        """Those that are to be carried out here: a shard leaves the others to others."""
        return pick_orders(orders, self.plan, self.request.shard)

    def run(
        self, backend: Backend, stop: StopRequest, display: Display = lambda _: Progress()
    ) -> Generator[Event, None, None]:
        """Carry out the orders that are missing. Each outcome is saved before it is handed on.

        Closing the generator ends what runs, and keeps what is saved.
        """
        self.recorder = self._open(backend)
        with self.recorder or contextlib.nullcontext():
            try:
                yield from self._follow(backend, stop, display)
            finally:
                if self.recorder is not None:
                    self.recorder.finish()

    def load_settled(self) -> dict[Order, Outcome]:
        """Earlier outcomes of the orders that are not missing, once the run goes on."""
        if self.store is None or self.recorder is None or self.resumed is None:
            return {}
        earlier = self.store.load(self.resumed.id, profiles=True).outcomes
        found = {identify_order(outcome.order): outcome for outcome in earlier}
        settled = set(self.plan.orders) - set(self.recorder.missing)
        return {order: found[identify_order(order)] for order in self.plan.orders if order in settled}

    def _open(self, backend: Backend) -> Recorder | None:
        """Begin, once it is certain that something can be done; or go on, if something is left to do."""
        if self.store is None or self.resumed is None:
            if self.pick(self.plan.orders):
                backend.open(self.plan)
            if self.store is None:
                return None
            return self.store.begin(self.plan, describe_run(self.request, self.plan, self.name, self.store.path))
        recorder = self.store.resume(self.resumed.id, self.plan)
        try:
            if self.pick(recorder.missing):
                backend.open(self.plan)
        except BaseException:
            recorder.__exit__(None, None, None)
            raise
        return recorder

    def _follow(self, backend: Backend, stop: StopRequest, display: Display) -> Generator[Event, None, None]:
        plan, recorder = self.plan, self.recorder
        orders = self.pick(plan.orders if recorder is None else recorder.missing)
        if not orders:
            return
        history = {} if self.store is None else self.store.durations(plan.sampling)
        total = len(self.pick(plan.orders))
        done = total - len(orders)
        # Failures that are tried again are not done.
        failed = 0 if recorder is None else max(recorder.info.failures - (recorder.info.outcomes - done), 0)
        estimator = Estimator(orders, plan.sampling, history, backend.slots)
        with (
            display(Advance(total, estimator, done, failed, time.monotonic)) as progress,
            contextlib.closing(backend.execute(plan, orders, stop)) as events,
        ):
            for event in events:
                if recorder is not None and not isinstance(event, Begun):
                    event = recorder.append(event)
                progress.take(event)
                yield event


def execute_run(task: RunTask, backend: Backend, *, quiet: bool, fail_fast: bool) -> tuple[int, Run]:
    """Carry out a run for somebody at a terminal: the exit code, and the run with its results."""
    stop, code = StopRequest(), 0
    with interrupts_stop(stop):
        try:
            with contextlib.closing(task.run(backend, stop, partial(make_progress, sys.stderr, quiet))) as events:
                for event in events:
                    if fail_fast and isinstance(event, Outcome) and isinstance(event.result, Failure):
                        stop.request()
        except KeyboardInterrupt as ended:
            if task.recorder is None:
                # Before there was anything to show.
                raise
            code = ExitCode.SIGNALLED + ended.number if isinstance(ended, Terminated) else ExitCode.INTERRUPTED
    assert task.store is not None
    assert task.recorder is not None
    info = task.recorder.info
    if stop.requested and not code and task.pick(task.recorder.missing):
        code = ExitCode.FAILED if fail_fast and info.failures else ExitCode.INTERRUPTED
    run = task.store.load(info.id)
    failed = any(isinstance(outcome.result, Failure) for outcome in run.outcomes)
    return code or (ExitCode.FAILED if failed else 0), run


@dataclasses.dataclass
class ComparisonRecorder(Observer):
    """Shows how far a comparison is on standard error, and keeps its counts in a store as they come."""

    request: RunRequest | None
    """What the run of the counts was asked for; None if they are not to be kept."""
    open_store: Callable[[], Store]
    name: str = "ab"
    quiet: bool = False
    kept: RunInfo | None = None

    @contextlib.contextmanager
    def counting(self, comparison: Comparison, backend: Backend) -> Iterator[Callable[[Event], None]]:
        """Begin a run, and finish it unless something goes wrong."""
        plan, orders = comparison.plan, comparison.orders
        estimator = Estimator(orders, plan.sampling, {}, backend.slots)
        with contextlib.ExitStack() as stack:
            recorder = None
            if self.request is not None:
                store = stack.enter_context(self.open_store())
                self.kept = describe_run(self.request, plan, self.name, store.path)
                recorder = stack.enter_context(store.begin(plan, self.kept))
            advance = Advance(len(orders), estimator, 0, 0, time.monotonic)
            progress = stack.enter_context(make_progress(sys.stderr, self.quiet, advance))

            def observe(event: Event) -> None:
                if recorder is not None and not isinstance(event, Begun):
                    recorder.append(event)
                progress.take(event)

            yield observe
            if recorder is not None:
                recorder.finish()

    @contextlib.contextmanager
    def timing(self, comparison: Comparison) -> Iterator[Note]:
        advance = PairedAdvance(len(comparison.entries), time.monotonic)
        with make_progress(sys.stderr, self.quiet, advance) as progress:
            yield lambda what, done, of: progress.take((what, done, of))
