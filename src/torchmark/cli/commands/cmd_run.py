"""`torchmark run`: measure every case of a suite, keep every result the moment it exists, go on where it stopped."""

from __future__ import annotations

from pathlib import Path

import click

from torchmark.api.runs import RunRequest, check_name, plan_targets
from torchmark.cli.case_options import ShardNumber, cases_argument, choice_options
from torchmark.cli.options import (
    BackendChoice,
    Metrics,
    NamedInterpreter,
    Seconds,
    WholeNumber,
    backend_options,
    check_folder,
    json_option,
    store_option,
)
from torchmark.cli.run_output import measure_run, preview_run
from torchmark.define.selection import CaseOptions
from torchmark.errors import UsageError
from torchmark.model.plan import SUITE_LAYOUTS, Metric
from torchmark.model.run import Shard
from torchmark.runner.machine import choose_cores
from torchmark.runner.worker import DEFAULT_TIMEOUT_S


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
@click.option("--repeat", type=WholeNumber(1, 10_000), default=1, metavar="N", help="Rounds over all cases (1).")
@click.option("--min-run-time", type=Seconds(), default=0.2, help="Seconds to time each case for, at least (0.2).")
@click.option(
    "--layouts",
    type=WholeNumber(1, 1000),
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
    request = RunRequest(
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
    if dry_run:
        return preview_run(request, store_path, len(usable), resume=resume, name=name)
    measured = measure_run(
        request, store_path, lambda: means.make(usable), resume=resume, name=name, quiet=quiet, fail_fast=fail_fast
    )
    return measured if isinstance(measured, int) else measured.report(json_file, store_path)
