"""Results of several nodes in formats for other programs; nothing of them for a run of one machine."""

from __future__ import annotations

import csv
import dataclasses
import io
import json

from tests.sample_runs import ADD, WALL, only, sample_run, times
from torchmark.model.plan import Node
from torchmark.model.run import Run
from torchmark.report.formats.entries import list_entries
from torchmark.report.formats.programs import write_google, write_pyperf, write_pytest_benchmark
from torchmark.report.formats.registry import FORMATS
from torchmark.report.formats.tables import COLUMNS, write_csv, write_markdown


def timed_on(*nodes: Node) -> Run:
    """A run that timed a case once on each node, each time longer."""
    run = only(ADD, WALL, *(times(10, 1.0 + i) for i in range(len(nodes))))
    sampling = dataclasses.replace(run.plan.sampling, repeat=len(nodes))
    pairs = zip(run.outcomes, nodes, strict=True)
    outcomes = tuple(dataclasses.replace(one, node=node) for one, node in pairs)
    return dataclasses.replace(run, plan=dataclasses.replace(run.plan, sampling=sampling), outcomes=outcomes)


MIXED = timed_on(Node("a", "EPYC"), Node("b", "Xeon"), Node("c", "EPYC"))


def test_rounds_that_are_not_in_the_summary_are_not_exported() -> None:
    (entry,) = list_entries(MIXED)
    assert [outcome.order.round for outcome, _ in entry.timed] == [0, 2]
    (benchmark,) = json.loads(write_pyperf(MIXED))["benchmarks"]
    assert [run["values"] for run in benchmark["runs"]] == [[1.0], [3.0]]
    blocks = [row for row in json.loads(write_google(MIXED))["benchmarks"] if row["run_type"] == "iteration"]
    assert len(blocks) == blocks[0]["repetitions"] == 2


def test_pyperf_has_the_node_of_each_run_and_the_processor_that_all_share() -> None:
    suite = json.loads(write_pyperf(MIXED))
    (benchmark,) = suite["benchmarks"]
    assert [run["metadata"]["node"] for run in benchmark["runs"]] == ["a", "c"]
    assert benchmark["metadata"]["cpu_model_name"] == "EPYC"
    assert not {"cpu_model_name", "cpu_count"} & suite["metadata"].keys()


def test_others_name_all_nodes_and_those_of_each_case() -> None:
    context = json.loads(write_google(MIXED))["context"]
    assert (context["nodes"], context["cpu_model"], "num_cpus" in context) == ("a, b, c", "EPYC and Xeon", False)
    data = json.loads(write_pytest_benchmark(MIXED))
    assert data["machine_info"]["node"] == "a, b, c"
    assert data["machine_info"]["cpu"] == {"brand_raw": "EPYC and Xeon"}
    assert data["benchmarks"][0]["extra_info"]["nodes"] == "a, c"
    (row,) = csv.DictReader(io.StringIO(write_csv(MIXED)))
    assert row["nodes"] == "a, c"
    header, _, line = write_markdown(MIXED).splitlines()
    assert ("| nodes |" in header, "| a, c |" in line) == (True, True)


def test_a_run_of_one_machine_has_no_place_for_nodes() -> None:
    assert write_csv(sample_run()).splitlines()[0] == ",".join(COLUMNS)
    for kind in FORMATS.values():
        assert "node" not in kind.write(sample_run())
