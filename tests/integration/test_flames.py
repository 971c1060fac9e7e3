"""Flame graphs under real Valgrind and by real py-spy: exact stacks, and `torchmark flame` as a user runs it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from tests.in_process import Program
from tests.shared_workers import DEBIAN
from torchmark.analysis.flames import grow
from torchmark.analysis.stacks import AROUND, STATEMENT, leave_out_native, read_stacks
from torchmark.callgrind.command import FRAMES, build_library
from torchmark.model.costs import FlameNode, FrameKind, Stacks, Trace
from torchmark.model.job import CountJob, Place
from torchmark.model.outcome import Failure
from torchmark.runner.worker import Worker, trace

OVERRIDING = """
class Sub(torch.Tensor):
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        return super().__torch_function__(func, types, args, kwargs or {})
x = Sub([1.0])
"""


def trace_it(worker: Worker, stmt: str, setup: str = "x = torch.ones(1)") -> Trace:
    found = trace(worker, CountJob(stmt, setup, Place(os.getcwd())))
    assert isinstance(found, Trace), found
    return found


def read(worker: Worker, stmt: str, setup: str = "x = torch.ones(1)") -> Stacks:
    found = trace_it(worker, stmt, setup)
    stacks, instrument = read_stacks(found)
    assert stacks.total + instrument == found.profile.total()
    return stacks


def names(node: FlameNode) -> set[str]:
    return {node.frame.name}.union(*map(names, node.children))


def test_everything_adds_up_to_the_count(tracing_worker: Worker) -> None:
    stacks = read(tracing_worker, "torch.add(x, x)")
    root = grow(stacks)
    assert root.value == stacks.total
    # All but a trace is the statement's.
    (statement,) = [child for child in root.children if child.frame == STATEMENT]
    assert statement.value > 0.99 * root.value
    assert all(child.frame in (STATEMENT, AROUND) for child in root.children)


def test_two_traces_agree_to_the_instruction(tracing_worker: Worker) -> None:
    assert read(tracing_worker, "torch.add(x, x)") == read(tracing_worker, "torch.add(x, x)")


def test_python_functions_are_seen_in_the_order_of_their_calls(tracing_worker: Worker) -> None:
    stacks = leave_out_native(read(tracing_worker, "torch.add(x, x)", OVERRIDING))
    paths = {tuple(frame.name for frame in frames) for frames, _ in stacks.stacks}
    assert ("statement", "Sub.__torch_function__", "Tensor.__torch_function__", "_convert") in paths


def test_compiled_functions_stand_below_the_python_functions_that_call_them(tracing_worker: Worker) -> None:
    stacks = read(tracing_worker, "torch.add(x, x)", OVERRIDING)
    inner = [
        [frame.name for frame in frames]
        for frames, _ in stacks.stacks
        if frames[-1].name.startswith("at::native::") and any(frame.kind is FrameKind.PYTHON for frame in frames)
    ]
    assert inner
    assert all(path.index("Tensor.__torch_function__") < len(path) - 1 for path in inner)


def test_more_work_in_a_python_function_is_its_own(tracing_worker: Worker) -> None:
    setup = "def f():\n    return 1\ndef g():\n    for _ in range({}): pass\n    return f()"
    few, many = (grow(leave_out_native(read(tracing_worker, "g()", setup.format(n)))) for n in (1, 101))

    def own(root: FlameNode, name: str) -> int:
        return sum(own(child, name) for child in root.children) + (root.own if root.frame.name == name else 0)

    assert own(many, "f") == own(few, "f")
    # A hundred more rounds of a loop, a hundred times, of a few instructions each.
    assert own(many, "g") - own(few, "g") > 100 * 100 * 3


def test_recursion_is_folded(tracing_worker: Worker) -> None:
    setup = "def f(n):\n    return n and f(n - 1)"
    stacks = leave_out_native(read(tracing_worker, "f(50)", setup))
    assert {tuple(frame.name for frame in frames) for frames, _ in stacks.stacks} <= {
        ("statement",),
        ("statement", "f"),
        (AROUND.name,),
    }


def test_a_trace_of_a_statement_that_fails_is_a_failure(tracing_worker: Worker) -> None:
    found = trace(tracing_worker, CountJob("torch.nothing()", "pass", Place(os.getcwd())))
    assert isinstance(found, Failure)
    assert "nothing" in found.message
    # And the worker is none the worse for it.
    assert read(tracing_worker, "pass", "pass").total > 0


SHOW = """
import sys
sys.path.insert(0, {source!r})
from torchmark.worker.count_job import Calls
calls = Calls({library!r})
def inner(n): return n + 1
class Outer:
    def method(self): return [inner(i) for i in range(3)]
