"""`torchmark count`: count the instructions of statements given on the command line."""

from __future__ import annotations

import shutil
from collections.abc import Sequence

import click

from torchmark.api.callgrind_stats import CallgrindStats, list_changes, make_row, to_json_stats
from torchmark.api.statements import CountOutcomes, count_statements
from torchmark.cli.options import (
    Seconds,
    ThreadCounts,
    Variable,
    WholeNumber,
    check_folder,
    check_language,
    global_setup_option,
    is_standard_output,
    json_option,
    language_option,
    python_option,
    setup_option,
    write_json,
)
from torchmark.cli.output import echo
from torchmark.errors import UsageError
from torchmark.model.job import DEFAULT_LAYOUTS
from torchmark.model.task import TaskSpec
from torchmark.report.as_json import to_json_counts
from torchmark.report.text.counts import (
    Change,
    describe_caveats,
    render_counts,
    render_difference,
)
from torchmark.report.text.failures import describe_failure, list_hints
from torchmark.report.text.terminal import DEFAULT_WIDTH, one_line
from torchmark.runner.worker import DEFAULT_TIMEOUT_S

STATEMENT_FAILED = 1
MOST_LAYOUTS = 1000
MOST_RUNS = 1_000_000


@click.command("count")
@click.argument("stmts", metavar="STMT...", nargs=-1, required=True)
@setup_option("Runs once, before the statement is warmed up.")
@language_option
@global_setup_option
@click.option("--threads", type=ThreadCounts(), default="1", help="torch threads, such as 1 or 1,2,4.")
@click.option("--number", type=WholeNumber(1, MOST_RUNS), default=100, metavar="N", help="Runs to count (100).")
@click.option(
    "--layouts",
    type=WholeNumber(1, MOST_LAYOUTS),
    default=len(DEFAULT_LAYOUTS),
    metavar="N",
    help="Memory layouts to take the median of (5); 1 gives the bare count.",
)
@click.option("--diff", is_flag=True, help="Show which functions make the difference between two statements.")
@python_option("The interpreter to count in, with its own torch.")
@click.option("--set-env", "given", type=Variable(), multiple=True, help="A variable for the process that counts.")
@click.option("--caches", is_flag=True, help="Also simulate caches and branches, and estimate cycles.")
@click.option(
    "--timeout", type=Seconds(), default=DEFAULT_TIMEOUT_S, help="Seconds until a statement is given up (600)."
)
@json_option
def command(
    stmts: tuple[str, ...],
    setup: str | None,
    language: str,
    global_setup: str,
    threads: tuple[int, ...],
    number: int,
    layouts: int,
    diff: bool,
    python: str | None,
    given: tuple[tuple[str, str], ...],
    caches: bool,
    timeout: float,
    json_file: str | None,
) -> int:
    """Count the instructions of one or more statements, exactly, with Valgrind.

    Each STMT is Python, where torch is imported already, or C++, where torch/torch.h is included already. The first
    count waits for torch to load under Valgrind, which takes half a minute or so; each one after that takes about a
    second. C++ is compiled once, all statements together.

    \b
    torchmark count "x * 2" "x + x" --setup "x = torch.ones(8)" --diff
    torchmark count "x @ x" --setup "x = torch.ones(4, 4)" --python /usr/bin/python3
    torchmark count "x.add(1);" --setup "auto x = torch::ones(8);" --language cpp
    """
    if diff and (len(set(stmts)) != 2 or len(threads) != 1):
        raise UsageError("--diff compares two statements: give exactly two, and one number of threads.")
    check_folder()
    setup = check_language(language, setup, global_setup)
    tasks = [TaskSpec(stmt, setup, global_setup, num_threads=n) for n in threads for stmt in dict.fromkeys(stmts)]
    outcomes = CountOutcomes()
    try:
        count_statements(
            outcomes,
            tasks,
            number=number,
            layouts=layouts,
            python=python,
            variables=dict(given),
            simulate=caches,
            language=language,
            timeout_s=timeout,
        )
    finally:
        # Also after an interrupt: what has been counted is not lost.
        results, failures = outcomes.results, outcomes.failures
        changes = list_changes(*results) if diff and len(results) == 2 else []
        if json_file is not None:
            write_json(to_json_counts([*map(to_json_stats, results)], failures, changes, language), json_file)
        if results and not is_standard_output(json_file):
            _print_counts(results, changes, diff=diff and len(results) == 2)
        for task, failure in failures:
            echo(f"Failed: {one_line(task.stmt)}\n{describe_failure(failure)}", err=True)
        for hint in list_hints(failure for _, failure in failures):
            echo(hint, err=True)
    return STATEMENT_FAILED if outcomes.failures else 0


def _print_counts(results: Sequence[CallgrindStats], changes: Sequence[Change], *, diff: bool) -> None:
    width = shutil.get_terminal_size((DEFAULT_WIDTH, 0)).columns
    rows = [make_row(result) for result in results]
    names = [row.name for row in rows]
    echo(render_counts(rows, width))
    for note in describe_caveats(names, [result.caveats for result in results]):
        echo(note)
    if diff:
        echo()
        echo(render_difference(changes, from_name=names[0], to_name=names[1], line_width=width))
