"""What a report holds back until a case is opened: drawings, functions and commands, as data for the page's script.

Apart from the page: data for its script, where the page is HTML.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from torchmark.model.costs import Flame
from torchmark.model.judgement import FunctionChange, Side, StageChange
from torchmark.model.outcome import CompileCosts
from torchmark.model.plan import Case
from torchmark.model.report_data import Breakdown, Drawing, ReportData, ReportEntry, ReportSide
from torchmark.model.run import CaseSummary, CountSummary, WallSummary
from torchmark.report.caveats import describe_caveat
from torchmark.report.html.report_rows import CaseRow, Column, Texts, find_facets, pack_samples, shorten_number
from torchmark.report.html.report_story import Doubt
from torchmark.report.plots.comparison import draw_differences
from torchmark.report.plots.svg import stage_colour
from torchmark.report.text.failures import VERBS, describe_failure
from torchmark.report.text.terminal import count, format_lines, printable
from torchmark.report.text.units import (
    format_allocations,
    format_delta,
    format_deviation,
    format_edges,
    format_range,
    format_share_cell,
    format_time,
)
from torchmark.report.text.verdict_reasons import describe_facts, describe_verdict
from torchmark.stats.distribution import quantile

NOTHING = "–"


def list_numbers(entry: ReportEntry) -> list[tuple[str, list[str]]]:
    """What there is, in the order in which people ask; rows that nobody has are left out."""
    rows = [(name, ["" if one is None else field(one) for one in entry.summaries]) for name, field in _ROWS]
    return [(name, [text or NOTHING for text in texts]) for name, texts in rows if any(texts)]


def _of_times(field: Callable[[WallSummary], str]) -> Callable[[CaseSummary], str]:
    return lambda summary: "" if summary.wall is None else field(summary.wall)


def _of_counts(field: Callable[[CountSummary], str]) -> Callable[[CaseSummary], str]:
    return lambda summary: "" if summary.count is None else field(summary.count)


def _of_compiling(field: Callable[[CompileCosts], str]) -> Callable[[CaseSummary], str]:
    return _of_times(lambda wall: "" if wall.compiling is None else field(wall.compiling))


def _format_interval(wall: WallSummary) -> str:
    interval = wall.interval
    return "" if interval is None else format_range(interval.low, interval.high)


def _format_deviation(wall: WallSummary) -> str:
    times = wall.times
    return "" if times.std is None else format_deviation(times.mean, times.std)


def _format_median(times: Sequence[float]) -> str:
    return format_time(quantile(sorted(times), 0.5)) if times else ""


_ROWS: tuple[tuple[str, Callable[[CaseSummary], str]], ...] = (
    ("Median", _of_times(lambda wall: format_time(wall.times.median))),
    ("95 % interval", _of_times(_format_interval)),
    ("Middle half", _of_times(lambda wall: format_range(wall.times.p25, wall.times.p75))),
    ("Range", _of_times(lambda wall: format_range(wall.times.minimum, wall.times.maximum))),
    ("Mean ± std", _of_times(_format_deviation)),
    ("Samples", _of_times(lambda wall: f"{wall.times.samples:,}")),
    ("Instructions", _of_counts(lambda one: f"{one.instructions:,.0f}")),
    ("Spread", _of_counts(lambda one: "" if one.spread is None else format_share_cell(one.spread))),
    ("Counted in", _of_counts(lambda one: f"{count(len(one.totals), 'layout')}, {count(one.number, 'run')} each")),
    ("Empty loop", _of_counts(lambda one: "" if one.baseline is None else f"{one.baseline:,.0f} instructions")),
    ("Allocations", _of_counts(lambda one: format_allocations(one.allocations))),
    ("Tensors allocated", _of_counts(lambda one: format_allocations(one.tensor_allocations))),
    ("Guards and call", _of_compiling(lambda costs: _format_median(costs.call.per_run))),
    ("First compile", _of_compiling(lambda costs: format_time(costs.cold_s))),
    ("Compile again", _of_compiling(lambda costs: format_time(costs.warm_s))),
    ("Graphs, breaks", _of_compiling(lambda costs: f"{costs.graphs}, {costs.graph_breaks}")),
)


def pack_details(entry: ReportEntry, report: ReportData, doubts: list[str], texts: Texts) -> dict[str, Any]:
    """What a row opens to; what there is nothing to say of is left out."""
    number, samples = texts.number, [pack_samples(one) for one in _list_samples(entry)]
    about = "Each side is shown alone, without a difference."
    apart = [" ".join([about, *map(describe_caveat, entry.obstacles)])] if entry.obstacles else []
    found: dict[str, Any] = {
        "numbers": [[number(name), *map(number, values)] for name, values in list_numbers(entry)],
        "doubts": [number(text) for text in doubts],
        "notes": [number(format_lines(text)) for text in (*entry.notes, *apart)],
        "labels": [[number(name), number(text)] for name, text in _list_labels(entry.case)],
        "code": [[number(name), number(text)] for name, text in _list_code(entry)],
        "commands": [[number(printable(one.about)), number(format_lines(one.text))] for one in entry.commands],
        "failures": [[number(title), number(text)] for title, text in _list_failures(entry, report)],
        "drawings": [[number(printable(one.caption)), number(one.svg)] for one in _list_drawings(entry)],
        "samples": samples if any(samples) else [],
        "extremes": _list_extremes(entry),
    }
    if entry.judgement is not None:
        found["verdict"] = number(describe_verdict(entry.judgement))
        found["facts"] = [[number(name), number(text)] for name, text in describe_facts(entry.judgement)]
    if entry.breakdown is not None:
        found |= _pack_breakdown(entry.breakdown, texts)
    if entry.obstacles:
        found["apart"] = 1
    return {key: value for key, value in found.items() if value != []}


def _list_extremes(entry: ReportEntry) -> list[tuple[str, str, float] | None]:
    """The median and the maximum as texts, and the maximum in seconds: samples may be reduced to quantiles."""
    ordered = [sorted(t for t in samples if math.isfinite(t)) for samples in _list_samples(entry)]
    found = [
        (format_time(quantile(times, 0.5)), format_edges(times[0], times[-1])[1], times[-1]) if times else None
        for times in ordered
    ]
    return found if any(found) else []


def _list_samples(entry: ReportEntry) -> list[tuple[float, ...]]:
    """Seconds of a run for each side; of times in turns, a value for each visit of a layout."""
    samples = [() if one is None or one.wall is None else one.wall.samples_s for one in entry.summaries]
    time = None if entry.judgement is None else entry.judgement.time
    if any(samples) or time is None:
        return samples
    return [tuple(t for visit in time.visits for t in getattr(visit, side)) for side in ("base_s", "head_s")]


def _list_drawings(entry: ReportEntry) -> Iterator[Drawing]:
    """Those that the entry brings, or else what taking turns showed."""
    time = None if entry.judgement is None else entry.judgement.time
    if not entry.drawings and time is not None and any(visit.log_ratios for visit in time.visits):
        yield Drawing("How much longer head takes than base, layout by layout.", draw_differences(time))
    yield from entry.drawings


def _pack_breakdown(breakdown: Breakdown, texts: Texts) -> dict[str, Any]:
    """Functions and stages with base's and head's instructions; null for a side that was not counted."""

    def pack(change: FunctionChange | StageChange) -> list[float | int | None]:
        return [None if cost is None else shorten_number(cost) for cost in breakdown.list_costs(change)]

    functions = [
        [texts.number(printable(one.function)), texts.number(one.stage), *pack(one)] for one in breakdown.functions
    ]
    stages = [[texts.number(one.stage), *pack(one)] for one in breakdown.stages if one.base or one.head]
    totals = [texts.number(text) for text in _list_totals(breakdown)]
    packed: dict[str, Any] = {"functions": functions, "stages": stages, "totals": totals}
    if breakdown.rest is not None:
        packed["rest"] = [breakdown.others, *pack(breakdown.rest)]
    return packed


def _list_totals(breakdown: Breakdown) -> list[str]:
    """The instructions of base, of head, and their difference, as they are shown elsewhere."""
    costs = [[breakdown.list_costs(stage)[i] for stage in breakdown.stages] for i in range(2)]
    # Adding leaves errors in the last digits: without them a half is rounded as it is elsewhere.
    base, head = (None if None in side else round(math.fsum(filter(None, side)), 6) for side in costs)
    change = NOTHING if base is None or head is None else format_delta(round(head - base, 6))
    return [*(NOTHING if total is None else f"{total:,.0f}" for total in (base, head)), change]


def _list_labels(case: Case) -> Iterator[tuple[str, str]]:
    labels = case.autolabels.as_dict
    yield "Label", printable(" / ".join(case.label))
    for name, text in (
        ("Suite", case.suite),
        *((name.capitalize(), labels[name]) for name in ("language", "runtime", "autograd")),
        ("Threads", str(case.args.num_threads)),
        ("Tags", ", ".join(case.tags)),
    ):
        if text:
            yield name, printable(text)


def _list_code(entry: ReportEntry) -> Iterator[tuple[str, str]]:
    """What was measured; also by base, where that is something else."""
    yield from _list_parts(entry.case, "")
    first, base = entry.summaries[0], None
    if entry.judgement is not None:
        base = entry.judgement.base_case
    elif first is not None and any(obstacle.what == "definition" for obstacle in entry.obstacles):
        base = first.case
    if base is not None:
        yield from _list_parts(base, "Base: ")


def _list_parts(case: Case, prefix: str) -> Iterator[tuple[str, str]]:
    args = case.args
    yield f"{prefix}Statement", format_lines(args.stmt)
    if args.setup.strip() not in ("", "pass"):
        yield f"{prefix}Setup", format_lines(args.setup)
    if args.global_setup.strip():
        yield f"{prefix}Global setup", format_lines(args.global_setup)
    if case.artefact is not None:
        yield f"{prefix}TorchScript model", format_lines(case.artefact.source)


def _list_failures(entry: ReportEntry, report: ReportData) -> Iterator[tuple[str, str]]:
    """A title and all that is known; those of a judgement where the sides' own results tell none."""
    told = False
    for side, summary in zip(report.sides, entry.summaries, strict=True):
        where = f" in {printable(side.name)}" if len(report.sides) > 1 else ""
        for metric, failure in summary.failures if summary is not None else ():
            told = True
            yield f"Failed{where}: {VERBS[metric]}", format_lines(describe_failure(failure))
    if not told and entry.judgement is not None:
        for one in entry.judgement.failures:
            yield f"Failed on {one.side.value}", format_lines(describe_failure(one.failure))


