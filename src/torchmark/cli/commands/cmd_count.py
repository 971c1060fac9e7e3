"""`torchmark count`: count the instructions of statements given on the command line."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import shutil
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import click

from torchmark.analysis.grid import ordered_unique
from torchmark.api.callgrind_stats import CallgrindStats, make_row, make_stats
from torchmark.api.statements import compile_tasks, start_counting
from torchmark.callgrind.command import find_valgrind
from torchmark.callgrind.profiles import tally
from torchmark.cli.options import (
    Seconds,
    ThreadCounts,
    Variable,
    WholeNumber,
    check_folder,
    check_language,
    global_setup_option,
    is_standard_output,
    json_option,
    language_option,
    python_option,
    setup_option,
    write_json,
)
from torchmark.cli.output import echo
from torchmark.errors import TorchmarkError, UsageError
from torchmark.model.job import DEFAULT_LAYOUTS, CountJob, Place
from torchmark.model.outcome import Failure
from torchmark.model.snippet import Compiled
from torchmark.model.task import TaskSpec
from torchmark.report.caveats import give_advice, state_fact
from torchmark.report.text.counts import DEFAULT_LINE_WIDTH, render_counts, render_difference
from torchmark.report.text.failures import describe_failure, list_hints
from torchmark.report.text.grid import plain_caveat
from torchmark.report.text.terminal import one_line
from torchmark.runner.first_runs import check_syntax, run_once
from torchmark.runner.jobs import count
from torchmark.runner.spec import WorkerSpec, choose_layouts, other_worker, own_worker, visible_path
from torchmark.runner.worker import DEFAULT_TIMEOUT_S, Worker

SCHEMA = "torchmark.count"
SCHEMA_VERSION = 1

STATEMENT_FAILED = 1
MOST_LAYOUTS = 1000
MOST_RUNS = 1_000_000
TRYING = "Starting a Python with torch"


@click.command("count")
@click.argument("stmts", metavar="STMT...", nargs=-1, required=True)
@setup_option("Runs once, before the statement is warmed up.")
@language_option
@global_setup_option
@click.option("--threads", type=ThreadCounts(), default="1", help="torch threads, such as 1 or 1,2,4.")
@click.option("--number", type=WholeNumber(1, MOST_RUNS), default=100, metavar="N", help="Runs to count (100).")
@click.option(
    "--layouts",
    type=WholeNumber(1, MOST_LAYOUTS),
    default=len(DEFAULT_LAYOUTS),
    metavar="N",
    help="Memory layouts to take the median of (5); 1 gives the bare count.",
)
@click.option("--diff", is_flag=True, help="Show which functions make the difference between two statements.")
@python_option("The interpreter to count in, with its own torch.")
@click.option("--set-env", "given", type=Variable(), multiple=True, help="A variable for the process that counts.")
@click.option("--caches", is_flag=True, help="Also simulate caches and branches, and estimate cycles.")
@click.option(
    "--timeout", type=Seconds(), default=DEFAULT_TIMEOUT_S, help="Seconds until a statement is given up (600)."
)
@json_option
def command(
    stmts: tuple[str, ...],
    setup: str | None,
    language: str,
    global_setup: str,
    threads: tuple[int, ...],
    number: int,
    layouts: int,
    diff: bool,
    python: str | None,
    given: tuple[tuple[str, str], ...],
    caches: bool,
    timeout: float,
    json_file: str | None,
) -> int:
    """Count the instructions of one or more statements, exactly, with Valgrind.

    Each STMT is Python, where torch is imported already, or C++, where torch/torch.h is included already. The first
    count waits for torch to load under Valgrind, which takes half a minute or so; each one after that takes about a
    second. C++ is compiled once, all statements together.

    \b
    torchmark count "x * 2" "x + x" --setup "x = torch.ones(8)" --diff
    torchmark count "x @ x" --setup "x = torch.ones(4, 4)" --python /usr/bin/python3
    torchmark count "x.add(1);" --setup "auto x = torch::ones(8);" --language cpp
    """
    if diff and (len(set(stmts)) != 2 or len(threads) != 1):
        raise UsageError("--diff compares two statements: give exactly two, and one number of threads.")
    check_folder()
    setup = check_language(language, setup, global_setup)
    worker = Worker(_choose_worker(python, dict(given), caches))
    tasks = [TaskSpec(stmt, setup, global_setup, num_threads=n) for n in threads for stmt in ordered_unique(stmts)]
    seeds = choose_layouts(layouts)
    place = Place(os.getcwd(), None if python else tuple(visible_path()))
    results: list[CallgrindStats] = []
    failures: list[tuple[TaskSpec, Failure]] = []
    try:
        ready = _try_first(tasks, worker, place, language)
        failures += [(task, found) for task, found in ready.items() if isinstance(found, Failure)]
        if len(failures) < len(tasks):
            start_counting(worker)
        for task, compiled in ready.items():
            if isinstance(compiled, Failure):
                continue
            job = CountJob(
                stmt=task.stmt,
                setup=task.setup,
                place=place,
                number=number,
                threads=task.num_threads,
                layouts=seeds,
                compiled=compiled,
            )
            # A loop of compiled code costs next to nothing.
            outcome = count(worker, job, timeout_s=timeout, baseline=compiled is None)
            if isinstance(outcome, Failure):
                failures.append((task, outcome))
            else:
                counted = tally(outcome, seeds)
                results.append(make_stats(task, counted, worker.environment, compiled=compiled is not None))
    finally:
        # Also after an interrupt: what has been counted is not lost. The worker may still be starting.
        worker.abandon()
        _report(results, failures, diff=diff and len(results) == 2, language=language, json_file=json_file)
    return STATEMENT_FAILED if failures else 0


def _try_first(
    tasks: Sequence[TaskSpec], worker: Worker, place: Place, language: str
) -> dict[TaskSpec, Compiled | Failure | None]:
    """Compile and run each task once without Valgrind, so that code that fails at once is reported at once."""
    ready: dict[TaskSpec, Compiled | Failure | None] = dict.fromkeys(tasks)
    if worker.spec.own and language == "python":
        # Another interpreter may know more syntax than this one.
        ready = {task: check_syntax(task.stmt, task.setup) for task in tasks}
    left = [task for task in tasks if ready[task] is None]
    if not left:
        return ready
    find_valgrind(os.environ.get("PATH", os.defpath))
    plain = Worker(dataclasses.replace(worker.spec, counting=False, simulate=False, probed=False))
    try:
        if language == "cpp":
            # Compiling takes long: meanwhile the worker that counts can start.
            threading.Thread(target=_try_to_start, args=(worker,), daemon=True).start()
            ready |= compile_tasks(left, plain, TRYING)
        for task in left:
            compiled = ready[task]
            if not isinstance(compiled, Failure):
                failure = run_once(plain, task.stmt, task.setup, place, task.num_threads, compiled)
                ready[task] = failure or compiled
    finally:
        plain.close()
    return ready


def _try_to_start(worker: Worker) -> None:
    # What is wrong with it is said to whoever uses it.
    with contextlib.suppress(TorchmarkError):
        worker.start()


def _choose_worker(python: str | None, given: Mapping[str, str], caches: bool) -> WorkerSpec:
    if python is not None:
        return other_worker(python, os.environ, given, simulate=caches)
    spec = own_worker(os.environ, given, simulate=caches)
    # As `python -m` does, so that a setup can import what lies here; not torch, which does not lie here.
    sys.path.insert(0, os.getcwd())
    return spec


def _report(
    results: Sequence[CallgrindStats],
    failures: Sequence[tuple[TaskSpec, Failure]],
    *,
    diff: bool,
    language: str,
    json_file: str | None,
) -> None:
    if json_file is not None:
        write_json(as_json(results, failures, diff=diff, language=language), json_file)
    if results and not is_standard_output(json_file):
        echo("\n".join(_texts(results, diff=diff)))
    for task, failure in failures:
        echo(f"Failed: {one_line(task.stmt)}\n{describe_failure(failure)}", err=True)
    for hint in list_hints(failure for _, failure in failures):
        echo(hint, err=True)


def _texts(results: Sequence[CallgrindStats], *, diff: bool) -> Iterator[str]:
    width = shutil.get_terminal_size((DEFAULT_LINE_WIDTH, 0)).columns
    yield render_counts([make_row(result) for result in results], width)
    notes = [(result, caveat) for result in results for caveat in result.caveats]
    facts = [state_fact(caveat) for _, caveat in notes]
    # A fact that all results share is one of the machine, and is said once.
    whose = [
        "" if facts.count(fact) == len(results) else f"{one_line(r.task_spec.stmt)}: "
        for (r, _), fact in zip(notes, facts, strict=True)
    ]
    yield from ordered_unique(f"NOTE: {name}{fact}" for name, fact in zip(whose, facts, strict=True))
    yield from ordered_unique(give_advice(caveat, "shell", ()) for _, caveat in notes)
    if diff:
        one, two = results
        yield ""
        yield render_difference(
            _per_run_difference(one, two),
            from_name=one_line(one.task_spec.stmt),
            to_name=one_line(two.task_spec.stmt),
            line_width=width,
        )


def _per_run_difference(one: CallgrindStats, two: CallgrindStats) -> list[tuple[float, str, bool]]:
    """What the second costs more than the first, by function, and whether that is noise; the largest changes first."""
    changes = two.as_standardized().delta(one.as_standardized())
    steady = {entry.function for entry in changes.denoise()}
    rows = [(entry.count / one.number_per_run, entry.function, entry.function not in steady) for entry in changes]
    return sorted(rows, key=lambda row: -abs(row[0]))


def as_json(
    results: Sequence[CallgrindStats], failures: Sequence[tuple[TaskSpec, Failure]], *, diff: bool, language: str
) -> dict[str, Any]:
    """Everything that was counted, by function, with caveats; what failed; and the difference if it was asked for."""
    return {
        "schema": SCHEMA,
        "schema_version": SCHEMA_VERSION,
        "language": language,
        "counts": [
            {
                **result.to_dict(),
                "instructions_per_run": result.counts() / result.number_per_run,
                "estimated_cycles": result.estimated_cycles,
                "spread": result.spread,
                "caveats": [plain_caveat(caveat) for caveat in result.caveats],
            }
            for result in results
        ],
        "failures": [
            {
                "stmt": task.stmt,
                "num_threads": task.num_threads,
                "kind": failure.kind.value,
                "message": failure.message,
                "traceback": failure.traceback,
                "stdout": failure.stdout,
                "stderr": failure.stderr,
            }
            for task, failure in failures
        ],
        "difference": [
            {"instructions_per_run": change, "function": function, "noisy": noisy}
            for change, function, noisy in (_per_run_difference(*results) if diff else ())
        ],
    }
