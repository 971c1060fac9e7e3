"""Counting for real: exact, repeatable, of the same program that is timed, in any heap and with any threads."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

import torchmark
from tests.stub_torch import make_stub_torch
from torchmark import CallgrindStats, FunctionCount, FunctionCounts
from torchmark.callgrind.profiles import count_allocations, find_noisy
from torchmark.model.costs import Counts
from torchmark.model.job import BARE_LAYOUT, DEFAULT_LAYOUTS, CountJob, Place
from torchmark.model.outcome import Failure, FailureKind
from torchmark.runner import worker as counting
from torchmark.runner.spec import other_worker, visible_path
from torchmark.runner.worker import Worker, count

HERE = Place(os.getcwd(), tuple(visible_path()))

STATEMENTS = {
    "in place": ("x += 1", "x = torch.ones(4, 4)"),
    "multiply": ("y = x * w", "x = torch.ones(4, 4); w = torch.ones(4, 4)"),
    "linear": ("layer(x)", "layer = torch.nn.Linear(4, 4); x = torch.ones(4, 4)"),
    "backward": ("(x * w).sum().backward()", "x = torch.ones(4, 4); w = torch.ones(4, 4, requires_grad=True)"),
}


def count_it(worker: Worker, stmt: str, setup: str = "pass", **options: object) -> Counts:
    outcome = count(worker, CountJob(stmt, setup, HERE, **options))  # type: ignore[arg-type]
    assert isinstance(outcome, Counts), outcome
    return outcome


def totals(counts: Counts) -> list[int]:
    return [profile.total() for profile in counts.layouts]


LAYOUTS_ELSEWHERE = [(BARE_LAYOUT,), DEFAULT_LAYOUTS]

COUNT_ELSEWHERE = """
import json, os, sys
files = [open(os.devnull) for _ in range(20)]
from torchmark.model.job import BARE_LAYOUT, DEFAULT_LAYOUTS, CountJob, Place
from torchmark.runner.worker import count
from torchmark.runner.spec import own_worker
from torchmark.runner.worker import Worker
worker = Worker(own_worker(os.environ))
totals = {}
statements, choices = json.loads(sys.argv[1])
for name, (stmt, setup) in statements.items():
    for layouts in choices:
        counts = count(worker, CountJob(stmt, setup, Place(os.getcwd()), layouts=tuple(layouts)))
        totals[f"{name} {len(layouts)}"] = [profile.total() for profile in counts.layouts]
worker.close()
print(json.dumps(totals))
"""


@pytest.fixture(scope="module", autouse=True)
def other_program(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[subprocess.Popen[str], Path]]:
    """A process with a larger environment, more open files and another standard output counts the same statements,
    in another folder.

    It comes before all tests of this file, because they need not wait while it loads torch under Valgrind.
    """
    folder = tmp_path_factory.mktemp("a folder with a rather long name, so that paths are longer") / "below"
    folder.mkdir()
    command = [sys.executable, "-c", COUNT_ELSEWHERE, json.dumps([STATEMENTS, LAYOUTS_ELSEWHERE])]
    environ = {**os.environ, "PADDING": "x" * 3000}
    with (
        open(folder / "output", "w") as output,
        subprocess.Popen(command, cwd=folder, env=environ, stdout=output, stderr=subprocess.PIPE, text=True) as process,
    ):
        yield process, folder / "output"
        process.kill()


@pytest.fixture(scope="module")
def elsewhere(other_program: tuple[subprocess.Popen[str], Path]) -> dict[str, list[int]]:
    """What another process's worker counts, by statement and layout."""
    process, output = other_program
    _, err = process.communicate()
    assert process.returncode == 0, err
    counted: dict[str, list[int]] = json.loads(output.read_text())
    return counted


@pytest.mark.parametrize("name", STATEMENTS)
def test_eight_repeats_agree_to_the_instruction(counting_worker: Worker, name: str) -> None:
    stmt, setup = STATEMENTS[name]
    seen = set()
    for i in range(8):
        seen.add(count_it(counting_worker, stmt, setup, layouts=(0,), number=20).layouts[0].total())
        if i % 3 == 0:
            # What comes between makes no difference, whether it succeeds or fails.
            other = CountJob("raise ValueError" if i % 2 else f"z = {'x' * 1000!r} * {i}", "pass", HERE, layouts=(0,))
            count(counting_worker, other)
    assert len(seen) == 1


