"""Gets cases ready to be measured: TorchScript models and compiled C++, in stages; and runs statements once before."""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import json
import os
import re
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from torchmark.errors import SetupError, UsageError
from torchmark.files import (
    MODELS,
    SHIPPING,
    SNIPPETS,
    Hold,
    cache_folder,
    clear_tools,
    is_ours,
    list_holders,
    locate_cache,
    make_private_folder,
    open_lock,
    try_lock,
    writing_to_cache,
)
from torchmark.measure.snippet import write_script
from torchmark.measure.source import user_traceback
from torchmark.model.environment import Sdk
from torchmark.model.job import PairedSide, Place, ScriptJob, Way
from torchmark.model.outcome import ActivityKind, Failure, FailureKind
from torchmark.model.plan import Artefact, Case, Check, Target
from torchmark.model.task import Compiled, Language, Snippet
from torchmark.native.build import build, precompile
from torchmark.native.cache import DEFAULT_LIMIT_BYTES, Cache, CacheState, parse_size
from torchmark.native.toolchain import find_compiler, make_toolchain
from torchmark.runner.lab import Lab, Prepared, VariantChecker
from torchmark.runner.machine import read_available_memory
from torchmark.runner.worker import DEFAULT_TIMEOUT_S, Worker, retry_if_killed

# A model for a torch, and one that is being written.
_NAME = re.compile(r"torchscript_.*_[0-9a-f]{8}\.pt(\.[a-z0-9_]+)?", re.DOTALL)
# Removing some files takes far less, unless whoever does it has been stopped.
LONGEST_REMOVAL_S = 30.0
LOOKING_INTERVAL_S = 0.05


class Models:
    """A folder of models, made when the first is needed; open as long as it is used, by any number of processes.

    A lock tells whether it is in use. Whoever is the last to close removes the models; what a killed process has left
    is removed by the next that closes. On a file system without locks they stay, until the cache is cleared.
    """

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._environ = environ
        self.folder = locate_cache(environ) / MODELS
        self._lock = -1
        self._owner = os.getpid()

    def open(self) -> None:
        """Make the folder and keep others from removing it. SetupError if it cannot be made."""
        if self._lock >= 0:
            return
        self.folder = cache_folder(self._environ) / MODELS
        with writing_to_cache(self.folder.parent):
            lock = open_lock(self.folder.with_suffix(".lock"))
            try:
                self._await_removal(lock)
                make_private_folder(self.folder)
            except BaseException:
                os.close(lock)
                raise
            self._lock = lock

    def _await_removal(self, lock: int) -> None:
        """Share the folder with others that use it; somebody who is removing it is waited for."""
        end = time.monotonic() + LONGEST_REMOVAL_S
        while try_lock(lock, shared=True) is Hold.BUSY:
            if time.monotonic() > end:
                who = ", ".join(f"process {pid}" for pid in list_holders(lock)) or "a process that cannot be seen here"
                raise SetupError(
                    f"{self.folder} has been held for {LONGEST_REMOVAL_S:g} s by {who}.",
                    missing="cache",
                    advice="End that process, or name another folder in TORCHMARK_CACHE.",
                )
            time.sleep(LOOKING_INTERVAL_S)

    def __enter__(self) -> Models:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        # A fork of this process has the same lock, and must not take the folder away.
        if self._lock < 0 or os.getpid() != self._owner:
            return
        lock, self._lock = self._lock, -1
        # Else somebody needs them, or that cannot be known.
        self._remove(lock, Hold.HELD)

    def clear(self) -> None:
        """Remove all models, unless somebody needs them."""
        path = self.folder.with_suffix(".lock")
        if self._lock >= 0 or not path.exists():
            return
        with contextlib.suppress(OSError):
            self._remove(open_lock(path), Hold.HELD, Hold.IMPOSSIBLE)

    def _remove(self, lock: int, *allowed: Hold) -> None:
        """Where the lock allows, remove what has a name of a model, and the folder if nothing else is in it."""
        try:
            if try_lock(lock) in allowed:
                with contextlib.suppress(OSError):
                    for path in list(self.folder.iterdir()):
                        if _NAME.fullmatch(path.name):
                            path.unlink(missing_ok=True)
                    self.folder.rmdir()
        finally:
            os.close(lock)

    def place(self, artefact: Artefact, sdk: Sdk) -> Path:
        torch = hashlib.sha256(f"{sdk.version} {sdk.git_version}".encode()).hexdigest()[:8]
        return self.folder / f"{Path(artefact.file).stem}_{torch}.pt"

    def make(self, artefacts: Iterable[Artefact], worker: Worker) -> dict[Artefact, str | Failure]:
        """The path of each, made by the worker's torch unless it is there."""
        return {artefact: self._make_one(artefact, worker) for artefact in dict.fromkeys(artefacts)}

    def _make_one(self, artefact: Artefact, worker: Worker) -> str | Failure:
        def attempt() -> str | Failure:
            self.open()
            path = self.place(artefact, worker.sdk)
            if is_ours(path):
                return str(path)
            reply = worker.run(ScriptJob(artefact.source, str(path), Place(os.getcwd())))
            if isinstance(reply, Failure) and not self.folder.is_dir():
                raise SetupError(
                    f"{self.folder} was removed while it was needed.",
                    missing="cache",
                    advice="Run it again: torchmark run --resume.",
                )
            if isinstance(reply, Failure):
                message = f"There is no TorchScript of this model: {reply.message}"
                return dataclasses.replace(reply, message=message)
            return str(path)

        return retry_if_killed(attempt)


