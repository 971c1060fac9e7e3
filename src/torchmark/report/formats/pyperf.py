"""A suite for pyperf: a benchmark for each case, a run for each round, a value for each block."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from torchmark.analysis.results import list_nodes
from torchmark.model.environment import Environment
from torchmark.model.outcome import Outcome
from torchmark.model.plan import Metric
from torchmark.model.run import Run
from torchmark.report.formats.entries import (
    ExportEntry,
    dump_json,
    list_entries,
    moment,
    one_line,
    per_run,
    plain_compiling,
    present,
    require,
)

# The file format, which pyperf 1.0 and all later ones read.
VERSION = "1.0"
COUNT_SUFFIX = " (instructions)"
# Stands for all benchmarks on pyperf's command line, and is no tag.
NO_TAG = "all"


def write_pyperf(run: Run) -> str:
    """Times in seconds, and instructions as benchmarks of their own. pyperf takes nothing but positive values."""
    entries = list_entries(run)
    require(run, entries, Metric.WALL, Metric.COUNT)
    benchmarks = [benchmark for entry in entries for benchmark in _write_entry(entry)]
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


def _write_entry(entry: ExportEntry) -> Iterator[dict[str, Any]]:
    timed = [(outcome, times.number_per_run, list(times.per_run)) for outcome, times in entry.timed]
    wall = entry.summary.wall
    yield from _write_benchmark(entry, entry.name, "second", timed, plain_compiling(wall.compiling if wall else None))
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
    case = entry.summary.case
    metadata = {
        "name": name,
        "unit": unit,
        "tags": [tag for tag in map(one_line, case.tags) if tag not in ("", NO_TAG)] or None,
        **_common([_describe(outcome) for outcome, _, _ in rounds]),
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
    environment, node = outcome.environment, outcome.node
    known = {} if node is None else {"cpu_model_name": node.cpu_model}
    return known | ({} if environment is None else _describe_environment(environment))


def _describe_environment(environment: Environment) -> dict[str, Any]:
    return {
        "python_version": environment.python_version,
        "python_executable": environment.python,
        "torch_version": environment.torch_version,
        "torch_commit": environment.torch_commit,
        "cpu_capability": environment.cpu_capability,
        "valgrind": environment.valgrind,
    }


def _common(descriptions: list[dict[str, Any]]) -> dict[str, Any]:
    """What all rounds share: pyperf refuses a benchmark whose runs come from other interpreters or processors."""
    first, *others = descriptions
    return {name: value for name, value in first.items() if all(other.get(name) == value for other in others)}


def _clean(metadata: dict[str, Any]) -> dict[str, Any]:
    """pyperf refuses texts that are empty or have several lines."""
    texts = {name: one_line(value) if isinstance(value, str) else value for name, value in metadata.items()}
    return present(texts)