def test_every_function_repeats_too(counting_worker: Worker) -> None:
    one, two = (count_it(counting_worker, *STATEMENTS["backward"]) for _ in range(2))
    assert [profile.exclusive for profile in one.layouts] == [profile.exclusive for profile in two.layouts]
    assert [profile.calls for profile in one.layouts] == [profile.calls for profile in two.layouts]


@pytest.mark.parametrize("name", STATEMENTS)
def test_another_worker_agrees_to_the_instruction(
    counting_worker: Worker, elsewhere: dict[str, list[int]], name: str
) -> None:
    stmt, setup = STATEMENTS[name]
    for layouts in LAYOUTS_ELSEWHERE:
        # Without a path, as there: that belongs to the job, and the two programs have different ones.
        counts = count(counting_worker, CountJob(stmt, setup, Place("/"), layouts=layouts))
        assert isinstance(counts, Counts), counts
        assert totals(counts) == elsewhere[f"{name} {len(layouts)}"]


def test_layouts_differ_and_only_what_depends_on_addresses_is_to_blame(counting_worker: Worker) -> None:
    counts = count_it(counting_worker, *STATEMENTS["multiply"], layouts=tuple(range(5)))
    assert len(set(totals(counts))) > 1
    assert max(totals(counts)) < 1.01 * min(totals(counts))
    noisy = find_noisy(counts.layouts)
    assert noisy
    # Allocators, which some builds of Python have inside of what calls them, and what compares and copies memory as it
    # happens to be aligned.
    expected = ("alloc", "free", "mem", "gc_del")
    assert [label for label in noisy if not any(word in label.lower() for word in expected)] == []


def test_calls_are_counted_exactly(counting_worker: Worker) -> None:
    counts = count_it(counting_worker, "y = x * w", STATEMENTS["multiply"][1], layouts=(0,), number=50)
    # A tensor's memory, its object, its storage, and its Python object's own.
    assert count_allocations(counts.layouts[0]) == (200, 50)


def test_more_runs_cost_in_proportion(counting_worker: Worker) -> None:
    one, two, three = (
        count_it(counting_worker, "y = x + 1", "x = 1", number=n, layouts=(0,)).layouts[0].total()
        for n in (100, 200, 300)
    )
    assert three - two == two - one


def test_the_statement_is_specialised_before_it_is_counted(counting_worker: Worker) -> None:
    counts = count_it(counting_worker, "f(1)", "def f(x): return x + 1", layouts=(0,))
    costs = [cost for f, (cost,) in counts.layouts[0].exclusive.items() if "_Py_Specialize" in f.name]
    # The loop's own calls of its clock, of which there are two, may be tried again; 100 runs would cost thousands.
    assert sum(costs) < 200


def test_the_statement_runs_in_a_function_without_look_ups(counting_worker: Worker) -> None:
    counts = count_it(counting_worker, "y = x", "x = 1", layouts=(0,))
    assert not [f.label for f in counts.layouts[0].exclusive if "lookup" in f.name or "lookdict" in f.name]


def test_the_baseline_is_the_empty_loop(counting_worker: Worker) -> None:
    counts = count_it(counting_worker, "pass", layouts=(0,))
    assert counts.baseline is not None
    assert counts.baseline.total() == pytest.approx(counts.layouts[0].total(), rel=0.02)


def test_the_baseline_can_be_left_out(counting_worker: Worker) -> None:
    outcome = count(counting_worker, CountJob("pass", "pass", HERE, layouts=(0,)), baseline=False)
    assert isinstance(outcome, Counts)
    assert outcome.baseline is None


def test_a_setup_does_not_touch_the_baseline(counting_worker: Worker) -> None:
    counting_worker.baselines.clear()
    tracing = count_it(counting_worker, "pass", "import sys; sys.settrace(lambda *_: None)", number=44, layouts=(0,))
    plain = count_it(counting_worker, "pass", number=44, layouts=(0,))
    assert tracing.baseline is not None
    assert tracing.baseline == plain.baseline
    assert tracing.baseline.total() == pytest.approx(plain.layouts[0].total(), rel=0.02)


def test_the_collector_is_off(counting_worker: Worker) -> None:
    counts = count_it(counting_worker, "y = [[] for _ in range(50)]", layouts=(0,), number=200)
    assert not [f.label for f in counts.layouts[0].exclusive if "gc_collect" in f.name]


