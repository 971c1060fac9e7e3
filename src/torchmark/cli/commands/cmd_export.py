"""`torchmark export`: a stored run in the format of another program."""

from __future__ import annotations

from pathlib import Path

import click

from torchmark.analysis.results import narrow_run, steady_times
from torchmark.api.stored_results import check_measured
from torchmark.cli.cases import report_nothing_selected, selection_options
from torchmark.cli.options import metric_option, run_argument, store_option, target_option
from torchmark.cli.output import echo, write_text
from torchmark.define.selection import Selection, list_known
from torchmark.errors import UsageError
from torchmark.model.costs import Tally
from torchmark.model.outcome import CompileCosts, Outcome
from torchmark.model.plan import Metric
from torchmark.model.run import Run
from torchmark.model.task import Times
from torchmark.report.formats.entries import dump_json
from torchmark.report.formats.registry import FORMATS, Format
from torchmark.report.text.terminal import count
from torchmark.store.documents import export_run
from torchmark.store.runs import open_store

JSON = Format(
    "json",
    "all that is known, for torchmark import",
    ".json",
    lambda run: dump_json(export_run(run)),
    profiles=True,
    failures=True,
)
ALL_FORMATS = {JSON.name: JSON, **FORMATS}


def choose_format(name: str | None, output: str | None) -> Format:
    """The format of that name; without one, what the name of the file says, if it says anything, or else JSON."""
    if name is not None:
        return ALL_FORMATS[name]
    suffix = Path(output or "").suffix.lower()
    return next((kind for kind in ALL_FORMATS.values() if kind.suffix == suffix), JSON)


def choose_part(run: Run, metrics: tuple[Metric, ...] | None, env: str | None) -> Run:
    check_measured(run, metrics)
    targets = [target for target in run.plan.targets if env is None or target.name == env]
    if env is not None and not targets:
        known = list_known(env, [target.name for target in run.plan.targets])
        raise UsageError(f"This run has no target {env!r}. {known}")
    return narrow_run(run, targets=targets, metrics=metrics)


def describe_left_out(run: Run, kind: Format) -> str | None:
    """A line on the cases that a format has no place for; None where nothing is lost."""
    placed = {(outcome.order.case, outcome.order.target) for outcome in run.outcomes if _has_place(outcome, kind)}
    wanted = len(run.plan.cases) * len(run.plan.targets)
    if kind.failures or len(placed) == wanted:
        return None
    what = "times" if kind.needs == (Metric.WALL,) else "results"
    left_out = f"{wanted - len(placed)} of {count(wanted, 'case')}"
    return f"Left out for want of {what}: {left_out}. In csv, markdown and json they are told of."


def _has_place(outcome: Outcome, kind: Format) -> bool:
    result = outcome.result
    if isinstance(result, (Times, CompileCosts)):
        return Metric.WALL in kind.needs and bool(steady_times(result).raw_times)
    return isinstance(result, Tally) and Metric.COUNT in kind.needs


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
@run_argument
@click.option(
    "--format",
    "name",
    type=click.Choice(list(ALL_FORMATS)),
    metavar="FORMAT",
    help="One of those above (json, or what the name of FILE says).",
)
@click.option("-o", "--output", metavar="FILE", help="Write to a file; without it, to standard output.")
@metric_option("Only times (wall) or instructions (count).")
@target_option
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
    kind = choose_format(name, output)
    with open_store(store_path, read_only=True) as store:
        info = store.find(reference)
        run = store.load(info.id, profiles=kind.profiles, select=selection.admits)
        if not run.plan.cases:
            return report_nothing_selected(store.load(info.id).plan.cases, selection)
    part = choose_part(run, metrics, env)
    write_text(kind.write(part), output)
    note = describe_left_out(part, kind)
    if note:
        echo(f"torchmark: {note}", err=True)
    return 0
