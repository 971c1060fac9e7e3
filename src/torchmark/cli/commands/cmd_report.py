"""`torchmark report`: a run, or what changed since another, as one HTML page to hand in."""

from __future__ import annotations

import shlex
from pathlib import Path

import click

from torchmark.api.report_data import ReportOptions, load_report_data
from torchmark.api.stored_results import StoredSide, find_side, find_sides, has_two_targets
from torchmark.cli.cases import format_selection, report_nothing_selected, selection_options
from torchmark.cli.options import complete_run, format_store, run_argument, store_option
from torchmark.cli.output import STANDARD_OUTPUT, check_output, echo, write_text
from torchmark.define.selection import Selection
from torchmark.report.html.report_page import render_report
from torchmark.report.html.report_story import make_headline
from torchmark.report.text.terminal import count
from torchmark.report.text.units import format_size
from torchmark.store.runs import Store, open_store

DEFAULT_OUTPUT = "report.html"


@click.command("report")
@run_argument
@click.argument("base", metavar="[BASE]", required=False, shell_complete=complete_run)
@click.option("-o", "--output", metavar="FILE", default=DEFAULT_OUTPUT, help=f"Where to write ({DEFAULT_OUTPUT}).")
@click.option("--title", metavar="TEXT", help="What stands above the page (the names of the runs).")
@click.option("--no-flames", is_flag=True, help="Without flame graphs: a smaller page, sooner.")
@click.option("--force", is_flag=True, help="Judge also what is not comparable; the caveat stays.")
@selection_options
@store_option
def command(
    reference: str,
    base: str | None,
    output: str,
    title: str | None,
    no_flames: bool,
    force: bool,
    selection: Selection,
    store_path: Path,
) -> int:
    """Write a run, or what changed since BASE, as one HTML page that needs nothing else.

    RUN and BASE are runs as for 'torchmark show', or RUN:ENV for one environment of a run; without RUN it is the newest
    run. Of a single run with two environments, the second is held against the first. Cases are selected as in
    'torchmark list'.

    \b
    torchmark report
    torchmark report after before -o after.html --title "The new parser"
    torchmark report nightly:branch nightly:main -k linear
    """
    check_output(output, DEFAULT_OUTPUT)
    options = [*format_selection(selection), *(["--no-flames"] if no_flames else []), *(["--force"] if force else [])]
    options += [] if title is None else [f"--title {shlex.quote(title)}"]
    with open_store(store_path, read_only=True) as store:
        sides = _choose_sides(store, reference, base)
        wanted = ReportOptions(
            title=title, flames=not no_flames, force=force, store=format_store(store_path), options=tuple(options)
        )
        report = load_report_data(store, sides, wanted, selection.admits)
        if not report.entries:
            found = [case for side in sides for case in store.load(side.info.id).plan.cases]
            return report_nothing_selected(found, selection)
    for remark in report.remarks:
        echo(f"torchmark: {remark}", err=True)
    text = render_report(report)
    write_text(text, output)
    if output != STANDARD_OUTPUT:
        echo(f"{make_headline(report)}.")
        size = format_size(len(text.encode(errors="replace")))
        echo(f"Written: {output} ({size}, {count(len(report.entries), 'case')})")
    return 0


def _choose_sides(store: Store, reference: str, base: str | None) -> tuple[StoredSide, ...]:
    if base is not None:
        return find_sides(store, base, reference)
    return find_sides(store, reference, None) if has_two_targets(store, reference) else (find_side(store, reference),)
