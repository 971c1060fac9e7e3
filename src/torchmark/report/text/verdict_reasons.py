"""Why a case is judged as it is: one sentence, or all the evidence."""

from __future__ import annotations

import math

from torchmark.analysis.verdict.judge import expected_seconds
from torchmark.model.judgement import CaseJudgement, Cause, CountEvidence, Spread, TimeEvidence, Verdict
from torchmark.report.text.failures import format_failure
from torchmark.report.text.terminal import count, group, one_line, printable
from torchmark.report.text.units import (
    explain_level,
    find_bound,
    find_seconds,
    format_allocation_delta,
    format_allocations,
    format_change,
    format_delta,
    format_duration,
    format_interval,
    format_level,
    format_seconds,
    format_seconds_change,
    format_share,
    format_time,
    has_interval,
    to_share,
)

# How the kinds of evidence agree, where there is only room for a few words.
SHORT_CAUSES = {
    Cause.UNCHANGED: "instructions and time are the same",
    Cause.CONFIRMED: "instructions and time agree",
    Cause.BELOW_RESOLUTION: "other instructions; time cannot tell",
    Cause.NOT_INSTRUCTIONS: "same instructions, another time",
    Cause.LAYOUT: "depends on the layout of memory",
    Cause.TRADE_OFF: "instructions and time disagree",
    Cause.TIME_ALONE: "not counted",
    Cause.COUNT_ALONE: "not timed",
    Cause.OPEN: "nothing is shown yet",
}
# The same in sentences; in braces is what `_fill_in` says.
_SENTENCES = {
    Cause.UNCHANGED: "{instructions}, and the time is the same within {bound}.",
    Cause.CONFIRMED: "{instructions}, {time}: both changed in the same direction.",
    Cause.BELOW_RESOLUTION: "{instructions}: time should be {expected}, and changed by less than {bound_s}.",
    Cause.NOT_INSTRUCTIONS: "{instructions}, but {time}{again}: caches, branches, the allocator or data.",
    Cause.LAYOUT: "{instructions}, and a time that {moves} with the layout of memory: where things lie decides.",
    Cause.TRADE_OFF: "{instructions}, but {time}: time decides.",
    Cause.TIME_ALONE: "Instructions were not counted: {time}.",
    Cause.COUNT_ALONE: "{instructions}; it was not timed.",
    Cause.OPEN: "{instructions}, {time}: neither a change nor equality is shown.",
}


def explain_cause(judgement: CaseJudgement) -> str:
    """What the verdict rests on; of what is undecided, the bound that was reached and what would decide it."""
    if judgement.verdict is Verdict.FAILED:
        return describe_failed_sides(judgement)
    if judgement.verdict is not Verdict.UNDECIDED or judgement.time is None:
        return _fill_in(judgement)
    bound = describe_bound(judgement.time)
    # There is nothing to tell but the bound.
    return bound if judgement.cause in (Cause.OPEN, Cause.TIME_ALONE) else f"{_fill_in(judgement)} {bound}"


def describe_failed_sides(judgement: CaseJudgement) -> str:
    reasons = group((format_failure(failed.failure), failed.side.value) for failed in judgement.failures)
    texts = [f"on {' and '.join(sides)}: {reason}" for reason, sides in reasons.items()]
    return "; ".join(texts) or "Neither times nor counts exist for both sides."


def describe_bound(time: TimeEvidence) -> str:
    """How large the change can be at most, and what it would take to decide."""
    bound = find_bound(time)
    if not math.isfinite(bound):
        return "There is no interval yet: too little was measured for one."
    if time.confirmed is False:
        return f"Less than {format_share(bound)} either way: what some layouts of memory show, fresh ones do not."
    remedy = "more layouts of memory would decide" if time.layouts else "taking turns might decide: `torchmark ab`"
    if time.needed_s is not None:
        remedy = f"about {format_duration(time.needed_s)} more would decide"
    return f"Less than {format_share(bound)} either way; {remedy}."


def _fill_in(judgement: CaseJudgement) -> str:
    time, count = judgement.time, judgement.count
    expected = 0.0 if count is None else expected_seconds(count.delta)
    share = 0.0 if time is None else to_share(time.log_ratio)
    return _SENTENCES[judgement.cause].format(
        instructions="Instructions were not counted" if count is None else _describe_instructions_change(count),
        time="it was not timed" if time is None else f"{format_share(share)} {'less' if share < 0 else 'more'} time",
        bound="?" if time is None else format_share(find_bound(time)),
        bound_s="?" if time is None else format_seconds(find_bound(time) * time.base_s),
        expected=f"about {format_seconds(expected)} {'less' if expected < 0 else 'more'}",
        again=", on fresh layouts of memory too" if time is not None and time.confirmed else "",
        moves="moves" if time is None or time.layout_sd is None else f"moves by {format_share(time.layout_sd)}",
    )


