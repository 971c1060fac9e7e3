from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest

from tests.made_contrasts import count_functions, run_of
from tests.sample_runs import ADD
from tests.stored_runs import BASELINE, TALLY, make_run
from torchmark.cli.main import main
from torchmark.model.outcome import Outcome
from torchmark.model.plan import Metric, Node, Order
from torchmark.store.runs import open_store


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two runs of one name, of which the newer has nothing in it."""
    path = tmp_path / "results.db"
    run = make_run()
    newer = dataclasses.replace(run.info, id="f" * 32, created=run.info.created + 60, orders=12, outcomes=0, failures=0)
    with open_store(path, create=True) as opened:
        opened.add(run)
        opened.add(dataclasses.replace(run, info=newer, outcomes=(), activities=()))
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setenv("TORCHMARK_STORE", str(path))
    return path


@pytest.mark.usefixtures("store")
def test_the_newest_run_is_shown_by_default(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("Run before (ffffffffffff), ")
    assert "not finished: 0 of 12 results" in out
    assert "Go on with:  torchmark run --resume --name before" in out


@pytest.mark.usefixtures("store")
def test_an_older_run_is_shown_with_commands_that_mean_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", "@1"]) == 0
    out = capsys.readouterr().out
    assert "AMD EPYC, 2 of 8 cores, a quota of 1.5, Linux 6.1 x86_64" in out
    assert "torch 2.2.0+cpu, Python 3.11.7, AVX512, Valgrind 3.22.0 (where it is AVX2)" in out
    assert "standard: nn Modules" in out
    assert "torchmark show 018bcfe568fa --failures" in out
    assert "2 cases failed:" in out
    assert out.isprintable() or all(line.isprintable() for line in out.splitlines())


@pytest.mark.usefixtures("store")
def test_few_failures_of_few_cases_are_told_in_full(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", "@1", "-k", "add", "--language", "python", "--metric", "wall"]) == 0
    out = capsys.readouterr().out
    assert "instructions" not in out
    assert out.endswith(
        'Failed: timing nn Modules / add, Python (torch 2.1)\nValueError: no\nTraceback:\n  File "<stmt>", line 1\n'
    )


@pytest.mark.usefixtures("store")
def test_failures_alone_can_be_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", "@1", "--failures"]) == 0
    out = capsys.readouterr().out
    assert "The process was ended by SIGKILL." in out
    assert "Time is the median" not in out
    assert main(["show", "--failures"]) == 0
    assert "Nothing failed." in capsys.readouterr().out


@pytest.mark.usefixtures("store")
def test_functions_of_one_case_are_shown(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", "@1", "--functions", "add and python"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "Instructions per run of nn Modules / add, Python (this one)",
        "self  share  with callees  function",
        " 0.7    70%           0.7  add.cpp:at::add",
        " 0.2    20%           0.9  ~ eval.c:loop",
        " 0.1    10%           1.0  :main",
        " 1.0   100%                in all",
        "~ varies with the layout of memory",
    ]
    assert main(["show", "@1", "--functions", "nn Modules / add, Python", "--inclusive"]) == 0
    assert capsys.readouterr().out.splitlines()[2].endswith(":main")


@pytest.mark.usefixtures("store")
def test_functions_of_several_cases_or_none_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", "@1", "--functions", "add"]) == 2
    assert "  nn Modules / add, TorchScript, backward, 2 threads, C++" in capsys.readouterr().err
    assert main(["show", "@1", "--functions", "ad_"]) == 2
    assert "None of 2 cases is selected" in capsys.readouterr().err
    assert main(["show", "--functions", "add"]) == 2
    assert "Nothing was counted" in capsys.readouterr().err
    assert main(["show", "@1", "--inclusive"]) == 2


def test_what_was_not_kept_by_function_is_said(store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = make_run()
    order = Order(run.plan.cases[0], run.plan.targets[0], Metric.COUNT)
    bare = Outcome(order, dataclasses.replace(TALLY, profile=None, baseline_profile=BASELINE, text=None), 0.0, 1.0)
    info = dataclasses.replace(run.info, id="e" * 32, name="bare")
    with open_store(store) as opened:
        opened.add(dataclasses.replace(run, info=info, outcomes=(bare,)))
    assert main(["show", "bare", "--functions", "add"]) == 2
    assert "No costs by function were kept." in capsys.readouterr().err


@pytest.mark.usefixtures("store")
def test_json_on_standard_output_is_nothing_but_json(capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["show", "@1", "-k", "add and python", "--functions", "add", "--json", "-"]) == 0
    data = json.loads(capfd.readouterr().out)
    assert (data["schema"], data["schema_version"], data["run"]["name"]) == ("torchmark.show", 1, "before")
    own, other = data["cases"]
    assert own["target"] == ""
    assert own["count"]["instructions_per_run"] == 1.0
    assert own["wall"]["samples"] == 3
    assert other["failures"][0]["kind"] == "raised"
    assert other["missing"] == ["count"]
    assert {row["name"] for row in data["functions"][0]["functions"]} == {"add.cpp:at::add", "eval.c:loop", ":main"}


@pytest.mark.usefixtures("store")
def test_nothing_selected_is_explained(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", "@1", "-k", "linaer"]) == 1
    assert "None of 3 cases is selected by -k linaer." in capsys.readouterr().err


@pytest.mark.usefixtures("store")
def test_metrics_are_wall_and_count(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", "@1", "--metric", "COUNT, wall", "-k", "add"]) == 0
    assert main(["show", "@1", "--metric", "time"]) == 2
    assert "'time' is not one of wall, count" in capsys.readouterr().err


def test_a_store_that_is_not_there_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", "--store", str(tmp_path / "none.db")]) != 0
    assert "There is no store" in capsys.readouterr().err


def test_a_run_with_a_name_of_another_meaning_is_shown(store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = make_run()
    with open_store(store) as opened:
        opened.add(dataclasses.replace(run, info=dataclasses.replace(run.info, id="e" * 32, name="@9")))
    assert main(["show", "eeee"]) == 0
    assert "torchmark show eeeeeeeeeeee --failures" in capsys.readouterr().out


def test_rounds_of_other_nodes_are_neither_in_the_table_nor_among_functions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setenv("TORCHMARK_STORE", str(tmp_path / "nodes.db"))
    run = run_of({(ADD, Metric.COUNT, n): count_functions(400, 1000 * (n + 1)) for n in (0, 1)}, "shards")
    first, second = run.outcomes
    assert second.environment is not None
    newer = dataclasses.replace(second.environment, valgrind="valgrind-3.22.0")
    outcomes = (
        dataclasses.replace(first, node=Node("a", "EPYC")),
        dataclasses.replace(second, node=Node("b", "EPYC"), environment=newer),
    )
    with open_store(tmp_path / "nodes.db", create=True) as store:
        store.add(dataclasses.replace(run, outcomes=outcomes))
    assert main(["show"]) == 0
    out = capfd.readouterr().out
    assert "  2 nodes: a, b; EPYC\n  Counts come from 2 kinds of nodes: Valgrind 3.19.0 (a)" in out
    assert "e  1 of 2 rounds of counts is left out, taken with another Valgrind (b)." in out
    assert main(["show", "--functions", "add"]) == 0
    assert "14.0   100%" in capfd.readouterr().out
    assert main(["show", "--json", "-"]) == 0
    (case,) = json.loads(capfd.readouterr().out)["cases"]
    assert case["nodes"] == [{"name": "a", "cpu_model": "EPYC"}]
    assert case["caveats"][0] == {
        "kind": "other_places", "metric": "count", "rounds": 1, "of": 2, "what": ["valgrind"], "nodes": ["b"],
    }  # fmt: skip
