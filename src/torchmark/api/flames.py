"""Where cases spend their instructions or time: exact stacks from Callgrind, sampled ones from py-spy."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Generator, Iterator, Mapping, Sequence
from functools import partial
from typing import TypeAlias

from torchmark.analysis.stacks import read_samples, read_stacks
from torchmark.api.statements import STARTING
from torchmark.errors import SetupError
from torchmark.files import read_plain_file
from torchmark.measure.snippet import write_script
from torchmark.measure.source import user_traceback
from torchmark.model.costs import Stacks
from torchmark.model.job import PairedSide
from torchmark.model.outcome import Failure, FailureKind
from torchmark.model.plan import Case, Target
from torchmark.model.task import Language
from torchmark.processes import make_scratch, run_guarded
from torchmark.report.flame.formats import Graph
from torchmark.report.text.names import name_case
from torchmark.report.text.terminal import show_waiting
from torchmark.runner.lab import Lab
from torchmark.runner.prepare import Models, find_faults, make_parts
from torchmark.runner.worker import Worker, make_count_job, retry_if_killed, trace

# What importing torch and a setup may take besides.
STARTING_S = 120.0
# As py-spy words it when the system does not let it look.
_REFUSED = re.compile(r"permission denied|operation not permitted|ptrace", re.IGNORECASE)

# As Python begins what it says of an error.
TRACEBACK = "Traceback (most recent call last)"
# How many characters are read of what py-spy and the statement write to the standard error.
MOST_SAID = 1_000_000

# The name of the script, which frames of what a setup defines are told by.
SCRIPT_NAME = "torchmark_statement.py"


def find_py_spy(environ: Mapping[str, str]) -> str:
    """Where py-spy is: beside the Python that runs this, or on the path. SetupError where it is not."""
    beside = os.path.dirname(sys.executable) if sys.executable else ""
    path = os.pathsep.join(filter(None, (beside, environ.get("PATH", os.defpath))))
    found = shutil.which("py-spy", path=path)
    if found is None:
        raise SetupError(
            "Missing: py-spy.",
            missing="py-spy",
            advice="Install it (pip install 'torchmark[flame]'), or draw the exact graph, which needs Valgrind.",
        )
    return found


def sample(
    script: str,
    part: PairedSide,
    python: str,
    *,
    seconds: float,
    rate: int,
    native: bool,
    environ: Mapping[str, str] = os.environ,
) -> str | Failure:
    """Run a script that runs the statement for so long, and look `rate` times a second.

    The text has a line for each stack, with how often it was seen.
    """
    py_spy = find_py_spy(environ)
    limit_s = STARTING_S + 2 * seconds
    folder = make_scratch()
    try:
        file, output, errors = (folder / name for name in (SCRIPT_NAME, "stacks.txt", "errors.txt"))
        file.write_text(script, encoding="utf-8")
        looking = [py_spy, "record", "--format", "raw", "--function", "--rate", str(rate), "--output", str(output)]
        running = [python, str(file), part.place.cwd, str(part.threads), str(seconds)]
        command = [*looking, *(["--native"] if native else []), "--", *running]
        streams = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL}
        try:
            # The statement's process is in the group of py-spy, which does not end it when it is itself ended.
            with (
                errors.open("wb") as stderr,
                run_guarded(
                    command, folder=folder, cwd=part.place.cwd, env=dict(environ), stderr=stderr, **streams
                ) as process,
            ):
                process.wait(limit_s)
        except subprocess.TimeoutExpired:
            return Failure(FailureKind.TIMED_OUT, f"It did not end within {limit_s:g} s.")
        text, said = read_plain_file(output) or "", read_plain_file(errors, MOST_SAID) or ""
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    if "_torchmark_measure" in text and TRACEBACK not in said:
        return text
    return _explain(said)


def _explain(errors: str) -> Failure:
    if TRACEBACK in errors:
        lines = [line for line in errors.splitlines() if not line.startswith(("py-spy>", "Error:"))]
        last = next((line for line in reversed(lines) if line.strip()), "")
        return Failure(FailureKind.RAISED, last, "\n".join(lines))
    if _REFUSED.search(errors):
        raise SetupError(
            f"The system does not let py-spy look into the process that it has started: {_last_line(errors)}",
            missing="ptrace",
            advice="Containers need the capability SYS_PTRACE (docker run --cap-add SYS_PTRACE), other systems sudo. "
            "Or draw the exact graph, which needs no privilege.",
        )
    return Failure(FailureKind.NO_RESULT, f"py-spy saw nothing of the statement. {_last_line(errors)}".strip())


def _last_line(text: str) -> str:
    return next((line.strip() for line in reversed(text.splitlines()) if line.strip()), "")


COMPILING = "A case that uses torch.compile has no flame graph yet: its frames replace Python's own."


class Tracer:
    """Finds out where cases spend their instructions, in one target. Has a worker of its own, started when needed."""

    def __init__(self, target: Target) -> None:
        self._lab = Lab(target)
        self.worker: Worker = self._lab.make_counter(stacks=True)

    def __enter__(self) -> Tracer:
        return self

    def __exit__(self, *_: object) -> None:
        self._lab.abandon()

    def trace(self, cases: Sequence[Case], number: int) -> Generator[tuple[Case, Stacks | Failure], None, None]:
        """The stacks of `number` runs of each case, as they come."""
        with Models(os.environ) as models:
            plain = [case for case in cases if case.parts is None]
            parts = make_parts(plain, self._lab, models)
            for case in cases:
                part = parts.get(case, Failure(FailureKind.MISSING, COMPILING))
                if isinstance(part, Failure):
                    yield case, part
                    continue
                found = retry_if_killed(partial(trace, self.worker, make_count_job(part, number)))
                yield case, found if isinstance(found, Failure) else read_stacks(found)[0]


def start_together(*tracers: Tracer) -> None:
    """Start all at once: each takes a core for half a minute."""
    first, *others = tracers
    threads = [tracer.worker.start_ahead() for tracer in others]
    first.worker.start()
    for thread, tracer in zip(threads, others, strict=True):
        thread.join()
        # Whatever was wrong with it is said here.
        tracer.worker.start()


def sample_case(
    case: Case, target: Target, *, seconds: float, rate: int, native: bool, environ: Mapping[str, str] = os.environ
) -> Stacks | Failure:
    """What py-spy sees of a case; SetupError where it is not there, or not let."""
    if case.args.language == Language.CPP or case.parts is not None or case.artefact is not None:
        text = "Only plain statements of Python can be sampled. The exact graph is there for all others."
        return Failure(FailureKind.MISSING, text)
    lab = Lab(target, environ)
    try:
        part = PairedSide(case.args.stmt, case.args.setup, lab.place(case), case.args.num_threads)
    finally:
        lab.abandon()
    try:
        script = write_script(part.stmt, part.setup)
    except SyntaxError as error:
        return Failure(FailureKind.RAISED, user_traceback(error).strip())
    python = target.python or sys.executable
    found = sample(script, part, python, seconds=seconds, rate=rate, native=native, environ=environ)
    return found if isinstance(found, Failure) else read_samples(found)


Graphs: TypeAlias = Iterator[tuple[Case, Graph | Failure]]


def find_graphs(
    cases: Sequence[Case],
    targets: Sequence[Target],
    *,
    sampled: bool,
    seconds: float,
    rate: int,
    number: int,
    native: bool,
) -> tuple[dict[Case, Failure], Graphs]:
    """Statements that fail at once, and the graphs as they come: of one target, or of the difference between two.

    If a statement fails at once, there are no graphs. Cases of suites are not tried.
    """
    if sampled:
        return {}, _sample_all(cases, targets[0], seconds=seconds, rate=rate, native=native)
    faulty = find_faults(cases, targets[0]) or find_faults(cases, targets[-1])
    return faulty, iter(faulty.items()) if faulty else _trace_all(cases, targets, number, native=native)


def _trace_all(cases: Sequence[Case], targets: Sequence[Target], number: int, *, native: bool) -> Graphs:
    with contextlib.ExitStack() as stack:
        tracers = [stack.enter_context(Tracer(target)) for target in targets]
        with show_waiting(STARTING):
            start_together(*tracers)
        versions = [tracer.worker.environment.torch_version for tracer in tracers]
        note = f"torch {versions[0]}" + (f" (base) against {versions[1]} (head)" if versions[1:] else "")
        for sides in zip(*(tracer.trace(cases, number) for tracer in tracers), strict=True):
            case = sides[0][0]
            failures = [found for _, found in sides if isinstance(found, Failure)]
            if failures:
                yield case, failures[0]
                continue
            stacks = [found for _, found in sides if isinstance(found, Stacks)]
            base = stacks[0] if stacks[1:] else None
            yield case, Graph(head=stacks[-1], title=name_case(case), note=note, base=base, native=native)


def _sample_all(cases: Sequence[Case], target: Target, *, seconds: float, rate: int, native: bool) -> Graphs:
    note = f"{rate} looks a second for {seconds:g} s"
    for case in cases:
        with show_waiting(f"Looking at {name_case(case)} for {seconds:g} s"):
            stacks = sample_case(case, target, seconds=seconds, rate=rate, native=native)
        yield case, stacks if isinstance(stacks, Failure) else Graph(stacks, name_case(case), note, native=native)
