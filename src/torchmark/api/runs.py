"""A run from its request to its stored results: the plan, carrying it out, and resuming it later."""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import hmac
import json
import os
import platform
import secrets
import shlex
import shutil
import stat
import sys
import time
import uuid
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from torchmark import __version__
from torchmark.analysis.estimate import Estimator, pick_orders
from torchmark.compare.comparison import Comparison
from torchmark.compare.experiment import Note
from torchmark.define.discovery import DEFAULT_SUITES, list_suites
from torchmark.define.selection import CaseOptions
from torchmark.errors import UsageError
from torchmark.model.case import Case
from torchmark.model.outcome import Begun, Event, Failure, Outcome
from torchmark.model.plan import Metric, Order, Plan, Sampling, Target
from torchmark.model.run import Run, RunInfo
from torchmark.model.shard import SHARD, Shard, read_shard
from torchmark.report.progress import Advance, PairedAdvance, make_progress
from torchmark.report.text.run_summary import SHORT_ID
from torchmark.report.text.terminal import printable
from torchmark.runner.backend import Backend, StopRequest, Terminated, interrupts_stop
from torchmark.runner.machine import describe_host, describe_sources, read_cpu_model
from torchmark.runner.spec import FIXED, choose_layouts
from torchmark.store.runs import DEFAULT_STORE, Recorder, Store

# As long as what SHA-256 gives: a longer key makes an HMAC no stronger (RFC 2104, section 3).
KEY_BYTES = 32
_KEY_FILE = "seal.key"
_FOR_OTHERS = 0o077


def seal(what: Sequence[object], environ: Mapping[str, str], root: Path = Path("/")) -> str:
    """A seal over plain values and the identity of this machine; empty where the user's key cannot be kept safely."""
    key = _read_key(environ) or _make_key(environ)
    return "" if key is None else _compute(key, what, root)


def is_sealed(found: str, what: Sequence[object], environ: Mapping[str, str], root: Path = Path("/")) -> bool:
    """Whether this is the seal that `seal` gives for the same values. Makes no key."""
    key = _read_key(environ)
    return key is not None and hmac.compare_digest(found.encode(errors="replace"), _compute(key, what, root).encode())


def _compute(key: bytes, what: Sequence[object], root: Path) -> str:
    # In ASCII, so that names of files that are not UTF-8 can be sealed too.
    text = json.dumps([*_identify_machine(root), *what], sort_keys=True)
    return hmac.new(key, text.encode("ascii"), hashlib.sha256).hexdigest()


def _identify_machine(root: Path) -> list[str]:
    """The name of the machine, which may be shared by several, and the number that systemd gave it."""
    try:
        number = (root / "etc/machine-id").read_text(encoding="ascii", errors="replace").strip()
    except OSError:
        number = ""
    return [platform.node(), number]


def _find_folder(environ: Mapping[str, str]) -> Path | None:
    """The user's folder for what programs remember. The convention demands an absolute path and ignores others."""
    if os.path.isabs(environ.get("XDG_STATE_HOME", "")):
        return Path(environ["XDG_STATE_HOME"], "torchmark")
    if os.path.isabs(environ.get("HOME", "")):
        return Path(environ["HOME"], ".local", "state", "torchmark")
    return None


def _read_key(environ: Mapping[str, str]) -> bytes | None:
    """The key; None if there is none, or if others could have read or written it."""
    folder = _find_folder(environ)
    if folder is None:
        return None
    with contextlib.suppress(OSError), contextlib.ExitStack() as stack:
        place = _open_private(folder, os.O_RDONLY | os.O_DIRECTORY, stack)
        file = None if place is None else _open_private(_KEY_FILE, os.O_RDONLY | os.O_NONBLOCK, stack, place)
        if file is not None and stat.S_ISREG(os.fstat(file).st_mode):
            key = os.read(file, KEY_BYTES + 1)
            return key if len(key) == KEY_BYTES else None
    return None


def _make_key(environ: Mapping[str, str]) -> bytes | None:
    """A new key, or the one that another process made meanwhile. A file that is there already is not touched."""
    folder = _find_folder(environ)
    if folder is None:
        return None
    with contextlib.suppress(OSError), contextlib.ExitStack() as stack:
        folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with contextlib.suppress(FileExistsError):
            folder.mkdir(mode=0o700)
        place = _open_private(folder, os.O_RDONLY | os.O_DIRECTORY, stack)
        if place is None:
            return None
        draft = f".{secrets.token_hex(8)}.part"
        number = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600, dir_fd=place)
        stack.callback(os.unlink, draft, dir_fd=place)
        with open(number, "wb") as file:
            file.write(secrets.token_bytes(KEY_BYTES))
            file.flush()
            os.fsync(number)
        with contextlib.suppress(FileExistsError):
            os.link(draft, _KEY_FILE, src_dir_fd=place, dst_dir_fd=place)
    return _read_key(environ)