calls.show()
assert Outer().method() == [1, 2, 3]
calls.hide()
inner(1)
print([name.rpartition(".")[2] for name, file, line in calls.list_functions()])
"""


@pytest.mark.parametrize("python", [sys.executable, DEBIAN])
def test_calls_are_told_apart_without_valgrind_too(python: str, tmp_path: Path) -> None:
    library = build_library(tmp_path, os.environ, FRAMES)
    source = str(Path(__file__).parents[2] / "src")
    script = SHOW.format(source=source, library=str(library))
    done = subprocess.run([python, "-c", script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "method" in done.stdout
    assert "inner" in done.stdout


SETUP = "def slow(): return [i for i in range(50)]\nx = torch.ones(1)"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_statement_is_drawn_with_its_python_functions(program: Program, folder: Path, tracing_worker: Worker) -> None:
    done = program("flame", "slow(); torch.add(x, x)", "--setup", SETUP)
    assert done.returncode == 0, done.stderr
    assert "flame.svg" in done.stdout
    assert "instructions per run" in done.stdout
    texts = "".join(ET.parse(folder / "flame.svg").getroot().itertext())
    assert "slow" in texts
    assert "add" in texts


def test_collapsed_stacks_add_up_and_end_with_numbers(program: Program, folder: Path, tracing_worker: Worker) -> None:
    done = program("flame", "slow()", "--setup", SETUP, "-o", "x.txt", "--no-native", "--number", "10")
    assert done.returncode == 0, done.stderr
    stacks = dict(line.rsplit(" ", 1) for line in (folder / "x.txt").read_text().splitlines())
    assert "statement;slow" in stacks
    assert all(value.isdigit() for value in stacks.values())


def test_cases_of_a_suite_go_to_a_folder(program: Program, folder: Path, tracing_worker: Worker) -> None:
    done = program("flame", "standard", "-k", "relu and eager and forward", "--language", "python", "-o", "graphs/",
                   "--format", "speedscope", "--autograd", "forward")  # fmt: skip
    assert done.returncode == 0, done.stderr
    files = sorted((folder / "graphs").iterdir())
    assert files
    for file in files:
        profile = json.loads(file.read_text())["profiles"][0]
        assert sum(profile["weights"]) == profile["endValue"]


def test_a_statement_that_fails_is_told_and_leaves_no_file(
    program: Program, folder: Path, tracing_worker: Worker
) -> None:
    done = program("flame", "torch.nothing()")
    assert done.returncode == 1
    assert "has no attribute 'nothing'" in done.stderr
    assert not (folder / "flame.svg").exists()


def test_an_interpreter_that_is_none_is_told(program: Program, folder: Path) -> None:
    done = program("flame", "pass", "--python", "/nowhere/python")
    assert done.returncode != 0
    assert "/nowhere/python" in done.stderr


def test_sampling_sees_the_functions_of_another_interpreter(program: Program, folder: Path) -> None:
    arguments = ["--sampled", "--seconds", "1", "--no-native", "--python", DEBIAN, "-o", "x.txt"]
    done = program("flame", "slow()", "--setup", SETUP, *arguments)
    assert done.returncode == 0, done.stderr
    assert any(line.startswith("statement;slow") for line in (folder / "x.txt").read_text().splitlines())


def test_sampling_tells_what_a_statement_raised(program: Program, folder: Path) -> None:
    done = program("flame", "torch.nothing()", "--sampled", "--seconds", "1")
    assert done.returncode == 1
    assert "has no attribute 'nothing'" in done.stderr