def test_all_threads_are_counted(counting_worker: Worker) -> None:
    setup = "x = torch.ones(256, 1024)"
    one = count_it(counting_worker, "y = x + x", setup, number=3, layouts=(0,)).layouts[0].total()
    two = count_it(counting_worker, "y = x + x", setup, number=3, layouts=(0,), threads=2).layouts[0].total()
    # The same elements are added; the rest is what it takes to share the work.
    assert one < two < 1.3 * one


def test_layouts_of_several_threads_are_counted_one_by_one(counting_worker: Worker) -> None:
    counts = count_it(counting_worker, "y = x + x", "x = torch.ones(256, 1024)", number=3, threads=2, layouts=(0, 1))
    assert len(counts.layouts) == 2
    assert counts.baseline is not None


def test_a_setup_that_starts_threads_is_counted_layout_by_layout(counting_worker: Worker) -> None:
    setup = "import threading, time; threading.Thread(target=time.sleep, args=(1000,), daemon=True).start()"
    assert len(count_it(counting_worker, "pass", setup, layouts=(0, 1, 2)).layouts) == 3


def test_a_fault_that_only_one_layout_meets_is_told(counting_worker: Worker) -> None:
    setup = "import itertools; runs = itertools.count()"
    outcome = count(counting_worker, CountJob("if next(runs) > 90: raise ValueError('too far')", setup, HERE))
    assert isinstance(outcome, Failure)
    assert outcome.kind is FailureKind.RAISED
    assert "too far" in outcome.message
    crash = "if next(runs) > 90: import os; os.abort()"
    outcome = count(counting_worker, CountJob(crash, setup, HERE))
    assert isinstance(outcome, Failure)
    assert (outcome.kind, "SIGABRT" in outcome.message) == (FailureKind.CRASHED, True)


