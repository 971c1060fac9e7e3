"""What failed in a run, one line each."""

from __future__ import annotations

from collections.abc import Sequence

from torchmark.model.outcome import Failure
from torchmark.model.plan import Metric, Plan
from torchmark.model.summary import CaseSummary
from torchmark.report.cells import cut, cut_middle, measure
from torchmark.report.failures import describe_failure, sum_up_failure
from torchmark.report.printable import count, printable, show_lines
from torchmark.report.variants import Variants, name_case, name_target

# What people call the two.
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
        lines.append(join_reason(variants.name(summary.case) + where, word_failures(summary, plan), width))
    return lines


def join_reason(name: str, reason: str, width: int) -> str:
    """Both on a line; the name has what the reason leaves, and half of it at least."""
    return cut(f"  {shorten_name(name, reason, width)}: {reason}", width)


def shorten_name(name: str, reason: str, width: int) -> str:
    """What is to be seen of the name there."""
    room = max(width - len("  : ") - measure(reason), (width - len("  : ")) // 2)
    return cut_middle(name, room)


def word_failures(summary: CaseSummary, plan: Plan) -> str:
    """Why, and when where not everything failed in the same way."""
    reasons: dict[str, dict[Metric, None]] = {}
    for metric, failure in summary.failures:
        reasons.setdefault(sum_up(failure), {})[metric] = None
    if len(reasons) == 1 and len(plan.sampling.metrics) == len(next(iter(reasons.values()))):
        return next(iter(reasons))
    return "; ".join(f"{' and '.join(VERBS[m] for m in metrics)}: {text}" for text, metrics in reasons.items())


def sum_up(failure: Failure) -> str:
    """The reason on a line that no terminal stumbles over."""
    return printable(sum_up_failure(failure))


def tell_failures(summaries: Sequence[CaseSummary], plan: Plan) -> str:
    """All that is known of each failure, once for all that failed in the same way; empty where nothing did."""
    names: dict[str, list[str]] = {}
    for summary in summaries:
        where = f" ({name_target(summary.target)})" if len(plan.targets) > 1 else ""
        for metric, failure in summary.failures:
            text = show_lines(describe_failure(failure))
            names.setdefault(text, []).append(f"Failed: {VERBS[metric]} {name_case(summary.case)}{where}")
    return "\n\n".join("\n".join([*whose, text]) for text, whose in names.items())
