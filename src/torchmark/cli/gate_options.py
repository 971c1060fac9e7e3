"""The options of the gate of commands that compare, and where its summary goes."""

from __future__ import annotations

from pathlib import Path

import click

from torchmark.analysis.gate import parse_fail_on, parse_limit
from torchmark.api.gate import DEFAULT_LEDGER, GateOptions
from torchmark.cli.options import give_together
from torchmark.errors import StoreError, UsageError
from torchmark.model.gate import FailOn, Policy


def _read_options(
    fail_on: str | None, limits: tuple[str, ...], ledger: Path | None, summary: Path | None
) -> GateOptions:
    """A limit or a ledger that is asked for stops what is slower, without being told so: else it would do nothing."""
    if ledger is not None and not ledger.is_dir():
        raise UsageError(f"There is no ledger {ledger}: torchmark accept --ledger {ledger} makes one.")
    usual = frozenset({FailOn.SLOWER} if limits or ledger is not None else ())
    stops = usual if fail_on is None else parse_fail_on(fail_on)
    found = ledger or (DEFAULT_LEDGER if DEFAULT_LEDGER.is_dir() else None)
    return GateOptions(Policy(stops, tuple(map(parse_limit, limits))), found, summary, ledger is not None)


gate_options = give_together(
    "gate",
    _read_options,
    click.option(
        "--fail-on",
        metavar="WHAT[,WHAT...]",
        help="End with 3 if any case is slower, undecided, failed or missing.",
    ),
    click.option(
        "--limit",
        "limits",
        metavar="LIMIT",
        multiple=True,
        help="How much more is let through: Ir:0.3%, Ir:50, allocations:0, time:2%@training/* for some cases.",
    ),
    click.option(
        "--ledger",
        type=click.Path(path_type=Path),
        metavar="DIR",
        help=f"The folder of accepted counts ({DEFAULT_LEDGER}, where there is one).",
    ),
    click.option(
        "--summary",
        type=click.Path(path_type=Path, dir_okay=False),
        envvar="GITHUB_STEP_SUMMARY",
        metavar="FILE",
        help="Append a summary in Markdown to this file ($GITHUB_STEP_SUMMARY).",
    ),
)


def append_summary(text: str, options: GateOptions) -> None:
    """Put a summary where it is wanted, behind what other steps have written there."""
    if options.summary is None:
        return
    try:
        with options.summary.open("a", encoding="utf-8", errors="replace") as file:
            file.write(text)
    except OSError as error:
        raise StoreError(f"Cannot write {options.summary}: {error.strerror}.") from error