def insert_path(case: Case, path: str) -> Case:
    """The case with the path of its model where so far only the model's name stood."""
    assert case.artefact is not None
    # A literal of JSON means the same in Python and in C++.
    old, new = f'"{case.artefact.file}"', json.dumps(path, ensure_ascii=False)
    args = dataclasses.replace(case.args, setup=case.args.setup.replace(old, new))
    check = case.check and dataclasses.replace(case.check, setup=case.check.setup.replace(old, new))
    return dataclasses.replace(case, args=args, check=check)


# What the compiler takes for torch's headers, with some to spare.
MEMORY_PER_UNIT_BYTES = 2 * 1024**3


def build_snippets(
    snippets: Iterable[Snippet],
    sdk: Sdk,
    environ: Mapping[str, str],
    stop: threading.Event | None = None,
    jobs: int | None = None,
) -> dict[Snippet, Compiled | Failure]:
    """Compile them, or take them from the cache. SetupError if there is no compiler or torch has no headers.

    At most `jobs` compilers run at a time, where it is given, and never more than memory is for.
    """
    try:
        folder = os.getcwd()
    except OSError:
        folder = "/"
    toolchain = make_toolchain(sdk, environ, folder)
    return build(snippets, toolchain, open_cache(environ, create=True), environ, count_jobs(jobs), stop)


def has_compiler(environ: Mapping[str, str]) -> bool:
    try:
        find_compiler(environ)
    except (SetupError, UsageError):
        return False
    return True


def inspect_cache(environ: Mapping[str, str]) -> CacheState:
    """Look at the cache without changing it."""
    return open_cache(environ).measure()


def clear_cache(environ: Mapping[str, str]) -> CacheState:
    """Empty it: all that torchmark has compiled there goes, and nothing else. Gives what there was."""
    state = inspect_cache(environ)
    folder = Path(state.folder)
    for name in (SNIPPETS, SHIPPING):
        Cache(folder / name).clear()
    Models(environ).clear()
    clear_tools(folder)
    return state


def warm_cache(environ: Mapping[str, str]) -> None:
    """Compile the headers of this program's own torch ahead."""
    lab = Lab(Target(), environ, statements=True)
    try:
        toolchain = make_toolchain(lab.timer.sdk, environ, "/")
    finally:
        lab.abandon()
    precompile(toolchain, open_cache(environ, create=True), environ)


def open_cache(environ: Mapping[str, str], *, create: bool = False) -> Cache:
    """The cache of compiled snippets; `TORCHMARK_CACHE_SIZE` bounds it."""
    limit = environ.get("TORCHMARK_CACHE_SIZE")
    folder = cache_folder(environ) if create else locate_cache(environ)
    return Cache(folder / SNIPPETS, parse_size(limit) if limit else DEFAULT_LIMIT_BYTES)


