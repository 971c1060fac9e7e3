"""`torchmark show`: the results of a run, what failed in it, and where instructions go."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path

import click

from torchmark.analysis.results import narrow_run, summarise_run
from torchmark.api.stored_results import check_measured, find_counted, find_own_cases, load_run_functions
from torchmark.cli.cases import find_named, list_candidates, report_nothing_selected, selection_options
from torchmark.cli.options import (
    format_store,
    json_option,
    metric_option,
    offer_json,
    run_argument,
    store_option,
    terminal_width,
    use_colour,
)
from torchmark.cli.output import echo
from torchmark.define.selection import Selection
from torchmark.errors import UsageError
from torchmark.model.plan import Case, Metric
from torchmark.model.run import CaseSummary, Run
from torchmark.report.as_json import to_json_results
from torchmark.report.text.counts import render_functions
from torchmark.report.text.failures import render_failures
from torchmark.report.text.run_summary import describe_run
from torchmark.report.text.run_table import render_results
from torchmark.report.text.terminal import LEAST_WIDTH, count
from torchmark.store.runs import make_unmistakable, open_store

# Of so many failures, all that is known is told without being asked for.
FEW_FAILURES = 3


@click.command("show")
@run_argument
@selection_options
@metric_option()
@click.option("--failures", "with_failures", is_flag=True, help="All that is known of what failed.")
@click.option("--functions", metavar="EXPR", help="Where the instructions of one case go; EXPR as for -k.")
@click.option("--inclusive", is_flag=True, help="With --functions: order by what functions cost with their callees.")
@json_option
@store_option
def command(
    reference: str,
    selection: Selection,
    metrics: tuple[Metric, ...] | None,
    with_failures: bool,
    functions: str | None,
    inclusive: bool,
    json_file: str | None,
    store_path: Path,
) -> int:
    """Show the results of a run.

    RUN is a name, the beginning of an id, or @ for the newest, @1 for the one before it, and so on. Cases are selected
    as in 'torchmark list'.

    \b
    torchmark show
    torchmark show before -k "nn and not c++" --metric count
    torchmark show @1 --functions "Linear and eager and python"
    """
    if inclusive and functions is None:
        raise UsageError("--inclusive orders functions: say which case's with --functions.")
    with open_store(store_path, read_only=True) as store:
        info = store.find(reference)
        own = find_own_cases(store, info)
        select = selection.admits if own is None else lambda case: case in own and selection.admits(case)
        run = store.load(info.id, select=select)
        if metrics is not None:
            check_measured(run, metrics)
            # What is known of the whole run stays.
            run = dataclasses.replace(narrow_run(run, metrics=metrics), info=run.info)
        if not run.plan.cases and own != frozenset():
            found = [case for case in store.load(info.id).plan.cases if own is None or case in own]
            return report_nothing_selected(found, selection)
        breakdowns = load_run_functions(store, run, _choose_case(run, functions)) if functions is not None else []
        shown = dataclasses.replace(run, info=make_unmistakable(store, info))
    summaries = summarise_run(run)
    if offer_json(lambda: to_json_results(run, summaries, breakdowns), json_file):
        width = max(terminal_width(), LEAST_WIDTH)
        texts = [render_functions(one.title, one.rows, width, inclusive=inclusive) for one in breakdowns]
        if with_failures and not texts:
            texts = [describe_run(shown, width), render_failures(summaries, run.plan) or "Nothing failed."]
        texts = texts or _texts(shown, summaries, width, format_store(store_path), narrow=selection != Selection())
        echo("\n\n".join(texts), styled=use_colour())
    return 0


def _choose_case(run: Run, expression: str) -> Case:
    """The only counted case that fits, or the one whose full name it is."""
    cases = find_counted(run)
    if not cases:
        raise UsageError("Nothing was counted that is selected here: there are no costs by function.")
    found = find_named(cases, expression)
    if len(found) > 1:
        text = f"--functions is for one case, and {expression!r} means {count(len(found), 'case')}:"
        raise UsageError("\n".join([text, *list_candidates(found), "Say more of it, or give the whole name."]))
    return found[0]


def _texts(run: Run, summaries: Sequence[CaseSummary], width: int, store: str, *, narrow: bool) -> list[str]:
    """Heading and table; where few cases were asked for, all that is known of few failures."""
    table = render_results(summaries, run.plan, width, colour=use_colour(), run=run.info, store=store)
    texts = [describe_run(run, width), table]
    if narrow and 0 < sum(len(summary.failures) for summary in summaries) <= FEW_FAILURES:
        texts.append(render_failures(summaries, run.plan))
    return texts