def _open_private(path: str | Path, flags: int, stack: contextlib.ExitStack, place: int | None = None) -> int | None:
    """A descriptor of a file or folder that belongs to the user alone, and is not a link; else None."""
    number = os.open(path, flags | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=place)
    stack.callback(os.close, number)
    found = os.fstat(number)
    return number if found.st_uid == os.geteuid() and not found.st_mode & _FOR_OTHERS else None


NAMES = "names"
FOLDER = "folder"
TYPES = "types"
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
        named = (NAMES, self.names or DEFAULT_SUITES), (FOLDER, (locate_folder(store_path),))
        given = {**chosen, TYPES: self.types, SHARD: (str(self.shard),) if self.shard else ()}
        return (*named, *((name, values) for name, values in given.items() if values))


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


def describe_run(wish: RunRequest, plan: Plan, name: str | None, store_path: Path) -> RunInfo:
    """A new run: what is known of it before it begins."""
    run_id = uuid.uuid4().hex
    return RunInfo(
        id=run_id,
        name=name or "+".join(Path(one).stem or one for one in wish.names or DEFAULT_SUITES),
        created=time.time(),
        finished=None,
        torchmark=__version__,
        host=describe_host(os.environ),
        sources=describe_sources(case.suite for case in plan.cases),
        seed=int(FIXED["PYTHONHASHSEED"]),
        options=wish.options(store_path),
        seal=seal(_list_sealed(run_id, dataclasses.replace(wish, targets=plan.targets)), os.environ),
    )


@dataclasses.dataclass(frozen=True)
class ResumableRun:
    """A run to go on with, and what was asked for then."""

    info: RunInfo
    wish: RunRequest
    sees_folder: bool
    """Whether its cases may import what lies in the working folder: the user began it here, or names its benchmarks."""


def find_resumable(store: Store, wish: RunRequest, given: Collection[str], name: str | None) -> ResumableRun:
    """The newest run that fits the options on the command line, or the one that is named.

    What is measured and how stays what it was; only the time limit may be another. A run that this user did not begin
    here, as far as can be shown, starts and imports nothing but what stands on the command line.
    """
    candidates = store.list_runs() if name is None else _list_named(store, name, given)
    if not candidates:
        raise UsageError("There is no run to go on with.")
    problem = ""
    for info in candidates:
        known = _read_wish(info, store.load(info.id, select=lambda _: False).plan)
        # Who names a run means it, wherever it began.
        differences = [
            *(_began_elsewhere(info, known, store.path) if name is None else ()),
            *_differ(wish, known, given),
        ]
        if not differences:
            sealed = is_sealed(info.seal, _list_sealed(info.id, known), os.environ)
            if not sealed:
                _refuse_unnamed(info, known, given, store.path)
            timeout = wish.timeout if "timeout" in given else known.timeout
            return ResumableRun(info, dataclasses.replace(known, timeout=timeout), sealed or NAMES in given)
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


def _read_wish(info: RunInfo, plan: Plan) -> RunRequest:
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
    )


def _began_elsewhere(info: RunInfo, known: RunRequest, store_path: Path) -> Iterator[str]:
    """Where a run began, if it was not here: files of the same names are others there, and so are the times."""
    if info.host.cpu_model != read_cpu_model(Path("/")):
        yield f"was begun on another machine ({info.host.cpu_model})"
    folder = next(iter(dict(info.options).get(FOLDER, ())), None)
    has_files = not set(known.names) <= set(list_suites())
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


def _list_sealed(run_id: str, wish: RunRequest) -> list[object]:
    """All that decides what a run starts and imports, as it is found from here."""
    return [
        run_id,
        os.getcwd(),
        _resolve(wish.names or DEFAULT_SUITES),
        _locate_programs(wish.targets),
        wish.types,
        dataclasses.asdict(wish.chosen),
    ]


