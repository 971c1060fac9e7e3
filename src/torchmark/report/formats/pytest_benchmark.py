"""The JSON that pytest-benchmark saves: cases of one label are a group, a block is a round."""

from __future__ import annotations

import sys
from typing import Any

from torchmark.analysis.results import list_nodes
from torchmark.model.plan import Metric
from torchmark.model.run import Run
from torchmark.model.summary import WallSummary
from torchmark.report.formats.entries import (
    ExportEntry,
    dump_json,
    list_entries,
    moment,
    name_processors,
    one_line,
    plain_compiling,
    plain_counts,
    plain_nodes,
    present,
    require,
)

# How far from the quartiles, in interquartile ranges, a value may lie that is no outlier: Tukey's rule.
FENCE = 1.5


def write_pytest_benchmark(run: Run) -> str:
    """Times in seconds; counts and what compiling cost are extra information."""
    entries = list_entries(run)
    require(run, entries, Metric.WALL)
    source = run.info.sources[0] if run.info.sources else None
    return dump_json(
        {
            "machine_info": _describe_machine(run, entries),
            "commit_info": {} if source is None else {"id": source.commit, "dirty": source.dirty},
            "benchmarks": [_write_entry(run, entry) for entry in entries if entry.timed],
            "datetime": moment(run.info.created).isoformat(),
            "version": f"torchmark {run.info.torchmark}",
        }
    )


def _describe_machine(run: Run, entries: tuple[ExportEntry, ...]) -> dict[str, Any]:
    host, nodes = run.info.host, list_nodes(run.outcomes, run.info.host)
    environments = (outcome.environment for entry in entries for outcome, _ in entry.timed)
    environment = next(filter(None, environments), None)
    return {
        "system": host.system,
        "python_version": environment.python_version if environment else None,
        "torch_version": environment.torch_version if environment else None,
        "cpu": present(
            {"brand_raw": name_processors(nodes)}
            if nodes
            else {"brand_raw": host.cpu_model, "count": host.cores_online}
        ),
        **({"node": ", ".join(node.name for node in nodes)} if nodes else {}),
    }


def _write_entry(run: Run, entry: ExportEntry) -> dict[str, Any]:
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
        "extra_info": {**plain_counts(summary), **plain_compiling(wall.compiling), **plain_nodes(summary)},
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
