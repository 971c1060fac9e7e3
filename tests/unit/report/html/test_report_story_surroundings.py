"""Where all was measured, as a report page tells it."""

from __future__ import annotations

from tests.made_reports import BASE
from torchmark.model.plan import Node, NodeKind
from torchmark.model.report_data import ReportSide
from torchmark.report.html.report_story import list_facts


def facts(*sides: ReportSide) -> dict[str, tuple[str, ...]]:
    return {name: values for name, values, _ in list_facts(sides)}


def test_nodes_and_their_processors_take_the_place_of_the_host() -> None:
    nodes = Node("a", "EPYC"), Node("b", "Xeon")
    kinds = tuple(NodeKind((("hash_seed", seed),), (node,)) for seed, node in zip("01", nodes, strict=True))
    found = facts(BASE, ReportSide("after", "", BASE.environments, BASE.host, nodes=nodes, count_kinds=kinds))
    assert BASE.host is not None
    assert found["Processor"] == (BASE.host.cpu_model, "EPYC and Xeon")
    assert found["Nodes"] == ("–", "2 nodes: EPYC (a); Xeon (b); times of each are kept apart")
    assert found["Kinds of nodes"][1].startswith("Counts come from 2 kinds of nodes: hash seed 0 (a); hash seed 1 (b)")
    assert found["Cores"] == ("2", "–")


def test_one_machine_has_no_line_on_nodes() -> None:
    assert not {"Nodes", "Kinds of nodes"} & facts(BASE).keys()
