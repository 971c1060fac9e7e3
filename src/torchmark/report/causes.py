"""Why a case is judged as it is, in a sentence with its numbers."""

from __future__ import annotations

import math

from torchmark.analysis.judge import expected_seconds
from torchmark.model.judgement import Cause, CountEvidence, Judgement, Side, TimeEvidence, Verdict
from torchmark.report.changes import (
    find_bound,
    show_allocation_delta,
    show_delta,
    to_share,
    word_change,
    word_seconds,
    word_share,
)
from torchmark.report.failed import sum_up
from torchmark.report.planning import format_duration

# How the witnesses agree, where there is only room for a few words.
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


def explain_cause(judgement: Judgement) -> str:
    """What the verdict rests on; of what is undecided, the bound that was reached and what would decide it."""
    if judgement.verdict is Verdict.FAILED:
        return say_failures(judgement)
    if judgement.verdict is not Verdict.UNDECIDED or judgement.time is None:
        return _fill_in(judgement)
    bound = tell_bound(judgement.time)
    # There is nothing to tell but the bound.
    return bound if judgement.cause in (Cause.OPEN, Cause.TIME_ALONE) else f"{_fill_in(judgement)} {bound}"


def say_failures(judgement: Judgement) -> str:
    """On which sides it failed, and how."""
    reasons: dict[str, dict[Side, None]] = {}
    for failed in judgement.failures:
        reasons.setdefault(sum_up(failed.failure), {})[failed.side] = None
    texts = [f"on {' and '.join(side.value for side in sides)}: {reason}" for reason, sides in reasons.items()]
    return "; ".join(texts) or "Neither times nor counts exist for both sides."


def tell_bound(time: TimeEvidence) -> str:
    """How large the change can be at most, and what it would take to decide."""
    bound = find_bound(time)
    if not math.isfinite(bound):
        return "There is no interval yet: too little was measured for one."
    if time.confirmed is False:
        return f"Less than {word_share(bound)} either way: what some layouts of memory show, fresh ones do not."
    if time.needed_s is not None:
        remedy = f"about {format_duration(time.needed_s)} more would decide"
    elif time.layouts:
        remedy = "more layouts of memory would decide"
    else:
        remedy = "taking turns might decide: `torchmark ab`"
    return f"Less than {word_share(bound)} either way; {remedy}."


def _fill_in(judgement: Judgement) -> str:
    time, count = judgement.time, judgement.count
    expected = 0.0 if count is None else expected_seconds(count.delta)
    return _SENTENCES[judgement.cause].format(
        instructions="Instructions were not counted" if count is None else _say_instructions(count),
        time="it was not timed" if time is None else _say_time(time),
        bound="?" if time is None else word_share(find_bound(time)),
        bound_s="?" if time is None else word_seconds(find_bound(time) * time.base_s),
        expected=f"about {word_seconds(expected)} {'less' if expected < 0 else 'more'}",
        again=", on fresh layouts of memory too" if time is not None and time.confirmed else "",
        moves="moves" if time is None or time.layout_sd is None else f"moves by {word_share(time.layout_sd)}",
    )


def _say_instructions(count: CountEvidence) -> str:
    allocations = count.head_allocations - count.base_allocations
    also = f" and {show_allocation_delta(allocations)} allocations" if allocations else ""
    if not count.delta:
        return "The same instructions" + also
    noun = "instruction" if abs(count.delta) == 1 else "instructions"
    return f"{show_delta(count.delta)} {noun} ({word_change(count.ratio)}){also}"


def _say_time(time: TimeEvidence) -> str:
    share = to_share(time.log_ratio)
    return f"{word_share(share)} {'less' if share < 0 else 'more'} time"
