"""The table of all cases: which columns there are, and what stands in them and sorts them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

from torchmark.model.dossier import Entry
from torchmark.model.judgement import StageChange
from torchmark.model.summary import CaseSummary
from torchmark.report.changes import show_allocation_delta, show_change, show_delta, show_interval, to_share
from torchmark.report.judgement_rows import find_magnitude
from torchmark.report.pages.status import SIGNS, Status, find_status
from torchmark.report.rows import FAILED, fill_cells, find_margin
from torchmark.report.units import format_time, show_allocations, show_share

# Stands for a number that only the other side has.
ABSENT = "–"
# A change of a stage that is smaller is not told.
SMALLEST_STAGE = 0.5


class Cell(NamedTuple):
    """What is shown, and what it is sorted by; None comes last in either direction."""

    text: str = ""
    key: float | None = None
    below: str = ""
    """What qualifies it, in small letters."""
    tone: str = ""
    """`slower` or `faster` where it is to be seen at once."""


class Column(NamedTuple):
    """A column besides that of the names. `room` tells who gives way first: 1 stays on the narrowest screen."""

    key: str
    title: str
    about: str
    room: int
    fill: Callable[[Entry], Cell]
    ascending: bool = False
    """Whether the first sorting by it begins with the least."""


def choose_columns(entries: Sequence[Entry], *, compared: bool) -> list[Column]:
    """Those in which any entry has something to say; the status always."""
    columns = COMPARED if compared else SINGLE
    return [columns[0], *(one for one in columns[1:] if any(one.fill(entry).text for entry in entries))]


def find_main_stage(entry: Entry) -> StageChange | None:
    """The stage that changed most, or of a single party the one that costs most; None where none does."""
    if entry.breakdown is None or not entry.breakdown.stages:
        return None
    stages = entry.breakdown.stages
    if len(entry.exhibits) == 1:
        return max(stages, key=lambda stage: stage.head)
    # A side that was not counted, or is of another definition, gives no difference.
    if entry.breakdown.only is not None or entry.judgement is None:
        return None
    most = max(stages, key=lambda stage: abs(stage.delta))
    return most if abs(most.delta) >= SMALLEST_STAGE else None


def fill_status(entry: Entry) -> Cell:
    """The verdict, or whether it was measured."""
    status = find_status(entry)
    ranks = list(Status)
    # Within a verdict, the largest change comes first.
    size = 0.0 if entry.judgement is None else min(find_magnitude(entry.judgement), 1e6) / 1e7
    return Cell(f"{SIGNS[status]} {status.value}", ranks.index(status) - size, tone=status.name.lower())


def _fill_change(entry: Entry) -> Cell:
    time = None if entry.judgement is None else entry.judgement.time
    if time is None:
        return Cell()
    share = to_share(time.log_ratio)
    return Cell(show_change(share), _finite(share), show_interval(time), _tone(entry))


def _fill_time(entry: Entry) -> Cell:
    times = find_times(entry)
    now = times[-1]
    # Sides that are not compared do not stand beside each other.
    against = _against(times[0] if len(times) > 1 and not entry.obstacles else None)
    if now is None:
        failed = entry.exhibits[-1] is not None and _has_failed(entry.exhibits[-1], "time")
        absent = ABSENT if times[0] is not None else ""
        return Cell(FAILED if failed else absent, None, against)
    return Cell(format_time(now), now, against)


def find_times(entry: Entry) -> list[float | None]:
    """Seconds of a run for each party: the median, or what the judgement rests on where samples are not kept."""
    medians = [None if one is None or one.wall is None else one.wall.times.median for one in entry.exhibits]
    time = None if entry.judgement is None else entry.judgement.time
    if time is not None and len(medians) == 2:
        judged = map(_finite, (time.base_s, time.base_s * (1 + to_share(time.log_ratio))))
        return [own if own is not None else other for own, other in zip(medians, judged, strict=True)]
    return medians


def _against(base: float | None) -> str:
    return "" if base is None else f"base {format_time(base)}"


def _has_failed(summary: CaseSummary | None, column: str) -> bool:
    return summary is not None and fill_cells(summary)[column] == FAILED


def _fill_instructions_change(entry: Entry) -> Cell:
    count = None if entry.judgement is None else entry.judgement.count
    if count is None:
        return Cell()
    share = show_change(count.ratio) if count.delta else ""
    tone = _tone(entry) if abs(count.delta) > 0 else ""
    return Cell(show_delta(count.delta), _finite(count.delta), share, tone)


def _fill_instructions(entry: Entry) -> Cell:
    head = entry.exhibits[-1]
    if head is None or head.count is None:
        counted = any(one is not None and one.count is not None for one in entry.exhibits)
        return Cell(FAILED if _has_failed(head, "instructions") else ABSENT if counted else "")
    return Cell(f"{head.count.instructions:,.0f}", head.count.instructions)


def _fill_mallocs_change(entry: Entry) -> Cell:
    count = None if entry.judgement is None else entry.judgement.count
    if count is None:
        return Cell()
    delta = count.head_allocations - count.base_allocations
    return Cell(show_allocation_delta(delta) if delta else "", delta)


def _fill_stage(entry: Entry) -> Cell:
    stage = find_main_stage(entry)
    if stage is None:
        return Cell()
    if len(entry.exhibits) == 1:
        total = sum(one.head for one in entry.breakdown.stages) if entry.breakdown else 0.0
        share = stage.head / total if total else 0.0
        return Cell(stage.stage, share, show_share(share))
    return Cell(stage.stage, stage.delta, show_delta(stage.delta))


def _fill_interval(entry: Entry) -> Cell:
    head = entry.exhibits[-1]
    share = None if head is None or head.wall is None else find_margin(head.wall)
    return Cell() if share is None else Cell(f"±{show_share(share)}", share)


def _fill_spread(entry: Entry) -> Cell:
    head = entry.exhibits[-1]
    spread = None if head is None or head.count is None else head.count.spread
    return Cell() if spread is None else Cell(show_share(spread), spread)


def _fill_mallocs(entry: Entry) -> Cell:
    head = entry.exhibits[-1]
    if head is None or head.count is None:
        return Cell()
    return Cell(show_allocations(head.count.allocations), head.count.allocations)


def _fill_tensors(entry: Entry) -> Cell:
    head = entry.exhibits[-1]
    if head is None or head.count is None:
        return Cell()
    return Cell(show_allocations(head.count.tensor_allocations), head.count.tensor_allocations)


def _tone(entry: Entry) -> str:
    status = find_status(entry)
    return status.name.lower() if status in (Status.SLOWER, Status.FASTER) else ""


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


_STATUS = Column("verdict", "Verdict", "What is said of it, the largest change first", 1, fill_status, ascending=True)
COMPARED = (
    _STATUS,
    Column("change", "Time", "How much longer a run takes than in base, and the interval of that", 1, _fill_change),
    Column("time", "Per run", "Median time of a run", 2, _fill_time),
    Column("delta", "Instr. ±", "Instructions of a run, more or fewer than in base", 2, _fill_instructions_change),
    Column("instructions", "Instructions", "Instructions of a run", 3, _fill_instructions),
    Column("mallocs", "Mallocs ±", "Allocations of a run, more or fewer than in base", 3, _fill_mallocs_change),
    Column("stage", "Stage", "The stage of a call whose instructions changed most", 3, _fill_stage),
)
SINGLE = (
    _STATUS._replace(title="Result", about="Whether it was measured, and whether it has caveats"),
    Column("time", "Time", "Median time of a run", 1, _fill_time),
    Column("interval", "±", "The farther end of the 95 % interval of the median, as a share of it", 3, _fill_interval),
    Column("instructions", "Instructions", "Instructions of a run", 2, _fill_instructions),
    Column("spread", "Spread", "How far layouts of memory move the count", 3, _fill_spread),
    Column("mallocs", "Mallocs", "Calls into the malloc family in a run", 3, _fill_mallocs),
    Column("tensors", "Tensors", "Calls of torch's own allocator in a run", 3, _fill_tensors),
    Column("stage", "Stage", "The stage of a call that most instructions are in", 3, _fill_stage),
)
