"""`torchmark compare`: two runs, two environments of one or two files, case by case; a gate for what became slower."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path

import click

from torchmark.api.gate import GateOptions
from torchmark.api.stored_results import StoredComparison, compare_stored, load_sides
from torchmark.cli.cases import report_nothing_selected, selection_options
from torchmark.cli.gate_options import append_summary, gate_options
from torchmark.cli.options import (
    all_option,
    format_store,
    json_option,
    metric_option,
    no_explain_option,
    offer_json,
    store_option,
    terminal_width,
    use_colour,
)
from torchmark.cli.output import echo
from torchmark.define.selection import Selection, parse
from torchmark.errors import UsageError
from torchmark.model.plan import Case, Metric
from torchmark.report.as_json import to_json_compared
from torchmark.report.text.gate import describe_refusal, render_contrast, summarise_contrast


@click.command("compare")
@click.argument("base")
@click.argument("head", required=False)
@selection_options
@metric_option()
@click.option("--force", is_flag=True, help="Compare also what is not comparable; the caveat stays.")
@gate_options
@all_option()
@click.option("--explain", metavar="EXPR", help="Explain the changes of these cases by function; EXPR as for -k.")
@no_explain_option
@json_option
@store_option
def command(
    base: str,
    head: str | None,
    selection: Selection,
    metrics: tuple[Metric, ...] | None,
    force: bool,
    gate: GateOptions,
    all_cases: bool,
    explain: str | None,
    no_explain: bool,
    json_file: str | None,
    store_path: Path,
) -> int:
    """Compare two runs or two files case by case: exactly in what was counted, with intervals in what was timed.

    BASE and HEAD are runs as for 'torchmark show', or RUN:ENV for one environment of a run. Of a single run with two
    environments, the second is held against the first. They can also be two files that 'torchmark time --json' or
    'torchmark count --json' wrote, whose names end with .json. What is not comparable is refused, with the reasons and
    exit code 4. With --fail-on, --limit or --ledger the exit code is 3 if a case stops at the gate, and 1 if nothing
    was compared, or if head failed or has no result where base has one.

    \b
    torchmark compare before after
    torchmark compare before after --fail-on slower --limit Ir:0.3% --limit "time:2%@training/*"
    torchmark compare nightly:base nightly:branch -k linear --explain linear
    torchmark compare before.json after.json
    """
    if explain is not None and no_explain:
        raise UsageError("--explain and --no-explain exclude each other.")
    meant: Callable[[Case], bool] | None = None
    if explain is not None or no_explain:
        meant = (lambda case: False) if explain is None else Selection(expression=parse(explain)).admits
    with load_sides(store_path, base, head, selection.admits) as loaded:
        if not any(run.plan.cases for run in loaded.runs):
            return report_nothing_selected(loaded.others, selection)
        tell, store = functools.partial(echo, err=True), format_store(store_path)
        compared = compare_stored(loaded, gate, tell, metrics=metrics, force=force, store_name=store)
    contrast, result, code = compared.contrast, compared.result, compared.exit_code
    base_side, head_side = ((side.info, side.target) for side in loaded.sides)
    make = functools.partial(to_json_compared, (base_side, head_side), contrast, result, forced=force, exit_code=code)
    if offer_json(make, json_file):
        _print_tables(compared, all_cases=all_cases, explained=meant)
    append_summary(summarise_contrast(contrast, result, compared.names, forced=force), gate)
    return code


def _print_tables(compared: StoredComparison, *, all_cases: bool, explained: Callable[[Case], bool] | None) -> None:
    contrast, width = compared.contrast, terminal_width()
    if not compared.forced and (contrast.obstacles or contrast.case_obstacles):
        echo(f"torchmark: {describe_refusal(contrast, width)}", err=True)
    if compared.is_refused:
        return
    text = render_contrast(
        contrast,
        compared.result,
        compared.names,
        width,
        colour=use_colour(),
        all_cases=all_cases,
        explained=explained,
        accept=compared.accept,
    )
    sides = f"base  {compared.base.title}\nhead  {compared.head.title}"
    echo("\n\n".join(filter(None, (sides, text))), styled=use_colour())
