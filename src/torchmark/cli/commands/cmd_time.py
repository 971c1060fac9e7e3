"""`torchmark time`: time statements given on the command line, and say which is the fastest."""

from __future__ import annotations

import ast
import contextlib
import dataclasses
import math
import os
import re
import shlex
import shutil
import sys
from collections.abc import Sequence
from typing import Any

import click

from torchmark.analysis.grid import name_row, ordered_unique
from torchmark.analysis.summarise import Standings, rank
from torchmark.api.measurement import Measurement
from torchmark.api.statements import Outcomes, StatementGroup, Stopwatch, choose_budget, open_worker, start_worker
from torchmark.cli.options import (
    Seconds,
    ThreadCounts,
    WholeNumber,
    check_folder,
    check_language,
    global_setup_option,
    habit_options,
    is_standard_output,
    json_option,
    language_option,
    python_option,
    read_code,
    setup_option,
    write_json,
)
from torchmark.cli.output import echo
from torchmark.errors import UsageError
from torchmark.measure.blocks import LARGEST_NUMBER
from torchmark.model.caveat import Variation
from torchmark.model.outcome import Failure
from torchmark.model.task import TaskSpec
from torchmark.report.caveats import give_advice, state_fact
from torchmark.report.text.failures import describe_failure, list_hints
from torchmark.report.text.grid import plain_caveat, plain_summary
from torchmark.report.text.measurement import TimedRow, conclude, describe_measurement, name_rows, render_standings
from torchmark.report.text.terminal import count, one_line, wrap
from torchmark.report.text.units import format_edges
from torchmark.runner.first_runs import check_syntax
from torchmark.runner.worker import DEFAULT_TIMEOUT_S
from torchmark.stats.intervals import PairedRatio

SCHEMA = "torchmark.time"
SCHEMA_VERSION = 1

STATEMENT_FAILED = 1
DEFAULT_WIDTH = 80
# Longer names make a sentence hard to read.
LONGEST_NAME = 32
STANDARD_INPUT = "-"
# A file's name has one of these endings: without any, `x` might be a variable and a file.
CODE_ENDINGS = (".py", ".cpp", ".cc", ".cxx")
# Nobody's statement is an attribute of that name.
FILE_NAME = re.compile(r"[\w./-]*\w\.(py|cpp|cc|cxx)")


@click.command("time")
@click.argument("stmts", metavar="STMT...", nargs=-1, required=True)
@setup_option("Runs before each block; once before statements that take turns.")
@language_option
@global_setup_option
@click.option("--threads", type=ThreadCounts(), default="1", help="torch threads, such as 1 or 1,2,4.")
@click.option("--label", metavar="TEXT", help="Title of the result.")
@click.option("--min-run-time", type=Seconds(), help="Seconds to measure for (0.2 by default).")
@click.option("--adaptive", is_flag=True, help="Measure until the result is steady, or for about 10 s.")
@click.option("--number", type=WholeNumber(1, LARGEST_NUMBER), metavar="N", help="Runs per block, instead of choosing.")
@python_option("The interpreter to measure in, with its own torch.")
@click.option(
    "--timeout", type=Seconds(), default=DEFAULT_TIMEOUT_S, help="Seconds until a statement is given up (600)."
)
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
    specs = [_read_statement(stmt, setup, global_setup, label) for stmt in stmts]
    tasks = [dataclasses.replace(spec, num_threads=n) for n in threads for spec in specs]
    # Another interpreter may know more syntax than this one.
    is_known = python is None and language == "python"
    faults = {one.stmt: fault for one in specs if is_known and (fault := check_syntax(one.stmt, one.setup))}
    left = [task for task in tasks if task.stmt not in faults]
    worker, place = open_worker(python)
    with contextlib.closing(worker):
        compiled = start_worker(worker, left, language) if left else {}
        stopwatch = Stopwatch(worker, place, budget, timeout, compiled)
        stopwatch.outcomes.failures |= faults
        try:
            stopwatch.time_all(specs, threads)
        finally:
            # Also after an interrupt: what has been timed is not lost.
            used = {name for name, given in (("adaptive", adaptive), ("number", number)) if given}
            report(stopwatch.outcomes, used, json_file, with_names=len(stmts) > 1, python=python, language=language)
    return STATEMENT_FAILED if stopwatch.outcomes.failures else 0


