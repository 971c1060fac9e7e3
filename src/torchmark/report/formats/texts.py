"""From plain values to the text of a file."""

from __future__ import annotations

import datetime
import json
from collections.abc import Sequence
from typing import Any

from torchmark.errors import StoreError
from torchmark.model.compiling import CompileCosts
from torchmark.model.node import Node
from torchmark.model.summary import CaseSummary
from torchmark.report.printable import escape_json


def dump_json(value: object, *, indent: int | None = None) -> str:
    """JSON that every reader takes: no NaN, no infinity."""
    try:
        return escape_json(json.dumps(value, indent=indent, allow_nan=False)) + "\n"
    except ValueError as error:
        raise StoreError("A number of the run is not finite: it cannot be exported.") from error


def plain_compiling(costs: CompileCosts | None) -> dict[str, float]:
    """What compiling cost, as numbers with units in their names; nothing for what was not compiled."""
    if costs is None:
        return {}
    return {
        "compile_cold_s": costs.cold_s,
        "compile_warm_s": costs.warm_s,
        "graphs": costs.graphs,
        "graph_breaks": costs.graph_breaks,
    }


def plain_counts(summary: CaseSummary) -> dict[str, float]:
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


def plain_nodes(summary: CaseSummary) -> dict[str, str]:
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
