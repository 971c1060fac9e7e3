"""What a gate says, in words: what stopped, what asks to be accepted, and which entries of the ledger are stale."""

from __future__ import annotations

import dataclasses
import shlex
from collections.abc import Iterator, Sequence
from typing import Any

from torchmark.model.case import Case
from torchmark.model.gate import FailOn, GateResult, Growth, Improvement, Limit, Regression, StaleEntry, Witness
from torchmark.report.changes import word_change
from torchmark.report.printable import count, printable
from torchmark.report.units import format_time
from torchmark.report.variants import name_case

# So many functions are named of what grew, and so many cases of what is alike.
MOST_FUNCTIONS = 3
MOST_CASES = 3

_OTHERWISE = {
    FailOn.UNDECIDED: "is undecided",
    FailOn.FAILED: "fails in head",
    FailOn.MISSING: "is missing in head",
    FailOn.SLOWER: "is slower",
}
_MISSING = {
    Witness.TIME: "none was timed on both sides",
    Witness.INSTRUCTIONS: "none was counted on both sides",
    Witness.ALLOCATIONS: "none was counted on both sides",
}
_UNITS = {Witness.INSTRUCTIONS: "instructions", Witness.ALLOCATIONS: "allocations"}


def tell_gate(result: GateResult, accept: str | None) -> list[str]:
    """A line for each of what there is to say, with commands to copy; `accept` is what those of the ledger end with.

    None is for counts that are not kept, and so cannot be accepted.
    """
    lines = []
    if result.regressions:
        lines.append(f"{count(len(result.regressions), 'regression')}:")
        lines += [f"  {word_regression(one)}" for one in result.regressions]
        meant = [one.case for one in result.regressions if one.witness is Witness.INSTRUCTIONS]
        lines += ["Where that is meant to be:", *_propose(meant, accept)] if meant and accept is not None else []
    if result.improvements:
        lines += [word_improvement(one) for one in result.improvements]
        improved = [one.case for one in result.improvements]
        lines += ["Let the ledger know:", *_propose(improved, accept)] if accept is not None else []
    if result.accepted:
        lines.append(f"More instructions than base, and as accepted: {_name_some(result.accepted)}.")
    return [*lines, *word_stale(result.stale), *word_gaps(result)]


def list_sentences(result: GateResult) -> list[str]:
    """The same without commands, for a page."""
    return [
        *(f"{word_regression(one)}." for one in result.regressions),
        *(f"{word_improvement(one)} It asks to be accepted." for one in result.improvements),
        *word_stale(result.stale),
        *word_gaps(result),
    ]


def plain_gate(result: GateResult) -> dict[str, Any]:
    """The same as plain values for JSON."""
    return {
        "exit_code": result.exit_code,
        "regressions": [_plain_regression(one) for one in result.regressions],
        "improvements": [
            {**plain_identity(one.case), "accepted": one.accepted, "head": one.head} for one in result.improvements
        ],
        "accepted": [plain_identity(case) for case in result.accepted],
        "stale": [
            {
                **plain_identity(one.case),
                "differences": [
                    {"what": what, "accepted": accepted, "now": now} for what, accepted, now in one.differences
                ],
            }
            for one in result.stale
        ],
        "nothing_compared": result.nothing_compared,
        "lost": [plain_identity(case) for case in result.lost],
        "idle_limits": [spell_limit(limit) for limit in result.idle_limits],
    }


def plain_identity(case: Case) -> dict[str, Any]:
    """What a case is known by."""
    return {"case": name_case(case), "key": case.key, "suite": case.suite}


def spell_limit(limit: Limit) -> str:
    """As on the command line.

    >>> spell_limit(Limit(Witness.TIME, share=0.02, pattern="nn/*")), spell_limit(Limit(Witness.INSTRUCTIONS))
    ('time:2%@nn/*', 'Ir:0')
    """
    size = f"{limit.amount:.15g}" if limit.share is None else f"{limit.share * 100:.12g}%"
    return f"{limit.witness.value}:{size}" + (f"@{limit.pattern}" if limit.pattern else "")