def _read_statement(text: str, setup: str, global_setup: str, label: str | None) -> TaskSpec:
    """A statement as it is given, or from a file or standard input, whose name is that of its row then."""
    # The line break at the end of a file is none of the statement.
    if text == STANDARD_INPUT:
        code = sys.stdin.read() if sys.stdin else ""
        return TaskSpec(
            stmt=code.rstrip("\n"), setup=setup, global_setup=global_setup, label=label, sub_label="standard input"
        )
    if text.endswith(CODE_ENDINGS) and os.path.isfile(text):
        return TaskSpec(
            stmt=read_code(text).rstrip("\n"), setup=setup, global_setup=global_setup, label=label, sub_label=text
        )
    if FILE_NAME.fullmatch(text):
        raise UsageError(f"There is no file {text!r} here. Name one that exists, or give a statement.")
    return TaskSpec(text, setup, global_setup, label)


def report(
    outcomes: Outcomes,
    used: set[str],
    json_file: str | None,
    *,
    with_names: bool,
    language: str,
    python: str | None = None,
) -> None:
    """Write and show what there is; `used` are the options that advice should not give again."""
    if json_file is not None:
        write_json(as_json(outcomes, language), json_file)
    if outcomes.results and not is_standard_output(json_file):
        show(outcomes.groups, used, python=python, language=language)
    show_failures(outcomes.failures, with_names=with_names)


def as_json(outcomes: Outcomes, language: str) -> dict[str, Any]:
    """Raw times with their statistics and caveats, how they compare, and what failed."""
    return {
        "schema": SCHEMA,
        "schema_version": SCHEMA_VERSION,
        "language": language,
        "measurements": [
            {
                **result.to_dict(),
                "summary": plain_summary(result.summary),
                "caveats": [plain_caveat(caveat) for caveat in result.caveats],
            }
            for result in outcomes.results
        ],
        "comparisons": [_plain_comparison(group) for group in outcomes.groups if len(group.results) > 1],
        "failures": [
            {
                "stmt": stmt,
                "traceback": f"{describe_failure(failure)}\n",
                "kind": failure.kind.value,
                "message": failure.message,
            }
            for stmt, failure in outcomes.failures.items()
        ],
    }


def _plain_comparison(group: StatementGroup) -> dict[str, Any]:
    standings = _rank(group)
    fastest, ratios = standings.fastest, standings.ratios
    return {
        "in_turns": group.rounds is not None,
        "fastest": None if standings.rivals else _identify(group.results[fastest]),
        "ratios": [
            {
                **_identify(result),
                "ratio": math.exp(ratio.log_ratio),
                "low": None if ratio.low is None else math.exp(ratio.low),
                "high": None if ratio.high is None else math.exp(ratio.high),
                "confidence": ratio.confidence,
            }
            for result, ratio in zip(group.results, ratios, strict=True)
        ],
    }


def _identify(result: Measurement) -> dict[str, Any]:
    return {"stmt": result.task_spec.stmt, "num_threads": result.num_threads}


def _rank(group: StatementGroup) -> Standings:
    if group.rounds is None:
        return rank([result.times for result in group.results], in_turns=False)
    return rank(group.rounds)


def show(
    groups: Sequence[StatementGroup], used: set[str], *, python: str | None = None, language: str = "python"
) -> None:
    """One result in full, several as tables with what follows from them; caveats below."""
    results = [result for group in groups for result in group.results]
    if len(results) == 1:
        (result,) = results
        echo(describe_measurement(result.task_spec, result.summary, result.number_per_run))
        _show_interval(result)
    else:
        spec = results[0].task_spec
        for line in (spec.label, spec.setup_str()):
            if line:
                echo(line)
        for group in groups:
            show_group(group, shutil.get_terminal_size((DEFAULT_WIDTH, 0)).columns, python=python, language=language)
    _show_notes(results, used)


