"""Runs and what is said of their cases as plain values for JSON, with the unit in each name."""

from __future__ import annotations

import dataclasses
from typing import Any

from torchmark.model.compiling import CompileCosts
from torchmark.model.outcome import Failure
from torchmark.model.run import RunInfo
from torchmark.model.summary import CaseSummary, CountSummary, WallSummary
from torchmark.report.export import plain_caveat, plain_summary


def plain_run(info: RunInfo) -> dict[str, Any]:
    """All that is known of a run without its results; moments are seconds since 1970."""
    plain = {**dataclasses.asdict(info), "options": {name: list(values) for name, values in info.options}}
    del plain["seal"]  # it means something to this program alone
    return plain


def plain_case_summary(summary: CaseSummary) -> dict[str, Any]:
    """What is said of a case in one environment; null for what was not measured."""
    case = summary.case
    return {
        "key": case.key,
        "label": list(case.label),
        "autolabels": case.autolabels.as_dict,
        "num_threads": case.args.num_threads,
        "suite": case.suite,
        "tags": list(case.tags),
        "target": summary.target.name,
        "wall": None if summary.wall is None else _plain_wall(summary.wall),
        "count": None if summary.count is None else _plain_count(summary.count),
        "failures": [{"metric": metric.value, **plain_failure(failure)} for metric, failure in summary.failures],
        "caveats": [plain_caveat(caveat) for caveat in summary.caveats],
        "unchecked": summary.unchecked,
        "missing": [metric.value for metric in summary.missing],
        "nodes": [dataclasses.asdict(node) for node in summary.nodes],
    }


def _plain_wall(wall: WallSummary) -> dict[str, Any]:
    interval = wall.interval
    return {
        **plain_summary(wall.times),
        "interval": None
        if interval is None
        else {"low_s": interval.low, "high_s": interval.high, "confidence": interval.confidence},
        "compiling": None if wall.compiling is None else _plain_compiling(wall.compiling),
    }


def _plain_compiling(costs: CompileCosts) -> dict[str, Any]:
    return {
        "cold_s": costs.cold_s,
        "warm_s": costs.warm_s,
        "from_cache": costs.warm.cache_hits > 0,
        "call_s": list(costs.call.per_run),
        "graphs": costs.graphs,
        "graph_breaks": costs.graph_breaks,
        "breaks": list(costs.cold.breaks),
        "abandoned": costs.cold.abandoned,
    }


def _plain_count(count: CountSummary) -> dict[str, Any]:
    return {
        "instructions_per_run": count.instructions,
        "spread": count.spread,
        "allocations_per_run": count.allocations,
        "tensor_allocations_per_run": count.tensor_allocations,
        "baseline_per_run": count.baseline,
        "number_per_run": count.number,
        "totals": list(count.totals),
    }


def plain_failure(failure: Failure) -> dict[str, Any]:
    """All that is known of a failure."""
    return {**dataclasses.asdict(failure), "kind": failure.kind.value}
