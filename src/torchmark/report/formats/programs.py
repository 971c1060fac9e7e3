"""Runs in the formats of other programs: Google Benchmark, pyperf, pytest-benchmark, trackers of results.

Apart from the tables: each function here is bound to the format of another program.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Iterator, Sequence
from typing import Any

from torchmark.analysis.results import list_nodes
from torchmark.errors import UsageError
from torchmark.model.outcome import Outcome
from torchmark.model.plan import Metric
from torchmark.model.run import CountSummary, Run, WallSummary
from torchmark.model.task import Summary
from torchmark.report.formats.entries import (
    NS_PER_S,
    ExportEntry,
    dump_json,
    make_unique,
    moment,
    name_processors,
    one_line,
    per_run,
    present,
    require_entries,
    shorten,
    to_json_compiling,
    to_json_counts,
    to_json_nodes,
)
from torchmark.report.text.terminal import count

# Of the format, as Google Benchmark 1.9 writes it.
SCHEMA_VERSION = 1


def write_google(run: Run) -> str:
    """Times in nanoseconds; counts and what compiling cost are counters of the same benchmark."""
    timed = [entry for entry in require_entries(run, Metric.WALL) if entry.timed]
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
    rows = [row for index, entry in enumerate(timed) for row in _write_google_entry(index, entry)]
    return dump_json({"context": present(context), "benchmarks": rows})


def _write_google_entry(index: int, entry: ExportEntry) -> Iterator[dict[str, Any]]:
    summary, wall = entry.summary, entry.summary.wall
    assert wall is not None
    head = {
        "family_index": index,
        "per_family_instance_index": 0,
        "run_name": entry.name,
        "repetitions": wall.times.samples,
        "threads": summary.case.args.num_threads,
    }
    counters = {**to_json_counts(summary), **to_json_compiling(wall.compiling)}
    yield from ({**head, **row, **counters} for row in _write_blocks(entry))
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
    """As Google Benchmark has them, which has none of a single repetition."""
    if times.std is None:
        return
    for name, value, unit in (
        ("mean", times.mean * NS_PER_S, "time"),
        ("median", times.median * NS_PER_S, "time"),
        ("stddev", times.std * NS_PER_S, "time"),
        ("cv", times.std / times.mean if times.mean else 0.0, "percentage"),
    ):
        yield {
            "name": f"{run_name}_{name}",
            "run_type": "aggregate",
            "aggregate_name": name,
            "aggregate_unit": unit,
            "iterations": times.samples,
            **_in_ns(value),
        }


def _in_ns(value: float) -> dict[str, Any]:
    return {"real_time": value, "cpu_time": value, "time_unit": "ns"}


# The file format, which pyperf 1.0 and all later ones read.
VERSION = "1.0"
COUNT_SUFFIX = " (instructions)"
# Stands for all benchmarks on pyperf's command line, and is no tag.
NO_TAG = "all"


def write_pyperf(run: Run) -> str:
    """Times in seconds, and instructions as benchmarks of their own. pyperf takes nothing but positive values."""
    entries = require_entries(run, Metric.WALL, Metric.COUNT)
    benchmarks = [benchmark for entry in entries for benchmark in _write_pyperf_entry(entry)]
    host, info = run.info.host, run.info
    own = None if list_nodes(run.outcomes, host) else host
    shared = {
        "cpu_model_name": own and own.cpu_model,
        "cpu_count": own and own.cores_online,
        "platform": host.system,
        "torchmark_version": info.torchmark,
        "torchmark_run": info.name or info.id,
    }
    return dump_json({"version": VERSION, "benchmarks": benchmarks, "metadata": _clean(shared)})


def _write_pyperf_entry(entry: ExportEntry) -> Iterator[dict[str, Any]]:
    timed = [(outcome, times.number_per_run, list(times.per_run)) for outcome, times in entry.timed]
    wall = entry.summary.wall
    yield from _write_benchmark(entry, entry.name, "second", timed, to_json_compiling(wall.compiling if wall else None))
    counted = [
        (outcome, tally.number, [per_run(total, tally.number) for total in tally.totals])
        for outcome, tally in entry.counted
    ]
    yield from _write_benchmark(entry, f"{entry.name}{COUNT_SUFFIX}", "integer", counted, {})


_Values = list[tuple[Outcome, int, list[float]]]


def _write_benchmark(
    entry: ExportEntry, name: str, unit: str, rounds: _Values, more: dict[str, float]
) -> Iterator[dict[str, Any]]:
    if not rounds or not all(value > 0 for _, _, values in rounds for value in values):
        return
    # pyperf refuses a benchmark whose runs come from different interpreters or processors.
    first, *others = [_describe(outcome) for outcome, _, _ in rounds]
    common = {key: value for key, value in first.items() if all(other.get(key) == value for other in others)}
    metadata = {
        "name": name,
        "unit": unit,
        "tags": [tag for tag in map(one_line, entry.summary.case.tags) if tag not in ("", NO_TAG)] or None,
        **common,
        **more,
    }
    runs = [{"values": values, "metadata": _describe_run(outcome, loops)} for outcome, loops, values in rounds]
    yield {"metadata": _clean(metadata), "runs": runs}


def _describe_run(outcome: Outcome, loops: int) -> dict[str, Any]:
    metadata = {
        "loops": loops,
        "date": moment(outcome.began).replace(tzinfo=None).isoformat(" "),
        "duration": max(0.0, outcome.ended - outcome.began),
        "node": None if outcome.node is None else outcome.node.name,
    }
    return _clean(metadata)


def _describe(outcome: Outcome) -> dict[str, Any]:
    described: dict[str, Any] = {} if outcome.node is None else {"cpu_model_name": outcome.node.cpu_model}
    if (environment := outcome.environment) is not None:
        described |= {
            "python_version": environment.python_version,
            "python_executable": environment.python,
            "torch_version": environment.torch_version,
            "torch_commit": environment.torch_commit,
            "cpu_capability": environment.cpu_capability,
            "valgrind": environment.valgrind,
        }
    return described


def _clean(metadata: dict[str, Any]) -> dict[str, Any]:
    """pyperf refuses texts that are empty or have several lines."""
    return present({name: one_line(value) if isinstance(value, str) else value for name, value in metadata.items()})


# How far from the quartiles, in interquartile ranges, a value may lie that is no outlier: Tukey's rule.
FENCE = 1.5


def write_pytest_benchmark(run: Run) -> str:
    """Times in seconds; counts and what compiling cost are extra information."""
    entries = require_entries(run, Metric.WALL)
    source = run.info.sources[0] if run.info.sources else None
    return dump_json(
        {
            "machine_info": _describe_machine(run, entries),
            "commit_info": {} if source is None else {"id": source.commit, "dirty": source.dirty},
            "benchmarks": [_write_pytest_entry(run, entry) for entry in entries if entry.timed],
            "datetime": moment(run.info.created).isoformat(),
            "version": f"torchmark {run.info.torchmark}",
        }
    )


def _describe_machine(run: Run, entries: tuple[ExportEntry, ...]) -> dict[str, Any]:
    host, nodes = run.info.host, list_nodes(run.outcomes, run.info.host)
    environment = next((one.environment for entry in entries for one, _ in entry.timed if one.environment), None)
    own = {"brand_raw": host.cpu_model, "count": host.cores_online}
    cpu = {"brand_raw": name_processors(nodes)} if nodes else own
    return {
        "system": host.system,
        "python_version": environment.python_version if environment else None,
        "torch_version": environment.torch_version if environment else None,
        "cpu": present(cpu),
        **({"node": ", ".join(node.name for node in nodes)} if nodes else {}),
    }


def _write_pytest_entry(run: Run, entry: ExportEntry) -> dict[str, Any]:
    summary, wall = entry.summary, entry.summary.wall
    assert wall is not None
    case = summary.case
    params = {**case.autolabels.as_dict, "threads": case.args.num_threads}
    if summary.target.name:
        params["target"] = summary.target.name
    return {
        "group": one_line(" / ".join(case.label)) or None,
        "name": entry.name,
        "fullname": f"{one_line(case.suite) or 'torchmark'}::{entry.name}",
        "params": params,
        "param": None,
        "extra_info": {**to_json_counts(summary), **to_json_compiling(wall.compiling), **to_json_nodes(summary)},
        "options": {"min_time": run.plan.sampling.min_run_time_s},
        "stats": {**_describe_times(wall), "iterations": entry.timed[0][1].number_per_run},
    }


def _describe_times(wall: WallSummary) -> dict[str, Any]:
    """The statistics that pytest-benchmark shows; quartiles are those of all our tables."""
    times, samples = wall.times, wall.samples_s
    low, high = times.p25 - FENCE * times.iqr, times.p75 + FENCE * times.iqr
    std = times.std or 0.0
    far = sum(not times.mean - std <= t <= times.mean + std for t in samples)
    beyond = sum(not low <= t <= high for t in samples)
    return {
        "min": times.minimum,
        "max": times.maximum,
        "mean": times.mean,
        "stddev": std,
        "rounds": times.samples,
        "median": times.median,
        "iqr": times.iqr,
        "q1": times.p25,
        "q3": times.p75,
        "iqr_outliers": beyond,
        "stddev_outliers": far,
        "outliers": f"{far};{beyond}",
        "ld15iqr": min(t for t in samples if t >= low),
        "hd15iqr": max(t for t in samples if t <= high),
        # The reciprocal of the shortest times there are is no number; 0 is what pytest-benchmark writes for none.
        "ops": min(1 / times.mean, sys.float_info.max) if times.mean else 0,
        "total": sum(samples),
        "data": list(samples),
    }


# What Bencher takes for a name. It says characters; bytes are never fewer.
LONGEST_NAME = 1024


def write_github_action(run: Run) -> str:
    """A list for the tool `customSmallerIsBetter`: an item for each metric of each case."""
    entries = require_entries(run, Metric.WALL, Metric.COUNT)
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
    if (costs := wall.compiling) is not None:
        yield {"name": f"{entry.name} (compile, empty cache)", "unit": "s", "value": costs.cold_s}
        yield {"name": f"{entry.name} (compile, from cache)", "unit": "s", "value": costs.warm_s}


def _span(low: float, high: float) -> str:
    return f"{low:.6g} to {high:.6g}"


def write_bmf(run: Run) -> str:
    """Bencher Metric Format: `latency` in nanoseconds, `instructions`, and what compiling cost in seconds."""
    entries = require_entries(run, Metric.WALL, Metric.COUNT)
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
    totals, number = counts.totals, counts.number
    return None if len(totals) < 2 else (min(totals) / number, max(totals) / number)


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
    values = _list_values(require_entries(run, Metric.WALL, Metric.COUNT))
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
            times = [t for _, times in entry.timed for t in times.per_run]
            counts = [round(total * RUNS / tally.number) for _, tally in entry.counted for total in tally.totals]
            values[key] = {"times": times, "counts": counts}
    return values
