"""Entries of an export: the results of a case in a target, under a unique name."""

from __future__ import annotations

import dataclasses
import datetime
import hashlib
import json
import math
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from torchmark.analysis.results import choose_rounds, steady_times, summarise_run
from torchmark.errors import StoreError, UsageError
from torchmark.model.costs import Tally
from torchmark.model.outcome import CompileCosts, Outcome
from torchmark.model.plan import Case, Metric, Node, Target
from torchmark.model.run import CaseSummary, Host, Run
from torchmark.model.task import Times
from torchmark.report.text.terminal import count, escape_json, printable


def dump_json(value: object, *, indent: int | None = None) -> str:
    """JSON that every reader takes: no NaN, no infinity."""
    try:
        return escape_json(json.dumps(value, indent=indent, allow_nan=False)) + "\n"
    except ValueError as error:
        raise StoreError("A number of the run is not finite: it cannot be exported.") from error


def to_json_compiling(costs: CompileCosts | None) -> dict[str, float]:
    """What compiling cost, as numbers with units in their names; nothing for what was not compiled."""
    if costs is None:
        return {}
    return {
        "compile_cold_s": costs.cold_s,
        "compile_warm_s": costs.warm_s,
        "graphs": costs.graphs,
        "graph_breaks": costs.graph_breaks,
    }


def to_json_counts(summary: CaseSummary) -> dict[str, float]:
    """Instructions and allocations of one run; nothing for what was not counted."""
    if summary.count is None:
        return {}
    return {
        "instructions": summary.count.instructions,
        "allocations": summary.count.allocations,
        "tensor_allocations": summary.count.tensor_allocations,
    }


def name_processors(nodes: Sequence[Node]) -> str:
    """Each processor once.

    >>> name_processors([Node("a", "EPYC"), Node("b", "Xeon"), Node("c"), Node("d", "EPYC")])
    'EPYC and Xeon'
    """
    return " and ".join(dict.fromkeys(node.cpu_model for node in nodes if node.cpu_model is not None))


def to_json_nodes(summary: CaseSummary) -> dict[str, str]:
    """The names of the nodes that results are of; nothing where that is the run's own machine."""
    return {"nodes": ", ".join(node.name for node in summary.nodes)} if summary.nodes else {}


def moment(seconds: float) -> datetime.datetime:
    """A point in time, in universal time so that it is the same text everywhere."""
    return datetime.datetime.fromtimestamp(seconds, datetime.timezone.utc)


def present(values: dict[str, Any]) -> dict[str, Any]:
    """Without what is not known.

    >>> present({"cpu": None, "system": "", "cores": 2})
    {'cores': 2}
    """
    return {name: value for name, value in values.items() if value not in (None, "")}


WHAT = {Metric.WALL: "times", Metric.COUNT: "counts"}
NS_PER_S = 1e9

Round = tuple[Outcome, Times | Tally | None]


@dataclasses.dataclass(frozen=True)
class ExportEntry:
    """The results of a case in a target that its summary is of, and a name that no other entry of the run has."""

    name: str
    summary: CaseSummary
    timed: tuple[tuple[Outcome, Times], ...]
    """The rounds that have times, with at least one block each."""
    counted: tuple[tuple[Outcome, Tally], ...]


def list_entries(run: Run) -> tuple[ExportEntry, ...]:
    """Every case in every target, also those that have no result, in the order of the plan."""
    rounds: dict[tuple[Case, Target], list[Round]] = {}
    for outcome in sorted(run.outcomes, key=lambda outcome: outcome.order.round):
        rounds.setdefault((outcome.order.case, outcome.order.target), []).append((outcome, _read(outcome)))
    summaries = summarise_run(run)
    suites, targets = len({case.suite for case in run.plan.cases}) > 1, len(run.plan.targets) > 1
    names = make_unique(name_case(s.case, suite=suites, target=s.target if targets else None) for s in summaries)
    return tuple(
        _make_entry(name, summary, rounds.get((summary.case, summary.target), ()), run.info.host)
        for name, summary in zip(names, summaries, strict=True)
    )


