"""`torchmark export`: a stored run in the format of another program."""

from __future__ import annotations

from pathlib import Path

import click

from torchmark.cli.exporting import ALL_FORMATS, choose_format, choose_part, tell_left_out
from torchmark.cli.output import echo
from torchmark.cli.parameters import Metrics
from torchmark.cli.selecting import NOTHING_SELECTED, Loaded, explain_nothing, selection_options
from torchmark.cli.storing import complete_run, store_option
from torchmark.cli.writing import write_text
from torchmark.define.selection import Selection
from torchmark.model.plan import Metric
from torchmark.store.runs import open_store

_FORMATS = "\n".join(f"{kind.name:<16}  {kind.description}" for kind in ALL_FORMATS.values())


@click.command(
    "export",
    help=f"""Write a run in the format of another program.

    RUN is a name, the beginning of an id, @ for the newest run, @1 for the one before; without it, it is the newest.

    \b
    Formats:
    {_FORMATS.replace(chr(10), chr(10) + "    ")}

    \b
    torchmark export --format pyperf -o new.json
    torchmark export nightly --format csv -k "nn and not c++" --metric wall
    """,
)
@click.argument("reference", metavar="[RUN]", default="@", shell_complete=complete_run)
@click.option(
    "--format",
    "name",
    type=click.Choice(list(ALL_FORMATS)),
    metavar="FORMAT",
    help="One of those above (json, or what the name of FILE says).",
)
@click.option("-o", "--output", metavar="FILE", help="Write to a file; without it, to standard output.")
@click.option("--metric", "metrics", type=Metrics(), help="Only times (wall) or instructions (count).")
@click.option("--env", metavar="NAME", help="Only the results of this target.")
@selection_options
@store_option
def command(
    reference: str,
    name: str | None,
    output: str | None,
    metrics: tuple[Metric, ...] | None,
    env: str | None,
    selection: Selection,
    store_path: Path,
) -> int:
    """Load, choose, write."""
    kind = choose_format(name, output)
    with open_store(store_path, read_only=True) as store:
        info = store.find(reference)
        run = store.load(info.id, profiles=kind.profiles, select=selection.admits)
        if not run.plan.cases:
            found = store.load(info.id).plan.cases
            echo(f"torchmark: {explain_nothing(Loaded((), found, (), selection))}", err=True)
            return NOTHING_SELECTED
    part = choose_part(run, metrics, env)
    write_text(kind.write(part), output)
    note = tell_left_out(part, kind)
    if note:
        echo(f"torchmark: {note}", err=True)
    return 0
