"""`torchmark run`: measure every case of a suite, keep every result the moment it exists, go on where it stopped."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import shutil
import sys
from collections.abc import Hashable
from pathlib import Path

import click

from torchmark.analysis.estimate import History, estimate, list_own_cases
from torchmark.analysis.results import summarise_run
from torchmark.api.runs import SIGNALLED, RunRequest, RunTask, check_name, execute_run, find_resumable, plan_targets
from torchmark.cli.case_options import (
    FAULTY,
    ShardNumber,
    cases_argument,
    choice_options,
    keep_to_shard,
    load_cases,
    say_why_empty,
    say_why_nothing,
    show_faults,
)
from torchmark.cli.options import (
    BackendChoice,
    Metrics,
    NamedInterpreter,
    Seconds,
    WholeNumber,
    backend_options,
    check_folder,
    is_standard_output,
    json_option,
    open_to_write,
    spell_store,
    store_option,
    use_colour,
    write_json,
)
from torchmark.cli.output import echo
from torchmark.define.selection import CaseOptions
from torchmark.errors import UsageError
from torchmark.model.outcome import Failure, Outcome, may_pass_later
from torchmark.model.plan import SUITE_LAYOUTS, Metric, Order
from torchmark.model.run import Run, RunInfo
from torchmark.model.shard import Shard
from torchmark.report.as_json import plain_results
from torchmark.report.text.plan import render_plan
from torchmark.report.text.run_summary import tell_nodes
from torchmark.report.text.run_table import render_results
from torchmark.runner.backend import Terminated
from torchmark.runner.machine import choose_cores
from torchmark.runner.worker import DEFAULT_TIMEOUT_S
from torchmark.store.plain import content_hash
from torchmark.store.runs import make_unmistakable, open_store

DEFAULT_WIDTH = 80
MOST_ROUNDS = 10_000
MOST_LAYOUTS = 1000


@click.command("run")
@cases_argument
@choice_options
@click.option("--metric", "metrics", type=Metrics(), default="wall,count", help="What to measure (wall,count).")
@click.option("--python", metavar="PATH", help="The interpreter to measure in, with its own torch.")
@click.option(
    "--env",
    "envs",
    type=NamedInterpreter(),
    multiple=True,
    help="An interpreter under a name; give several to measure every case in each.",
)
@click.option("--name", metavar="NAME", help="What to call this run; with --resume, which run to go on with.")
@click.option("--repeat", type=WholeNumber(1, MOST_ROUNDS), default=1, metavar="N", help="Rounds over all cases (1).")
@click.option("--min-run-time", type=Seconds(), default=0.2, help="Seconds to time each case for, at least (0.2).")
@click.option(
    "--layouts",
    type=WholeNumber(1, MOST_LAYOUTS),
    default=SUITE_LAYOUTS,
    metavar="N",
    help="Memory layouts to take the median count of (3); 1 gives the bare count.",
)
@click.option("--timeout", type=Seconds(), default=DEFAULT_TIMEOUT_S, help="Seconds until a case is given up (600).")
@click.option("--cores", metavar="N|LIST", help="How many cores to use, or which, such as 0,2-3 (all).")
@click.option(
    "--shard",
    type=ShardNumber(),
    help="Only the I-th of N parts; 'torchmark merge' puts parts that several machines have measured together.",
)
@backend_options
@store_option
@click.option("--resume", is_flag=True, help="Go on with the newest run of this kind: only what is missing is run.")
@click.option("--fail-fast", is_flag=True, help="Stop at the first case that fails.")
@click.option("--dry-run", is_flag=True, help="Say what would be done, and for how long; measure nothing.")
@click.option("-q", "--quiet", is_flag=True, help="No signs of life, only the results.")
@json_option
def command(
    names: tuple[str, ...],
    chosen: CaseOptions,
    metrics: tuple[Metric, ...],
    python: str | None,
    envs: tuple[tuple[str, str], ...],
    name: str | None,
    repeat: int,
    min_run_time: float,
    layouts: int,
    timeout: float,
    cores: str | None,
    shard: Shard | None,
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
    check_folder()
    usable = choose_cores(cores)
    means.check(cores)
    if not timeout:
        raise UsageError("--timeout 0 would give up every case before it has begun.")
    if not resume:
        check_name(name)
    wish = RunRequest(
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
    if not resume:
        _see_folder()
    if dry_run:
        return _preview(wish, store_path, len(usable), recall_it=resume, name=name)
    # Before there is a store: a slip of the finger makes none.
    loaded = None if resume else load_cases(wish.names, wish.chosen.select())
    if loaded is not None and not loaded.cases:
        return say_why_nothing(loaded)
    with open_to_write(store_path, create=not resume) as store:
        known = find_resumable(store, wish, list_given(), name) if resume else None
        if known is not None:
            wish = known.wish
            _see_folder(known.sees_folder)
        loaded = loaded or load_cases(wish.names, wish.chosen.select())
        if not loaded.cases:
            return say_why_nothing(loaded)
        task = RunTask(store=store, plan=wish.make_plan(loaded.cases), wish=wish, known=known, name=name)
        try:
            with contextlib.closing(means.make(usable)) as backend:
                code, run = execute_run(task, backend, quiet=quiet, fail_fast=fail_fast)
        except Terminated as ended:
            # Before there was anything to show.
            return SIGNALLED + ended.number
        shown = make_unmistakable(store, run.info)
    own = keep_to_shard(run, wish.shard)
    _report(own, shown, json_file, spell_store(store_path))
    if wish.shard is not None and not own.plan.cases:
        echo(say_why_empty(run.plan, wish.shard), err=True)
    show_faults(loaded.faults)
    return code or (FAULTY if loaded.faults else 0)


def _see_folder(may_see: bool = True) -> None:
    """Let a setup import what lies here, as `python -m` does."""
    if may_see:
        sys.path.insert(0, os.getcwd())


def list_given() -> frozenset[str]:
    """The options that stand on the command line."""
    context = click.get_current_context()
    by_user = click.core.ParameterSource.COMMANDLINE
    return frozenset(name for name in context.params if context.get_parameter_source(name) is by_user)


def _preview(wish: RunRequest, store_path: Path, cores: int, *, recall_it: bool, name: str | None) -> int:
    """Say what would be done. Leaves no trace: where there is no store yet, there is none afterwards."""
    history: History = {}
    settled: set[Hashable] = set()
    if store_path.exists() or recall_it:
        with open_store(store_path, read_only=True) as store:
            if recall_it:
                known = find_resumable(store, wish, list_given(), name)
                _see_folder(known.sees_folder)
                wish, earlier = known.wish, store.load(known.info.id)
                longer = wish.timeout > earlier.plan.sampling.timeout_s
                settled = {_identify(one.order) for one in earlier.outcomes if not _is_worth_another_try(one, longer)}
            history = store.durations(wish.make_plan(()).sampling)
    loaded = load_cases(wish.names, wish.chosen.select())
    if not loaded.cases:
        return say_why_nothing(loaded)
    whole = wish.make_plan(loaded.cases)
    plan = dataclasses.replace(whole, cases=list_own_cases(whole, wish.shard))
    if wish.shard is not None:
        echo(f"Shard {wish.shard}:" if plan.cases else say_why_empty(whole, wish.shard))
    if not plan.cases:
        return loaded.exit_code
    orders = [order for order in plan.orders if _identify(order) not in settled]
    expected = estimate(orders, plan.sampling, history, cores)
    echo(render_plan(plan, expected, cores, _width(), of=len(loaded.found)))
    show_faults(loaded.faults)
    return loaded.exit_code


def _is_worth_another_try(outcome: Outcome, longer: bool) -> bool:
    return isinstance(outcome.result, Failure) and may_pass_later(outcome.result, longer=longer)


def _identify(order: Order) -> Hashable:
    """An order by what is measured: tags may be others."""
    return order.case.suite, content_hash(order.case), order.target, order.metric, order.round


def _report(run: Run, shown: RunInfo, json_file: str | None, store: str) -> None:
    summaries = summarise_run(run)
    if json_file is not None:
        write_json(plain_results(run, summaries), json_file)
    if not is_standard_output(json_file):
        for line in tell_nodes(run):
            echo(line)
        table = render_results(summaries, run.plan, _width(), colour=use_colour(), run=shown, store=store)
        echo(table, styled=use_colour())


def _width() -> int:
    return shutil.get_terminal_size((DEFAULT_WIDTH, 0)).columns
