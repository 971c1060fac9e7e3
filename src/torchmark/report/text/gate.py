"""The gate's result in words, what surrounds a comparison of stored runs, and a summary for GitHub's pages."""

from __future__ import annotations

import itertools
import shlex
from collections.abc import Callable, Iterator, Sequence

from torchmark.analysis.verdict.judge import is_instruction_change
from torchmark.analysis.verdict.stored import Contrast
from torchmark.model.gate import FailOn, GateResult, Growth, Improvement, Limit, Quantity, Regression, StaleEntry
from torchmark.model.judgement import CaseJudgement, Verdict
from torchmark.model.plan import Case
from torchmark.report.caveats import describe_caveat, explain_doubts
from torchmark.report.text.counts import render_explanation
from torchmark.report.text.failures import list_hints
from torchmark.report.text.grid import escape_markdown, markdown_row
from torchmark.report.text.judgements import (
    MARKS,
    JudgementRow,
    close,
    describe_judgement,
    find_columns,
    make_rows,
    order_judgements,
    render_judgements,
    render_side_failures,
)
from torchmark.report.text.names import name_case
from torchmark.report.text.terminal import count, cut, cut_middle, group, printable, wrap
from torchmark.report.text.units import format_change, format_time
from torchmark.report.text.verdict_reasons import explain_cause

# So many functions are named of what grew, and so many cases of what is alike.
MOST_FUNCTIONS = 3
MOST_CASES = 3
# So many changes are explained by function without being asked for.
MOST_EXPLAINED = 5
CHANGED = (Verdict.SLOWER, Verdict.FASTER)

_OTHERWISE = {
    FailOn.UNDECIDED: "is undecided",
    FailOn.FAILED: "fails in head",
    FailOn.MISSING: "is missing in head",
    FailOn.SLOWER: "is slower",
}
_MISSING = {
    Quantity.TIME: "none was timed on both sides",
    Quantity.INSTRUCTIONS: "none was counted on both sides",
    Quantity.ALLOCATIONS: "none was counted on both sides",
}
_UNITS = {Quantity.INSTRUCTIONS: "instructions", Quantity.ALLOCATIONS: "allocations"}


def describe_gate(result: GateResult, accept: str | None) -> list[str]:
    """A line for each of what there is to say, with commands to copy; `accept` is what those of the ledger end with.

    None is for counts that are not kept, and so cannot be accepted.
    """
    lines = []
    if result.regressions:
        lines.append(f"{count(len(result.regressions), 'regression')}:")
        lines += [f"  {describe_regression(one)}" for one in result.regressions]
        meant = [one.case for one in result.regressions if one.quantity is Quantity.INSTRUCTIONS]
        lines += ["Where that is meant to be:", *_propose(meant, accept)] if meant and accept is not None else []
    if result.improvements:
        lines += [describe_improvement(one) for one in result.improvements]
        improved = [one.case for one in result.improvements]
        lines += ["Let the ledger know:", *_propose(improved, accept)] if accept is not None else []
    if result.accepted:
        lines.append(f"More instructions than base, and as accepted: {_name_some(result.accepted)}.")
    return [*lines, *describe_stale(result.stale), *describe_gaps(result)]


def list_sentences(result: GateResult) -> list[str]:
    """The same without commands, for a page."""
    return [
        *(f"{describe_regression(one)}." for one in result.regressions),
        *(f"{describe_improvement(one)} It asks to be accepted." for one in result.improvements),
        *describe_stale(result.stale),
        *describe_gaps(result),
    ]


def format_limit(limit: Limit) -> str:
    """As on the command line.

    >>> format_limit(Limit(Quantity.TIME, share=0.02, pattern="nn/*")), format_limit(Limit(Quantity.INSTRUCTIONS))
    ('time:2%@nn/*', 'Ir:0')
    """
    size = f"{limit.amount:.15g}" if limit.share is None else f"{limit.share * 100:.12g}%"
    return f"{limit.quantity.value}:{size}" + (f"@{limit.pattern}" if limit.pattern else "")


