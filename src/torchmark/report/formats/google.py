"""The JSON of Google Benchmark: a repetition for each block, and aggregates of them.

torchmark does not measure the time that processors were busy, and `compare.py` cannot do without: `cpu_time` is the
same number as `real_time`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from torchmark.analysis.results import list_nodes
from torchmark.model.plan import Metric
from torchmark.model.run import Run
from torchmark.model.summary import Summary
from torchmark.report.formats.entries import (
    NS_PER_S,
    ExportEntry,
    dump_json,
    list_entries,
    moment,
    name_processors,
    plain_compiling,
    plain_counts,
    present,
    require,
)

# Of the format, as Google Benchmark 1.9 writes it.
SCHEMA_VERSION = 1


def write_google(run: Run) -> str:
    """Times in nanoseconds; counts and what compiling cost are counters of the same benchmark."""
    entries = list_entries(run)
    require(run, entries, Metric.WALL)
    timed = [entry for entry in entries if entry.timed]
    host, info, nodes = run.info.host, run.info, list_nodes(run.outcomes, run.info.host)
    context = {
        "date": moment(info.created).isoformat(timespec="seconds"),
        "executable": "torchmark",
        "num_cpus": None if nodes else host.cores_online,
        "library_version": info.torchmark,
        "library_build_type": "release",
        "json_schema_version": SCHEMA_VERSION,
        "torchmark_run": info.name or info.id,
        "system": host.system,
        "cpu_model": name_processors(nodes) if nodes else host.cpu_model,
        "nodes": ", ".join(node.name for node in nodes),
    }
    rows = [row for index, entry in enumerate(timed) for row in _write_entry(index, entry)]
    return dump_json({"context": present(context), "benchmarks": rows})


def _write_entry(index: int, entry: ExportEntry) -> Iterator[dict[str, Any]]:
    summary, wall = entry.summary, entry.summary.wall
    assert wall is not None
    head = {
        "family_index": index,
        "per_family_instance_index": 0,
        "run_name": entry.name,
        "repetitions": wall.times.samples,
        "threads": summary.case.args.num_threads,
    }
    counters = {**plain_counts(summary), **plain_compiling(wall.compiling)}
    for row in _write_blocks(entry):
        yield {**head, **row, **counters}
    for row in _write_aggregates(entry.name, wall.times):
        yield {**head, **row, **(counters if row["aggregate_name"] in ("mean", "median") else {})}


def _write_blocks(entry: ExportEntry) -> Iterator[dict[str, Any]]:
    blocks = ((times.number_per_run, t) for _, times in entry.timed for t in times.per_run)
    for number, (iterations, seconds) in enumerate(blocks):
        yield {
            "name": entry.name,
            "run_type": "iteration",
            "repetition_index": number,
            "iterations": iterations,
            **_in_ns(seconds * NS_PER_S),
        }


def _write_aggregates(run_name: str, times: Summary) -> Iterator[dict[str, Any]]:
    for name, value, unit in _aggregate(times):
        yield {
            "name": f"{run_name}_{name}",
            "run_type": "aggregate",
            "aggregate_name": name,
            "aggregate_unit": unit,
            "iterations": times.samples,
            **_in_ns(value),
        }


def _aggregate(times: Summary) -> Iterator[tuple[str, float, str]]:
    """As Google Benchmark has them, which has none of a single repetition."""
    if times.std is None:
        return
    yield "mean", times.mean * NS_PER_S, "time"
    yield "median", times.median * NS_PER_S, "time"
    yield "stddev", times.std * NS_PER_S, "time"
    yield "cv", times.std / times.mean if times.mean else 0.0, "percentage"


def _in_ns(value: float) -> dict[str, Any]:
    return {"real_time": value, "cpu_time": value, "time_unit": "ns"}
