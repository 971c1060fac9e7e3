"""`torchmark history`: cases over all runs that are kept, and where they changed."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Callable
from pathlib import Path

import click

from torchmark.api.stored_results import find_interpreters, load_histories
from torchmark.cli.cases import report_nothing_selected, selection_options
from torchmark.cli.options import (
    WholeNumber,
    is_standard_output,
    json_option,
    metric_option,
    offer_json,
    store_option,
    target_option,
    terminal_width,
)
from torchmark.cli.output import STANDARD_OUTPUT, echo, write_text
from torchmark.define.selection import Selection, list_known, parse
from torchmark.errors import UsageError
from torchmark.model.plan import Case, Metric
from torchmark.report.as_json import to_json_histories
from torchmark.report.html.history import render_history_page
from torchmark.report.text.history import BLOCKS, render_histories
from torchmark.report.text.names import name_case
from torchmark.store.runs import open_store


@click.command("history")
@click.argument("case_text", metavar="[CASE]", default="")
@selection_options
@click.option("--anchor", metavar="RUN", help="Hold times against this run (the oldest that can be compared).")
@metric_option(default="wall,count")
@target_option
@click.option("--limit", type=WholeNumber(min=1), metavar="N", help="Only the newest runs.")
@click.option("--html", "html_file", metavar="FILE", help="Write a page with drawings; - is standard output.")
@json_option
@store_option
def command(
    case_text: str,
    selection: Selection,
    anchor: str | None,
    metrics: tuple[Metric, ...],
    env: str | None,
    limit: int | None,
    html_file: str | None,
    json_file: str | None,
    store_path: Path,
) -> int:
    """Show cases over all runs, and where they changed.

    CASE is the name of a case as tables have it, or an expression as for -k. RUN is a name, the beginning of an id, or
    @ for the newest, @1 for the one before.

    Instructions are exact. Times are ratios to one run, the anchor, and have in them what the machine was like on both
    days. So a change in times is confirmed by instructions that changed with it, or by another torch, Python or commit
    whose level later runs keep. It is an environment shift if most other cases shifted alike.

    \b
    torchmark history "nn and Linear" --language python
    torchmark history "nn Modules / Linear, Python" --anchor release --limit 50
    torchmark history --html history.html
    """
    if html_file == STANDARD_OUTPUT and is_standard_output(json_file):
        raise UsageError("--html and --json cannot both go to standard output: name a file for one of them.")
    selection, admits = _choose(case_text, selection)
    with open_store(store_path, read_only=True) as store:
        infos = store.list_runs()
        pinned = store.find(anchor or "@") if anchor or not infos else None
        infos = infos[:limit]
        histories = load_histories(store, infos, pinned, admits)
        if not histories:
            found = {(case.suite, case.key): case for info in infos for case in store.load(info.id).plan.cases}
            return report_nothing_selected([*found.values()], selection)
    if env is not None:
        known = dict.fromkeys(history.target.name for history in histories)
        if env not in known:
            raise UsageError(f"There is no target {env!r} in these runs. {list_known(env, list(known))}")
        histories = tuple(history for history in histories if history.target.name == env)
    interpreters = find_interpreters(histories)
    shows_text = offer_json(lambda: to_json_histories(histories, metrics, interpreters), json_file)
    if html_file is not None:
        write_text(render_history_page(histories, metrics=metrics, interpreters=interpreters), html_file)
    if shows_text and html_file != STANDARD_OUTPUT:
        plain, width = not _has_blocks(), terminal_width()
        echo(render_histories(histories, width, metrics=metrics, pinned=pinned, interpreters=interpreters, plain=plain))
    return 0


def _choose(text: str, selection: Selection) -> tuple[Selection, Callable[[Case], bool]]:
    """The selection with CASE in it, and what it admits: also the case whose full name CASE is."""
    if not text:
        return selection, selection.admits
    try:
        expression = parse(text if selection.expression is None else f"({text}) and ({selection.expression})")
    except UsageError:
        # A full name has words side by side, which is no expression.
        if ", " not in text:
            raise
        named = dataclasses.replace(selection, expression=parse('"{}"'.format(text.replace('"', '""'))))
        return named, lambda case: name_case(case) == text and selection.admits(case)
    chosen = dataclasses.replace(selection, expression=expression)
    return chosen, chosen.admits


def _has_blocks() -> bool:
    """Whether standard output can show the characters that series are drawn with."""
    try:
        f"{BLOCKS}→".encode(sys.stdout.encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return False
    return True
