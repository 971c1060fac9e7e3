"""Cases that use `torch.compile`: the time of compiling, and counts of its code on processors that Valgrind knows.

Apart from `lab.py`: only cases that compile need it, and it has workers of its own.
"""

from __future__ import annotations

import dataclasses
import hashlib
import os
import platform
import shlex
import shutil
from collections.abc import Mapping
from pathlib import Path

from torchmark.errors import SetupError
from torchmark.files import (
    cache_folder,
    find_command,
    is_ours,
    make_private_folder,
    put_in_place,
    write_whole,
    writing_to_cache,
)
from torchmark.model.costs import Counts
from torchmark.model.job import DEFAULT_LAYOUTS, CompileJob, CountJob, Place, TimeJob
from torchmark.model.outcome import CompileCosts, Failure, FailureKind, FirstCall
from torchmark.model.plan import Case, TimerArgs
from torchmark.processes import make_scratch
from torchmark.runner.machine import read_field
from torchmark.runner.spec import WorkerSpec
from torchmark.runner.worker import DEFAULT_TIMEOUT_S, Worker, count, expect, measure_time
from torchmark.worker.protocol import REPLAY

COMPILERS = ("g++", "clang++", "c++")
SCRIPT = """#!/bin/sh
# Asks for AVX2 instead of whatever this processor has.
for argument do
  shift
  [ "$argument" = -march=native ] && argument=-march=x86-64-v3
  set -- "$@" "$argument"
done
exec {compiler} "$@"
"""


def lower_variables(environ: Mapping[str, str], folder: Path, root: Path = Path("/")) -> dict[str, str]:
    """Variables for a worker that counts what Inductor compiles; the script lies in the folder. None need no lowering.

    A processor with less than AVX2, or of another make, has nothing that Valgrind does not know.
    """
    if not knows_avx2(root):
        return {}
    variables = {"ATEN_CPU_CAPABILITY": "avx2"}
    compiler = find_command(shlex.split(environ.get("CXX", "")), COMPILERS, environ)
    # Without one Inductor says so itself; other back ends need none.
    if compiler is not None:
        variables["CXX"] = str(write_script(compiler, folder))
        # Inductor would keep 150 MB more of them, and make them anew for each script.
        variables["TORCHINDUCTOR_CPP_CACHE_PRECOMPILE_HEADERS"] = "0"
    return variables


def knows_avx2(root: Path = Path("/"), processor: str | None = None) -> bool:
    flags = read_field(root / "proc/cpuinfo", "flags") or ""
    return (processor or platform.machine()) == "x86_64" and "avx2" in flags.split()


def write_script(compiler: list[str], folder: Path) -> Path:
    """The script for a compiler. It has the same name, by which Inductor knows what flags to use."""
    text = SCRIPT.format(compiler=shlex.join(compiler))
    key = hashlib.sha256(text.encode()).hexdigest()[:16]
    path = folder / f"lowering-{key}" / Path(compiler[0]).name
    with writing_to_cache(folder):
        make_private_folder(path.parent)
        if not is_ours(path.parent):
            raise SetupError(
                f"Other users may write to {path.parent}.",
                missing="cache",
                advice="Remove it, or name another folder in TORCHMARK_CACHE.",
            )
        if is_ours(path) and os.access(path, os.X_OK) and path.read_text(errors="replace") == text:
            return path
        write_whole(path, text.encode(), mode=0o755)
    return path


# In one process: with a pool of compilers a worker has threads and cannot be forked.
FIXED = {"TORCHINDUCTOR_COMPILE_THREADS": "1"}
# In the setup, before anything is measured.
CALLS_BEFORE = 3


class _GraphFolder:
    """Where Inductor keeps what it compiles, for the workers of one owner."""

    def __init__(self) -> None:
        self._scratch = make_scratch()
        self._emptied = 0
        self.path = self._scratch / "graphs"
        self.path.mkdir()

    def empty(self) -> None:
        """Whatever is asked for next has to be compiled."""
        # Aside first: a file that cannot be removed is not found there any more.
        self._emptied += 1
        gone = self._scratch / f"gone-{self._emptied}"
        put_in_place(self.path, gone)
        shutil.rmtree(gone, ignore_errors=True)
        self.path.mkdir()

    def remove(self) -> None:
        shutil.rmtree(self._scratch, ignore_errors=True)


def adapt_spec(
    spec: WorkerSpec, environ: Mapping[str, str], folder: Path, lowered: Mapping[str, str], *, counting: bool
) -> WorkerSpec:
    """The same interpreter and environment, for compiled cases that keep their graphs in this folder."""
    handed = {"CXX": environ["CXX"]} if environ.get("CXX") else {}
    variables = {**handed, **lowered, **dict(spec.variables), **FIXED, "TORCHINDUCTOR_CACHE_DIR": str(folder)}
    if "CXX" in lowered:
        # Behind which is the user's own.
        variables["CXX"] = lowered["CXX"]
    return dataclasses.replace(
        spec,
        variables=tuple(sorted(variables.items())),
        counting=counting,
        compiling=True,
        lowered=tuple(name for name in lowered if name not in dict(spec.variables)),
    )