def describe_regression(regression: Regression) -> str:
    name, quantity, base, head = name_case(regression.case), regression.quantity, regression.base, regression.head
    if quantity is None or base is None or head is None:
        return f"{name} {_OTHERWISE[regression.reason]}{_describe_functions(regression.functions)}"
    share = f" ({format_change((head - base) / base)})" if base else ""
    than = "than accepted" if regression.accepted else "than base"
    more = format_time(head - base) if quantity is Quantity.TIME else f"{_number(head - base)} {_UNITS[quantity]}"
    limit = f", limit {format_limit(regression.limit)}" if regression.limit is not None else ""
    return f"{name} takes {more}{share} more {than}{limit}{_describe_functions(regression.functions)}"


def describe_improvement(improvement: Improvement) -> str:
    less = improvement.accepted - improvement.head
    return f"{name_case(improvement.case)} takes {_number(less)} instructions less than accepted."


def describe_stale(stale: Sequence[StaleEntry]) -> list[str]:
    # Every definition has a hash of its own, which tells nobody anything.
    groups = group(
        (
            tuple((what, "", "") if what == "definition" else (what, *sides) for what, *sides in one.differences),
            one.case,
        )
        for one in stale
    )
    return [
        f"The ledger says nothing of {_name_some(cases)}: {', '.join(_describe_difference(*one) for one in reasons)}."
        for reasons, cases in groups.items()
    ]


def describe_gaps(result: GateResult) -> list[str]:
    """A line for each way in which less was compared than was asked for."""
    lines = ["Nothing was compared: no case has results on both sides."] if result.nothing_compared else []
    if result.lost:
        lines.append(f"Not all of {_name_some(result.lost)} was compared: head failed there, or was not measured.")
    lines += [
        f"No case could be held to the limit {format_limit(one)}: {_MISSING[one.quantity]}."
        for one in result.idle_limits
    ]
    return lines


def _describe_difference(what: str, accepted: str, now: str) -> str:
    if what == "definition":
        return "it is defined otherwise now"
    return printable(f"{what.replace('_', ' ')} was {accepted} and is {now}")


def _name_some(cases: Sequence[Case]) -> str:
    return "; ".join(map(name_case, cases)) if len(cases) <= MOST_CASES else count(len(cases), "case")


def _describe_functions(functions: Sequence[Growth]) -> str:
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


# More are counted, and not named.
MOST_NAMES = 20


def list_obstacles(contrast: Contrast) -> list[str]:
    """A sentence for each reason not to compare, with the case that it is of unless it is of all."""
    lines = [describe_caveat(obstacle) for obstacle in contrast.obstacles]
    for case, obstacles in contrast.case_obstacles:
        lines += [f"{name_case(case)}: {describe_caveat(obstacle)}" for obstacle in obstacles]
    return lines


def describe_refusal(contrast: Contrast, width: int) -> str:
    cases = count(len(contrast.case_obstacles), "case")
    what = "These runs are" if contrast.obstacles else f"{cases} {'is' if len(contrast.case_obstacles) == 1 else 'are'}"
    lines = [*wrap(f"{what} not comparable:", width), *_list_some(list_obstacles(contrast), width)]
    return "\n".join([*lines, *wrap("--force compares them all the same, and keeps the caveat.", width)])


def describe_unpaired(contrast: Contrast, base: str, head: str, width: int) -> str:
    lines = []
    for side, cases in ((base, contrast.missing), (head, contrast.new)):
        if cases:
            lines += [f"Only in {side}: {count(len(cases), 'case')}", *_list_some([*map(name_case, cases)], width)]
    return "\n".join(lines)


def _list_some(texts: Sequence[str], width: int) -> Iterator[str]:
    for text in texts[:MOST_NAMES]:
        yield from wrap(f"  {text}", width, 4)
    if len(texts) > MOST_NAMES:
        yield f"  and {len(texts) - MOST_NAMES} more"


def explain_judgements(judgements: Sequence[CaseJudgement], width: int) -> str:
    return "\n\n".join(
        f"{name_case(one.case)}\n{render_explanation(one.explanation, width)}"
        for one in judgements
        if one.explanation is not None
    )


def render_comparison(
    judgements: Sequence[CaseJudgement],
    result: GateResult,
    width: int,
    *,
    colour: bool = False,
    all_cases: bool = False,
    explaining: bool = True,
    accept: str | None = None,
) -> str:
    """A comparison that was just made; `accept` is as for `describe_gate`."""
    if len(judgements) == 1:
        texts = [describe_judgement(judgements[0], width)]
    else:
        texts = [render_judgements(judgements, width, colour=colour, all_cases=all_cases)]
    changed = _choose_explained(judgements, result, lambda one: one.verdict in CHANGED)
    texts += [explain_judgements(changed, width)] if explaining else []
    failures = (failed.failure for one in judgements if not one.case.suite for failed in one.failures)
    texts += [render_side_failures(judgements, width), *list_hints(failures), "\n".join(describe_gate(result, accept))]
    return "\n\n".join(filter(None, texts))


