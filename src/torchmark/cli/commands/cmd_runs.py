"""`torchmark runs`: the runs that are kept."""

from __future__ import annotations

from pathlib import Path

import click

from torchmark.cli.options import json_option, offer_json, store_option, terminal_width
from torchmark.cli.output import echo
from torchmark.report.as_json import to_json_runs
from torchmark.report.text.run_summary import render_runs
from torchmark.store.runs import open_store


@click.command("runs")
@store_option
@json_option
def command(store_path: Path, json_file: str | None) -> int:
    """List the runs of a store, the newest first.

    Other commands take a run by its name, the beginning of what stands in the first column, @ for the newest, @1 for
    the one before, and so on.
    """
    with open_store(store_path, read_only=True) as store:
        entries = store.list_entries()
    if offer_json(lambda: to_json_runs(entries), json_file):
        echo(render_runs(entries, terminal_width()) if entries else "There are no runs in the store yet.")
    return 0