class CompileTimer:
    """Finds out what compiling costs, in a worker with the user's own flags. `spec` says in which interpreter.

    For one thread at a time, since a cold call needs an empty folder of graphs.
    """

    def __init__(self, spec: WorkerSpec, environ: Mapping[str, str] = os.environ) -> None:
        self._graphs = _GraphFolder()
        self.worker = Worker(adapt_spec(spec, environ, self._graphs.path, {}, counting=False), environ)

    def measure(
        self, case: Case, place: Place, *, run_time_s: float = 0.2, timeout_s: float = DEFAULT_TIMEOUT_S
    ) -> CompileCosts | Failure:
        """All costs of a case that has `parts`. The time limit is for each of the four processes that are started."""
        parts = case.parts
        assert parts is not None
        mode, args = parts.mode, case.args
        first = CompileJob(args.stmt, parts.setup, place, mode.backend, mode=mode.mode, threads=args.num_threads)
        steady = TimeJob(args.stmt, args.setup, place, args.num_threads, min_run_time_s=run_time_s, watch_compiler=True)
        replayed = f"{parts.setup}\ncompiled_model = torch.compile(model, backend={REPLAY!r})\n{_repeat(parts.call)}"
        call = dataclasses.replace(steady, stmt=parts.call, setup=replayed)
        self._graphs.empty()
        cold = expect(self.worker.run(first, timeout_s=timeout_s), FirstCall)
        if isinstance(cold, Failure):
            return cold
        if not cold.graphs:
            return _explain_nothing(cold)
        warm = expect(self.worker.run(first, timeout_s=timeout_s), FirstCall)
        if isinstance(warm, Failure):
            return warm
        steady_times = measure_time(self.worker, steady, timeout_s=timeout_s)
        if isinstance(steady_times, Failure):
            return steady_times
        call_times = measure_time(self.worker, call, timeout_s=timeout_s)
        return call_times if isinstance(call_times, Failure) else CompileCosts(cold, warm, steady_times, call_times)

    def abandon(self) -> None:
        """End the worker at once, whoever waits for it, and remove what it has compiled."""
        self.worker.abandon()
        self._graphs.remove()


class CompileCounter:
    """Counts compiled cases: a worker outside Valgrind compiles them first, for the one that counts to find."""

    def __init__(self, spec: WorkerSpec, environ: Mapping[str, str] = os.environ) -> None:
        self._graphs = _GraphFolder()
        lowered = lower_variables({**environ, **dict(spec.variables)}, cache_folder(environ))
        self._filler = Worker(adapt_spec(spec, environ, self._graphs.path, lowered, counting=False), environ)
        self.worker = Worker(adapt_spec(spec, environ, self._graphs.path, lowered, counting=True), environ)
        self._filled: set[tuple[TimerArgs, Place]] = set()

    def count(
        self,
        case: Case,
        place: Place,
        number: int = 100,
        layouts: tuple[int, ...] = DEFAULT_LAYOUTS,
        *,
        timeout_s: float = DEFAULT_TIMEOUT_S,
    ) -> Counts | Failure:
        """Count a case. The time limit is for each process that is started."""
        args = case.args
        job = CountJob(
            args.stmt, args.setup, place, args.num_threads, number=number, layouts=layouts, watch_compiler=True
        )
        if not self.worker.is_up:
            # The one under Valgrind starts while the other compiles what both rehearse; it needs that only later.
            self.worker.start_ahead()
            self._filler.start()
        return self._fill(args, place, timeout_s) or count(self.worker, job, timeout_s=timeout_s)

    def abandon(self) -> None:
        self.worker.abandon()
        self._filler.abandon()
        self._graphs.remove()

    def _fill(self, args: TimerArgs, place: Place, timeout_s: float) -> Failure | None:
        if (args, place) in self._filled:
            return None
        job = TimeJob(args.stmt, args.setup, place, args.num_threads, number=1, watch_compiler=True)
        times = measure_time(self._filler, job, timeout_s=timeout_s)
        if isinstance(times, Failure):
            return times
        self._filled.add((args, place))
        return None


def _explain_nothing(cold: FirstCall) -> Failure:
    reasons = f": {'; '.join(cold.breaks)}" if cold.breaks else ""
    text = f"torch.compile compiled nothing of it and left it to the interpreter{reasons}."
    return Failure(FailureKind.NOT_COMPILED, text)


def _repeat(call: str) -> str:
    lines = "\n".join(f"    {line}" for line in call.splitlines())
    return f"for _ in range({CALLS_BEFORE}):\n{lines}"
