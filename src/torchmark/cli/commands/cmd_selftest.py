"""`torchmark selftest`: how far comparisons can be trusted here: false alarms, power, and the floor that follows."""

from __future__ import annotations

import contextlib
import sys
import time

import click

from torchmark.api.selftest import QUICK, STMT, THOROUGH, keep_trust, make_trials, plan_trials, start_workers
from torchmark.cli.options import (
    check_folder,
    check_interpreters,
    cores_option,
    json_option,
    offer_json,
    python_option,
    quiet_option,
    terminal_width,
)
from torchmark.cli.output import echo
from torchmark.compare.session import claim_machine
from torchmark.errors import ExitCode, SetupError
from torchmark.processes import StopRequest
from torchmark.report.as_json import to_json_selftest
from torchmark.report.progress import PairedAdvance, make_progress
from torchmark.report.text.machine import render_selftest
from torchmark.report.text.terminal import show_waiting
from torchmark.runner.machine import choose_cores


@click.command("selftest")
@click.option("--quick", is_flag=True, help="In about 20 seconds, with fewer layouts of memory and fewer trials.")
@python_option("test")
@cores_option
@quiet_option("result")
@json_option
def command(quick: bool, python: str | None, cores: str | None, quiet: bool, json_file: str | None) -> int:
    """Measure how far comparisons can be trusted on this machine, now.

    A small operator is compared with itself, and with itself slowed down by a known time: how often is a change called
    that is not there, how often is one found that is? What comparisons of a build with itself spread by is kept:
    'torchmark ab' calls no change that is smaller than twice that.
    """
    check_folder()
    check_interpreters(python)
    extent = QUICK if quick else THOROUGH
    with contextlib.ExitStack() as stack:
        try:
            with show_waiting("Starting processes") if not quiet else contextlib.nullcontext():
                workers = start_workers(python or sys.executable, choose_cores(cores), extent)
        except SetupError as error:
            echo(f"torchmark: {error}", err=True)
            return ExitCode.REFUSED
        stack.callback(workers.close)
        claim_machine(stack, StopRequest(), lambda what, done, of: None)
        plan = plan_trials(workers, extent)
        planned = len(plan.order)
        with make_progress(sys.stderr, quiet, PairedAdvance(planned, time.monotonic)) as progress:
            trust = make_trials(workers, plan, extent, lambda done: progress.take(("trials", done, planned)))
    keep_trust(trust, extent)
    if offer_json(lambda: to_json_selftest(trust, plan.run_s), json_file):
        echo(render_selftest(trust, STMT, plan.run_s, terminal_width()))
    return 0
