"""The gate of commands that compare: its options, the ledger it holds counts against, and where its summary goes."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click

from torchmark.analysis.gate import (
    INCOMPLETE,
    describe_dependencies,
    hold_against,
    hold_gate,
    look_for_gaps,
    parse_fail_on,
    parse_limit,
)
from torchmark.analysis.verdict.stored import CaseId, Contrast, CountedCase, choose_counts, explain_changes, identify
from torchmark.api.stored_sides import StoredSide, split
from torchmark.callgrind.profiles import standardise
from torchmark.cli.output import echo
from torchmark.errors import StoreError, UsageError
from torchmark.model.case import Case
from torchmark.model.costs import Tally
from torchmark.model.gate import FailOn, GateResult, LedgerStanding, Policy, StaleEntry
from torchmark.model.judgement import CaseJudgement
from torchmark.model.ledger import LedgerEntry
from torchmark.model.run import Run
from torchmark.store.ledger import read_entry
from torchmark.store.plain import content_hash
from torchmark.store.runs import Store

# Exit codes besides 0 for clean and 2 for what cannot be meant; that of a regression is the gate's own.
REFUSED = 4
DEFAULT_LEDGER = Path("torchmark-ledger")

_Function = TypeVar("_Function", bound=Callable[..., Any])

ledger_help = f"The folder of accepted counts ({DEFAULT_LEDGER}, where there is one)."


@dataclasses.dataclass(frozen=True)
class GateOptions:
    """What stops, which counts are accepted, and where a summary goes."""

    policy: Policy
    ledger: Path | None = None
    """None where there is none."""
    summary: Path | None = None
    ledger_named: bool = False
    """Whether the user named it."""


def gate_options(function: _Function) -> Callable[..., Any]:
    """Give a command the options of the gate, and hand it `gate`."""

    @functools.wraps(function)
    def with_gate(
        *args: Any,
        fail_on: str | None,
        limits: tuple[str, ...],
        ledger: Path | None,
        summary: Path | None,
        **kwargs: Any,
    ) -> Any:
        return function(*args, gate=_read_options(fail_on, limits, ledger, summary), **kwargs)

    for option in reversed(_OPTIONS):
        option(with_gate)
    return with_gate


_OPTIONS = (
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
    click.option("--ledger", type=click.Path(path_type=Path), metavar="DIR", help=ledger_help),
    click.option(
        "--summary",
        type=click.Path(path_type=Path, dir_okay=False),
        envvar="GITHUB_STEP_SUMMARY",
        metavar="FILE",
        help="Append a summary in Markdown to this file ($GITHUB_STEP_SUMMARY).",
    ),
)


def _read_options(
    fail_on: str | None, limits: tuple[str, ...], ledger: Path | None, summary: Path | None
) -> GateOptions:
    """A limit or a ledger that is asked for stops what is slower, without being told so: else it would do nothing."""
    if ledger is not None and not ledger.is_dir():
        raise UsageError(f"There is no ledger {ledger}: torchmark accept --ledger {ledger} makes one.")
    if fail_on is not None:
        stops = parse_fail_on(fail_on)
    else:
        stops = frozenset({FailOn.SLOWER} if limits or ledger is not None else ())
    found = ledger or (DEFAULT_LEDGER if DEFAULT_LEDGER.is_dir() else None)
    return GateOptions(Policy(stops, tuple(map(parse_limit, limits))), found, summary, ledger is not None)


def apply_gate(
    judgements: Sequence[CaseJudgement],
    counted: Mapping[CaseId, CountedCase],
    options: GateOptions,
    *,
    missing: Sequence[Case] = (),
    unmeasured: Sequence[Case] = (),
) -> GateResult:
    """What the gate says. `counted` are the counts of head, by suite and key of the case.

    `missing` are cases that only base has. Of `unmeasured`, base has results and head should have.
    """
    standings: dict[CaseId, LedgerStanding | StaleEntry] = {}
    entries = read_entries([one.case for one in judgements], options)
    if options.ledger_named and judgements and not entries:
        echo(f"Note: {options.ledger} has no entry for any of these cases: base counts for all of them.", err=True)
    for case, entry in entries.items():
        count = counted.get(identify(case))
        if count is not None and count.environment is not None:
            now = describe_dependencies(content_hash(case), count.tally, count.environment)
            standings[identify(case)] = hold_against(entry, case, now, count.tally, standardise)
    result = hold_gate(judgements, missing, standings, options.policy)
    return look_for_gaps(result, judgements, unmeasured, standings, options.policy)


def decide_exit_code(result: GateResult, *, ended: int = 0, refused: bool = False, all_failed: bool = False) -> int:
    """The code that a command ends with which compares, with or without a gate.

    Being stopped (`ended`) weighs most, then a regression, then what was refused, then what could not be compared.
    `all_failed` is for commands that measure: they fail without a gate too if every case did.
    """
    if ended or result.regressions:
        return ended or result.exit_code
    if refused:
        return REFUSED
    return result.exit_code or (INCOMPLETE if all_failed else 0)


def read_entries(cases: Sequence[Case], options: GateOptions) -> dict[Case, LedgerEntry]:
    """What the ledger has of these cases."""
    if options.ledger is None:
        return {}
    found = {case: read_entry(options.ledger, case) for case in cases}
    return {case: entry for case, entry in found.items() if entry is not None}


def append_summary(text: str, options: GateOptions) -> None:
    """Put a summary where it is wanted, behind what other steps have written there."""
    if options.summary is None:
        return
    try:
        with options.summary.open("a", encoding="utf-8", errors="replace") as file:
            file.write(text)
    except OSError as error:
        raise StoreError(f"Cannot write {options.summary}: {error.strerror}.") from error


def load_functions(
    store: Store, sides: tuple[StoredSide, StoredSide], contrast: Contrast, head: Run, gate: GateOptions
) -> tuple[Contrast, dict[CaseId, CountedCase]]:
    """The contrast with explanations, and head's counts: with functions where they are not what the ledger accepts."""
    counts = choose_counts(head, sides[1].target)
    changed = [identify(one.case) for one in contrast.judgements if one.count is not None and one.count.delta]
    unlike = set(_find_unlike(contrast, counts, gate))
    for batch in split(dict.fromkeys([*changed, *unlike])):
        ours, theirs = (_load_counts(store, side, batch) for side in sides)
        contrast = explain_changes(contrast, _tallies(ours), _tallies(theirs), standardise)
        counts |= {key: counted for key, counted in theirs.items() if key in unlike}
    return contrast, counts


def _load_counts(store: Store, side: StoredSide, keys: frozenset[CaseId]) -> dict[CaseId, CountedCase]:
    run = store.load(side.info.id, profiles=True, select=lambda case: identify(case) in keys)
    return choose_counts(run, side.target)


def _find_unlike(contrast: Contrast, counts: Mapping[CaseId, CountedCase], gate: GateOptions) -> Iterator[CaseId]:
    """Cases whose count is another than the accepted one."""
    for case, entry in read_entries([one.case for one in contrast.judgements], gate).items():
        key = identify(case)
        if key in counts and counts[key].tally.total != entry.total:
            yield key


def _tallies(counts: Mapping[CaseId, CountedCase]) -> dict[CaseId, Tally]:
    return {key: counted.tally for key, counted in counts.items()}