def _refuse_unnamed(info: RunInfo, known: RunRequest, given: Collection[str], store_path: Path) -> None:
    """Start nothing, and import nothing, that only the store names: it may be a stranger's."""
    own = os.path.abspath(sys.executable)
    unnamed = [] if NAMES in given else [f"import {path}" for path in _list_files(known.names)]
    if not {"python", "envs"} & set(given):
        unnamed += [f"start {path}" for _, path in _locate_programs(known.targets) if path != own]
    if unnamed:
        lines = "".join(f"\n  {printable(line)}" for line in dict.fromkeys(unnamed))
        raise UsageError(
            f"Nothing was started. The run {printable(info.name)} ({info.id[:SHORT_ID]}) would{lines}\n"
            "and nothing shows that you began it on this machine, in this folder. If you trust all of this, name it "
            f"again:\n  {spell_resume(info, known.targets, store_path)}"
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


def _differ(wish: RunRequest, known: RunRequest, given: Collection[str]) -> Iterator[str]:
    """What was asked for otherwise then, of all that is asked for now."""
    if NAMES in given and _resolve(wish.names) != _resolve(known.names):
        yield f"has benchmarks {' '.join(known.names)}, not {' '.join(wish.names)}"
    if known.types:
        yield f"has types that only 'torchmark overrides' knows ({', '.join(known.types)})"
    if any(option.startswith("only_") for option in given) and wish.chosen != known.chosen:
        yield "has another selection of cases"
    for option, spelt in _FIXED_OPTIONS.items():
        if option in given and getattr(wish, option) != getattr(known, option):
            yield f"has another {spelt}"
    if SHARD in given and wish.shard != known.shard:
        yield f"is {f'shard {known.shard}' if known.shard else 'no shard'}, not shard {wish.shard}"
    if {"python", "envs"} & set(given) and _locate_programs(wish.targets) != _locate_programs(known.targets):
        yield "has other interpreters"


CASE_FAILED = 1
INTERRUPTED = 130
# What shells add to the number of the signal that ended a program.
SIGNALLED = 128


@dataclasses.dataclass(frozen=True)
class RunTask:
    """What is to be done, and where it is kept."""

    store: Store
    plan: Plan
    wish: RunRequest
    known: ResumableRun | None
    name: str | None

    def open(self, backend: Backend) -> Recorder:
        """Begin, once it is certain that something can be done; or go on, if something is left to do."""
        if self.known is None:
            if self.pick(self.plan.orders):
                backend.open(self.plan)
            return self.store.begin(self.plan, describe_run(self.wish, self.plan, self.name, self.store.path))
        recorder = self.store.resume(self.known.info.id, self.plan)
        try:
            if self.pick(recorder.missing):
                backend.open(self.plan)
        except BaseException:
            recorder.__exit__(None, None, None)
            raise
        return recorder

    def pick(self, orders: Iterable[Order]) -> tuple[Order, ...]:
        """Those that are to be carried out here: a shard leaves the others to others."""
        return pick_orders(orders, self.plan, self.wish.shard)


def execute_run(task: RunTask, backend: Backend, *, quiet: bool, fail_fast: bool) -> tuple[int, Run]:
    """The run, saved outcome by outcome, and the exit code."""
    stop, code = StopRequest(), 0
    with interrupts_stop(stop), task.open(backend) as recorder:
        run_id = recorder.info.id
        try:
            _follow(recorder, task, backend, stop, quiet=quiet, fail_fast=fail_fast)
        except Terminated as ended:
            code = SIGNALLED + ended.number
        except KeyboardInterrupt:
            code = INTERRUPTED
        recorder.finish()
        if stop.requested and not code and task.pick(recorder.missing):
            code = CASE_FAILED if fail_fast and recorder.info.failures else INTERRUPTED
    run = task.store.load(run_id)
    failed = any(isinstance(outcome.result, Failure) for outcome in run.outcomes)
    return code or (CASE_FAILED if failed else 0), run


def _follow(
    recorder: Recorder, task: RunTask, backend: Backend, stop: StopRequest, *, quiet: bool, fail_fast: bool
) -> None:
    orders, plan = task.pick(recorder.missing), task.plan
    if not orders:
        return
    estimator = Estimator(orders, plan.sampling, task.store.durations(plan.sampling), backend.slots)
    total = len(task.pick(plan.orders))
    done = total - len(orders)
    # Failures that are tried again are not done.
    failed = max(recorder.info.failures - (recorder.info.outcomes - done), 0)
    with (
        make_progress(sys.stderr, quiet, Advance(total, estimator, done, failed, time.monotonic)) as progress,
        contextlib.closing(backend.execute(plan, orders, stop)) as events,
    ):
        for event in events:
            if not isinstance(event, Begun):
                event = recorder.append(event)
            progress.take(event)
            if fail_fast and isinstance(event, Outcome) and isinstance(event.result, Failure):
                stop.request()


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