def render_contrast(
    contrast: Contrast,
    result: GateResult,
    names: tuple[str, str],
    width: int,
    *,
    colour: bool = False,
    all_cases: bool = False,
    explained: Callable[[Case], bool] | None = None,
    accept: str | None = None,
) -> str:
    """Two stored runs against each other. The cases `explained` are explained by function.

    Without it, these are the cases whose instructions changed most, and those that stopped at the gate.
    """
    base, head = names
    texts = [render_judgements(contrast.judgements, width, colour=colour, base=base, head=head, all_cases=all_cases)]
    if explained is not None:
        found = [one for one in order_judgements(contrast.judgements) if explained(one.case)]
    else:
        found = _choose_explained(
            contrast.judgements, result, lambda one: one.count is not None and bool(is_instruction_change(one.count))
        )
    texts += [explain_judgements(found, width), describe_unpaired(contrast, base, head, width)]
    texts.append("\n".join(describe_gate(result, accept)))
    return "\n\n".join(filter(None, texts))


def _choose_explained(
    judgements: Sequence[CaseJudgement], result: GateResult, is_changed: Callable[[CaseJudgement], bool]
) -> list[CaseJudgement]:
    stopped = {one.case for one in result.regressions}
    found = (one for one in order_judgements(judgements) if one.explanation is not None)
    return list(itertools.islice((one for one in found if one.case in stopped or is_changed(one)), MOST_EXPLAINED))


# GitHub takes a mebibyte. Escaping makes a character five bytes at most, so that four tables of so many rows, each with
# a name and a sentence of these lengths, take less than 0.8 of it.
MOST_ROWS = 100
LONGEST_NAME = 120
LONGEST_SENTENCE = 240
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
    parts.append("\n".join(f"- {_quote(text)}" for text in gate[:MOST_ROWS]) + _describe_rest(len(gate)))
    changed = [row for row in rows if row.judgement.verdict in CHANGED]
    if changed:
        parts += [f"Changes are of {_quote(head)} against {_quote(base)}, for one run.", _render_table(changed)]
    for verdict, words in FOLDED.items():
        if found := [row for row in rows if row.judgement.verdict is verdict]:
            parts.append(f"<details><summary>{len(found)} {words}</summary>\n\n{_render_table(found)}\n\n</details>")
    doubts = [f"- {f'`{mark}` ' if mark else ''}{_quote(text)}" for mark, text in explain_doubts(judgements)]
    parts.append("\n".join(doubts))
    return "\n\n".join(filter(None, parts)) + "\n"


def summarise_contrast(contrast: Contrast, result: GateResult, names: tuple[str, str], *, forced: bool) -> str:
    """The same of two stored runs, with what keeps cases from being compared."""
    base, head = names
    obstacles = [] if forced else [f"Not compared: {text}" for text in list_obstacles(contrast)]
    sentences = [*obstacles, *list_sentences(result)]
    return summarise_markdown(contrast.judgements, title=f"{head} against {base}", gate=sentences, base=base, head=head)


def _render_table(rows: Sequence[JudgementRow]) -> str:
    columns = [column for column in find_columns(rows) if column != "why"]
    sides = ["---", "---", *("---" if column == MARKS else "---:" for column in columns), "---"]
    lines = [markdown_row(["verdict", "case", *columns, "why"]), markdown_row(sides)]
    for row in rows[:MOST_ROWS]:
        name = escape_markdown(cut_middle(row.name, LONGEST_NAME))
        why = _quote(explain_cause(row.judgement))
        lines.append(markdown_row([row.judgement.verdict.value, name, *(row.cells[column] for column in columns), why]))
    return "\n".join(lines) + _describe_rest(len(rows))


def _quote(text: str) -> str:
    return escape_markdown(printable(cut(text, LONGEST_SENTENCE)))


def _describe_rest(number: int) -> str:
    return f"\n\n{number - MOST_ROWS} more are not shown." if number > MOST_ROWS else ""
