"""All that is known of one judgement, as names and sentences, for a terminal and for a page."""

from __future__ import annotations

from torchmark.model.judgement import CountEvidence, Judgement, Spread, TimeEvidence, Verdict
from torchmark.report.causes import explain_cause, say_failures
from torchmark.report.changes import (
    explain_level,
    find_seconds,
    has_interval,
    show_allocation_delta,
    show_delta,
    show_seconds,
    to_share,
    word_change,
    word_interval,
    word_level,
)
from torchmark.report.comparison_wording import word_doubt
from torchmark.report.planning import format_duration
from torchmark.report.printable import count, one_line, printable
from torchmark.report.units import format_time, show_allocations
from torchmark.report.wording import Face

_WORDS = {Verdict.SAME: "the same", Verdict.UNDECIDED: "undecided", Verdict.FAILED: "failed"}


def say_verdict(judgement: Judgement) -> str:
    """The verdict in a few words, with the number that it is about.

    >>> from torchmark.model.case import AutogradMode, AutoLabels, Case, RuntimeMode, TimerArgs
    >>> from torchmark.model.judgement import Cause
    >>> from torchmark.model.task import Language
    >>> case = Case(("add",), AutoLabels(RuntimeMode.EAGER, AutogradMode.FORWARD, Language.PYTHON), TimerArgs("x + 1"))
    >>> time = TimeEvidence(Verdict.SLOWER, 0.02, 0.015, 0.025, 0.99, 1e-6, 1.02e-6, 0.003, 0.01)
    >>> say_verdict(Judgement(case, Verdict.SLOWER, Cause.TIME_ALONE, time))
    'slower, +2.0 %'
    """
    if judgement.verdict is Verdict.FAILED and judgement.failures:
        sides = dict.fromkeys(failed.side.value for failed in judgement.failures)
        return f"failed on {' and '.join(sides)}"
    if judgement.verdict in _WORDS:
        return _WORDS[judgement.verdict]
    return f"{judgement.verdict.value}, {say_change(judgement)}"


def say_change(judgement: Judgement) -> str:
    """The change that makes a case slower or faster: of time, unless instructions alone say so."""
    time, counted = judgement.time, judgement.count
    if time is not None and (time.verdict is judgement.verdict or counted is None):
        return word_change(to_share(time.log_ratio))
    return "by how much is not known" if counted is None else f"{word_change(counted.ratio)} instructions"


def tell_facts(judgement: Judgement) -> list[tuple[str, str]]:
    """What was measured on both sides, how, and why that gives the verdict."""
    facts = []
    if judgement.base_case is not None:
        facts.append(("head", printable(one_line(judgement.case.args.stmt.strip()))))
        facts.append(("base", printable(one_line(judgement.base_case.args.stmt.strip()))))
    if judgement.time is not None:
        facts.append(("time", _tell_time(judgement.time)))
    if judgement.count is not None:
        facts += _tell_counts(judgement.count)
    if judgement.time is not None:
        facts.append(("measured", _tell_effort(judgement.time)))
    facts.append(("why", explain_cause(judgement)))
    if judgement.failures and judgement.verdict is not Verdict.FAILED:
        facts.append(("failed", say_failures(judgement)))
    return facts


def tell_notes(judgement: Judgement, face: Face = "shell") -> list[str]:
    """What is to be doubted, and what to do about it."""
    return [word_doubt(caveat, face) for caveat in judgement.caveats]


def _tell_time(time: TimeEvidence) -> str:
    change = word_change(to_share(time.log_ratio))
    return f"{change} ({word_interval(time)}), about {show_seconds(find_seconds(time))} on {format_time(time.base_s)}"


def _tell_counts(counted: CountEvidence) -> list[tuple[str, str]]:
    base, head = counted.base, counted.head
    if counted.delta:
        change = (
            f"{show_delta(counted.delta)} ({word_change(counted.ratio)}), from {base.value:,.0f} to {head.value:,.0f}"
        )
    else:
        change = f"{head.value:,.0f} on both sides"
    if base.low != base.high or head.low != head.high:
        change += f"; over layouts {_tell_range(base)} and {_tell_range(head)}"
    return [
        ("instructions", change),
        ("allocations", _contrast(counted.base_allocations, counted.head_allocations)),
        ("tensors", _contrast(counted.base_tensor_allocations, counted.head_tensor_allocations)),
    ]


def _tell_range(spread: Spread) -> str:
    return f"{spread.low:,.0f} to {spread.high:,.0f}"


def _contrast(base: float, head: float) -> str:
    if base == head:
        return f"{show_allocations(head)} on both sides"
    return f"{show_allocation_delta(head - base)}, from {show_allocations(base)} to {show_allocations(head)}"


def _tell_effort(time: TimeEvidence) -> str:
    if time.layouts:
        text = f"in turns, in {count(time.layouts, 'layout')} of memory, {count(time.sweeps, 'visit')} each"
    else:
        text = "one side after the other"
    if time.seconds:
        text += f", {time.seconds:.2g} s" if time.seconds < 10 else f", {format_duration(time.seconds)}"
    if time.confirmed is not None:
        text += f"; {'seen' if time.confirmed else 'not seen'} again on fresh layouts"
    if not has_interval(time):
        return text
    reason = explain_level(time)
    return f"{text}; {word_level(time.confidence)} confidence{f': {reason}' if reason else ''}"
