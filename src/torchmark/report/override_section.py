"""The part of a report that tells what overriding costs on both sides: every kind of operand against plain Tensors."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from torchmark.analysis.overrides import CLASSIC, PLAIN, SUBCLASS, TENSOR_LIKE, OverrideRow
from torchmark.model.dossier import Section
from torchmark.report.changes import show_delta

TITLE = "What overriding costs, in base and in branch"
ABOUT = (
    "How much more a call costs than the same call with plain Tensors: nanoseconds between minimum times, and "
    "instructions. The first rows are torch.add with the types of PyTorch's own benchmark; of the others it is the "
    "median over all calls."
)
COLUMNS = ("operands", "base, ns", "branch, ns", "base, instructions", "branch, instructions", "change")
NANO = 1e9
# What the kinds are called, by the tag of their cases.
KINDS = {SUBCLASS: "subclasses, all calls", TENSOR_LIKE: "Tensor-likes, all calls"}


def make_override_section(base: Sequence[OverrideRow], head: Sequence[OverrideRow]) -> Section | None:
    """A table of both sides; None where there is nothing to tell."""
    before = {row.case: row for row in base}
    both = [(before[row.case], row) for row in head if row.case in before]
    rows = [_show(row.operands, [(old, row)]) for old, row in both if row.has(CLASSIC) and not row.has(PLAIN)]
    for tag, name in KINDS.items():
        found = [pair for pair in both if pair[1].has(tag)]
        if len(found) > 1:
            rows.append(_show(name, found))
    return Section(TITLE, (ABOUT,), COLUMNS, tuple(rows)) if rows else None


def _show(name: str, pairs: Sequence[tuple[OverrideRow, OverrideRow]]) -> tuple[str, ...]:
    times = [_median([_seconds(pair[side]) for pair in pairs]) for side in (0, 1)]
    counts = [_median([_instructions(pair[side]) for pair in pairs]) for side in (0, 1)]
    base, head = counts
    change = "" if base is None or head is None or not base else f"{(head - base) / base:+.0%}".replace("%", " %")
    return (name, *(_word(time, NANO) for time in times), *(_word(count, 1.0) for count in counts), change)


def _seconds(row: OverrideRow) -> float | None:
    return None if row.overhead is None else row.overhead.seconds


def _instructions(row: OverrideRow) -> float | None:
    return None if row.overhead is None else row.overhead.instructions


def _median(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return statistics.median(known) if known else None


def _word(value: float | None, scale: float) -> str:
    return "not measured" if value is None else show_delta(value * scale)