def count_jobs(wanted: int | None = None) -> int:
    """How many compilers may run at the same time: one a core, as far as memory goes."""
    cores = wanted or len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    memory = read_available_memory()
    return max(1, cores if memory is None else min(cores, memory // MEMORY_PER_UNIT_BYTES))


Made = dict[Case, "Prepared | Failure"]
Build = Callable[[Sequence[Snippet], Sdk, int], Mapping[Snippet, "Compiled | Failure"]]
"""Compiles snippets for a torch with so many compilers at a time."""


@dataclasses.dataclass(frozen=True)
class Stage:
    """A part of the preparation. `run` is given how many cores it may use, and gives the cases that are ready then."""

    kind: ActivityKind
    size: int
    run: Callable[[int], Made]


class Preparation:
    """Everything that cases need before they are measured; what fails here costs its own case only.

    What is made serves counting in the same environment, too. The stages are to be run one after the other. Python
    comes first: it can be measured while C++ is compiled.
    """

    def __init__(
        self,
        lab: Lab,
        models: Models,
        environ: Mapping[str, str],
        timeout_s: float = DEFAULT_TIMEOUT_S,
        stop: threading.Event | None = None,
        build: Build | None = None,
    ) -> None:
        """`build` has C++ compiled; by default that happens here."""
        self._lab = lab
        self._models = models
        self._build = build or (lambda snippets, sdk, jobs: build_snippets(snippets, sdk, environ, stop, jobs))
        self._checker = VariantChecker(lab, timeout_s)
        self._paths: dict[Artefact, str | Failure] = {}
        self._built: dict[Snippet, Compiled | Failure] = {}

    def stages(self, cases: Sequence[Case]) -> Iterator[Stage]:
        python = [case for case in cases if case.args.language == Language.PYTHON and case.parts is None]
        compiled = [case for case in cases if case.parts is not None]
        native = [case for case in cases if case.args.language == Language.CPP]
        if artefacts := [case.artefact for case in cases if case.artefact is not None]:
            yield Stage(ActivityKind.SCRIPT, len(artefacts), lambda _: self._script(artefacts))
        if python:
            yield Stage(ActivityKind.CHECK, len(python), lambda _: self._check(python))
        if native:
            yield Stage(ActivityKind.COMPILE, len(native), lambda jobs: self._compile(native, jobs))
            yield Stage(ActivityKind.CHECK, len(native), lambda _: self._check(native))
        if compiled:
            yield Stage(ActivityKind.CHECK, len(compiled), lambda _: self._check(compiled))

    def _script(self, wanted: Sequence[Artefact]) -> Made:
        self._paths.update(self._models.make(wanted, self._lab.timer))
        return {}

    def _compile(self, cases: Sequence[Case], jobs: int) -> Made:
        located = [case for case in map(self._locate, cases) if isinstance(case, Case)]
        snippets = [snippet for case in located for snippet in list_snippets(case)]
        built = retry_if_killed(lambda: self._build(snippets, self._lab.timer.sdk, jobs))
        self._built.update(dict.fromkeys(snippets, built) if isinstance(built, Failure) else built)
        return {}

    def _check(self, cases: Sequence[Case]) -> Made:
        prepared = {case: self._assemble(case) for case in cases}
        return {**prepared, **dict(self._checker.compare(prepared))}

    def _locate(self, case: Case) -> Case | Failure:
        """Write the path of its model into a case that loads one."""
        if case.artefact is None:
            return case
        path = self._paths[case.artefact]
        return path if isinstance(path, Failure) else insert_path(case, path)

    def _assemble(self, case: Case) -> Prepared | Failure:
        located = self._locate(case)
        if isinstance(located, Failure):
            return located
        path = None if case.artefact is None else self._paths[case.artefact]
        model, check = path if isinstance(path, str) else None, located.check
        if case.args.language == Language.PYTHON:
            return Prepared(located, check=Way(check.stmt, check.setup) if check else None, model=model)
        compiled = self._built[_snippet(located)]
        if isinstance(compiled, Failure):
            return compiled
        if check is None:
            return Prepared(located, compiled, model=model)
        checked = self._built[_check_snippet(located, check)]
        if isinstance(checked, Failure):
            # What cannot be handed over, such as the value of a function without one, cannot be compared.
            unchecked = f"Handing over its results does not compile: {checked.message}"
            return Prepared(located, compiled, unchecked=unchecked, model=model)
        return Prepared(located, compiled, Way("", "", checked), model=model)


def prepare(cases: Sequence[Case], preparation: Preparation, jobs: int | None = None) -> Made:
    """All stages at once, with so many compilers at a time."""
    ready: Made = {}
    for stage in preparation.stages(cases):
        ready.update(stage.run(jobs or count_jobs()))
    return {case: ready[case] for case in cases}


def list_snippets(case: Case) -> Iterator[Snippet]:
    yield _snippet(case)
    if case.check is not None:
        yield _check_snippet(case, case.check)


def _snippet(case: Case) -> Snippet:
    setup = "" if case.args.setup == "pass" else case.args.setup
    return Snippet(case.args.stmt, setup, case.args.global_setup)


def _check_snippet(case: Case, check: Check) -> Snippet:
    return Snippet(check.stmt, check.setup, case.args.global_setup)


def make_parts(
    cases: Sequence[Case],
    lab: Lab,
    models: Models,
    environ: Mapping[str, str] = os.environ,
    timeout_s: float = DEFAULT_TIMEOUT_S,
    build: Build | None = None,
) -> dict[Case, PairedSide | Failure]:
    """TorchScript made and C++ compiled where that is needed; a worker is started only then."""
    # Whether variants agree is none of this; and what is not checked needs no code for it.
    bare = {case: dataclasses.replace(case, check=None) for case in cases}
    ready = prepare(list(bare.values()), Preparation(lab, models, environ, timeout_s, build=build))
    found = {case: ready[one] for case, one in bare.items()}
    return {
        case: one if isinstance(one, Failure) else lab.make_side(one.case, one.compiled) for case, one in found.items()
    }


# A statement that runs longer does not fail at once, and is left to whoever measures it.
FIRST_RUN_S = 10.0
# The kinds of failure that code has wherever and however often it runs.
FAULTS = (FailureKind.NOT_COMPILED, FailureKind.RAISED, FailureKind.EXITED, FailureKind.CRASHED)


def check_syntax(stmt: str, setup: str) -> Failure | None:
    """The error in Python code for this interpreter, if it has one. Nothing is started for that.

    >>> check_syntax("x +", "x = 1").kind.value, check_syntax("x + 1", "x = 1")
    ('raised', None)
    """
    try:
        write_script(stmt, setup)
    except SyntaxError as error:
        return Failure(FailureKind.RAISED, user_traceback(error).rstrip())
    return None


def try_sides(sides: Mapping[Case, PairedSide | Failure], lab: Lab) -> dict[Case, PairedSide | Failure]:
    """Run each once, and put its failure in the place of one that fails at once."""
    return {case: side if isinstance(side, Failure) else _run_once(side, lab) or side for case, side in sides.items()}


def _run_once(side: PairedSide, lab: Lab) -> Failure | None:
    found = retry_if_killed(lambda: lab.time_side(side, FIRST_RUN_S, number=1, blocks=1))
    return found if isinstance(found, Failure) and found.kind in FAULTS else None


def find_faults(cases: Sequence[Case], target: Target) -> dict[Case, Failure]:
    """The statements among these cases that fail at once in a target. Cases of suites are not run."""
    found = find_syntax_faults(cases, target)
    left = [case for case in _list_statements(cases) if case not in found]
    if left:
        lab = Lab(target, statements=True)
        try:
            lab.start()
            with Models(os.environ) as models:
                tried = try_sides(make_parts(left, lab, models), lab)
        finally:
            lab.abandon()
        found |= {case: one for case, one in tried.items() if isinstance(one, Failure) and one.kind in FAULTS}
    return found


def find_syntax_faults(cases: Sequence[Case], target: Target) -> dict[Case, Failure]:
    """The statements among these cases that cannot be compiled. Nothing is started for that."""
    if target.python is not None:
        # Another interpreter may know more syntax than this one.
        return {}
    stmts = [case for case in _list_statements(cases) if case.args.language == Language.PYTHON]
    return {case: failure for case in stmts if (failure := check_syntax(case.args.stmt, case.args.setup))}


def _list_statements(cases: Sequence[Case]) -> list[Case]:
    return [case for case in dict.fromkeys(cases) if not case.suite and case.parts is None]
