"""`torchmark run`: measure every case of a suite, keep every result the moment it exists, go on where it stopped."""

from __future__ import annotations

import contextlib
import dataclasses
from pathlib import Path

import click

from torchmark.analysis.estimate import list_own_cases
from torchmark.analysis.results import narrow_run, summarise_run
from torchmark.api.resume import find_resumable, look_ahead
from torchmark.api.runs import RunRequest, RunTask, check_name, execute_run
from torchmark.cli.cases import (
    describe_empty_selection,
    list_given,
    load_run,
    print_faults,
    report_empty_selection,
)
from torchmark.cli.options import (
    BackendChoice,
    backend_options,
    check_folder,
    format_store,
    json_option,
    offer_json,
    open_to_write,
    quiet_option,
    store_option,
    terminal_width,
    use_colour,
)
from torchmark.cli.output import echo
from torchmark.cli.run_options import run_options
from torchmark.errors import ExitCode, UsageError
from torchmark.model.run import Run, RunInfo, Shard
from torchmark.processes import Terminated
from torchmark.report.as_json import to_json_results
from torchmark.report.text.plan import render_plan
from torchmark.report.text.run_summary import render_nodes
from torchmark.report.text.run_table import render_results
from torchmark.runner.machine import choose_cores
from torchmark.store.runs import make_unmistakable


@click.command("run")
@run_options
@backend_options
@store_option
@click.option("--resume", is_flag=True, help="Go on with the newest run of this kind: only what is missing is run.")
@click.option("--fail-fast", is_flag=True, help="Stop at the first case that fails.")
@click.option("--dry-run", is_flag=True, help="Say what would be done, and for how long; measure nothing.")
@quiet_option()
@json_option
def command(
    request: RunRequest,
    name: str | None,
    cores: str | None,
    means: BackendChoice,
    store_path: Path,
    resume: bool,
    fail_fast: bool,
    dry_run: bool,
    quiet: bool,
    json_file: str | None,
) -> int:
    """Measure every case of a suite, a file, or all files bench_*.py of a folder, and keep the results.

    Without a name it is the standard suite. What is timed has the machine for itself; counting shares it. Each result
    is saved as soon as it exists. An interrupt lets what has begun finish; a second one ends it at once. --resume goes
    on after that, also after a crash or a kill. It runs again what is defined otherwise since, and what failed for
    want of something outside it, such as memory.

    \b
    torchmark run standard -k "linear and not cpp"
    torchmark run benchmarks/ --env base=/path/to/python --env branch=/other/python
    torchmark run --resume
    """
    if not request.timeout:
        raise UsageError("--timeout 0 would give up every case before it has begun.")
    check_folder()
    usable = choose_cores(cores)
    means.check(cores)
    if not resume:
        check_name(name)
    if dry_run:
        return _preview(request, store_path, len(usable), resume=resume, name=name)
    # Before there is a store: a slip of the finger makes none.
    loaded = None if resume else load_run(request)
    if loaded is not None and not loaded.cases:
        return report_empty_selection(loaded)
    with open_to_write(store_path, create=not resume) as store:
        earlier = None
        if loaded is None:
            earlier, request, sees_folder = find_resumable(store, request, list_given(), name)
            loaded = load_run(request, sees_folder=sees_folder)
            if not loaded.cases:
                return report_empty_selection(loaded)
        task = RunTask(store, request.make_plan(loaded.cases), request, resumed=earlier, name=name)
        try:
            with contextlib.closing(means.make(usable)) as backend:
                code, run = execute_run(task, backend, quiet=quiet, fail_fast=fail_fast)
        except Terminated as ended:
            # Before there was anything to show.
            return ExitCode.SIGNALLED + ended.number
        shown = make_unmistakable(store, run.info)
    _report(run, shown, request.shard, json_file, store_path)
    print_faults(loaded.faults)
    return code or (ExitCode.INVALID if loaded.faults else 0)


def _report(run: Run, shown: RunInfo, shard: Shard | None, json_file: str | None, store_path: Path) -> None:
    """Show results, and write them; commands may call the run as it is `shown`."""
    own = run
    if shard is not None:
        # What is known of the whole run stays.
        own = dataclasses.replace(narrow_run(run, cases=list_own_cases(run.plan, shard)), info=run.info)
    summaries = summarise_run(own)
    if offer_json(lambda: to_json_results(own, summaries), json_file):
        for line in render_nodes(own):
            echo(line)
        colour, store = use_colour(), format_store(store_path)
        table = render_results(summaries, own.plan, terminal_width(), colour=colour, run=shown, store=store)
        echo(table, styled=colour)
    if shard is not None and not own.plan.cases:
        echo(describe_empty_selection(run.plan, shard), err=True)


def _preview(request: RunRequest, store_path: Path, cores: int, *, resume: bool, name: str | None) -> int:
    forecast = look_ahead(request, store_path, list_given() if resume else None, name)
    request = forecast.request
    loaded = load_run(request, sees_folder=forecast.sees_folder)
    if not loaded.cases:
        return report_empty_selection(loaded)
    whole = request.make_plan(loaded.cases)
    plan = dataclasses.replace(whole, cases=list_own_cases(whole, request.shard))
    if request.shard is not None:
        echo(f"Shard {request.shard}:" if plan.cases else describe_empty_selection(whole, request.shard))
    if not plan.cases:
        return loaded.exit_code
    echo(render_plan(plan, forecast.estimate(plan, cores), cores, terminal_width(), of=len(loaded.found)))
    print_faults(loaded.faults)
    return loaded.exit_code
