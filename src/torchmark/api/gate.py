"""The gate of comparisons: what was asked of it, the ledger it holds counts against, and exit codes."""

from __future__ import annotations

import dataclasses
import shlex
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from torchmark.analysis.gate import describe_dependencies, hold_against, hold_gate, look_for_gaps, make_entry
from torchmark.analysis.verdict.stored import CaseId, CountedCase, identify
from torchmark.callgrind.profiles import standardise
from torchmark.errors import ExitCode, UsageError
from torchmark.model.gate import GateResult, LedgerEntry, LedgerStanding, Policy, StaleEntry
from torchmark.model.judgement import CaseJudgement
from torchmark.model.plan import Case
from torchmark.report.text.names import name_case
from torchmark.store.ledger import read_entry, write_entry
from torchmark.store.plain import content_hash

DEFAULT_LEDGER = Path("torchmark-ledger")


@dataclasses.dataclass(frozen=True)
class GateOptions:
    """What stops, which counts are accepted, and where a summary goes."""

    policy: Policy
    ledger: Path | None = None
    """None where there is none."""
    summary: Path | None = None
    ledger_named: bool = False
    """Whether the user named it."""


def apply_gate(
    judgements: Sequence[CaseJudgement],
    counted: Mapping[CaseId, CountedCase],
    options: GateOptions,
    tell: Callable[[str], None],
    *,
    missing: Sequence[Case] = (),
    unmeasured: Sequence[Case] = (),
) -> GateResult:
    """What the gate says. `counted` are the counts of head, by suite and key of the case.

    `tell` hears what the user should know besides. `missing` are cases that only base has. Of `unmeasured`, base has
    results and head should have.
    """
    standings: dict[CaseId, LedgerStanding | StaleEntry] = {}
    entries = read_entries([one.case for one in judgements], options)
    if options.ledger_named and judgements and not entries:
        tell(f"Note: {options.ledger} has no entry for any of these cases: base counts for all of them.")
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
        return ExitCode.REFUSED
    return result.exit_code or (ExitCode.FAILED if all_failed else 0)


def read_entries(cases: Sequence[Case], options: GateOptions) -> dict[Case, LedgerEntry]:
    """What the ledger has of these cases."""
    if options.ledger is None:
        return {}
    return {case: entry for case in cases if (entry := read_entry(options.ledger, case)) is not None}


def accept_count(ledger: Path, case: Case, counted: CountedCase, why: str) -> Path:
    """Put a count into the ledger, with the reason. Returns the file."""
    if counted.environment is None:
        raise UsageError(f"{name_case(case)}: it is not known what this count was taken in. Count it again.")
    depends_on = describe_dependencies(content_hash(case), counted.tally, counted.environment)
    date = time.strftime("%Y-%m-%d", time.gmtime())
    return write_entry(ledger, case, make_entry(case, depends_on, counted.tally, standardise, why=why, date=date))


def format_accept(options: GateOptions, store: str, words: Sequence[str] = ()) -> str:
    """What follows the case in a command that accepts its count; `words` are options, quoted for a shell already."""
    ledger = [] if options.ledger in (None, DEFAULT_LEDGER) else ["--ledger", shlex.quote(str(options.ledger))]
    return "".join(f" {word}" for word in (*words, *ledger, *(["--store", shlex.quote(store)] if store else [])))
