"""`torchmark count`: count the instructions of statements given on the command line."""

from __future__ import annotations

from collections.abc import Sequence

import click

from torchmark.api.callgrind_stats import CallgrindStats, list_changes, make_row, to_json_stats
from torchmark.api.statements import CountOptions, CountOutcomes, count_statements
from torchmark.cli.options import (
    VARIABLE,
    check_folder,
    check_language,
    counted_runs_option,
    give_together,
    global_setup_option,
    json_option,
    language_option,
    layouts_option,
    offer_json,
    python_option,
    setup_option,
    statements_argument,
    terminal_width,
    threads_option,
    timeout_option,
)
from torchmark.cli.output import echo
from torchmark.errors import ExitCode, UsageError
from torchmark.model.job import DEFAULT_LAYOUTS
from torchmark.model.task import TaskSpec
from torchmark.report.as_json import to_json_counts
from torchmark.report.text.counts import Change, describe_caveats, render_counts, render_difference
from torchmark.report.text.failures import describe_failure, list_hints
from torchmark.report.text.terminal import one_line


@click.command("count")
@give_together(
    "asked",
    CountOptions,
    statements_argument,
    setup_option("Runs once, before the statement is warmed up."),
    language_option,
    global_setup_option,
    threads_option,
    counted_runs_option,
    layouts_option(len(DEFAULT_LAYOUTS), "Memory layouts to take the median of (5); 1 gives the bare count."),
    click.option("--diff", is_flag=True, help="Show which functions make the difference between two statements."),
    python_option("count"),
    click.option("--set-env", "given", type=VARIABLE, multiple=True, help="A variable for the process that counts."),
    click.option("--caches", is_flag=True, help="Also simulate caches and branches, and estimate cycles."),
    timeout_option("a statement"),
)
@json_option
def command(
    stmts: tuple[str, ...],
    setup: str | None,
    global_setup: str,
    threads: tuple[int, ...],
    diff: bool,
    asked: CountOptions,
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
    setup = check_language(asked.language, setup, global_setup)
    tasks = [TaskSpec(stmt, setup, global_setup, num_threads=n) for n in threads for stmt in dict.fromkeys(stmts)]
    outcomes = CountOutcomes()
    try:
        count_statements(outcomes, tasks, asked)
    finally:
        # Also after an interrupt: what has been counted is not lost.
        results, failures = outcomes.results, outcomes.failures
        changes = list_changes(*results) if diff and len(results) == 2 else None
        counts = map(to_json_stats, results)
        if (
            offer_json(lambda: to_json_counts([*counts], failures, changes or [], asked.language), json_file)
            and results
        ):
            _print_counts(results, changes)
        for task, failure in failures:
            echo(f"Failed: {one_line(task.stmt)}\n{describe_failure(failure)}", err=True)
        for hint in list_hints(failure for _, failure in failures):
            echo(hint, err=True)
    return ExitCode.FAILED if outcomes.failures else 0


def _print_counts(results: Sequence[CallgrindStats], changes: Sequence[Change] | None) -> None:
    rows, width = [make_row(result) for result in results], terminal_width()
    names = [row.name for row in rows]
    echo(render_counts(rows, width))
    for note in describe_caveats(names, [result.caveats for result in results]):
        echo(note)
    if changes is not None:
        echo()
        echo(render_difference(changes, from_name=names[0], to_name=names[1], line_width=width))