def _describe_instructions_change(count: CountEvidence) -> str:
    allocations = count.head_allocations - count.base_allocations
    also = f" and {format_allocation_delta(allocations)} allocations" if allocations else ""
    if not count.delta:
        return "The same instructions" + also
    noun = "instruction" if abs(count.delta) == 1 else "instructions"
    return f"{format_delta(count.delta)} {noun} ({format_change(count.ratio)}){also}"


_WORDS = {Verdict.SAME: "the same", Verdict.UNDECIDED: "undecided", Verdict.FAILED: "failed"}


def describe_verdict(judgement: CaseJudgement) -> str:
    """The verdict in a few words, with the number that it is about."""
    if judgement.verdict is Verdict.FAILED and judgement.failures:
        return f"failed on {' and '.join(dict.fromkeys(failed.side.value for failed in judgement.failures))}"
    if judgement.verdict in _WORDS:
        return _WORDS[judgement.verdict]
    return f"{judgement.verdict.value}, {format_verdict_change(judgement)}"


def format_verdict_change(judgement: CaseJudgement) -> str:
    """The change that makes a case slower or faster: of time, unless instructions alone say so."""
    time, counted = judgement.time, judgement.count
    if time is not None and (time.verdict is judgement.verdict or counted is None):
        return format_change(to_share(time.log_ratio))
    return "by how much is not known" if counted is None else f"{format_change(counted.ratio)} instructions"


def describe_facts(judgement: CaseJudgement) -> list[tuple[str, str]]:
    """What was measured on both sides, how, and why that gives the verdict."""
    facts = []
    if judgement.base_case is not None:
        facts.append(("head", printable(one_line(judgement.case.args.stmt.strip()))))
        facts.append(("base", printable(one_line(judgement.base_case.args.stmt.strip()))))
    if judgement.time is not None:
        facts.append(("time", _describe_time(judgement.time)))
    if judgement.count is not None:
        facts += _describe_counts(judgement.count)
    if judgement.time is not None:
        facts.append(("measured", _describe_effort(judgement.time)))
    facts.append(("why", explain_cause(judgement)))
    if judgement.failures and judgement.verdict is not Verdict.FAILED:
        facts.append(("failed", describe_failed_sides(judgement)))
    return facts


def _describe_time(time: TimeEvidence) -> str:
    difference = f"about {format_seconds_change(find_seconds(time))} on {format_time(time.base_s)}"
    return f"{format_change(to_share(time.log_ratio))} ({format_interval(time)}), {difference}"


def _describe_counts(counted: CountEvidence) -> list[tuple[str, str]]:
    base, head = counted.base, counted.head
    change = f"{head.value:,.0f} on both sides"
    if counted.delta:
        sides = f"from {base.value:,.0f} to {head.value:,.0f}"
        change = f"{format_delta(counted.delta)} ({format_change(counted.ratio)}), {sides}"
    if base.low != base.high or head.low != head.high:
        change += f"; over layouts {_describe_range(base)} and {_describe_range(head)}"
    return [
        ("instructions", change),
        ("allocations", _contrast(counted.base_allocations, counted.head_allocations)),
        ("tensors", _contrast(counted.base_tensor_allocations, counted.head_tensor_allocations)),
    ]


def _describe_range(spread: Spread) -> str:
    return f"{spread.low:,.0f} to {spread.high:,.0f}"


def _contrast(base: float, head: float) -> str:
    if base == head:
        return f"{format_allocations(head)} on both sides"
    return f"{format_allocation_delta(head - base)}, from {format_allocations(base)} to {format_allocations(head)}"


def _describe_effort(time: TimeEvidence) -> str:
    turns = f"in turns, in {count(time.layouts, 'layout')} of memory, {count(time.sweeps, 'visit')} each"
    text = turns if time.layouts else "one side after the other"
    if time.seconds:
        text += f", {time.seconds:.2g} s" if time.seconds < 10 else f", {format_duration(time.seconds)}"
    if time.confirmed is not None:
        text += f"; {'seen' if time.confirmed else 'not seen'} again on fresh layouts"
    if not has_interval(time):
        return text
    reason = explain_level(time)
    return f"{text}; {format_level(time.confidence)} confidence{f': {reason}' if reason else ''}"
