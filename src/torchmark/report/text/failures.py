"""Failures and faults of definitions as text, in the words of the user's own code."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from torchmark.model.outcome import Failure, FailureKind
from torchmark.model.plan import Fault, Metric, Plan
from torchmark.model.run import CaseSummary
from torchmark.report.text.names import Variants, name_case, name_target
from torchmark.report.text.terminal import count, cut, format_lines, group, measure, one_line, printable, wrap


def describe_failure(failure: Failure) -> str:
    """What the traceback or the compiler tells, or else what happened; then the end of what went to standard error."""
    lines = [(failure.traceback or failure.message).rstrip()]
    # A traceback ends with what was raised, and a compiler says it all. What else led to it may be said nowhere else.
    if failure.message.rstrip() not in lines[0] and failure.kind is not FailureKind.NOT_COMPILED:
        lines.insert(0, failure.message.rstrip())
    said = failure.stderr.strip()
    if said and failure.traceback is None:
        lines += ["Its last words on standard error:", *(f"  {line}" for line in said.splitlines())]
    return "\n".join(lines)


def summarise_failure(failure: Failure) -> str:
    """What happened, on one line.

    >>> summarise_failure(Failure(FailureKind.RAISED, "It fails when run once.", "Traceback\\n...\\nNameError: x"))
    'It fails when run once. NameError: x'
    >>> summarise_failure(Failure(FailureKind.RAISED, 'File "<stmt>", line 1\\n  f(\\nSyntaxError: never closed'))
    'SyntaxError: never closed'
    """
    lines = [line.strip() for line in failure.message.splitlines() if line.strip()]
    # A syntax error begins with the place and ends with what is wrong there.
    message = "" if not lines else lines[-1] if lines[0].startswith('File "') else lines[0]
    raised = [line.strip() for line in (failure.traceback or "").splitlines() if line.strip()]
    # A traceback ends with what was raised; what a compiler says does not end with the error.
    if raised and failure.kind is not FailureKind.NOT_COMPILED and raised[-1] not in failure.message:
        message = f"{message} {raised[-1]}".strip()
    return message or failure.kind.value.replace("_", " ")


def list_hints(failures: Iterable[Failure]) -> list[str]:
    """What to do about failures of statements on the command line, each advice once.

    >>> list_hints([Failure(FailureKind.RAISED, "NameError: name 'x' is not defined")])
    ['Define the name with --setup, such as --setup "x = torch.ones(4)".']
    """
    hints = []
    for failure in failures:
        missing = re.search(r"^NameError: name '(\w+)' is not defined", describe_failure(failure), re.MULTILINE)
        if failure.kind is FailureKind.TIMED_OUT:
            hints.append("Give it more time with --timeout SECONDS.")
        elif missing:
            hints.append(f'Define the name with --setup, such as --setup "{missing[1]} = torch.ones(4)".')
    return list(dict.fromkeys(hints))


def describe_statements(failures: Mapping[str, Failure], *, with_names: bool) -> list[str]:
    """What went wrong with statements, then what to do. A broken setup fails them all in the same way: told once."""
    groups = group((describe_failure(failure), stmt) for stmt, failure in failures.items())
    heads = {
        text: f"Failed: {', '.join(map(one_line, stmts))}\n" if with_names else "" for text, stmts in groups.items()
    }
    return [head + text for text, head in heads.items()] + list_hints(failures.values())


VERBS = {Metric.WALL: "timing", Metric.COUNT: "counting"}


def list_failures(summaries: Sequence[CaseSummary], plan: Plan, width: int) -> list[str]:
    """A heading and a line for each case that failed, in the order of the plan; nothing where none did."""
    failed = [summary for summary in summaries if summary.failures]
    if not failed:
        return []
    variants = Variants(summary.case for summary in summaries)
    lines = [f"{count(len(failed), 'case')} failed:"]
    for summary in failed:
        where = f" ({name_target(summary.target)})" if len(plan.targets) > 1 else ""
        texts = join_reason(variants.name(summary.case) + where, describe_failures(summary, plan), width - 2)
        lines += ["  " + text for text in texts]
    return lines


def join_reason(name: str, reason: str, width: int) -> list[str]:
    """Both on a line, of which the name takes half at most; a longer name stands above its reason, whole."""
    line = f"{name}: {reason}"
    if measure(name) <= width // 2 or measure(line) <= width:
        return [cut(line, width)]
    return [*wrap(f"{name}:", width), cut(f"  {reason}", width)]


def describe_failures(summary: CaseSummary, plan: Plan) -> str:
    """Why, and when where not everything failed in the same way."""
    reasons = group((format_failure(failure), metric) for metric, failure in summary.failures)
    if len(reasons) == 1 and len(plan.sampling.metrics) == len(next(iter(reasons.values()))):
        return next(iter(reasons))
    return "; ".join(f"{' and '.join(VERBS[m] for m in metrics)}: {text}" for text, metrics in reasons.items())


def format_failure(failure: Failure) -> str:
    return printable(summarise_failure(failure))


def render_failures(summaries: Sequence[CaseSummary], plan: Plan) -> str:
    """All that is known of each failure, once for all that failed in the same way; empty where nothing did."""
    names = group(
        (format_lines(describe_failure(failure)), f"Failed: {VERBS[metric]} {name_case(summary.case)}{where}")
        for summary in summaries
        for where in [f" ({name_target(summary.target)})" if len(plan.targets) > 1 else ""]
        for metric, failure in summary.failures
    )
    return "\n\n".join("\n".join([*whose, text]) for text, whose in names.items())


def describe_fault(fault: Fault) -> str:
    """Where, what, and what to try.

    >>> print(describe_fault(Fault("bench_a.py", ("nn", "add"), "Expected a name\\n  f(1)\\n    ^", "Try x.", line=3)))
    bench_a.py:3: nn / add
      Expected a name
        f(1)
          ^
      Try x.
    """
    place = fault.file if fault.line is None else f"{fault.file}:{fault.line}"
    lines = (f"  {line}" for line in (*fault.message.splitlines(), *(fault.advice or "").splitlines()))
    return "\n".join([f"{place}: {' / '.join(fault.label)}" if fault.label else place, *lines])


# Statements that fail on so many inputs from the first on, all in the same way, will fail on the others too.
HOPELESS = 10
# The numbers of so many inputs that failed are told.
NUMBERS_SHOWN = 8
# So many kinds of failures are told, the most frequent ones: each may be as long as a traceback.
KINDS_SHOWN = 5

# Also several of them, as in a size.
_NUMBERS = re.compile(r"-?\d[\d.]*(, ?-?\d[\d.]*)*,?")
_FIRST_PLACE = re.compile(r'File "(<[^"]*>)"')


def sort_of(failure: Failure) -> tuple[str, str, str]:
    """What is the same for failures of the same sort: messages often have sizes of the input in them.

    >>> from torchmark.model.outcome import FailureKind
    >>> sort_of(Failure(FailureKind.RAISED, "ValueError: no [3, 4]")) == sort_of(Failure(FailureKind.RAISED,
    ... "ValueError: no [12]"))
    True
    """
    place = _FIRST_PLACE.search(failure.traceback or "")
    return failure.kind.value, place[1] if place else "", _NUMBERS.sub("0", summarise_failure(failure))


def is_hopeless(failures: Sequence[Failure], tried: int, total: int) -> bool:
    """Whether all that were tried failed, with the same words, and are enough to give up.

    Words that differ in a number depend on the input, so others may succeed.
    """
    return len(failures) >= max(min(HOPELESS, total), tried) and len({(one.kind, one.message) for one in failures}) == 1


def describe_input_failures(failures: Sequence[tuple[int, Failure]], tried: int, total: int) -> list[str]:
    """Each sort once, with the numbers of the inputs it went wrong on."""
    lines: list[str] = []
    by_sort = group((sort_of(failure), (index, describe_failure(failure))) for index, failure in failures)
    sorts = sorted(by_sort.values(), key=len, reverse=True)
    for alike in sorts[:KINDS_SHOWN]:
        numbers = ", ".join(str(index) for index, _ in alike[:NUMBERS_SHOWN])
        more = ", ..." if len(alike) > NUMBERS_SHOWN else ""
        same = "" if len({text for _, text in alike}) == 1 else ", the first of them so"
        lines += [f"Failed on {count(len(alike), 'input')} ({numbers}{more}){same}:", alike[0][1]]
    if len(sorts) > KINDS_SHOWN:
        hidden = sum(map(len, sorts[KINDS_SHOWN:]))
        lines.append(f"Failed in other ways: {count(hidden, 'input')}. With --json, all are written.")
    if tried < total and is_hopeless([failure for _, failure in failures], tried, total):
        lines.append(f"The other {total - tried} were not tried: the first {tried} all failed in the same way.")
    return lines