def _make_entry(name: str, summary: CaseSummary, rounds: Sequence[Round], host: Host) -> ExportEntry:
    # The others are not in the summary, because they are from places of another kind.
    chosen = {one.order for one in choose_rounds((outcome for outcome, _ in rounds), host).outcomes}
    kept = [(outcome, result) for outcome, result in rounds if outcome.order in chosen]
    timed = tuple((outcome, one) for outcome, one in kept if isinstance(one, Times) and one.raw_times)
    return ExportEntry(name, summary, timed, tuple((outcome, one) for outcome, one in kept if isinstance(one, Tally)))


def require_entries(run: Run, *metrics: Metric) -> tuple[ExportEntry, ...]:
    """All entries; a run that has none of the results that a format can hold is refused."""
    entries = list_entries(run)
    there = {Metric.WALL: any(e.timed for e in entries), Metric.COUNT: any(e.counted for e in entries)}
    if any(there[metric] for metric in metrics):
        return entries
    wanted = " or ".join(WHAT[metric] for metric in metrics)
    others = [WHAT[metric] for metric in there if there[metric]]
    rest = f" It has {others[0]}, which this format has no place for." if others else ""
    raise UsageError(f"Run {run.info.name or run.info.id} has no {wanted} to export.{rest}")


def one_line(text: str) -> str:
    """A text as one line without anything that cannot be seen.

    >>> one_line(" a\\tb\\n c")
    'a b c'
    """
    return " ".join(printable(text).split())


def shorten(name: str, most_bytes: int) -> str:
    """A name for programs that take only so long a one; what is cut off is still told apart.

    >>> shorten("short", 20), len(shorten("x" * 50, 20))
    ('short', 20)
    """
    encoded = name.encode()
    if len(encoded) <= most_bytes:
        return name
    return f"{encoded[: most_bytes - 9].decode(errors='ignore')} {hashlib.sha256(encoded).hexdigest()[:8]}"


def per_run(total: int, number: int) -> int | float:
    """What one of several runs costs; a whole number where it is one.

    >>> per_run(300, 100), per_run(250, 100)
    (3, 2.5)
    """
    return total // number if total % number == 0 else total / number


def name_case(case: Case, *, suite: bool = False, target: Target | None = None) -> str:
    """A case in one line: label, variant and threads, and what else is asked for.

    >>> from torchmark.model.plan import AutogradMode, AutoLabels, RuntimeMode, TimerArgs
    >>> from torchmark.model.task import Language
    >>> labels = AutoLabels(RuntimeMode.EAGER, AutogradMode.FORWARD, Language.CPP)
    >>> name_case(Case(("Pointwise", "add"), labels, TimerArgs("x + 1;")))
    'Pointwise / add / Eager / Forward / C++ / 1 thread'
    """
    parts = (
        case.suite if suite else "",
        *case.label,
        *case.autolabels.as_dict.values(),
        count(case.args.num_threads, "thread"),
        target.name if target else "",
    )
    return " / ".join(filter(None, map(one_line, parts)))


def make_unique(names: Iterable[str]) -> list[str]:
    """Names in their order; what has been there gets a number.

    >>> make_unique(["a", "a", "b", "a #2"])
    ['a', 'a #2', 'b', 'a #2 #2']
    """
    seen: Counter[str] = Counter()
    unique: dict[str, None] = {}
    for name in names:
        chosen = name
        while chosen in unique:
            seen[name] += 1
            chosen = f"{name} #{seen[name] + 1}"
        unique[chosen] = None
    return list(unique)


def _read(outcome: Outcome) -> Times | Tally | None:
    result = outcome.result
    if not isinstance(result, (Times, CompileCosts)):
        return result if isinstance(result, Tally) else None
    times = steady_times(result)
    if not all(map(math.isfinite, times.raw_times)):
        raise StoreError(f"A time of {name_case(outcome.order.case)} is no finite number: the run cannot be exported.")
    return times
