"""C++ against the real torch: timed in this process, and timed and counted in workers, from one library."""

from __future__ import annotations

import copy
import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy
import pytest
import torch

from tests.in_process import Program
from tests.stub_torch import make_stub_torch
from torchmark import CallgrindStats, Compare, Language, Measurement, SnippetError, Timer
from torchmark.api.timer_engines import CppTimer, _locks
from torchmark.measure.compiled import CompiledTimer
from torchmark.measure.torch_files import read_sdk
from torchmark.model.caveats import OptimisedAway
from torchmark.model.costs import Counts
from torchmark.model.job import CountJob, Place, TimeJob
from torchmark.model.outcome import Failure, FailureKind
from torchmark.model.task import Compiled, Snippet, Times
from torchmark.runner.prepare import build_snippets, inspect_cache
from torchmark.runner.worker import Worker, count, measure_time

SETUP = "auto x = torch::ones({4, 4}); auto y = torch::ones({4, 4});"
STATEMENTS = {
    "add": "torch::add(x, y);",
    "in place": "x += 1;",
    "empty": "at::empty({0});",
    "two lines": "auto z = x + y;\nz.sum();",
    "nothing": "int z = 1 + 2;",
    "crash": "*(volatile int *)nullptr = 1;",
    "raise": "x.view({7});",
    "endless": "for (;;) torchmark::keep(x);",
    "exit": "std::_Exit(3);",
    "module": "torch::nn::Linear(4, 4)->forward(x);",
    "script": "std::vector<torch::jit::IValue> inputs({torch::jit::IValue(x)});",
    "threads": "TORCH_CHECK(at::get_num_threads() == 2, at::get_num_threads());",
    "escapes": r'TORCH_CHECK(std::string("\d\n").size() == 2);',
    "grad": "TORCH_CHECK(!torch::GradMode::is_enabled());",
}


@pytest.fixture(scope="module")
def timers() -> dict[str, Timer]:
    """All that the tests below compile, but for what they do not want compiled."""
    made = {name: Timer(stmt, SETUP, language="cpp") for name, stmt in STATEMENTS.items()}
    before = inspect_cache(os.environ)
    assert made["add"].timeit(10).median > 0
    after = inspect_cache(os.environ)
    # One run of the compiler for all, since they were waiting.
    assert (after.snippets, after.libraries) == (before.snippets + len(made), before.libraries + 1)
    return made


def compiled(timers: dict[str, Timer], name: str) -> Compiled:
    engine: Any = timers[name]._engine
    result = engine.compile()
    assert isinstance(result, Compiled)
    return result


# --- in this process -----------------------------------------------------------------------------------


def test_every_way_of_timing_works(timers: dict[str, Timer]) -> None:
    add = timers["add"]
    assert add.timeit(100).number_per_run == 100
    assert add.repeat(3, 10).raw_times
    assert len(add.blocked_autorange(min_run_time=0.01).times) > 1
    assert len(add.blocked_autorange(min_run_time=0.01, max_run_time=1.0).times) > 1
    assert len(add.adaptive_autorange(threshold=0.5, max_run_time=1.0).times) > 3
    once = Timer(STATEMENTS["add"], SETUP, language=Language.CPP, setup_once=True)
    assert isinstance(once.blocked_autorange(min_run_time=0.01), Measurement)


def test_thread_count_and_state_of_the_calling_thread_are_kept(timers: dict[str, Timer]) -> None:
    before = torch.get_num_threads()
    Timer(STATEMENTS["threads"], SETUP, language="c++", num_threads=2).timeit(1)
    assert torch.get_num_threads() == before
    with torch.no_grad():
        timers["grad"].timeit(1)
    with pytest.raises(SnippetError, match="Expected !torch::GradMode"):
        timers["grad"].timeit(1)


def test_what_torch_raises_is_told_in_its_words(timers: dict[str, Timer]) -> None:
    with pytest.raises(RuntimeError, match=r"^c10::Error: shape '\[7\]' is invalid for input of size 16$"):
        timers["raise"].timeit(1)


