"""Exports for trackers of benchmark results, and as arguments for `torch.utils.benchmark`."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from typing import Any

from torchmark.errors import UsageError
from torchmark.model.plan import Metric
from torchmark.model.run import Run
from torchmark.model.summary import CountSummary, WallSummary
from torchmark.report.formats.entries import (
    NS_PER_S,
    ExportEntry,
    dump_json,
    list_entries,
    make_unique,
    require,
    shorten,
)
from torchmark.report.text.terminal import count

# What Bencher takes for a name. It says characters; bytes are never fewer.
LONGEST_NAME = 1024


def write_github_action(run: Run) -> str:
    """A list for the tool `customSmallerIsBetter`: an item for each metric of each case."""
    entries = list_entries(run)
    require(run, entries, Metric.WALL, Metric.COUNT)
    return dump_json([item for entry in entries for item in _list_items(entry)], indent=2)


def _list_items(entry: ExportEntry) -> Iterator[dict[str, Any]]:
    wall, counts = entry.summary.wall, entry.summary.count
    if wall is not None:
        yield from _list_times(entry, wall)
    if counts is not None:
        item = {"name": f"{entry.name} (instructions)", "unit": "instructions", "value": counts.instructions}
        extra = f"{count(len(counts.totals), 'layout')} of {count(counts.number, 'run')}"
        bounds = _bound_counts(counts)
        yield {**item, **({"range": _span(*bounds)} if bounds else {}), "extra": extra}


def _list_times(entry: ExportEntry, wall: WallSummary) -> Iterator[dict[str, Any]]:
    item = {"name": entry.name, "unit": "ns", "value": wall.times.median * NS_PER_S}
    extra = f"median of {count(wall.times.samples, 'sample')}"
    if wall.interval is not None:
        item["range"] = _span(wall.interval.low * NS_PER_S, wall.interval.high * NS_PER_S)
        extra += f"\nrange: {wall.interval.confidence:.1%} interval of the median"
    yield {**item, "extra": extra}
    if wall.compiling is not None:
        costs = wall.compiling
        yield {"name": f"{entry.name} (compile, empty cache)", "unit": "s", "value": costs.cold_s}
        yield {"name": f"{entry.name} (compile, from cache)", "unit": "s", "value": costs.warm_s}


def _span(low: float, high: float) -> str:
    return f"{low:.6g} to {high:.6g}"


def write_bmf(run: Run) -> str:
    """Bencher Metric Format: `latency` in nanoseconds, `instructions`, and what compiling cost in seconds."""
    entries = list_entries(run)
    require(run, entries, Metric.WALL, Metric.COUNT)
    names = make_unique(shorten(entry.name, LONGEST_NAME) for entry in entries)
    measures = ((name, _list_measures(entry)) for name, entry in zip(names, entries, strict=True))
    return dump_json({name: values for name, values in measures if values}, indent=2)


def _list_measures(entry: ExportEntry) -> dict[str, dict[str, float]]:
    wall, counts = entry.summary.wall, entry.summary.count
    measures = {}
    if wall is not None:
        interval = wall.interval
        bounds = None if interval is None else (interval.low * NS_PER_S, interval.high * NS_PER_S)
        measures["latency"] = _measure(wall.times.median * NS_PER_S, bounds)
        if wall.compiling is not None:
            measures["compile-cold"] = _measure(wall.compiling.cold_s, None)
            measures["compile-warm"] = _measure(wall.compiling.warm_s, None)
    if counts is not None:
        measures["instructions"] = _measure(counts.instructions, _bound_counts(counts))
    return measures


def _measure(value: float, bounds: tuple[float, float] | None) -> dict[str, float]:
    return {"value": value, **({"lower_value": bounds[0], "upper_value": bounds[1]} if bounds else {})}


def _bound_counts(counts: CountSummary) -> tuple[float, float] | None:
    """The layouts that cost least and most; None where there is only one."""
    if len(counts.totals) < 2:
        return None
    return min(counts.totals) / counts.number, max(counts.totals) / counts.number


# Of the keys of the standard suite, one behind the other; there and here.
STANDARD_MD5 = "4d55e8abf881ad38bb617a96714c1296"
STANDARD_VERSION = 0
OTHER_VERSION = -1
# Counts are of so many runs there, however many were counted here.
RUNS = 100


def write_upstream(run: Run) -> str:
    """Seconds per run of all blocks, and instructions of 100 runs in all layouts, by case.

    The version is the one of the standard suite only if all of it has both.
    """
    if len(run.plan.targets) > 1:
        names = ", ".join(repr(target.name) for target in run.plan.targets)
        raise UsageError(f"This format cannot tell targets apart: choose one of {names} with --env.")
    entries = list_entries(run)
    require(run, entries, Metric.WALL, Metric.COUNT)
    values = _list_values(entries)
    md5 = hashlib.md5("".join(values).encode(), usedforsecurity=False).hexdigest()
    whole = md5 == STANDARD_MD5 and all(all(results.values()) for results in values.values())
    ended = max((outcome.ended for outcome in run.outcomes), default=run.info.created)
    return dump_json(
        {
            "version": STANDARD_VERSION if whole else OTHER_VERSION,
            "md5": md5,
            "start_time": int(run.info.created),
            "end_time": int(run.info.finished or ended),
            "values": values,
        }
    )


def _list_values(entries: Sequence[ExportEntry]) -> dict[str, dict[str, list[float] | list[int]]]:
    values: dict[str, dict[str, list[float] | list[int]]] = {}
    for entry in entries:
        key = entry.summary.case.key
        if key in values:
            raise UsageError(f"Two cases have the same key in this format: {key}. Choose one of them with -k.")
        if entry.timed or entry.counted:
            values[key] = {"times": _list_block_times(entry), "counts": _list_counts(entry)}
    return values


def _list_block_times(entry: ExportEntry) -> list[float]:
    return [t for _, times in entry.timed for t in times.per_run]


def _list_counts(entry: ExportEntry) -> list[int]:
    return [round(total * RUNS / tally.number) for _, tally in entry.counted for total in tally.totals]
