"""The gate's result in words, what surrounds a comparison of stored runs, and a summary for GitHub's pages."""

from __future__ import annotations

import dataclasses
import shlex
from collections.abc import Iterator, Sequence
from typing import Any

from torchmark.analysis.verdict.stored import Contrast
from torchmark.model.case import Case
from torchmark.model.comparison import Incomparable
from torchmark.model.gate import FailOn, GateResult, Growth, Improvement, Limit, Regression, StaleEntry, Witness
from torchmark.model.judgement import CaseJudgement, Verdict
from torchmark.report.as_json import plain_judgement
from torchmark.report.caveats import explain_doubts, word_doubt
from torchmark.report.text.counts import render_explanation
from torchmark.report.text.grid import escape_markdown, markdown_row
from torchmark.report.text.judgements import MARKS, JudgementRow, close, find_columns, make_rows, order_judgements
from torchmark.report.text.names import name_case
from torchmark.report.text.terminal import count, cut, cut_middle, printable, wrap
from torchmark.report.text.units import format_time, word_change
from torchmark.report.text.verdict_reasons import explain_cause

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


# More are counted, and not named.
MOST_NAMES = 20


def list_obstacles(contrast: Contrast) -> list[str]:
    """A sentence for each reason not to compare, with the case that it is of unless it is of all."""
    lines = [word_doubt(obstacle) for obstacle in contrast.obstacles]
    for case, obstacles in contrast.case_obstacles:
        lines += [f"{name_case(case)}: {word_doubt(obstacle)}" for obstacle in obstacles]
    return lines


def tell_refusal(contrast: Contrast, width: int) -> str:
    """Why some or all cases are not compared, and what to do about it."""
    cases = count(len(contrast.case_obstacles), "case")
    what = "These runs are" if contrast.obstacles else f"{cases} {'is' if len(contrast.case_obstacles) == 1 else 'are'}"
    lines = wrap(f"{what} not comparable:", width)
    found = list_obstacles(contrast)
    for text in found[:MOST_NAMES]:
        lines += ["  " + line for line in wrap(text, width - 2, 2)]
    if len(found) > MOST_NAMES:
        lines.append(f"  and {len(found) - MOST_NAMES} more")
    return "\n".join([*lines, *wrap("--force compares them all the same, and keeps the caveat.", width)])


def tell_unpaired(contrast: Contrast, base: str, head: str, width: int) -> str:
    """The cases that only one side has; empty where there are none."""
    return "\n".join(
        [*_name(contrast.missing, f"Only in {base}", width), *_name(contrast.new, f"Only in {head}", width)]
    )


def _name(cases: Sequence[Case], title: str, width: int) -> Iterator[str]:
    if not cases:
        return
    yield f"{title}: {count(len(cases), 'case')}"
    for case in cases[:MOST_NAMES]:
        yield from ("  " + line for line in wrap(name_case(case), width - 2, 2))
    if len(cases) > MOST_NAMES:
        yield f"  and {len(cases) - MOST_NAMES} more"


def explain_judgements(judgements: Sequence[CaseJudgement], width: int) -> str:
    """Where the instructions of these come from or go to, one below the other."""
    return "\n\n".join(
        f"{name_case(one.case)}\n{render_explanation(one.explanation, width)}"
        for one in judgements
        if one.explanation is not None
    )


def plain_contrast(contrast: Contrast, *, forced: bool) -> dict[str, Any]:
    """All of it as plain values for JSON."""
    return {
        "forced": forced,
        "obstacles": [_plain_obstacle(one) for one in contrast.obstacles],
        "case_obstacles": [
            {**plain_identity(case), "obstacles": [_plain_obstacle(one) for one in obstacles]}
            for case, obstacles in contrast.case_obstacles
        ],
        "judgements": [plain_judgement(one) for one in contrast.judgements],
        "missing": [plain_identity(case) for case in contrast.missing],
        "new": [plain_identity(case) for case in contrast.new],
    }


def _plain_obstacle(obstacle: Incomparable) -> dict[str, str]:
    return {"what": obstacle.what, "base": obstacle.base, "head": obstacle.head, "text": word_doubt(obstacle)}


# GitHub takes a mebibyte. Escaping makes a character five bytes at most, so that four tables of so many rows, each with
# a name and a sentence of these lengths, take less than 0.8 of it.
MOST_ROWS = 100
LONGEST_NAME = 120
LONGEST_SENTENCE = 240
CHANGED = (Verdict.SLOWER, Verdict.FASTER)
# What is there to be unfolded, in this order.
FOLDED = {Verdict.FAILED: "failed", Verdict.UNDECIDED: "undecided", Verdict.SAME: "the same"}


def summarise_markdown(
    judgements: Sequence[CaseJudgement],
    *,
    title: str,
    gate: Sequence[str] = (),
    base: str = "base",
    head: str = "head",
) -> str:
    """A headline, what the gate says, how many cases are what, tables of them, and what is to be doubted.

    `gate` has a sentence for each regression and each request to accept a count.
    """
    rows = make_rows(order_judgements(judgements), judgements)
    parts = [f"## {_quote(title)}", _quote(close(judgements))]
    parts.append("\n".join(f"- {_quote(text)}" for text in gate[:MOST_ROWS]) + _tell_rest(len(gate)))
    changed = [row for row in rows if row.judgement.verdict in CHANGED]
    if changed:
        parts.append(f"Changes are of {_quote(head)} against {_quote(base)}, for one run.")
        parts.append(_render_table(changed))
    for verdict, words in FOLDED.items():
        found = [row for row in rows if row.judgement.verdict is verdict]
        if found:
            parts.append(f"<details><summary>{len(found)} {words}</summary>\n\n{_render_table(found)}\n\n</details>")
    doubts = [f"- {f'`{mark}` ' if mark else ''}{_quote(text)}" for mark, text in explain_doubts(judgements)]
    parts.append("\n".join(doubts))
    return "\n\n".join(filter(None, parts)) + "\n"


def _render_table(rows: Sequence[JudgementRow]) -> str:
    """The rows with those columns that have something to say, and a sentence on each."""
    columns = [column for column in find_columns(rows) if column != "why"]
    heads = ["verdict", "case", *columns, "why"]
    sides = ["---", "---", *("---" if column == MARKS else "---:" for column in columns), "---"]
    lines = [markdown_row(heads), markdown_row(sides)]
    for row in rows[:MOST_ROWS]:
        name = escape_markdown(cut_middle(row.name, LONGEST_NAME))
        why = _quote(explain_cause(row.judgement))
        lines.append(markdown_row([row.judgement.verdict.value, name, *(row.cells[column] for column in columns), why]))
    return "\n".join(lines) + _tell_rest(len(rows))


def _quote(text: str) -> str:
    return escape_markdown(printable(cut(text, LONGEST_SENTENCE)))


def _tell_rest(number: int) -> str:
    return f"\n\n{number - MOST_ROWS} more are not shown." if number > MOST_ROWS else ""