def test_modules_and_scripts_see_their_headers(timers: dict[str, Timer]) -> None:
    timers["module"].timeit(1)
    timers["script"].timeit(1)


def test_an_empty_loop_is_told(timers: dict[str, Timer]) -> None:
    result = timers["nothing"].timeit(1000)
    assert result.caveats == (OptimisedAway(),)
    assert "WARNING: The compiler removed the statement" in repr(result)
    assert Measurement.from_dict(json.loads(json.dumps(result.to_dict()))) == result
    assert Measurement.merge([result, result])[0].caveats == (OptimisedAway(),)
    assert not timers["add"].timeit(1000).optimised_away


def test_a_snippet_that_does_not_compile_says_where(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # With the real headers the compiler takes many seconds to say the same.
    stub = make_stub_torch(tmp_path)
    monkeypatch.setattr("torchmark.api.timer_engines.read_sdk", lambda: stub)
    timer = Timer("x.add(1);\n  x.nowhere(2);", "torch::Tensor x;", language="cpp")
    with pytest.raises(SnippetError, match=r"(?s)compile: x\.add\(1\); \.\.\.\n<stmt>:2:5: error: .*no member named"):
        timer.timeit(1)


def test_whoever_asks_again_is_told_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Perhaps with a header that was changed meanwhile."""
    monkeypatch.chdir(tmp_path)
    stub = make_stub_torch(tmp_path / "torch")
    monkeypatch.setattr("torchmark.api.timer_engines.read_sdk", lambda: stub)
    timer = Timer("torchmark::keep(N);", "", '#include "mine.h"', language="cpp")
    for text, told in (("// nothing", "not declared"), ("#error not yet", "not yet")):
        (tmp_path / "mine.h").write_text(text)
        with pytest.raises(SnippetError, match=told):
            timer.timeit(1)
    (tmp_path / "mine.h").write_text("#define N 3")
    assert timer.timeit(1).number_per_run == 1


def test_python_and_cpp_stand_side_by_side(timers: dict[str, Timer]) -> None:
    spec: dict[str, Any] = {"label": "add", "description": "4x4"}
    results = [
        Timer("torch.add(x, y)", "x = y = torch.ones(4, 4)", env="Python", **spec).timeit(10),
        Timer(STATEMENTS["add"], SETUP, env="C++", language="cpp", **spec).timeit(10),
    ]
    lines = str(Compare(results)).splitlines()
    assert any("(Python)" in line and "torch.add(x, y)" in line for line in lines)
    assert any("(C++)" in line and "torch::add(x, y);" in line for line in lines)
    results = [Timer("torch.add(x, y)", "x = y = torch.ones(4, 4)", sub_label="Python", **spec).timeit(10),
               Timer(STATEMENTS["add"], SETUP, sub_label="C++", language="cpp", **spec).timeit(10)]  # fmt: skip
    table = str(Compare(results))
    assert table.count("4x4") == 1
    assert "Python" in table
    assert "C++" in table


def test_another_process_finds_what_was_compiled(timers: dict[str, Timer]) -> None:
    program = (
        "import sys, torchmark\n"
        "from torchmark.native.toolchain import Compiler\n"
        "Compiler.compile = None\n"
        f"print(torchmark.Timer({STATEMENTS['add']!r}, {SETUP!r}, language='cpp').timeit(5).number_per_run)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("5\n", "")


# --- in workers ----------------------------------------------------------------------------------------


def run(worker: Worker, which: Compiled, timeout_s: float = 60.0) -> Counts | Times | Failure:
    if worker.spec.counting:
        job = CountJob("", "", Place("/"), number=10, compiled=which)
        return count(worker, job, timeout_s=timeout_s, baseline=False)
    return measure_time(worker, TimeJob("", "", Place("/"), min_run_time_s=0.01, compiled=which), timeout_s=timeout_s)


@pytest.mark.parametrize(
    ("name", "kind", "message"),
    [
        ("crash", FailureKind.CRASHED, "SIGSEGV"),
        ("raise", FailureKind.RAISED, "c10::Error: shape '[7]' is invalid"),
        ("endless", FailureKind.TIMED_OUT, "did not end within 1 s"),
        ("exit", FailureKind.EXITED, "3"),
    ],
)
def test_a_fault_costs_its_own_job_only(
    worker: Worker, timers: dict[str, Timer], name: str, kind: FailureKind, message: str
) -> None:
    failure = run(worker, compiled(timers, name), timeout_s=1.0 if name == "endless" else 60.0)
    assert isinstance(failure, Failure)
    assert failure.kind is kind
    assert message in failure.message
    assert not isinstance(run(worker, compiled(timers, "add")), Failure)


def test_an_empty_loop_is_told_by_workers_too(worker: Worker, timers: dict[str, Timer]) -> None:
    for name, expected in (("nothing", True), ("add", False)):
        outcome = run(worker, compiled(timers, name))
        assert isinstance(outcome, (Counts, Times))
        assert outcome.optimised_away is expected


def test_a_library_that_is_gone_is_a_failure(worker: Worker, timers: dict[str, Timer]) -> None:
    failure = run(worker, Compiled("/no/such/library.so", "0" * 32))
    assert isinstance(failure, Failure)
    assert "cannot be loaded" in failure.message


@pytest.mark.parametrize(("name", "times"), [("add", 8), ("in place", 3), ("empty", 3)])
def test_counts_agree_to_the_instruction(
    counting_worker: Worker, timers: dict[str, Timer], name: str, times: int
) -> None:
    totals = set()
    for i in range(times):
        job = CountJob("", "", Place("/"), layouts=(0,), compiled=compiled(timers, name))
        outcome = count(counting_worker, job, baseline=False)
        assert isinstance(outcome, Counts)
        totals.add(outcome.layouts[0].total())
        if i % 3 == 0:
            run(counting_worker, compiled(timers, "raise"))
    assert len(totals) == 1


def test_collecting_gives_what_the_reference_gives(timers: dict[str, Timer]) -> None:
    stats = timers["add"].collect_callgrind(number=10)
    assert isinstance(stats, CallgrindStats)
    assert len(stats.layouts) == 5
    assert stats.counts(denoise=True) == stats.counts()
    assert stats.baseline_exclusive_stats.sum() == 0
    assert stats.tensor_allocations == 10
    bare = timers["add"].collect_callgrind(number=10, layouts=1, repeats=3)
    assert isinstance(bare, tuple)
    assert len({one.counts() for one in bare}) == 1
    assert bare[0].counts(denoise=True) == bare[0].counts()
    with pytest.raises(ValueError, match=r"no baseline.*C\+\+"):
        bare[0].counts(net=True)


def test_loops_of_all_snippets_have_one_name(timers: dict[str, Timer]) -> None:
    one, two = (timers[name].collect_callgrind(number=10, layouts=1).as_standardized() for name in ("add", "in place"))
    assert any(entry.function == "snippet:torchmark_loop" for entry in one.stats())
    assert not any(re.search("torchmark_.*[0-9a-f]{32}", entry.function) for entry in two.delta(one))


def test_a_count_of_an_empty_loop_says_so(timers: dict[str, Timer]) -> None:
    stats = timers["nothing"].collect_callgrind(number=10, layouts=1)
    assert OptimisedAway() in stats.caveats
    assert CallgrindStats.from_dict(json.loads(json.dumps(stats.to_dict()))).optimised_away


def test_a_snippet_that_does_not_compile_is_not_counted() -> None:
    with pytest.raises(SnippetError, match=r"<stmt>:1:2: error: '\(' is not closed"):
        Timer("f(;", language="cpp").collect_callgrind()


def test_the_other_compiler_works_too(counting_worker: Worker) -> None:
    environ = {**os.environ, "CXX": "clang++"}
    snippet = Snippet(STATEMENTS["add"], SETUP)
    made = build_snippets([snippet], read_sdk(), environ)[snippet]
    assert isinstance(made, Compiled)
    CompiledTimer(made).timeit(10)
    assert isinstance(run(counting_worker, made), Counts)


# --- the command line ----------------------------------------------------------------------------------


BAD = "f(x;"


def test_time_gives_a_table_and_tells_of_each_failure(
    program: Program, timers: dict[str, Timer], tmp_path: Path
) -> None:
    file = tmp_path / "out.json"
    names = ["add", "in place", "nothing", "crash", "raise", "endless"]
    done = program("time", *(STATEMENTS[name] for name in names), BAD, "--setup", SETUP, "--language", "cpp",
                   "--timeout", "3", "--min-run-time", "0.01", "--json", str(file))  # fmt: skip
    assert done.returncode == 1
    for name in ("add", "in place", "nothing"):
        assert STATEMENTS[name] in done.stdout
    assert "NOTE: int z = 1 + 2;, 1 thread: The compiler removed the statement" in done.stdout
    for told in ("ended by SIGSEGV", "c10::Error: shape '[7]'", "did not end within 3 s", "<stmt>:1:2: error: '('"):
        assert told in done.stderr
    data = json.loads(file.read_text())
    assert [one["task_spec"]["stmt"] for one in data["measurements"]] == [STATEMENTS[name] for name in names[:3]]
    assert [one["stmt"] for one in data["failures"]] == [*(STATEMENTS[name] for name in names[3:]), BAD]


@pytest.mark.parametrize("options", [["--adaptive"], ["--number", "50"], ["--threads", "2", "--label", "mine"]])
def test_options_reach_the_process_that_times(program: Program, timers: dict[str, Timer], options: list[str]) -> None:
    which = STATEMENTS["threads" if "2" in options else "add"]
    done = program("time", which, "--setup", SETUP, "--language", "cpp", "--json", "-", *options)
    assert done.returncode == 0, done.stderr
    (one,) = json.loads(done.stdout)["measurements"]
    if "50" in options:
        assert (one["number_per_run"], len(one["raw_times"])) == (50, 7)
    if "mine" in options:
        assert (one["task_spec"]["label"], one["task_spec"]["num_threads"]) == ("mine", 2)


def test_count_gives_a_table_and_tells_of_each_failure(program: Program, timers: dict[str, Timer]) -> None:
    done = program("count", STATEMENTS["empty"], BAD, STATEMENTS["crash"], "--setup", SETUP, "--language", "cpp")
    assert done.returncode == 1
    assert done.stdout.splitlines()[0].split() == ["instructions", "spread", "mallocs", "tensors"]
    assert "baseline" not in done.stdout
    assert "<stmt>:1:2: error: '(' is not closed\n    1 | f(x;\n      |  ^" in done.stderr
    assert "ended by SIGSEGV" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["time", "x", "--global-setup", "int n;"], "--global-setup is for C++"),
        (["count", "x", "--global-setup", "int n;"], "--global-setup is for C++"),
        (["time", "x", "--timeout", "0"], "--timeout 0 would give up"),
        (["time", "x", "--language", "rust"], "is not one of"),
        (["cache"], "Usage: torchmark cache"),
        (["cache", "sell"], "No such command"),
    ],
)
def test_what_does_not_fit_together_is_refused(program: Program, arguments: list[str], told: str) -> None:
    done = program(*arguments)
    assert done.returncode == 2
    assert told in done.stderr + done.stdout


def test_no_compiler_is_one_sentence(program: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CXX", "no-such-compiler")
    done = program("time", "f(1);", "--language", "cpp")
    assert done.returncode == 3
    assert done.stderr.startswith("torchmark: There is no C++ compiler (no-such-compiler). Install one")
    assert done.stderr.count("\n") == 1


def test_the_cache_is_shown_and_emptied(program: Program, timers: dict[str, Timer], tmp_path: Path) -> None:
    done = program("cache", "info", "--json", "-")
    data = json.loads(done.stdout)
    assert data["folder"] == os.environ["TORCHMARK_CACHE"]
    assert data["snippets"] >= len(STATEMENTS)
    shown = program("cache", "info").stdout
    assert shown.splitlines()[0] == data["folder"]
    assert f"{data['snippets']} snippets in " in shown
    environ = {**os.environ, "TORCHMARK_CACHE": str(tmp_path), "TORCHMARK_CACHE_SIZE": "lots"}
    command = [sys.executable, "-m", "torchmark", "cache", "clear"]
    done = subprocess.run(command, capture_output=True, text=True, env=environ)
    assert (done.returncode, done.stderr) == (2, "torchmark: 'lots' is not a size, such as 500M or 2G.\n")
    environ["TORCHMARK_CACHE_SIZE"] = "1G"
    done = subprocess.run(command, capture_output=True, text=True, env=environ)
    assert done.stdout == "Removed 0 snippets in 0 libraries, 0 B.\n"


# --- odd ways to use a timer ---------------------------------------------------------------------------


def test_numbers_of_any_kind_will_do(timers: dict[str, Timer]) -> None:
    assert timers["add"].timeit(numpy.int64(10)).number_per_run == 10
    with pytest.raises(ValueError, match=r"less than 2\*\*63"):
        timers["add"].timeit(2**63)
    with pytest.raises(TypeError):
        timers["add"].timeit(10.0)  # type: ignore[arg-type]


def test_timers_can_be_copied(timers: dict[str, Timer]) -> None:
    assert copy.deepcopy(timers["add"]).timeit(10).median > 0


def test_a_fork_can_time_even_if_another_thread_was_compiling(timers: dict[str, Timer]) -> None:
    with _locks.compiling, _locks.waiting:
        pid = os.fork()
        if pid == 0:
            code = 1
            try:
                Timer(STATEMENTS["add"], SETUP, language="cpp").timeit(1)
                code = 0
            finally:
                os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


def test_a_literal_keeps_its_blanks() -> None:
    stmt = '\n    auto s = R"(a\n       \n  b)";\n'
    assert Timer(stmt, language="cpp")._task_spec.stmt == stmt.removeprefix("\n").rstrip()
    assert Timer("\n    f();\n      g();\n", language="cpp")._task_spec.stmt == "f();\n  g();"


def test_operators_are_registered_once(timers: dict[str, Timer]) -> None:
    """A second library would end this process, so nothing is compiled here: what counts is which library it is."""
    scope = "TORCH_LIBRARY(mine, m) {}"
    same, other = compiled(timers, "add"), Compiled(sys.executable, "0" * 32)
    one, two = (CppTimer(f"torchmark::keep({i});", "", scope) for i in (1, 2))
    one._check_registration(same)
    two._check_registration(same)
    with pytest.raises(SnippetError, match="TORCH_LIBRARY"):
        two._check_registration(other)
    CppTimer("x;", "")._check_registration(other)


def test_compiling_takes_nothing_off_the_time_to_measure(
    timers: dict[str, Timer], monkeypatch: pytest.MonkeyPatch
) -> None:
    timer = Timer(STATEMENTS["add"], SETUP, language="cpp")
    engine: Any = timer._engine
    order: list[str] = []
    compile_it = engine.compile

    def compile_now() -> Compiled:
        order.append("compile")
        result: Compiled = compile_it()
        return result

    def now() -> float:
        order.append("now")
        return time.perf_counter()

    monkeypatch.setattr(engine, "compile", compile_now)
    monkeypatch.setattr(timer, "_now", now, raising=False)
    timer.blocked_autorange(min_run_time=0.001, max_run_time=1.0)
    assert order[:2] == ["compile", "now"]
