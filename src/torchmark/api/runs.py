"""A run from its request to its stored results: the plan, carrying it out, and resuming it later."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import shlex
import shutil
import sys
import time
import uuid
from collections.abc import Callable, Collection, Generator, Hashable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TypeAlias

from torchmark import __version__
from torchmark.analysis.estimate import Estimate, Estimator, History, estimate, pick_orders
from torchmark.compare.comparison import Comparison
from torchmark.compare.experiment import Note
from torchmark.define.discovery import DEFAULT_SUITES, list_suites
from torchmark.define.selection import CaseOptions
from torchmark.errors import UsageError
from torchmark.model.case import Case
from torchmark.model.outcome import Begun, Event, Failure, Outcome, may_pass_later
from torchmark.model.plan import Metric, Order, Plan, Sampling, Target
from torchmark.model.run import Run, RunInfo
from torchmark.model.shard import SHARD, Shard, read_shard
from torchmark.report.progress import Advance, NoProgress, PairedAdvance, Progress, make_progress
from torchmark.report.text.run_summary import SHORT_ID
from torchmark.report.text.terminal import printable
from torchmark.runner.backend import Backend, StopRequest, Terminated, interrupts_stop
from torchmark.runner.machine import describe_host, describe_sources, read_cpu_model
from torchmark.runner.spec import FIXED, choose_layouts
from torchmark.store.plain import content_hash
from torchmark.store.runs import DEFAULT_STORE, Recorder, Store, open_store
from torchmark.store.seals import is_sealed, seal

NAMES = "names"
FOLDER = "folder"
TYPES = "types"
PROGRAM = "program"
DICTIONARY = "dictionary"
# What stays as it was when a run goes on, and how it is spelt.
_FIXED_OPTIONS = {
    "metrics": "--metric",
    "repeat": "--repeat",
    "min_run_time": "--min-run-time",
    "layouts": "--layouts",
}


@dataclasses.dataclass(frozen=True)
class RunRequest:
    """What a user asks for."""

    names: tuple[str, ...]
    chosen: CaseOptions
    metrics: tuple[Metric, ...]
    targets: tuple[Target, ...]
    repeat: int
    min_run_time: float
    layouts: int
    timeout: float
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
        """What that means for these cases."""
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
        seal=seal(_list_sealed(run_id, dataclasses.replace(request, targets=plan.targets)), os.environ),
    )


@dataclasses.dataclass(frozen=True)
class ResumableRun:
    """A run to go on with."""

    info: RunInfo
    request: RunRequest
    """What was asked for when it began."""
    sees_folder: bool
    """Whether its cases may import what lies in the working folder: the user began it here, or names its benchmarks."""


def find_resumable(
    store: Store, request: RunRequest, given: Collection[str], name: str | None, cases: Sequence[Case] = ()
) -> ResumableRun:
    """The newest run that fits the options on the command line, or the one that is named.

    What is measured and how stays what it was; only the time limit may be another. A run that this user did not begin
    here, as far as can be shown, starts and imports nothing but what stands on the command line. `cases` are those of
    a dictionary, which have to be the same.
    """
    candidates = store.list_runs() if name is None else _list_named(store, name, given)
    if not candidates:
        raise UsageError("There is no run to go on with.")
    problem = ""
    for info in candidates:
        earlier = _read_request(info, store.load(info.id, select=lambda _: False).plan)
        # Who names a run means it, wherever it began.
        differences = [
            *(_began_elsewhere(info, earlier, store.path) if name is None else ()),
            *_differ(request, earlier, given),
            *(
                _differ_in_cases(cases, store.load(info.id).plan.cases)
                if cases and DICTIONARY in earlier.program
                else ()
            ),
        ]
        if not differences:
            sealed = is_sealed(info.seal, _list_sealed(info.id, earlier), os.environ)
            if not sealed:
                _refuse_unnamed(info, earlier, given, store.path)
            timeout = request.timeout if "timeout" in given else earlier.timeout
            return ResumableRun(info, dataclasses.replace(earlier, timeout=timeout), sealed or NAMES in given)
        problem = problem or f"{info.name} ({info.id[:8]}) {differences[0]}"
    raise UsageError(
        f"There is no run to go on with that fits: {problem}. A run goes on as it began, and where: leave "
        "other options out, say with --name which run you mean, or begin a new one without --resume."
    )


def _list_named(store: Store, name: str, given: Collection[str]) -> tuple[RunInfo, ...]:
    """The run that is meant. Shards of a run share its name: where one is asked for, all runs of that name."""
    found = store.find(name)
    if SHARD not in given or found.name != name:
        return (found,)
    return tuple(info for info in store.list_runs() if info.name == name)


def _read_request(info: RunInfo, plan: Plan) -> RunRequest:
    options = dict(info.options)
    fields = {field.name for field in dataclasses.fields(CaseOptions)}
    sampling = plan.sampling
    chosen = CaseOptions(**{name: values for name, values in options.items() if name in fields})
    try:
        chosen.select()
    except (KeyError, ValueError) as error:
        # It may have been made by another version, or by anybody.
        raise UsageError(f"The run {info.id} cannot be resumed: its selection means nothing here.") from error
    return RunRequest(
        names=options.get(NAMES, ()),
        chosen=chosen,
        metrics=sampling.metrics,
        targets=plan.targets,
        repeat=sampling.repeat,
        min_run_time=sampling.min_run_time_s,
        layouts=len(sampling.layouts),
        timeout=sampling.timeout_s,
        number=sampling.number,
        blocks=sampling.blocks,
        types=options.get(TYPES, ()),
        shard=read_shard(info),
        program=options.get(PROGRAM, ()),
    )


def _began_elsewhere(info: RunInfo, earlier: RunRequest, store_path: Path) -> Iterator[str]:
    """Where a run began, if it was not here: files of the same names are others there, and so are the times."""
    if info.host.cpu_model != read_cpu_model(Path("/")):
        yield f"was begun on another machine ({info.host.cpu_model})"
    folder = next(iter(dict(info.options).get(FOLDER, ())), None)
    has_files = not set(earlier.names) <= set(list_suites())
    if folder is not None and has_files and folder != locate_folder(store_path):
        there = os.path.normpath(os.path.join(os.path.dirname(os.path.realpath(store_path)), folder))
        yield f"was begun in another folder ({there})"


def _resolve(names: Sequence[str]) -> list[str]:
    """Suites as they are called, files and folders however they are spelt."""
    return [name if name in list_suites() else os.path.realpath(name) for name in names]


def _list_files(names: Sequence[str]) -> list[str]:
    """The files and folders among these that are imported."""
    return [path for name, path in zip(names, _resolve(names), strict=True) if name not in list_suites()]


def _locate_programs(targets: Sequence[Target]) -> list[tuple[str, str]]:
    """The program that each target starts; this program's own interpreter by its own name."""
    path = os.environ.get("PATH", os.defpath)
    pythons = [target.python and (shutil.which(target.python, path=path) or target.python) for target in targets]
    return [
        (target.name, os.path.abspath(python or sys.executable))
        for target, python in zip(targets, pythons, strict=True)
    ]


