"""`torchmark rm`: remove runs from the store."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from torchmark.cli.options import complete_run, store_option
from torchmark.cli.output import echo
from torchmark.errors import ExitCode, UsageError
from torchmark.report.text.run_summary import render_runs
from torchmark.report.text.terminal import count
from torchmark.store.runs import open_store


@click.command("rm")
@click.argument("references", metavar="RUN...", nargs=-1, required=True, shell_complete=complete_run)
@click.option("--yes", is_flag=True, help="Do not ask.")
@store_option
def command(references: tuple[str, ...], yes: bool, store_path: Path) -> int:
    """Remove runs with all their results, for good.

    RUN is a name, the beginning of an id, @ for the newest run, @1 for the one before.
    """
    # Until it is certain that something is to be removed, nothing is written.
    with open_store(store_path, read_only=True) as store:
        # All are meant before the first one is gone: @1 stays what it was.
        ids = {store.find(reference).id for reference in references}
        if not yes:
            if not (sys.stdin and sys.stdin.isatty()):
                raise UsageError("Nobody is there to be asked whether to remove runs: say --yes.")
            echo(render_runs([entry for entry in store.list_entries() if entry.info.id in ids]))
            if not click.confirm(f"Remove {count(len(ids), 'run')} for good?"):
                return ExitCode.FAILED
    with open_store(store_path) as store:
        store.remove(ids)
    echo(f"Removed {count(len(ids), 'run')}.")
    return 0
