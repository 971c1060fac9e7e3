"""The numbers of a case, a row each and a column for each party."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from torchmark.model.compiling import CompileCosts
from torchmark.model.dossier import Entry
from torchmark.model.summary import CaseSummary, CountSummary, WallSummary
from torchmark.report.printable import count
from torchmark.report.units import format_deviation, format_range, format_time, show_allocations, show_share
from torchmark.stats.order import quantile

NOTHING = "–"


def list_numbers(entry: Entry) -> list[tuple[str, list[str]]]:
    """What there is, in the order in which people ask; rows that nobody has are left out."""
    rows = [(name, [NOTHING if one is None else _ask(one, field) for one in entry.exhibits]) for name, field in _ROWS]
    return [(name, texts) for name, texts in rows if any(text != NOTHING for text in texts)]


def _ask(summary: CaseSummary, field: Callable[[CaseSummary], str]) -> str:
    return field(summary) or NOTHING


def _of_times(field: Callable[[WallSummary], str]) -> Callable[[CaseSummary], str]:
    return lambda summary: "" if summary.wall is None else field(summary.wall)


def _of_counts(field: Callable[[CountSummary], str]) -> Callable[[CaseSummary], str]:
    return lambda summary: "" if summary.count is None else field(summary.count)


def _of_compiling(field: Callable[[CompileCosts], str]) -> Callable[[CaseSummary], str]:
    return _of_times(lambda wall: "" if wall.compiling is None else field(wall.compiling))


def _show_interval(wall: WallSummary) -> str:
    interval = wall.interval
    return "" if interval is None else format_range(interval.low, interval.high)


def _show_deviation(wall: WallSummary) -> str:
    times = wall.times
    return "" if times.std is None else format_deviation(times.mean, times.std)


def _show_median(times: Sequence[float]) -> str:
    return format_time(quantile(sorted(times), 0.5)) if times else ""


_ROWS: tuple[tuple[str, Callable[[CaseSummary], str]], ...] = (
    ("Median", _of_times(lambda wall: format_time(wall.times.median))),
    ("95 % interval", _of_times(_show_interval)),
    ("Middle half", _of_times(lambda wall: format_range(wall.times.p25, wall.times.p75))),
    ("Range", _of_times(lambda wall: format_range(wall.times.minimum, wall.times.maximum))),
    ("Mean ± std", _of_times(_show_deviation)),
    ("Samples", _of_times(lambda wall: f"{wall.times.samples:,}")),
    ("Instructions", _of_counts(lambda one: f"{one.instructions:,.0f}")),
    ("Spread", _of_counts(lambda one: "" if one.spread is None else show_share(one.spread))),
    ("Counted in", _of_counts(lambda one: f"{count(len(one.totals), 'layout')}, {count(one.number, 'run')} each")),
    ("Empty loop", _of_counts(lambda one: "" if one.baseline is None else f"{one.baseline:,.0f} instructions")),
    ("Allocations", _of_counts(lambda one: show_allocations(one.allocations))),
    ("Tensors allocated", _of_counts(lambda one: show_allocations(one.tensor_allocations))),
    ("Guards and call", _of_compiling(lambda costs: _show_median(costs.call.per_run))),
    ("First compile", _of_compiling(lambda costs: format_time(costs.cold_s))),
    ("Compile again", _of_compiling(lambda costs: format_time(costs.warm_s))),
    ("Graphs, breaks", _of_compiling(lambda costs: f"{costs.graphs}, {costs.graph_breaks}")),
)