def _show_notes(results: Sequence[Measurement], used: set[str]) -> None:
    # The full text of one result tells of variation already. Advice that fits several notes is given once.
    notes = [
        (result, caveat)
        for result in results
        for caveat in result.caveats
        if len(results) > 1 or not isinstance(caveat, Variation)
    ]
    lines = [f"NOTE: {_say_whose(result, results)}{state_fact(caveat)}" for result, caveat in notes]
    lines += ordered_unique(give_advice(caveat, "shell", used) for _, caveat in notes)
    for result in results:
        if does_nothing(result.task_spec.stmt):
            whose = _say_whose(result, results)
            lines.append(f"NOTE: {whose}The statement does nothing: this is the empty loop's own cost.")
    width = shutil.get_terminal_size((DEFAULT_WIDTH, 0)).columns
    for line in lines:
        echo("\n".join(wrap(f"  {line}", width, hanging=2)))


def _say_whose(result: Measurement, results: Sequence[Measurement]) -> str:
    return f"{one_line(result.as_row_name)}, {count(result.num_threads, 'thread')}: " if len(results) > 1 else ""


def does_nothing(stmt: str) -> bool:
    """Whether a statement is empty, or only `pass`.

    >>> does_nothing(""), does_nothing("pass  # nothing"), does_nothing("x")
    (True, True, False)
    """
    try:
        body = ast.parse(stmt).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return all(isinstance(node, ast.Pass) for node in body)


def show_group(group: StatementGroup, width: int, *, python: str | None, language: str) -> None:
    """A table, how it was measured, and which is the fastest."""
    if not group.results:
        return
    specs = [result.task_spec for result in group.results]
    by_threads = len({spec.num_threads for spec in specs}) > 1
    names = [count(spec.num_threads, "thread") if by_threads else name_row(spec) for spec in specs]
    heading = one_line(name_row(specs[0])) if by_threads else count(specs[0].num_threads, "thread")
    rows = [
        TimedRow(name, result.median, result.median_interval())
        for name, result in zip(names, group.results, strict=True)
    ]
    standings = _rank(group) if len(rows) > 1 else Standings(0, (PairedRatio(0.0, 0.0, 0.0, 0.0),))
    for line in render_standings(heading, rows, standings, width):
        echo(line)
    if len(rows) == 1:
        return
    for line in wrap(f"{_say_how(group)} {conclude(name_rows(names, LONGEST_NAME), standings)}", width):
        echo(line)
    if standings.rivals:
        rivals = [specs[i] for i in range(len(specs)) if i == standings.fastest or i in standings.rivals]
        echo(_say_what_can(rivals, python=python, language=language))


def _say_how(group: StatementGroup) -> str:
    if group.rounds is None:
        return "Measured one after the other."
    how = f"Measured in turns, in {count(len(group.rounds[0]), 'round')}."
    if group.obstacle is None:
        return how
    return f"{how} Each had a process of its own, because together they fail: {group.obstacle.message}"


def _say_what_can(specs: Sequence[TaskSpec], *, python: str | None, language: str) -> str:
    """How to find out what these measurements cannot tell."""
    spec = specs[0]
    if python is not None or len({one.num_threads for one in specs}) > 1:
        # `ab` compares statements in its own interpreter, with one number of threads.
        return "Measure for longer, with a larger --min-run-time."
    options = [] if spec.setup in ("", "pass") else ["--setup", spec.setup]
    options += ["--global-setup", spec.global_setup] if spec.global_setup else []
    options += ["--language", language] if language != "python" else []
    options += ["--threads", str(spec.num_threads)] if spec.num_threads > 1 else []
    stmts = [one.stmt for one in specs]
    # Those with a dash in front would be taken for options.
    words = [*options, "--", *stmts] if any(stmt.startswith("-") for stmt in stmts) else [*stmts, *options]
    return f"To find out:\n  torchmark ab {shlex.join(words)}"


def show_failures(failures: dict[str, Failure], *, with_names: bool) -> None:
    """Each text once: a broken setup fails every statement in the same way."""
    texts = {stmt: describe_failure(failure) for stmt, failure in failures.items()}
    for text in dict.fromkeys(texts.values()):
        whose = ", ".join(one_line(stmt) for stmt, own in texts.items() if own == text)
        heading = f"Failed: {whose}\n" if with_names else ""
        echo(f"{heading}{text}", err=True)
    for hint in list_hints(failures.values()):
        echo(hint, err=True)


def _show_interval(result: Measurement) -> None:
    interval = result.median_interval()
    if interval is None:
        return
    low, high = format_edges(interval.low, interval.high)
    echo(f"  The median lies between {low} and {high} ({interval.confidence:.0%} confidence).")
