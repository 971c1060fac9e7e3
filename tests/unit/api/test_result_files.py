from __future__ import annotations

import json
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from torchmark.api.callgrind_stats import CallgrindStats, FunctionCount, FunctionCounts
from torchmark.api.measurement import Measurement
from torchmark.cli.main import main
from torchmark.model.task import TaskSpec

SETUP = "x, y = torch.ones(8), torch.ones(8)"
ADD, MUL = TaskSpec("x + y", SETUP), TaskSpec("x * y", SETUP)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("TORCHMARK_STORE", raising=False)
    return tmp_path


def timed(task: TaskSpec, median_s: float, seed: int = 0) -> dict[str, Any]:
    chance = random.Random(seed)
    times = [100 * median_s * chance.uniform(0.999, 1.001) for _ in range(40)]
    return Measurement(100, times, task).to_dict()


def counted(task: TaskSpec, instructions: int) -> dict[str, Any]:
    entries = (FunctionCount(instructions - 1000, "a.cpp:add(int) [/lib/libtorch.so]"), FunctionCount(1000, "b.c:run"))
    table, nothing = FunctionCounts(entries, False), FunctionCounts((), False)
    stats = CallgrindStats(
        task_spec=task,
        number_per_run=100,
        built_with_debug_symbols=True,
        baseline_inclusive_stats=nothing,
        baseline_exclusive_stats=nothing,
        stmt_inclusive_stats=table,
        stmt_exclusive_stats=table,
        stmt_callgrind_out=None,
        layouts=(instructions,),
        events=(("Ir", instructions),),
        allocations=100,
        tensor_allocations=100,
    )
    return stats.to_dict()


def write(name: str, results: Sequence[object], kind: str = "time", **more: object) -> None:
    field = {"time": "measurements", "count": "counts"}[kind]
    document = {"schema": f"torchmark.{kind}", "schema_version": 1, field: list(results), "failures": [], **more}
    Path(name).write_text(json.dumps(document))


def test_times_of_two_files_are_judged_as_those_of_runs(capsys: pytest.CaptureFixture[str]) -> None:
    write("a.json", [timed(ADD, 1e-6), timed(MUL, 1e-6, 1)], ratios=[1.0])
    write("b.json", [timed(ADD, 2e-6, 2), timed(MUL, 1e-6, 3)])
    assert main(["compare", "a.json", "b.json", "--json", "out.json"]) == 0
    out = capsys.readouterr().out
    assert "base  a.json, 20" in out
    assert "x + y" in out
    data = json.loads(Path("out.json").read_text())
    found = {one["label"][0]: one["time"] for one in data["judgements"]}
    assert found["x + y"]["ratio"] == pytest.approx(2, rel=0.01)
    assert {caveat["kind"] for one in data["judgements"] for caveat in one["caveats"]} == {"not_in_turns", "few_rounds"}


def test_counts_of_two_files_are_compared_exactly_and_by_function(capsys: pytest.CaptureFixture[str]) -> None:
    write("a.json", [counted(ADD, 900_000), counted(MUL, 800_000)], "count")
    write("b.json", [counted(ADD, 950_000), counted(MUL, 800_000)], "count")
    assert main(["compare", "a.json", "b.json", "--fail-on", "slower"]) == 3
    out = capsys.readouterr().out
    assert "+500" in out
    assert "more than base: add +500" in out
    assert "torchmark accept" not in out
    assert main(["compare", "a.json", "b.json", "-k", "'x * y'", "--fail-on", "slower"]) == 0
    assert main(["compare", "b.json", "a.json", "--limit", "Ir:0"]) == 0


def test_another_setup_is_an_obstacle(capsys: pytest.CaptureFixture[str]) -> None:
    write("a.json", [timed(ADD, 1e-6)])
    write("b.json", [timed(TaskSpec("x + y", "x = y = 1"), 1e-6)])
    assert main(["compare", "a.json", "b.json"]) == 4
    assert "setup" in capsys.readouterr().err
    assert main(["compare", "a.json", "b.json", "--force"]) == 0