def test_a_full_disk_is_no_result(counting_worker: Worker, monkeypatch: pytest.MonkeyPatch) -> None:
    # As Valgrind leaves files that it could not write to the end.
    collect = Worker._collect
    monkeypatch.setattr(Worker, "_collect", lambda self: tuple(text[: len(text) // 2] for text in collect(self)))
    outcome = count(counting_worker, CountJob("x * x", "x = torch.ones(4)", HERE))
    assert isinstance(outcome, Failure)
    assert outcome.kind is FailureKind.NO_RESULT
    assert "disk" in outcome.message


# --- as users call it -----------------------------------------------------------------------------------------


def test_collecting_gives_the_median_of_five_layouts(counting_worker: Worker) -> None:
    stats = torchmark.Timer(*STATEMENTS["multiply"]).collect_callgrind()
    assert isinstance(stats, torchmark.CallgrindStats)
    assert len(stats.layouts) == 5
    assert stats.counts() == sorted(stats.layouts)[2]
    assert stats.counts(net=True) == stats.counts() - stats.baseline_exclusive_stats.sum()
    assert 0 < stats.counts(denoise=True) < stats.counts()
    assert stats.allocations is not None
    assert stats.allocations > 0
    assert stats.environment is not None
    assert stats.environment.torch_version == torch.__version__
    assert stats.stmt_callgrind_out is None
    assert stats.estimated_cycles is None


def test_a_bare_count_has_one_layout_and_falls_back_to_names(counting_worker: Worker) -> None:
    stats = torchmark.Timer("d['a']", "d = {'a': 1}").collect_callgrind(layouts=1)
    assert stats.spread is None
    assert stats.stmt_exclusive_stats._noisy is None


def test_repeats_give_a_tuple_of_equal_counts(counting_worker: Worker) -> None:
    results = torchmark.Timer("x + 1", "x = torch.ones(2)").collect_callgrind(10, repeats=3, collect_baseline=False)
    assert isinstance(results, tuple)
    assert len({result.counts() for result in results}) == 1
    assert len(results[0].baseline_exclusive_stats) == 0
    with pytest.raises(torchmark.UsageError, match="no baseline"):
        results[0].counts(net=True)


@pytest.fixture(scope="module", params=["python", "cpp"])
def kept(
    request: pytest.FixtureRequest, counting_worker: Worker, tmp_path_factory: pytest.TempPathFactory
) -> CallgrindStats:
    """A count with the file that Callgrind wrote, tidied."""
    # Headers of the real torch take a compiler many seconds, and say nothing of this file.
    stub = make_stub_torch(tmp_path_factory.mktemp("torch"))
    stmts = {"python": ("x + 1", "x = torch.ones(2)"), "cpp": ("torchmark::keep(x.add(1));", "torch::Tensor x;")}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("torchmark.api.timer_engines.read_sdk", lambda: stub)
        timer = torchmark.Timer(*stmts[request.param], language=request.param)
        return timer.collect_callgrind(10, layouts=1, retain_out_file=True)


@pytest.mark.parametrize("inclusive", [False, True])
def test_callgrind_annotate_reads_a_kept_file_as_our_own_tables_have_it(
    kept: CallgrindStats, inclusive: bool, tmp_path: Path
) -> None:
    assert kept.stmt_callgrind_out is not None
    (tmp_path / "callgrind.out.1").write_text(kept.stmt_callgrind_out)
    program = ["callgrind_annotate", "--auto=no", "--threshold=100", f"--inclusive={'yes' if inclusive else 'no'}"]
    done = subprocess.run([*program, tmp_path / "callgrind.out.1"], capture_output=True, text=True, cwd="/", check=True)
    rows = re.findall(r"^ *([\d,]+) +\([ \d.]+%\) +(.*)$", done.stdout, re.MULTILINE)
    (total, name), *functions = [(int(number.replace(",", "")), name) for number, name in rows]
    assert (total, name) == (kept.counts(), "PROGRAM TOTALS")
    assert [number for number, _ in functions] == [entry.count for entry in merge_binaries(kept.stats(inclusive))]
    shown = torchmark.FunctionCounts(tuple(FunctionCount(*row) for row in functions), inclusive)
    assert len(merge_binaries(shown) - merge_binaries(kept.stats(inclusive))) == 0


def test_a_kept_file_names_its_process_in_a_few_words(kept: CallgrindStats) -> None:
    assert kept.stmt_callgrind_out is not None
    assert kept.stmt_callgrind_out.startswith("# callgrind format")
    commands = [line for line in kept.stmt_callgrind_out.splitlines() if line.startswith("cmd:")]
    assert commands == [f"cmd: {sys.executable} (a counting process of torchmark)"]


def merge_binaries(functions: FunctionCounts) -> FunctionCounts:
    """By file and function: callgrind_annotate names the binary of some functions only."""
    return functions.transform(lambda label: re.sub(r" \[(/[^]]*|\?\?\?)\]$", "", label))


def test_globals_arrive_as_they_are(counting_worker: Worker) -> None:
    base = torch.arange(24, dtype=torch.float64).reshape(4, 6)
    view = base[1:, ::2]
    values = {
        "text": "a\nb",
        "data": b"\0\1",
        "nothing": None,
        "nested": {"list": [1, 2.5, (True, 1j)], "tensor": view},
        "view": view,
        "half": torch.ones(3, dtype=torch.bfloat16).requires_grad_(),
        "module": torch.nn.Linear(2, 3),
    }
    setup = f"""
assert text == "a\\nb" and data == b"\\0\\1" and nothing is None
assert nested["list"] == [1, 2.5, (True, 1j)]
for tensor in (view, nested["tensor"]):
    assert tensor.stride() == {view.stride()} and tensor.storage_offset() == {view.storage_offset()}
    assert tensor.dtype is torch.float64 and tensor.tolist() == {view.tolist()}
assert half.dtype is torch.bfloat16 and half.requires_grad
assert module(torch.ones(1, 2)).shape == (1, 3)
"""
    wrapped = {name: torchmark.CopyIfCallgrind(value) for name, value in values.items()}
    assert torchmark.Timer("view.sum()", setup, globals=wrapped).collect_callgrind(2, layouts=1).counts() > 0


def test_a_scripted_function_and_a_setup_of_its_own_arrive_too(counting_worker: Worker, tmp_path: Path) -> None:
    (tmp_path / "my_layers.py").write_text(
        "import torch\nclass Mine(torch.nn.Module):\n  def forward(self, x): return x"
    )
    sys.path.insert(0, str(tmp_path))
    try:
        from my_layers import Mine  # type: ignore[import-not-found]
    finally:
        sys.path.remove(str(tmp_path))

    scripted = torch.jit.script(torch.nn.ReLU())
    wrapped = {
        "f": torchmark.CopyIfCallgrind(scripted),
        "mine": torchmark.CopyIfCallgrind(Mine(), setup=f"import sys\nsys.path.append({str(tmp_path)!r})"),
    }
    timer = torchmark.Timer("f(mine(x))", "x = torch.ones(2)", globals=wrapped)
    assert timer.collect_callgrind(2, layouts=1).counts() > 0


class NotThere(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x


def test_a_class_that_the_child_cannot_import_is_an_os_error_that_says_so(counting_worker: Worker) -> None:
    NotThere.__module__ = "__main__"
    sys.modules["__main__"].NotThere = NotThere  # type: ignore[attr-defined]
    timer = torchmark.Timer("m(1)", globals={"m": torchmark.CopyIfCallgrind(NotThere())})
    with pytest.raises(OSError, match="AttributeError: Can't get attribute 'NotThere'"):
        timer.collect_callgrind()


def test_what_the_program_can_import_the_child_can_too(
    counting_worker: Worker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "lies_here.py").write_text("value = 7")
    (tmp_path / "data.txt").write_text("some data")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend("")
    setup = "import lies_here, torchmark; assert lies_here.value == 7 and open('data.txt').read() == 'some data'"
    stats = torchmark.Timer("torchmark.Timer", setup).collect_callgrind(2, layouts=1)
    assert stats.counts() > 0


def test_a_faulty_statement_raises_its_own_exception_before_anything_is_started() -> None:
    with pytest.raises(ZeroDivisionError):
        torchmark.Timer("1 / 0").collect_callgrind()


def test_a_statement_that_only_fails_in_the_child_is_an_os_error_with_its_traceback(counting_worker: Worker) -> None:
    stmt = f"import os\nif os.getpid() != {os.getpid()}: raise LookupError('only there')"
    with pytest.raises(torchmark.WorkerError, match="only there") as caught:
        torchmark.Timer(stmt).collect_callgrind()
    assert isinstance(caught.value, OSError)
    assert caught.value.kind == "raised"
    assert 'File "<stmt>", line 2' in str(caught.value)


def test_a_time_limit_holds_here_too(counting_worker: Worker) -> None:
    stmt = f"import os, time\nif os.getpid() != {os.getpid()}: time.sleep(1000)"
    with pytest.raises(torchmark.WorkerError, match="did not end within 1 s"):
        torchmark.Timer(stmt).collect_callgrind(timeout_s=1)


def test_simulated_caches_give_misses_and_cycles(stub_python: str) -> None:
    worker = Worker(other_worker(stub_python, os.environ, {}, simulate=True))
    try:
        counts = count_it(worker, "data.count(1)", "data = bytes(1 << 20)", number=2, layouts=(0,))
    finally:
        worker.close()
    profile = counts.layouts[0]
    assert {"Ir", "Dr", "D1mr", "DLmr", "Bc", "Bcm"} <= set(profile.events)
    # A megabyte read twice, 64 bytes a line, does not fit into any first-level cache.
    assert profile.total("D1mr") > 2 * (1 << 20) / 64
    assert profile.total("Ir") == profile.totals()[0]


def test_the_baseline_is_taken_once_for_a_worker(counting_worker: Worker, monkeypatch: pytest.MonkeyPatch) -> None:
    first = count_it(counting_worker, "x = 1", number=33, layouts=(0,)).baseline
    asked: list[str] = []
    run = counting._run_all

    def spy(worker: Worker, jobs: list[CountJob], *rest: object) -> object:
        asked.extend(job.stmt for job in jobs)
        return run(worker, jobs, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(counting, "_run_all", spy)
    assert count_it(counting_worker, "y = 2", number=33, layouts=(0,)).baseline == first
    assert asked == ["y = 2"]


def test_variables_are_handed_on_only_where_they_are_given(
    counting_worker: Worker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_SWITCH", "on")
    timer = torchmark.Timer("pass", "import os; assert os.environ.get('MY_SWITCH') == 'on'")
    with pytest.raises(torchmark.WorkerError, match="AssertionError"):
        timer.collect_callgrind(2, layouts=1)


def test_a_setup_of_a_global_may_define_its_class(counting_worker: Worker) -> None:
    code = "class Mine(torch.nn.Module):\n    def forward(self, x): return x"
    scope: dict[str, Any] = {"torch": torch, "__name__": "__main__"}
    exec(code, scope)
    sys.modules["__main__"].Mine = scope["Mine"]  # type: ignore[attr-defined]
    timer = torchmark.Timer("m(1)", globals={"m": torchmark.CopyIfCallgrind(scope["Mine"](), setup=code)})
    assert timer.collect_callgrind(2, layouts=1).counts() > 0


@pytest.mark.parametrize("timeout_s", [float("inf"), 1e9])
def test_a_time_limit_may_be_far_away(counting_worker: Worker, timeout_s: float) -> None:
    assert torchmark.Timer("pass").collect_callgrind(2, layouts=1, timeout_s=timeout_s).counts() > 0
