"""`torchmark time`: time statements given on the command line, and say which is the fastest."""

from __future__ import annotations

import click

from torchmark.api.statements import Outcomes, choose_budget, time_statements
from torchmark.cli.options import (
    SECONDS,
    WholeNumber,
    check_folder,
    check_language,
    global_setup_option,
    habit_options,
    json_option,
    language_option,
    offer_json,
    python_option,
    read_statement,
    setup_option,
    statements_argument,
    terminal_width,
    threads_option,
    timeout_option,
)
from torchmark.cli.output import echo
from torchmark.errors import ExitCode, UsageError
from torchmark.measure.steps import LARGEST_NUMBER
from torchmark.model.task import TaskSpec
from torchmark.report.as_json import to_json_times
from torchmark.report.text.failures import describe_statements
from torchmark.report.text.measurement import describe_groups


@click.command("time")
@statements_argument
@setup_option("Runs before each block; once before statements that take turns.")
@language_option
@global_setup_option
@threads_option
@click.option("--label", metavar="TEXT", help="Title of the result.")
@click.option("--min-run-time", type=SECONDS, help="Seconds to measure for (0.2 by default).")
@click.option("--adaptive", is_flag=True, help="Measure until the result is steady, or for about 10 s.")
@click.option("--number", type=WholeNumber(1, LARGEST_NUMBER), metavar="N", help="Runs per block, instead of choosing.")
@python_option()
@timeout_option("a statement")
@habit_options
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
    python: str | None,
    timeout: float,
    json_file: str | None,
) -> int:
    """Time one or more statements, and say which is the fastest.

    Each STMT is Python, where torch is imported already, or C++, where torch/torch.h is included already; a file with
    the code of a statement, such as step.py; or - for standard input. Several statements are measured in turns. All of
    them run in processes of their own: one that crashes or never ends costs the others nothing.

    \b
    torchmark time "x + 1" --setup "x = torch.ones(8)"
    torchmark time "x @ x" "x.mm(x)" --setup "x = torch.ones(9, 9)" --threads 1,2
    torchmark time "x.add(1);" --setup "auto x = torch::ones(8);" --language cpp
    """
    budget = choose_budget(min_run_time, adaptive, number)
    setup = check_language(language, setup, global_setup)
    if not timeout:
        raise UsageError("--timeout 0 would give up every statement before it has begun.")
    check_folder()
    specs = [
        TaskSpec(stmt, setup, global_setup, label=label, sub_label=name)
        for stmt, name in [read_statement(text) for text in stmts]
    ]
    outcomes = Outcomes()
    try:
        time_statements(outcomes, specs, threads, budget, python=python, language=language, timeout_s=timeout)
    finally:
        # Also after an interrupt: what has been timed is not lost.
        shows_text = bool(outcomes.groups) and offer_json(
            lambda: to_json_times(outcomes.groups, outcomes.measurements, outcomes.failures, language), json_file
        )
        if shows_text and outcomes.results:
            used = {name for name, given in (("adaptive", adaptive), ("number", number)) if given}
            echo(describe_groups(outcomes.groups, terminal_width(), used=used, python=python, language=language))
        if outcomes.groups and outcomes.failures:
            for text in describe_statements(outcomes.failures, with_names=len(stmts) > 1):
                echo(text, err=True)
    return ExitCode.FAILED if outcomes.failures else 0