def test_cpp_is_not_called_python(capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("a.json", "b.json"):
        write(name, [timed(TaskSpec("x + y;", "auto x = 1, y = 2;"), 1e-6)])
    assert main(["compare", "a.json", "b.json", "--all", "--json", "-"]) == 0
    assert json.loads(capsys.readouterr().out)["judgements"][0]["autolabels"]["language"] == "C++"


def test_a_statement_that_is_there_twice_gives_two_rounds(capsys: pytest.CaptureFixture[str]) -> None:
    write("a.json", [timed(ADD, 1e-6), timed(ADD, 1.1e-6, 1)])
    write("b.json", [timed(ADD, 1e-6, 2), timed(ADD, 1.1e-6, 3)])
    assert main(["compare", "a.json", "b.json"]) == 0
    write("b.json", [timed(ADD, 1e-6), timed(TaskSpec("x + y", "other = 1"), 1e-6)])
    assert main(["compare", "a.json", "b.json"]) == 4
    assert "'x + y' more than once, with different setups" in capsys.readouterr().err


def test_files_that_cannot_be_compared_are_refused_with_the_reason(capsys: pytest.CaptureFixture[str]) -> None:
    write("times.json", [timed(ADD, 1e-6)])
    write("counts.json", [counted(ADD, 900_000)], "count")
    write("other.json", [timed(MUL, 1e-6)])
    write("empty.json", [])
    write("newer.json", [timed(ADD, 1e-6)], schema_version=9)
    Path("text.json").write_text("hello")
    Path("foreign.json").write_text('{"benchmarks": []}')
    Path("list.json").write_text("[]")
    Path("folder.json").mkdir()
    for head, code, words in (
        ("counts.json", 2, "times.json has times and counts.json has counts"),
        ("other.json", 2, "no statement in common, with the same number of threads: the first has 'x + y', and the"),
        ("empty.json", 4, "empty.json: It has no results"),
        ("newer.json", 4, "newer.json: This torchmark.time has schema version 9"),
        ("text.json", 4, "text.json: This is no JSON"),
        ("foreign.json", 4, "foreign.json: This is not a file of 'torchmark time --json' or"),
        ("list.json", 4, "list.json: This is not a file of"),
        ("folder.json", 4, "folder.json: It cannot be read: it is a folder."),
        ("missing.json", 2, "'missing.json' cannot be opened: No such file or directory."),
        ("times.json", 2, "are the same file"),
        ("before", 2, "times.json is a file, and 'before' is not"),
    ):
        assert main(["compare", "times.json", head]) == code, head
        assert words in capsys.readouterr().err
    assert main(["compare", "times.json"]) == 2
    assert "Name a second file" in capsys.readouterr().err


@pytest.mark.parametrize(
    "change",
    [
        {"raw_times": []},
        {"raw_times": [-1.0, 0.0]},
        {"raw_times": ["1"]},
        {"raw_times": [1e300] * 5},
        {"number_per_run": 0},
        {"number_per_run": 10**30},
        {"task_spec": None},
        {"task_spec": {"stmt": "x + y"}},
    ],
)
def test_values_that_no_measurement_has_are_refused_by_name(
    change: dict[str, object], capsys: pytest.CaptureFixture[str]
) -> None:
    write("a.json", [timed(ADD, 1e-6)])
    write("b.json", [{**timed(ADD, 1e-6), **change}])
    assert main(["compare", "a.json", "b.json"]) == 4
    err = capsys.readouterr().err
    assert err.startswith("torchmark: b.json: ")
    assert "Traceback" not in err


def test_a_file_says_its_language(capsys: pytest.CaptureFixture[str]) -> None:
    # By its looks this is C++.
    task = TaskSpec("x + y;", SETUP)
    for name, median_s in (("a.json", 1e-6), ("b.json", 2e-6)):
        write(name, [timed(task, median_s)], language="python")
    assert main(["compare", "a.json", "b.json", "-k", "cpp"]) == 1
    assert main(["compare", "a.json", "b.json", "-k", "python"]) == 0
    capsys.readouterr()
    for wrong in ("rust", ["cpp"], 1):
        write("b.json", [timed(task, 2e-6)], language=wrong)
        assert main(["compare", "a.json", "b.json"]) != 0
        assert "b.json: The field 'language' is " in capsys.readouterr().err
