"""`torchmark accept`: put the counts of a run into the ledger, with the reason."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from torchmark.analysis.verdict.stored import choose_counts, identify
from torchmark.api.gate import DEFAULT_LEDGER, accept_count
from torchmark.api.stored_results import choose_target
from torchmark.cli.cases import find_named, list_candidates
from torchmark.cli.options import store_option
from torchmark.cli.output import echo
from torchmark.errors import UsageError
from torchmark.model.plan import Case
from torchmark.report.text.names import name_case
from torchmark.report.text.terminal import count
from torchmark.store.runs import open_store


@click.command("accept")
@click.argument("names", metavar="[CASE]...", nargs=-1)
@click.option("--why", required=True, metavar="TEXT", help="The reason, for whoever reads the ledger.")
@click.option("--run", "reference", default="@", metavar="RUN", help="The run that has the counts (the newest).")
@click.option("--env", metavar="ENV", help="Which environment of the run, if it has several.")
@click.option("--all", "take_all", is_flag=True, help="All cases that CASE means, or all of the run without one.")
@click.option(
    "--ledger",
    type=click.Path(path_type=Path, file_okay=False),
    default=DEFAULT_LEDGER,
    metavar="DIR",
    help=f"The folder of accepted counts ({DEFAULT_LEDGER}).",
)
@store_option
def command(
    names: tuple[str, ...],
    why: str,
    reference: str,
    env: str | None,
    take_all: bool,
    ledger: Path,
    store_path: Path,
) -> int:
    """Accept the counts of cases as they are in a run, for 'torchmark compare' and 'ab' to hold later ones against.

    CASE is the whole name of a case, as tables show it, or an expression as for -k. Each entry is a small file in the
    ledger, which is meant to be committed with the change that it is the reason for.

    \b
    torchmark accept "nn / Linear, Python" --why "Checks its arguments now."
    torchmark accept --all --why "The first counts of this suite." --run before
    """
    reason = " ".join(why.split())
    if not reason:
        raise UsageError("--why is empty: say why these counts are accepted.")
    with open_store(store_path, read_only=True) as store:
        info = store.find(reference)
        light = store.load(info.id)
        target = choose_target(light.plan.targets, env, info.name, "--env {env}")
        known = choose_counts(light, target)
        meant = _choose([case for case in light.plan.cases if identify(case) in known], names, take_all=take_all)
        counts = choose_counts(store.load(info.id, profiles=True, select=meant.__contains__), target)
    for case in meant:
        counted = counts[identify(case)]
        path = accept_count(ledger, case, counted, reason)
        instructions = f"{counted.tally.total / counted.tally.number:,.10g} instructions"
        echo(f"Accepted {name_case(case)}: {instructions}, in {path}")
    echo(f"Commit the folder {ledger}, so that others and continuous integration compare with these counts.")
    return 0


def _choose(cases: Sequence[Case], names: Sequence[str], *, take_all: bool) -> tuple[Case, ...]:
    if not cases:
        raise UsageError("Nothing was counted in this run: there is nothing to accept.")
    if not names and not take_all:
        raise UsageError("Say which case to accept, or --all.")
    chosen = {} if names else dict.fromkeys(cases)
    for name in names:
        found = find_named(cases, name)
        if len(found) > 1 and not take_all:
            text = f"{name!r:.80} means {count(len(found), 'case')}:"
            advice = "Say more of it, give the whole name, or accept them with --all."
            raise UsageError("\n".join([text, *list_candidates(found), advice]))
        chosen |= dict.fromkeys(found)
    return tuple(chosen)
