"""A run that is asked for on the command line: its options, its cases, and how it is carried out.

Apart from `cases.py`, because it loads what measures.
"""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable
from pathlib import Path

import click

from torchmark.analysis.estimate import deal, list_own_cases
from torchmark.analysis.results import narrow_run
from torchmark.api.resume import find_resumable
from torchmark.api.runs import RunRequest, RunTask, execute_run, plan_targets
from torchmark.cli.cases import Loaded, cases_argument, choice_options, load_cases, report_empty_selection
from torchmark.cli.options import (
    INTERPRETER,
    SECONDS,
    Parsed,
    WholeNumber,
    cores_option,
    give_together,
    layouts_option,
    metric_option,
    open_to_write,
    python_option,
    see_folder,
    timeout_option,
)
from torchmark.define.selection import (
    CaseOptions,
)
from torchmark.errors import ExitCode, UsageError
from torchmark.model.plan import SUITE_LAYOUTS, Metric, Plan
from torchmark.model.run import Run, RunInfo, Shard, parse_shard
from torchmark.processes import Terminated
from torchmark.report.text.terminal import count
from torchmark.runner.backend import Backend
from torchmark.store.runs import make_unmistakable


def keep_to_shard(run: Run, shard: Shard | None) -> Run:
    """A run without the cases of other shards; what is known of all of it stays."""
    if shard is None:
        return run
    return dataclasses.replace(narrow_run(run, cases=list_own_cases(run.plan, shard)), info=run.info)


def describe_empty_selection(plan: Plan, shard: Shard) -> str:
    """Why there is nothing to do for a shard."""
    filled = max(deal(plan, shard.of).values())
    return (
        f"Shard {shard} is empty: what is compared with each other stays together, and these cases fill "
        f"{count(filled, 'shard')}. There is nothing to do, and nothing is wrong."
    )


def _make_request(
    names: tuple[str, ...],
    chosen: CaseOptions,
    metrics: tuple[Metric, ...],
    python: str | None,
    envs: tuple[tuple[str, str], ...],
    repeat: int,
    min_run_time: float,
    layouts: int,
    timeout: float,
    shard: Shard | None,
) -> RunRequest:
    if not timeout:
        raise UsageError("--timeout 0 would give up every case before it has begun.")
    return RunRequest(
        names=names,
        chosen=chosen,
        metrics=metrics,
        targets=plan_targets(python, envs),
        repeat=repeat,
        min_run_time=min_run_time,
        layouts=layouts,
        timeout=timeout,
        shard=shard,
    )


# The options of a run, of which `name` and `cores` are no part of what is asked for.
run_options = give_together(
    "request",
    _make_request,
    cases_argument,
    choice_options,
    metric_option("What to measure (wall,count).", "wall,count"),
    python_option(),
    click.option(
        "--env",
        "envs",
        type=INTERPRETER,
        multiple=True,
        help="An interpreter under a name; give several to measure every case in each.",
    ),
    click.option("--name", metavar="NAME", help="What to call this run; with --resume, which run to go on with."),
    click.option("--repeat", type=WholeNumber(1, 10_000), default=1, metavar="N", help="Rounds over all cases (1)."),
    click.option("--min-run-time", type=SECONDS, default=0.2, help="Seconds to time each case for, at least (0.2)."),
    layouts_option(SUITE_LAYOUTS, "Memory layouts to take the median count of (3); 1 gives the bare count."),
    timeout_option("a case"),
    cores_option,
    click.option(
        "--shard",
        type=Parsed("I/N", parse_shard),
        help="Only the I-th of N parts; 'torchmark merge' puts parts that several machines have measured together.",
    ),
)


def load_run(request: RunRequest, *, sees_folder: bool = True) -> Loaded:
    """The cases of a run. A setup may import what lies here, as `python -m` lets it."""
    if sees_folder:
        see_folder()
    return load_cases(request.names, request.chosen.select())


def list_given() -> frozenset[str]:
    """The options that stand on the command line."""
    context = click.get_current_context()
    by_user = click.core.ParameterSource.COMMANDLINE
    return frozenset(name for name in context.params if context.get_parameter_source(name) is by_user)


@dataclasses.dataclass(frozen=True)
class MeasuredRun:
    """A run that has ended, with what was found wrong with definitions."""

    run: Run
    shown: RunInfo
    """How commands may call it."""
    request: RunRequest
    loaded: Loaded
    code: int


def measure_run(
    request: RunRequest,
    store_path: Path,
    make_backend: Callable[[], Backend],
    *,
    resume: bool,
    name: str | None,
    quiet: bool,
    fail_fast: bool,
) -> MeasuredRun | int:
    """Carry out a run, or what is missing of an earlier one; only an exit code where there is nothing to show."""
    # Before there is a store: a slip of the finger makes none.
    loaded = None if resume else load_run(request)
    if loaded is not None and not loaded.cases:
        return report_empty_selection(loaded)
    with open_to_write(store_path, create=not resume) as store:
        resumed = find_resumable(store, request, list_given(), name) if resume else None
        if resumed is not None:
            request = resumed.request
        if loaded is None:
            loaded = load_run(request, sees_folder=resumed is None or resumed.sees_folder)
        if not loaded.cases:
            return report_empty_selection(loaded)
        task = RunTask(
            store=store,
            plan=request.make_plan(loaded.cases),
            request=request,
            resumed=resumed.info if resumed else None,
            name=name,
        )
        try:
            with contextlib.closing(make_backend()) as backend:
                code, run = execute_run(task, backend, quiet=quiet, fail_fast=fail_fast)
        except Terminated as ended:
            # Before there was anything to show.
            return ExitCode.SIGNALLED + ended.number
        shown = make_unmistakable(store, run.info)
        return MeasuredRun(run=run, shown=shown, request=request, loaded=loaded, code=code)
