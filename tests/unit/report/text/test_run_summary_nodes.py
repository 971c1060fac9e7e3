"""Nodes in words, as headings and pages have them."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from tests.made_contrasts import COUNTED
from tests.sample_runs import ADD, COUNT, only, tally
from torchmark.model.plan import Node, NodeKind
from torchmark.model.run import Run
from torchmark.report.text.run_summary import describe_kinds, describe_nodes, describe_run, render_nodes

MANY = [Node(f"n-{i:03}", "EPYC") for i in range(1, 101)]


@pytest.mark.parametrize(
    ("nodes", "text"),
    [
        ([], ""),
        ([Node("a", "EPYC")], "1 node: a; EPYC"),
        ([Node("a"), Node("b")], "2 nodes: a, b"),
        (MANY, "100 nodes (n-001, n-002, …); EPYC"),
        (
            [*MANY, Node("x", "Xeon"), Node("y")],
            "102 nodes: EPYC (100: n-001, n-002, …); Xeon (x); an unknown processor (y); times of each are kept apart",
        ),
    ],
)
def test_nodes_are_named_as_far_as_a_person_reads(nodes: list[Node], text: str) -> None:
    assert describe_nodes(nodes, timed=True) == text
    assert describe_nodes(nodes, timed=False) == text.removesuffix("; times of each are kept apart")


def test_every_trait_has_words() -> None:
    values = {"torch": "2.13.0", "torch_commit": "c0ffee" * 7, "valgrind": "valgrind-3.19.0", "hash_seed": "1"}
    known = NodeKind((*values.items(), ("torch_build", "2"), ("capability", "AVX2"), ("cpu", "EPYC")), (Node("a"),))
    unknown = NodeKind(tuple((what, None) for what in (*values, "capability", "cpu")), (Node("b"),))
    text = describe_kinds([known, unknown])
    assert "torch 2.13.0, torch at c0ffeec0ff, Valgrind 3.19.0, hash seed 1, build 2 of torch, AVX2, EPYC (a)" in text
    assert text.count("unknown") == 6
    assert describe_kinds([known]) == ""


def counted_on(*places: tuple[Node | None, dict[str, Any]]) -> Run:
    run = only(ADD, COUNT, *(tally(100, 5) for _ in places))
    return dataclasses.replace(
        run,
        outcomes=tuple(
            dataclasses.replace(one, node=node, environment=dataclasses.replace(COUNTED, **changes))
            for one, (node, changes) in zip(run.outcomes, places, strict=True)
        ),
    )


def test_a_heading_names_nodes_and_the_kinds_that_counts_come_from() -> None:
    run = counted_on((Node("a", "EPYC"), {}), (Node("b", "EPYC"), {"valgrind": "valgrind-3.22.0"}))
    assert list(render_nodes(run)) == [
        "2 nodes: a, b; EPYC",
        "Counts come from 2 kinds of nodes: Valgrind 3.19.0 (a); Valgrind 3.22.0 (b); they are kept apart",
    ]
    lines = describe_run(run, 200).splitlines()
    assert lines[2] == "  2 nodes: a, b; EPYC"
    assert lines[4] == "  begun on A Fine CPU @ 2.30GHz, 2 cores, Linux 6.1 x86_64"


def test_a_heading_of_one_machine_says_nothing_of_nodes() -> None:
    run = counted_on((None, {}), (None, {"valgrind": "valgrind-3.22.0"}))
    assert list(render_nodes(run)) == []
    assert "begun on" not in describe_run(run, 200)


def test_no_name_of_a_node_steers_a_terminal() -> None:
    text = describe_run(counted_on((Node("\x1b[31m\n", "\x1b[0m"), {})), 60)
    assert all(line.isprintable() for line in text.splitlines())
