"""`torchmark selftest`: how far comparisons can be trusted here: false alarms, power, and the floor that follows."""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import click

from torchmark.analysis.verdict.sequential import Trust, sum_up
from torchmark.api.gate import REFUSED
from torchmark.api.selftest import STMT, choose_slowings, gauge_statement, run_trials
from torchmark.cli.options import check_folder, check_interpreters, is_standard_output, json_option, write_json
from torchmark.cli.output import echo
from torchmark.compare.experiment import FEWEST_LAYOUTS, LAYOUTS, Settings
from torchmark.compare.session import claim_machine
from torchmark.errors import SetupError
from torchmark.model.gate import SelfTest, Trial
from torchmark.report.progress import PairedAdvance, make_progress
from torchmark.report.text.machine import plain_selftest, render_selftest
from torchmark.report.text.terminal import show_waiting
from torchmark.runner.backend import StopRequest
from torchmark.runner.folders import cache_folder
from torchmark.runner.machine import choose_cores, read_cpu_model
from torchmark.runner.paired_workers import PairedWorkers, WorkerSide
from torchmark.runner.worker import DEFAULT_TIMEOUT_S
from torchmark.store.ledger import read_selftest, write_selftest

SCHEMA = "torchmark.selftest"
SCHEMA_VERSION = 1
DEFAULT_WIDTH = 80
SIZES_S = (5e-9, 10e-9, 20e-9, 50e-9, 100e-9)
NULLS, TRIALS = 60, 20
# In twenty seconds, most of which starting takes.
QUICK_SIZES_S = (10e-9, 50e-9)
# What starting processes leaves of that.
QUICK_TRIALS_S = 6.0
QUICK_NULLS, QUICK_TRIALS = 12, 5


@click.command("selftest")
@click.option("--quick", is_flag=True, help="In about 20 seconds, with fewer layouts of memory and fewer trials.")
@click.option("--python", metavar="PATH", help="The interpreter to test in, with its own torch.")
@click.option("--cores", metavar="N|LIST", help="How many cores to use, or which, such as 0,2-3 (all).")
@click.option("-q", "--quiet", is_flag=True, help="No signs of life, only the result.")
@json_option
def command(quick: bool, python: str | None, cores: str | None, quiet: bool, json_file: str | None) -> int:
    """Measure how far comparisons can be trusted on this machine, now.

    A small operator is compared with itself, and with itself slowed down by a known time: how often is a change called
    that is not there, how often is one found that is? What comparisons of a build with itself spread by is kept:
    'torchmark ab' calls no change that is smaller than twice that.
    """
    check_folder()
    check_interpreters(python)
    own = python or sys.executable
    with contextlib.ExitStack() as stack:
        arena = PairedWorkers(WorkerSide(own), WorkerSide(own), choose_cores(cores), timeout_s=DEFAULT_TIMEOUT_S)
        stack.callback(arena.close)
        layouts = FEWEST_LAYOUTS if quick else LAYOUTS
        try:
            with show_waiting("Starting processes") if not quiet else contextlib.nullcontext():
                arena.start(range(2 * layouts))
        except SetupError as error:
            echo(f"torchmark: {error}", err=True)
            return REFUSED
        claim_machine(stack, StopRequest(), lambda what, done, of: None)
        run_s = gauge_statement(arena)
        slowings = choose_slowings(arena, QUICK_SIZES_S if quick else SIZES_S)
        nulls, each = (QUICK_NULLS, QUICK_TRIALS) if quick else (NULLS, TRIALS)
        schedule = [0] * nulls + [number for number in slowings for _ in range(each)]
        trials = _run(arena, slowings, schedule, Settings(layouts=layouts), QUICK_TRIALS_S if quick else None, quiet)
    trust = sum_up(trials)
    _keep(trust, quick=quick)
    if json_file is not None:
        write_json({"schema": SCHEMA, "schema_version": SCHEMA_VERSION, **plain_selftest(trust, run_s)}, json_file)
    if not is_standard_output(json_file):
        echo(render_selftest(trust, STMT, run_s, shutil.get_terminal_size((DEFAULT_WIDTH, 0)).columns))
    return 0


def _keep(trust: Trust, *, quick: bool) -> None:
    """For later comparisons; a quick look does not take the place of a thorough one."""
    cpu_model, folder = read_cpu_model(Path("/")), cache_folder(os.environ)
    known = read_selftest(folder, cpu_model)
    if not quick or known is None or known.trials <= trust.trials:
        test = SelfTest(
            cpu_model=cpu_model,
            date=time.strftime("%Y-%m-%d"),
            trials=trust.trials,
            false_alarms=trust.false_alarms,
            sd=trust.sd,
        )
        write_selftest(folder, test)


def _run(
    arena: PairedWorkers,
    slowings: dict[int, float],
    schedule: Sequence[int],
    settings: Settings,
    at_most_s: float | None,
    quiet: bool,
) -> list[Trial]:
    """The trials, in a random order; as many as fit into the time, and of each kind one at least."""
    order = list(schedule)
    random.Random(0).shuffle(order)
    order = [*dict.fromkeys((0, *slowings)), *order]
    end = None if at_most_s is None else time.monotonic() + at_most_s
    trials: list[Trial] = []
    fewest = 1 + len(slowings)
    with make_progress(sys.stderr, quiet, PairedAdvance(len(order), time.monotonic)) as progress:
        for trial in run_trials(arena, slowings, order, settings):
            trials.append(trial)
            progress.take(("trials", len(trials), len(order)))
            if end is not None and time.monotonic() > end and len(trials) >= fewest:
                break
    return trials
