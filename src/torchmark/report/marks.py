"""Caveats as marks in a table: one letter a kind, the same in every table, and a legend of those that are there."""

from __future__ import annotations

from collections.abc import Sequence

from torchmark.model.caveat import (
    Caveat,
    Drift,
    FewSamples,
    HighOverhead,
    OptimisedAway,
    OtherInstructionSet,
    OtherPlaces,
    SeveralThreads,
    TwoModes,
    UnstableCount,
    Variation,
)
from torchmark.model.plan import Metric, Target
from torchmark.model.summary import CaseSummary
from torchmark.report.cells import wrap
from torchmark.report.printable import printable
from torchmark.report.variants import name_target
from torchmark.report.wording import give_advice, state_fact

# In the order in which they stand. What holds for whole environments is no mark but a note.
MARKS: dict[type[Caveat], str] = {
    OptimisedAway: "x",
    FewSamples: "f",
    Variation: "v",
    Drift: "d",
    TwoModes: "m",
    HighOverhead: "o",
    UnstableCount: "u",
    SeveralThreads: "t",
    OtherPlaces: "e",
}
UNCHECKED = "?"
# Something failed in some rounds and not in others.
SOMETIMES = "!"
# Options of `torchmark time` that other advice would name, and that suites are not measured with.
NOT_OFFERED = ("adaptive",)
# Reasons for the same thing that a person reads; there is hardly ever more than one.
MOST_REASONS = 3


def find_marks(summary: CaseSummary) -> str:
    """The marks of a row."""
    kinds = {type(caveat) for caveat in summary.caveats}
    marks = "".join(mark for kind, mark in MARKS.items() if kind in kinds)
    failed = {metric for metric, _ in summary.failures}
    values = ((Metric.WALL, summary.wall), (Metric.COUNT, summary.count))
    measured = {metric for metric, value in values if value is not None}
    return marks + (UNCHECKED if summary.unchecked else "") + (SOMETIMES if failed & measured else "")


def explain_marks(summaries: Sequence[CaseSummary], width: int) -> list[str]:
    """What the marks mean that were used: how often, at worst, and what to do about it."""
    lines: list[str] = []
    for kind, mark in MARKS.items():
        by_case = [[caveat for caveat in summary.caveats if isinstance(caveat, kind)] for summary in summaries]
        found = [caveat for caveats in by_case for caveat in caveats]
        if found:
            worst, cases = max(found, key=_severity), sum(map(bool, by_case))
            of_how_many = "" if cases == 1 else f"{cases} cases" + (", at worst: " if set(found) - {worst} else ": ")
            text = f"{mark}  {of_how_many}{state_fact(worst)} {give_advice(worst, 'shell', NOT_OFFERED)}"
            lines += wrap(text, width, 3)
    reasons = list(dict.fromkeys(summary.unchecked for summary in summaries if summary.unchecked))
    for reason in reasons[:MOST_REASONS]:
        lines += wrap(f"{UNCHECKED}  Its results were not compared with other variants': {printable(reason)}", width, 3)
    if any(SOMETIMES in find_marks(summary) for summary in summaries):
        lines += wrap(f"{SOMETIMES}  It failed in some rounds; the numbers are of the others.", width, 3)
    return lines


def _severity(caveat: Caveat) -> float:
    if isinstance(caveat, FewSamples):
        return -caveat.samples
    if isinstance(caveat, Variation):
        return caveat.iqr_share
    if isinstance(caveat, Drift):
        return abs(caveat.change)
    if isinstance(caveat, TwoModes):
        return caveat.slow_s - caveat.fast_s
    if isinstance(caveat, HighOverhead):
        return caveat.share
    if isinstance(caveat, UnstableCount):
        return caveat.spread
    if isinstance(caveat, OtherPlaces):
        return caveat.rounds / caveat.of
    return caveat.threads if isinstance(caveat, SeveralThreads) else 0.0


def explain_environments(summaries: Sequence[CaseSummary], width: int) -> list[str]:
    """What holds for all counts of an environment, told once."""
    found: dict[Caveat, dict[Target, None]] = {}
    for summary in summaries:
        for caveat in summary.caveats:
            if isinstance(caveat, OtherInstructionSet):
                found.setdefault(caveat, {})[summary.target] = None
    everywhere = {summary.target for summary in summaries if summary.count}
    lines: list[str] = []
    for caveat, targets in found.items():
        where = f"({', '.join(map(name_target, targets))}) " if set(targets) != everywhere else ""
        lines += wrap(f"Note: {where}{state_fact(caveat)} {give_advice(caveat, 'shell', NOT_OFFERED)}", width, 2)
    return lines