# Figures that sort keys are kept with: no two times of different cases are that close.
KEY_FIGURES = 9


def pack_page(
    report: ReportData, columns: Sequence[Column], rows: Sequence[CaseRow], doubts: Sequence[Sequence[Doubt]]
) -> dict[str, Any]:
    """All but the flame graphs. Lists by case are in the order of the rows."""
    texts = Texts()
    entries = report.entries
    details = [
        pack_details(entry, report, [text for _, text in found], texts)
        for entry, found in zip(entries, doubts, strict=True)
    ]
    stages = dict.fromkeys(
        stage.stage for entry in entries if entry.breakdown is not None for stage in entry.breakdown.stages
    )
    return {
        "parties": [printable(side.name) for side in report.sides],
        "columns": [[one.key, int(one.ascending)] for one in columns],
        "keys": [[_shorten(cell.key) for cell in row.cells] for row in rows],
        "facets": list(map(list, find_facets(entries, [[kind for kind, _ in one] for one in doubts]))),
        "colours": {stage: stage_colour(stage) for stage in stages},
        "details": details,
        "flames": _title_flames(report),
        "texts": texts.entries,
    }


def _shorten(key: float | None) -> float | int | None:
    if key is None or not math.isfinite(key):
        return None
    short = float(f"{key:.{KEY_FIGURES}g}")
    return int(short) if short == int(short) else short


def _title_flames(report: ReportData) -> list[list[str]]:
    """For each case the titles of its flame graphs; a single one needs none, unless it is of one side of two."""
    return [
        [printable(flame.title) for flame in entry.flames]
        if len(entry.flames) > 1
        else [_title_only(entry, flame, report.sides) for flame in entry.flames]
        for entry in report.entries
    ]


def _title_only(entry: ReportEntry, flame: Flame, sides: Sequence[ReportSide]) -> str:
    if len(sides) == 1 or flame.root.base_value is not None:
        return ""
    only = None if entry.breakdown is None else entry.breakdown.only
    return f"{printable(sides[0 if only is Side.BASE else -1].name)}, the only side that was counted"