def word_regression(regression: Regression) -> str:
    """One line: how much more, than what, and where."""
    name, base, head = name_case(regression.case), regression.base, regression.head
    if regression.witness is None or base is None or head is None:
        return f"{name} {_OTHERWISE[regression.reason]}{_word_functions(regression.functions)}"
    share = f" ({word_change((head - base) / base)})" if base else ""
    than = "than accepted" if regression.accepted else "than base"
    if regression.witness is Witness.TIME:
        text = f"{name} takes {format_time(head - base)}{share} more {than}"
    else:
        text = f"{name} takes {_number(head - base)} {_UNITS[regression.witness]}{share} more {than}"
    text += f", limit {spell_limit(regression.limit)}" if regression.limit is not None else ""
    return text + _word_functions(regression.functions)


def word_improvement(improvement: Improvement) -> str:
    """One line."""
    less = improvement.accepted - improvement.head
    return f"{name_case(improvement.case)} takes {_number(less)} instructions less than accepted."


def word_stale(stale: Sequence[StaleEntry]) -> list[str]:
    """A line for all entries that are stale for the same reason."""
    groups: dict[tuple[tuple[str, str, str], ...], list[Case]] = {}
    for entry in stale:
        # Every definition has a hash of its own, which tells nobody anything.
        reasons = tuple(("definition", "", "") if one[0] == "definition" else one for one in entry.differences)
        groups.setdefault(reasons, []).append(entry.case)
    return [
        f"The ledger says nothing of {_name_some(cases)}: {', '.join(_word_difference(*one) for one in reasons)}."
        for reasons, cases in groups.items()
    ]


def word_gaps(result: GateResult) -> list[str]:
    """A line for each way in which less was compared than was asked for."""
    lines = ["Nothing was compared: no case has results on both sides."] if result.nothing_compared else []
    if result.lost:
        lines.append(f"Not all of {_name_some(result.lost)} was compared: head failed there, or was not measured.")
    lines += [
        f"No case could be held to the limit {spell_limit(one)}: {_MISSING[one.witness]}." for one in result.idle_limits
    ]
    return lines


def _word_difference(what: str, accepted: str, now: str) -> str:
    if what == "definition":
        return "it is defined otherwise now"
    return printable(f"{what.replace('_', ' ')} was {accepted} and is {now}")


def _name_some(cases: Sequence[Case]) -> str:
    return "; ".join(map(name_case, cases)) if len(cases) <= MOST_CASES else count(len(cases), "case")


def _word_functions(functions: Sequence[Growth]) -> str:
    if not functions:
        return ""
    named = ", ".join(f"{printable(one.function)} +{_number(one.delta)}" for one in functions[:MOST_FUNCTIONS])
    more = f" and {len(functions) - MOST_FUNCTIONS} more" if len(functions) > MOST_FUNCTIONS else ""
    return f": {named}{more}"


def _number(value: float) -> str:
    """Whole where it is.

    >>> _number(1250.0), _number(0.25)
    ('1,250', '0.25')
    """
    return f"{value:,.2f}".rstrip("0").rstrip(".")


def _propose(cases: Sequence[Case], accept: str) -> Iterator[str]:
    for case in dict.fromkeys(cases):
        yield f"  torchmark accept {shlex.quote(name_case(case))}{accept} --why '…'"


def _plain_regression(regression: Regression) -> dict[str, Any]:
    return {
        **plain_identity(regression.case),
        "reason": regression.reason.value,
        "witness": None if regression.witness is None else regression.witness.value,
        "base": regression.base,
        "head": regression.head,
        "limit": None if regression.limit is None else spell_limit(regression.limit),
        "accepted": regression.accepted,
        "functions": [dataclasses.asdict(one) for one in regression.functions],
    }