def _list_sealed(run_id: str, request: RunRequest) -> list[object]:
    """All that decides what a run starts and imports, as it is found from here."""
    return [
        run_id,
        os.getcwd(),
        _resolve(request.names or DEFAULT_SUITES),
        _locate_programs(request.targets),
        request.types,
        dataclasses.asdict(request.chosen),
    ]


def _refuse_unnamed(info: RunInfo, earlier: RunRequest, given: Collection[str], store_path: Path) -> None:
    """Start nothing, and import nothing, that only the store names: it may be a stranger's."""
    own = os.path.abspath(sys.executable)
    unnamed = [] if NAMES in given else [f"import {path}" for path in _list_files(earlier.names)]
    if not {"python", "envs"} & set(given):
        unnamed += [f"start {path}" for _, path in _locate_programs(earlier.targets) if path != own]
    if unnamed:
        lines = "".join(f"\n  {printable(line)}" for line in dict.fromkeys(unnamed))
        raise UsageError(
            f"Nothing was started. The run {printable(info.name)} ({info.id[:SHORT_ID]}) would{lines}\n"
            "and nothing shows that you began it on this machine, in this folder. If you trust all of this, name it "
            f"again:\n  {spell_resume(info, earlier.targets, store_path)}"
        )


def spell_resume(info: RunInfo, targets: Sequence[Target], store_path: Path) -> str:
    """The command that goes on with a run wherever it began, with all that it starts and imports named."""
    names = dict(info.options).get(NAMES, ())
    words = ["torchmark", "run", *(names if _list_files(names) else ()), "--resume", "--name", info.id[:SHORT_ID]]
    programs = _locate_programs(targets)
    if any(path != os.path.abspath(sys.executable) for _, path in programs):
        for target, (name, path) in zip(targets, programs, strict=True):
            # A lone interpreter without a name is the one of --python.
            words += ["--env", f"{name}={target.python or path}"] if name else []
            words += ["--python", target.python] if target.python and not name else []
    if os.path.abspath(store_path) != os.path.abspath(DEFAULT_STORE):
        words += ["--store", str(store_path)]
    return printable(shlex.join(words))


def _differ(request: RunRequest, earlier: RunRequest, given: Collection[str]) -> Iterator[str]:
    """What was asked for otherwise then, of all that is asked for now."""
    if NAMES in given and _resolve(request.names) != _resolve(earlier.names):
        yield f"has benchmarks {' '.join(earlier.names)}, not {' '.join(request.names)}"
    if earlier.types:
        yield f"has types that only 'torchmark overrides' knows ({', '.join(earlier.types)})"
    if request.program != earlier.program:
        yield (
            f"was begun by torchmark.run_benchmarks ({', '.join(earlier.program)})"
            if earlier.program
            else f"was begun without {', '.join(request.program)}"
        )
    if any(option.startswith("only_") for option in given) and request.chosen != earlier.chosen:
        yield "has another selection of cases"
    for option, spelt in _FIXED_OPTIONS.items():
        if option in given and getattr(request, option) != getattr(earlier, option):
            yield f"has another {spelt}"
    if SHARD in given and request.shard != earlier.shard:
        yield f"is {f'shard {earlier.shard}' if earlier.shard else 'no shard'}, not shard {request.shard}"
    if {"python", "envs"} & set(given) and _locate_programs(request.targets) != _locate_programs(earlier.targets):
        yield "has other interpreters"


