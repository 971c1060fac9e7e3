"""The rows, columns and filters of the report page's table."""

from __future__ import annotations

import dataclasses
import hashlib
import itertools
import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

from torchmark.model.judgement import StageChange
from torchmark.model.plan import Case
from torchmark.model.report_data import ReportData, ReportEntry
from torchmark.model.run import CaseSummary
from torchmark.report.html.report_story import SIGNS, Doubt, EntryStatus, find_status, is_compared
from torchmark.report.text.judgements import find_magnitude
from torchmark.report.text.names import Variants
from torchmark.report.text.run_table import FAILED, fill_cells, find_margin
from torchmark.report.text.terminal import one_line, printable
from torchmark.report.text.units import (
    format_allocation_delta,
    format_allocations,
    format_change_cell,
    format_delta,
    format_interval_cell,
    format_share_cell,
    format_time,
    to_share,
)
from torchmark.stats.distribution import quantile

# As many as can be told apart in a drawing of half a screen.
MOST_SAMPLES = 48
# Steps in which samples are kept, as a share of the median: a tenth of a pixel of a drawing that spans 1 % of it.
FIGURES = 5
# Of 64 bits, none is ever met twice among all cases that people have.
ID_DIGITS = 16


class Texts:
    """Gives every text a number; the same text has the same."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}

    def number(self, text: str) -> int:
        return self._numbers.setdefault(text, len(self._numbers))

    @property
    def entries(self) -> list[str]:
        """All texts by number, once all have been asked for."""
        return list(self._numbers)


def identify_row(case: Case) -> str:
    """What a link to a case says: the same in every report, whatever else is in it."""
    return hashlib.sha256(f"{case.suite}\n{case.key}".encode(errors="surrogatepass")).hexdigest()[:ID_DIGITS]


def pack_samples(samples: Sequence[float]) -> list[float] | None:
    """How many there are, the length of a step in seconds, and in steps the least, and how far each is from the last.

    Many samples are reduced to quantiles. None where there is nothing to draw.

    >>> pack_samples([2e-6, 1e-6, 1.5e-6])
    [3, 1e-10, 10000, 5000, 5000]
    """
    ordered = sorted(t for t in samples if math.isfinite(t) and t >= 0)
    if not ordered or ordered[-1] == 0:
        return None
    # A power of ten of which the median has so many figures.
    step = float(f"1e{math.floor(math.log10(quantile(ordered, 0.5) or ordered[-1])) - FIGURES + 1}")
    number = len(ordered)
    if number > MOST_SAMPLES:
        ordered = [quantile(ordered, (i + 0.5) / MOST_SAMPLES) for i in range(MOST_SAMPLES)]
    steps = [round(t / step) for t in ordered]
    return [number, step, steps[0], *(after - before for before, after in itertools.pairwise(steps))]


def shorten_number(value: float) -> float | int:
    """A number with no more figures than anybody reads, for JSON; whole if it is.

    >>> shorten_number(19739.0), shorten_number(1234.5678), shorten_number(-0.0)
    (19739, 1234.57, 0)
    """
    if not math.isfinite(value):
        return 0
    short = round(value, 2) if abs(value) >= 1 else float(f"{value:.4g}")
    return int(short) if short == int(short) else short


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
    fill: Callable[[ReportEntry], Cell]
    ascending: bool = False
    """Whether the first sorting by it begins with the least."""


def choose_columns(entries: Sequence[ReportEntry], *, compared: bool) -> list[Column]:
    """Those in which any entry has something to say; the status always."""
    columns = COMPARED if compared else SINGLE
    return [columns[0], *(one for one in columns[1:] if any(one.fill(entry).text for entry in entries))]


def find_main_stage(entry: ReportEntry) -> StageChange | None:
    """The stage that changed most, or of a single side the one that costs most; None where none does."""
    if entry.breakdown is None or not entry.breakdown.stages:
        return None
    stages = entry.breakdown.stages
    if len(entry.summaries) == 1:
        return max(stages, key=lambda stage: stage.head)
    # A side that was not counted, or is of another definition, gives no difference.
    if entry.breakdown.only is not None or entry.judgement is None:
        return None
    most = max(stages, key=lambda stage: abs(stage.delta))
    return most if abs(most.delta) >= SMALLEST_STAGE else None


def fill_status(entry: ReportEntry) -> Cell:
    status = find_status(entry)
    # Within a verdict, the largest change comes first.
    size = 0.0 if entry.judgement is None else min(find_magnitude(entry.judgement), 1e6) / 1e7
    return Cell(f"{SIGNS[status]} {status.value}", list(EntryStatus).index(status) - size, tone=status.name.lower())


def _fill_change(entry: ReportEntry) -> Cell:
    time = None if entry.judgement is None else entry.judgement.time
    if time is None:
        return Cell()
    share = to_share(time.log_ratio)
    return Cell(format_change_cell(share), _finite(share), format_interval_cell(time), _tone(entry))


def _fill_time(entry: ReportEntry) -> Cell:
    times = find_times(entry)
    base, now = times[0], times[-1]
    # Sides that are not compared do not stand beside each other.
    against = f"base {format_time(base)}" if len(times) > 1 and not entry.obstacles and base is not None else ""
    if now is None:
        absent = ABSENT if base is not None else ""
        return Cell(FAILED if _has_failed(entry.summaries[-1], "time") else absent, None, against)
    return Cell(format_time(now), now, against)


def find_times(entry: ReportEntry) -> list[float | None]:
    """Seconds of a run for each side: the median, or what the judgement rests on where samples are not kept."""
    medians = [None if one is None or one.wall is None else one.wall.times.median for one in entry.summaries]
    time = None if entry.judgement is None else entry.judgement.time
    if time is not None and len(medians) == 2:
        judged = map(_finite, (time.base_s, time.base_s * (1 + to_share(time.log_ratio))))
        return [own if own is not None else other for own, other in zip(medians, judged, strict=True)]
    return medians


def _has_failed(summary: CaseSummary | None, column: str) -> bool:
    return summary is not None and fill_cells(summary)[column] == FAILED


def _fill_instructions_change(entry: ReportEntry) -> Cell:
    count = None if entry.judgement is None else entry.judgement.count
    if count is None:
        return Cell()
    share, tone = (format_change_cell(count.ratio), _tone(entry)) if count.delta else ("", "")
    return Cell(format_delta(count.delta), _finite(count.delta), share, tone)


def _fill_instructions(entry: ReportEntry) -> Cell:
    head = entry.summaries[-1]
    if head is None or head.count is None:
        counted = any(one is not None and one.count is not None for one in entry.summaries)
        return Cell(FAILED if _has_failed(head, "instructions") else ABSENT if counted else "")
    return Cell(f"{head.count.instructions:,.0f}", head.count.instructions)


def _fill_mallocs_change(entry: ReportEntry) -> Cell:
    count = None if entry.judgement is None else entry.judgement.count
    if count is None:
        return Cell()
    delta = count.head_allocations - count.base_allocations
    return Cell(format_allocation_delta(delta) if delta else "", delta)


def _fill_stage(entry: ReportEntry) -> Cell:
    stage = find_main_stage(entry)
    if stage is None:
        return Cell()
    if len(entry.summaries) == 1:
        total = sum(one.head for one in entry.breakdown.stages) if entry.breakdown else 0.0
        share = stage.head / total if total else 0.0
        return Cell(stage.stage, share, format_share_cell(share))
    return Cell(stage.stage, stage.delta, format_delta(stage.delta))


def _fill_interval(entry: ReportEntry) -> Cell:
    head = entry.summaries[-1]
    share = None if head is None or head.wall is None else find_margin(head.wall)
    return Cell() if share is None else Cell(f"±{format_share_cell(share)}", share)


def _fill_counted(field: str, show: Callable[[float], str]) -> Callable[[ReportEntry], Cell]:
    """How to fill a column with a field of counts."""

    def fill(entry: ReportEntry) -> Cell:
        head = entry.summaries[-1]
        value = None if head is None or head.count is None else getattr(head.count, field)
        return Cell() if value is None else Cell(show(value), value)

    return fill


def _tone(entry: ReportEntry) -> str:
    status = find_status(entry)
    return status.name.lower() if status in (EntryStatus.SLOWER, EntryStatus.FASTER) else ""


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
    Column(
        "spread", "Spread", "How far layouts of memory move the count", 3, _fill_counted("spread", format_share_cell)
    ),
    Column(
        "mallocs",
        "Mallocs",
        "Calls into the malloc family in a run",
        3,
        _fill_counted("allocations", format_allocations),
    ),
    Column(
        "tensors",
        "Tensors",
        "Calls of torch's own allocator in a run",
        3,
        _fill_counted("tensor_allocations", format_allocations),
    ),
    Column("stage", "Stage", "The stage of a call that most instructions are in", 3, _fill_stage),
)

# Longer lists are no longer chosen from; searching finds those.
MOST_VALUES = 40
NONE = "none"


class Facet(NamedTuple):
    """A way to tell cases apart: the values that occur, and for each case the numbers of those that it has."""

    key: str
    title: str
    values: list[str]
    of_cases: list[list[int]]


def find_facets(entries: Sequence[ReportEntry], kinds: Sequence[Sequence[str]]) -> list[Facet]:
    """Those that some cases differ in. `kinds` are the kinds of caveats that each entry has."""
    judged = any(entry.judgement is not None for entry in entries)
    read: tuple[tuple[str, str, Callable[[ReportEntry], Sequence[str]]], ...] = (
        ("verdict", "Verdict" if judged else "Result", lambda entry: [find_status(entry).value]),
        ("suite", "Suite", lambda entry: [entry.case.suite]),
        ("language", "Language", lambda entry: [entry.case.autolabels.as_dict["language"]]),
        ("runtime", "Runtime", lambda entry: [entry.case.autolabels.as_dict["runtime"]]),
        ("autograd", "Autograd", lambda entry: [entry.case.autolabels.as_dict["autograd"]]),
        ("threads", "Threads", lambda entry: [str(entry.case.args.num_threads)]),
        ("stage", "Stage", lambda entry: [stage.stage] if (stage := find_main_stage(entry)) else []),
        ("tag", "Tag", lambda entry: entry.case.tags),
    )
    facets = [_make_facet(key, title, [ask(entry) for entry in entries]) for key, title, ask in read]
    facets.append(_make_facet("caveat", "Caveat", [[kind.replace("_", " ") for kind in one] for one in kinds]))
    return [facet for facet in facets if 1 < len(facet.values) <= MOST_VALUES]


def _make_facet(key: str, title: str, found: Sequence[Sequence[str]]) -> Facet:
    """What a case does not have is a value too, where others have one."""
    texts = [list(dict.fromkeys(printable(text) or NONE for text in one)) or [NONE] for one in found]
    order = {status.value: i for i, status in enumerate(EntryStatus)}
    values = sorted({text for one in texts for text in one}, key=lambda text: (text == NONE, order.get(text, 0), text))
    numbers = {text: i for i, text in enumerate(values)}
    return Facet(key, title, values, [[numbers[text] for text in one] for one in texts])


class CaseRow(NamedTuple):
    """A case in the table."""

    id: str
    heading: str
    leaf: str
    words: tuple[str, ...]
    stmt: str
    cells: list[Cell]


def arrange(report: ReportData) -> ReportData:
    """The same with what changed most first; results of a single side stay in the order of their suite."""
    if not is_compared(report):
        return report
    return dataclasses.replace(
        report, entries=tuple(sorted(report.entries, key=lambda one: fill_status(one).key or 0.0))
    )


def make_table(report: ReportData, doubts: Sequence[Sequence[Doubt]]) -> tuple[list[Column], list[CaseRow]]:
    """The columns besides that of the names, and a row for each entry; `doubts` are those of each."""
    columns = choose_columns(report.entries, compared=is_compared(report))
    variants = Variants(entry.case for entry in report.entries)
    rows = [
        CaseRow(
            identify_row(entry.case),
            variants.heading(entry.case),
            variants.leaf(entry.case),
            variants.words(entry.case),
            printable(one_line(entry.case.args.stmt.strip())),
            [column.fill(entry) for column in columns],
        )
        for entry in report.entries
    ]
    if any(doubts):
        columns = [*columns, Column("doubts", "Caveats", "How many reasons there are to doubt it", 3, lambda _: Cell())]
        for row, found in zip(rows, doubts, strict=True):
            row.cells.append(Cell(str(len(found)) if found else "", len(found)))
    return columns, rows
