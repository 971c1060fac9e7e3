"""What `torchmark run` says of a run before it begins, and of its results."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import click

from torchmark.analysis.estimate import list_own_cases
from torchmark.analysis.results import summarise_run
from torchmark.api.resume import find_resumable, look_ahead
from torchmark.api.runs import SIGNALLED, RunRequest, RunTask, execute_run
from torchmark.cli.case_options import (
    FAULTY,
    Loaded,
    describe_empty_selection,
    keep_to_shard,
    load_cases,
    print_faults,
    report_empty_selection,
)
from torchmark.cli.options import format_store, is_standard_output, open_to_write, use_colour, write_json
from torchmark.cli.output import echo
from torchmark.model.run import Run, RunInfo
from torchmark.report.as_json import to_json_results
from torchmark.report.text.plan import render_plan
from torchmark.report.text.run_summary import render_nodes
from torchmark.report.text.run_table import render_results
from torchmark.runner.backend import Backend, Terminated
from torchmark.store.runs import make_unmistakable

DEFAULT_WIDTH = 80


@dataclasses.dataclass(frozen=True)
class MeasuredRun:
    """A run that has ended, with what was found wrong with definitions."""

    run: Run
    shown: RunInfo
    """How commands may call it."""
    request: RunRequest
    loaded: Loaded
    code: int

    def report(self, json_file: str | None, store_path: Path) -> int:
        """Show results, and write them; the exit code."""
        own = keep_to_shard(self.run, self.request.shard)
        summaries = summarise_run(own)
        if json_file is not None:
            write_json(to_json_results(own, summaries), json_file)
        if not is_standard_output(json_file):
            for line in render_nodes(own):
                echo(line)
            colour, store = use_colour(), format_store(store_path)
            table = render_results(summaries, own.plan, _width(), colour=colour, run=self.shown, store=store)
            echo(table, styled=colour)
        if self.request.shard is not None and not own.plan.cases:
            echo(describe_empty_selection(self.run.plan, self.request.shard), err=True)
        print_faults(self.loaded.faults)
        return self.code or (FAULTY if self.loaded.faults else 0)


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
    loaded = None if resume else _load(request)
    if loaded is not None and not loaded.cases:
        return report_empty_selection(loaded)
    with open_to_write(store_path, create=not resume) as store:
        resumed = find_resumable(store, request, list_given(), name) if resume else None
        if resumed is not None:
            request = resumed.request
        if loaded is None:
            loaded = _load(request, sees_folder=resumed is None or resumed.sees_folder)
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
            return SIGNALLED + ended.number
        shown = make_unmistakable(store, run.info)
        return MeasuredRun(run=run, shown=shown, request=request, loaded=loaded, code=code)


def preview_run(request: RunRequest, store_path: Path, cores: int, *, resume: bool, name: str | None) -> int:
    """Say what would be done; the exit code."""
    forecast = look_ahead(request, store_path, list_given() if resume else None, name)
    request = forecast.request
    loaded = _load(request, sees_folder=forecast.sees_folder)
    if not loaded.cases:
        return report_empty_selection(loaded)
    whole = request.make_plan(loaded.cases)
    plan = dataclasses.replace(whole, cases=list_own_cases(whole, request.shard))
    if request.shard is not None:
        echo(f"Shard {request.shard}:" if plan.cases else describe_empty_selection(whole, request.shard))
    if not plan.cases:
        return loaded.exit_code
    echo(render_plan(plan, forecast.estimate(plan, cores), cores, _width(), of=len(loaded.found)))
    print_faults(loaded.faults)
    return loaded.exit_code


def list_given() -> frozenset[str]:
    """The options that stand on the command line."""
    context = click.get_current_context()
    by_user = click.core.ParameterSource.COMMANDLINE
    return frozenset(name for name in context.params if context.get_parameter_source(name) is by_user)


def _load(request: RunRequest, *, sees_folder: bool = True) -> Loaded:
    """The cases of a run. A setup may import what lies here, as `python -m` lets it."""
    if sees_folder:
        sys.path.insert(0, os.getcwd())
    return load_cases(request.names, request.chosen.select())


def _width() -> int:
    return shutil.get_terminal_size((DEFAULT_WIDTH, 0)).columns
