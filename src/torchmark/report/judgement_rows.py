"""The rows of a table of judgements: in which order they stand, and what stands in the columns."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Sequence

from torchmark.model.judgement import CountEvidence, Judgement, TimeEvidence, Verdict
from torchmark.report.causes import SHORT_CAUSES
from torchmark.report.changes import (
    find_bound,
    find_seconds,
    show_allocation_delta,
    show_change,
    show_delta,
    show_interval,
    show_magnitude,
    show_seconds,
    to_share,
)
from torchmark.report.comparison_marks import find_marks, find_shared
from torchmark.report.rows import MISSING
from torchmark.report.variants import Variants

# The column of marks has no head.
MARKS = ""
COLUMNS = ("time", "±", "per run", "instr.", "%", "mallocs", "tensors", MARKS, "why")
# What changed comes first, then what asks for attention.
RANKS = {Verdict.SLOWER: 0, Verdict.FASTER: 0, Verdict.FAILED: 1, Verdict.UNDECIDED: 2, Verdict.SAME: 3}


@dataclasses.dataclass(frozen=True)
class JudgementRow:
    """A case in the table."""

    judgement: Judgement
    name: str
    cells: dict[str, str]


def order_judgements(judgements: Iterable[Judgement]) -> list[Judgement]:
    """The largest change first; then what failed, what is undecided and what is the same."""
    return sorted(judgements, key=lambda judgement: (RANKS[judgement.verdict], -find_magnitude(judgement)))


def find_magnitude(judgement: Judgement) -> float:
    """How large a change is, whatever its direction: of time, or of instructions where there is no time."""
    if judgement.time is not None:
        change = judgement.time.log_ratio
    elif judgement.count is not None:
        # All instructions may be gone.
        change = math.log1p(judgement.count.ratio) if judgement.count.ratio > -1 else -math.inf
    else:
        change = 0.0
    return 0.0 if math.isnan(change) else abs(change)


def make_rows(judgements: Sequence[Judgement], among: Sequence[Judgement]) -> list[JudgementRow]:
    """Rows in the order given, with names that tell them apart from all others they are `among`."""
    variants, shared = Variants(judgement.case for judgement in among), find_shared(among)
    return [
        JudgementRow(judgement, variants.name(judgement.case), fill_cells(judgement, find_marks(judgement, shared)))
        for judgement in judgements
    ]


def fill_cells(judgement: Judgement, marks: str = "") -> dict[str, str]:
    """The text of each column."""
    cells = dict.fromkeys(COLUMNS, "")
    cells[MARKS], cells["why"] = marks, SHORT_CAUSES[judgement.cause]
    cells.update({"time": MISSING} if judgement.time is None else _show_time(judgement.time))
    if judgement.count is not None:
        cells.update(_show_count(judgement.count))
    return cells


def _show_time(time: TimeEvidence) -> dict[str, str]:
    return {
        "time": show_change(to_share(time.log_ratio)),
        "±": show_interval(time) or MISSING,
        "per run": show_seconds(find_seconds(time)),
    }


def _show_count(count: CountEvidence) -> dict[str, str]:
    mallocs = count.head_allocations - count.base_allocations
    tensors = count.head_tensor_allocations - count.base_tensor_allocations
    return {
        "instr.": show_delta(count.delta),
        "%": show_change(count.ratio) if count.delta else "",
        "mallocs": show_allocation_delta(mallocs) if mallocs else "",
        "tensors": show_allocation_delta(tensors) if tensors else "",
    }


def find_columns(rows: Sequence[JudgementRow]) -> list[str]:
    """Those in which there is something to say."""
    return [column for column in COLUMNS if any(row.cells[column] not in ("", MISSING) for row in rows)]


def sum_up_same(judgements: Sequence[Judgement]) -> str:
    """What can be said of all of these together, where they are too many for lines of their own."""
    text = f"{len(judgements)} cases"
    bounds = [find_bound(judgement.time) for judgement in judgements if judgement.time is not None]
    if bounds:
        text += f", within {show_magnitude(max(bounds))}"
    differing = sum(judgement.count is not None and judgement.count.delta != 0 for judgement in judgements)
    return text + (f"; {differing} with other instructions" if differing else "")
