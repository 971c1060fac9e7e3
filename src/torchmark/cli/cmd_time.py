"""`torchmark time`: time statements given on the command line."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Sequence
from functools import partial
from typing import Any

import click

from torchmark.analysis.arrange import ordered_unique
from torchmark.api.compare import Compare
from torchmark.api.measurement import Measurement
from torchmark.cli.loading import load_timer
from torchmark.cli.output import echo
from torchmark.cli.parameters import (
    Seconds,
    ThreadCounts,
    check_folder,
    check_language,
    global_setup_option,
    is_standard_output,
    json_option,
    language_option,
    output_aside,
    use_colour,
    write_json,
)
from torchmark.cli.timing import Outcomes, choose_budget, choose_method, time_all, time_compiled
from torchmark.errors import UsageError
from torchmark.measure.blocks import LARGEST_NUMBER
from torchmark.model.caveat import Variation
from torchmark.model.task import TaskSpec
from torchmark.report.export import plain_caveat, plain_summary
from torchmark.report.text import count, describe_measurement, one_line
from torchmark.report.units import choose_scale
from torchmark.report.wording import give_advice, state_fact
from torchmark.runner.worker import DEFAULT_TIMEOUT_S

SCHEMA = "torchmark.time"
SCHEMA_VERSION = 1

STATEMENT_FAILED = 1


@click.command("time")
@click.argument("stmts", metavar="STMT...", nargs=-1, required=True)
@click.option("--setup", metavar="CODE", help="Runs before each block of the statement.")
@language_option
@global_setup_option
@click.option("--threads", type=ThreadCounts(), default="1", help="torch threads, such as 1 or 1,2,4.")
@click.option("--label", metavar="TEXT", help="Title of the result.")
@click.option("--min-run-time", type=Seconds(), help="Seconds to measure for (0.2 by default).")
@click.option("--adaptive", is_flag=True, help="Measure until the result is steady, or for about 10 s.")
@click.option(
    "--number", type=click.IntRange(1, LARGEST_NUMBER), metavar="N", help="Runs per block, instead of choosing."
)
@click.option("--timeout", type=Seconds(), help="Seconds until a C++ statement is given up (600).")
@json_option
def command(
    stmts: tuple[str, ...],
    setup: str | None,
    language: str,
    global_setup: str,
    threads: tuple[int, ...],
    label: str | None,
    min_run_time: float | None,
    adaptive: bool,
    number: int | None,
    timeout: float | None,
    json_file: str | None,
) -> int:
    """Time one or more statements.

    Each STMT is Python, where torch is imported already, or C++, where torch/torch.h is included already. Several
    statements, or several thread counts, give a table. C++ is compiled once, all statements together, and runs in a
    process of its own.

    \b
    torchmark time "x + 1" --setup "x = torch.ones(8)"
    torchmark time "x @ x" "x.mm(x)" --setup "x = torch.ones(9, 9)" --threads 1,2
    torchmark time "x.add(1);" --setup "auto x = torch::ones(8);" --language cpp
    """
    budget = choose_budget(min_run_time, adaptive, number)
    setup = check_language(language, setup, global_setup)
    if timeout is not None and language != "cpp":
        raise UsageError("--timeout is for C++, which runs in a process of its own. Python is timed in this one.")
    outcomes = Outcomes([], {})
    try:
        if language == "cpp":
            check_folder()
            tasks = [TaskSpec(stmt, setup, global_setup, label, num_threads=n) for n in threads for stmt in stmts]
            time_compiled(tasks, budget, DEFAULT_TIMEOUT_S if timeout is None else timeout, outcomes)
        else:
            timer_cls = load_timer()
            # As `python -m` does, so that a setup can import what lies here; after torch, which does not lie here.
            sys.path.insert(0, os.getcwd())
            with output_aside() if is_standard_output(json_file) else contextlib.nullcontext():
                timers = [partial(timer_cls, setup=setup, label=label, num_threads=n) for n in threads]
                time_all(stmts, timers, choose_method(budget), outcomes)
    finally:
        # Also after an interrupt: what has been timed is not lost.
        used = {name for name, given in (("adaptive", adaptive), ("number", number)) if given}
        report(outcomes, used, json_file, with_names=len(stmts) > 1)
    return STATEMENT_FAILED if outcomes.failures else 0


def report(outcomes: Outcomes, used: set[str], json_file: str | None, *, with_names: bool) -> None:
    """Write and show what there is; `used` are the options that advice should not give again."""
    if json_file is not None:
        write_json(as_json(outcomes.results, outcomes.failures), json_file)
    if outcomes.results and not is_standard_output(json_file):
        show(outcomes.results, used)
    show_failures(outcomes.failures, with_names=with_names)


def as_json(results: Sequence[Measurement], tracebacks: dict[str, str]) -> dict[str, Any]:
    """Raw times with their statistics and caveats, and what failed."""
    return {
        "schema": SCHEMA,
        "schema_version": SCHEMA_VERSION,
        "measurements": [
            {
                **result.to_dict(),
                "summary": plain_summary(result.summary),
                "caveats": [plain_caveat(caveat) for caveat in result.caveats],
            }
            for result in results
        ],
        "failures": [{"stmt": stmt, "traceback": text} for stmt, text in tracebacks.items()],
    }


def show(results: Sequence[Measurement], used: set[str]) -> None:
    """One result in full, several as a table; caveats below."""
    if len(results) == 1:
        (result,) = results
        echo(describe_measurement(result.task_spec, result.summary, result.number_per_run))
        _show_interval(result)
    else:
        table = Compare(list(results))
        if use_colour():
            table.colorize()
        table.highlight_warnings()
        echo(table, styled=use_colour())
    # The text above tells of variation already. Advice that fits several notes is given once.
    notes = [(result, caveat) for result in results for caveat in result.caveats if not isinstance(caveat, Variation)]
    for result, caveat in notes:
        whose = f"{one_line(result.as_row_name)}, {count(result.num_threads, 'thread')}: " if len(results) > 1 else ""
        echo(f"  NOTE: {whose}{state_fact(caveat)}")
    for advice in ordered_unique(give_advice(caveat, "shell", used) for _, caveat in notes):
        echo(f"  {advice}")


def show_failures(tracebacks: dict[str, str], *, with_names: bool) -> None:
    """Each traceback once: a broken setup fails every statement in the same way."""
    for text in dict.fromkeys(tracebacks.values()):
        whose = ", ".join(one_line(stmt) for stmt, own in tracebacks.items() if own == text)
        heading = f"Failed: {whose}\n" if with_names else ""
        echo(f"{heading}{text}", err=True, nl=False)


def _show_interval(result: Measurement) -> None:
    interval = result.median_interval()
    if interval is None:
        return
    scale = choose_scale(result.median)
    low, high = scale.show(interval.low), scale.show(interval.high)
    echo(f"  The median lies between {low} and {high} {scale.unit} ({interval.confidence:.0%} confidence).")