@dataclasses.dataclass(frozen=True)
class Forecast:
    """What a run would begin with: its request, and what the store knows of it."""

    request: RunRequest
    sees_folder: bool = True
    history: History = dataclasses.field(default_factory=dict)
    settled: frozenset[Hashable] = frozenset()
    """The orders of an earlier run whose outcomes stay."""

    def estimate(self, plan: Plan, cores: int) -> Estimate:
        """How long the orders of a plan take that are still missing."""
        orders = [order for order in plan.orders if _identify(order) not in self.settled]
        return estimate(orders, plan.sampling, self.history, cores)


def look_ahead(request: RunRequest, store_path: Path, given: Collection[str] | None, name: str | None) -> Forecast:
    """What is known before a run begins; before one goes on, where the options of the command are `given`.

    This leaves no trace: where there is no store yet, there is none afterwards.
    """
    if given is None and not store_path.exists():
        return Forecast(request)
    with open_store(store_path, read_only=True) as store:
        if given is None:
            return Forecast(request, history=store.durations(request.make_plan(()).sampling))
        resumed = find_resumable(store, request, given, name)
        request, earlier = resumed.request, store.load(resumed.info.id)
        longer = request.timeout > earlier.plan.sampling.timeout_s
        settled = (_identify(one.order) for one in earlier.outcomes if not _is_worth_another_try(one, longer))
        history = store.durations(request.make_plan(()).sampling)
        return Forecast(request, resumed.sees_folder, history, frozenset(settled))


def _is_worth_another_try(outcome: Outcome, longer: bool) -> bool:
    return isinstance(outcome.result, Failure) and may_pass_later(outcome.result, longer=longer)


def _identify(order: Order) -> Hashable:
    """An order by what is measured: tags may be others."""
    return order.case.suite, content_hash(order.case), order.target, order.metric, order.round


def _differ_in_cases(cases: Sequence[Case], earlier: Sequence[Case]) -> Iterator[str]:
    """Whether a dictionary, of which there is no file, has the cases that it had then."""
    if [content_hash(case) for case in cases] != [content_hash(case) for case in earlier]:
        yield "has other cases"


CASE_FAILED = 1
INTERRUPTED = 130
# What shells add to the number of the signal that ended a program.
SIGNALLED = 128

Display: TypeAlias = Callable[[Advance], Progress[Event]]
"""Makes what shows how far a run is."""


@dataclasses.dataclass
class RunTask:
    """A run from its plan to its last outcome; it is kept in a store if there is one."""

    store: Store | None
    plan: Plan
    request: RunRequest
    resumed: ResumableRun | None = None
    name: str | None = None
    recorder: Recorder | None = dataclasses.field(default=None, init=False)
    """Writes to the store, once the run has begun there."""

    def pick(self, orders: Iterable[Order]) -> tuple[Order, ...]:
        """Those that are to be carried out here: a shard leaves the others to others."""
        return pick_orders(orders, self.plan, self.request.shard)

    def run(
        self, backend: Backend, stop: StopRequest, display: Display = lambda _: NoProgress()
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
        earlier = self.store.load(self.resumed.info.id, profiles=True).outcomes
        found = {_identify(outcome.order): outcome for outcome in earlier}
        settled = set(self.plan.orders) - set(self.recorder.missing)
        return {order: found[_identify(order)] for order in self.plan.orders if order in settled}

    def _open(self, backend: Backend) -> Recorder | None:
        """Begin, once it is certain that something can be done; or go on, if something is left to do."""
        if self.store is None or self.resumed is None:
            if self.pick(self.plan.orders):
                backend.open(self.plan)
            if self.store is None:
                return None
            return self.store.begin(self.plan, describe_run(self.request, self.plan, self.name, self.store.path))
        recorder = self.store.resume(self.resumed.info.id, self.plan)
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
            code = SIGNALLED + ended.number if isinstance(ended, Terminated) else INTERRUPTED
    assert task.store is not None
    assert task.recorder is not None
    info = task.recorder.info
    if stop.requested and not code and task.pick(task.recorder.missing):
        code = CASE_FAILED if fail_fast and info.failures else INTERRUPTED
    run = task.store.load(info.id)
    failed = any(isinstance(outcome.result, Failure) for outcome in run.outcomes)
    return code or (CASE_FAILED if failed else 0), run


@dataclasses.dataclass
class ComparisonRecorder:
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
        """Show which cases are timed."""
        advance = PairedAdvance(len(comparison.entries), time.monotonic)
        with make_progress(sys.stderr, self.quiet, advance) as progress:
            yield lambda what, done, of: progress.take((what, done, of))
