"""`run_benchmarks` with real workers: what it gives, what it survives, and what it leaves behind."""

from __future__ import annotations

import glob
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.shared_workers import STARTER
from torchmark import BenchmarkResult, GroupedSetup, GroupedStmts, run_benchmarks
from torchmark.model.outcome import FailureKind
from torchmark.processes import make_scratch
from torchmark.runner import compile_cases, worker
from torchmark.store.runs import open_store

SETUP = GroupedSetup("x = torch.ones(4)")
SCRIPTED = GroupedStmts("y = x + 1", setup=SETUP, signature="f(x) -> y", torchscript=True)
RUN_TIME_S = 0.001


@pytest.fixture(autouse=True)
def scratch_folders(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Path]]:
    """Those that a test makes. None is left when it ends."""
    made = []

    def make() -> Path:
        path = make_scratch()
        if threading.current_thread().name != STARTER:
            made.append(path)
        return path

    monkeypatch.setattr(worker, "make_scratch", make)
    monkeypatch.setattr(compile_cases, "make_scratch", make)
    yield made
    assert [path for path in made if path.exists()] == []


def run(benchmarks: object, **options: object) -> list[BenchmarkResult]:
    return list(run_benchmarks(benchmarks, min_run_time=RUN_TIME_S, **options))  # type: ignore[arg-type]


def test_each_case_fails_by_itself_and_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    definition = {
        "good": SCRIPTED,
        "dies": GroupedStmts("import os; os.abort()", "x + 1;", setup=GroupedSetup("x = 1", "int x = 1;")),
        "never ends": GroupedStmts("while True: pass"),
        "prints": GroupedStmts("print('x' * 100_000)"),
    }
    # Neither a compiler nor Valgrind: that costs those who need them.
    monkeypatch.setenv("PATH", "/nonexistent")
    monkeypatch.delenv("CXX", raising=False)
    results = run(definition, check=True, count=True, timeout_s=6)
    kinds = [(r.case.label[0], r.measurement is not None, [f.kind for f in r.failures]) for r in results]
    missing = FailureKind.MISSING
    assert kinds == [
        ("good", True, [missing]),
        ("good", True, [missing]),
        ("dies", False, [FailureKind.CRASHED, missing]),
        ("dies", False, [missing]),
        ("never ends", False, [FailureKind.TIMED_OUT, missing]),
        ("prints", True, [missing]),
    ]
    assert "apt-get install valgrind" in str(results[0])


def test_a_cache_that_cannot_be_written_costs_those_who_need_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("TORCHMARK_CACHE", str(tmp_path / "file"))
    eager, script = run({"a": SCRIPTED})
    assert eager.measurement is not None
    assert [failure.kind for failure in script.failures] == [FailureKind.MISSING]


def test_statements_find_what_lies_beside_their_suite(tmp_path: Path) -> None:
    (tmp_path / "lies_beside.py").write_text("VALUE = 3")
    (tmp_path / "bench_beside.py").write_text(
        "from torchmark import GroupedStmts, GroupedSetup\n"
        'BENCHMARKS = {"a": GroupedStmts("VALUE + 1", setup=GroupedSetup("from lies_beside import VALUE"))}'
    )
    (result,) = run(tmp_path / "bench_beside.py")
    assert result.failures == ()


def test_a_crash_or_a_hang_of_the_first_variant_is_blamed_on_nobody_else() -> None:
    first = "import os; torch.jit.is_scripting() or os.abort()"
    group = GroupedStmts(first, setup=SETUP, signature="f(x) -> None", torchscript=True, check=True)
    eager, script = run({"a": group})
    assert [failure.kind for failure in eager.failures] == [FailureKind.CRASHED]
    # TorchScript knows no `import`.
    assert script.failures[0].message.startswith("There is no TorchScript of this model")


def test_other_interpreters_run_what_they_can() -> None:
    group = GroupedStmts("y = x + 1", setup=SETUP, signature="f(x) -> y", torchscript=True, compile="eager", check=True)
    eager, script, compiled = run({"a": group}, python="/usr/bin/python3")
    assert eager.measurement is not None
    assert script.measurement is not None
    assert "has no torch.compile" in compiled.failures[0].message


def test_results_that_nobody_takes_leave_nothing_behind(scratch_folders: list[Path]) -> None:
    results = run_benchmarks({"a": SCRIPTED, "b": GroupedStmts("1")}, min_run_time=RUN_TIME_S)
    next(results)
    assert any(path.exists() for path in scratch_folders)
    results.close()  # type: ignore[attr-defined]


INTERRUPTED = """
import sys, torchmark
group = torchmark.GroupedStmts("y = x", setup=torchmark.GroupedSetup("x = torch.ones(1)"), signature="f(x) -> y",
                               compile="eager")
results = torchmark.run_benchmarks({"a": group}, "torch.compile", time=False, count=True)
print("begins", flush=True)
next(results)
"""


def test_an_interrupt_while_workers_start_is_heeded_at_once() -> None:
    program = subprocess.Popen(
        [sys.executable, "-c", INTERRUPTED],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    assert program.stdout is not None
    assert program.stdout.readline() == "begins\n"
    # Long enough for the workers to be on their way, and much less than they need.
    time.sleep(4)
    program.send_signal(signal.SIGINT)
    _, errors = program.communicate(timeout=15)
    assert "KeyboardInterrupt" in errors
    assert not glob.glob(f"{tempfile.gettempdir()}/torchmark-{program.pid:010}-*/graphs")


KILLED = """
import os, signal, sys, torchmark
definition = {label: torchmark.GroupedStmts(f"{label} = 1") for label in "abc"}
results = torchmark.run_benchmarks(definition, python=sys.argv[1], min_run_time=0.001, store="results.db")
next(results)
next(results)
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_run_that_was_killed_goes_on_from_its_store(
    stub_python: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    program = subprocess.run([sys.executable, "-c", KILLED, stub_python], check=False)
    assert program.returncode == -signal.SIGKILL
    with open_store(Path("results.db"), read_only=True) as store:
        (info,) = store.list_runs()
        kept = store.load(info.id).outcomes
    assert [one.order.case.label for one in kept] == [("a",), ("b",)]
    definition = {label: GroupedStmts(f"{label} = 1") for label in "abc"}
    results = run(definition, python=stub_python, store="results.db", resume=True)
    assert [result.case.label for result in results] == [("a",), ("b",), ("c",)]
    assert all(result.measurement is not None for result in results)
    with open_store(Path("results.db"), read_only=True) as store:
        (info,) = store.list_runs()
        assert info.finished is not None
        assert store.load(info.id).outcomes[:2] == kept
