"""Counting and timing in an interpreter that is not ours: Debian's Python with Debian's torch."""

from __future__ import annotations

import dataclasses
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.in_process import Program
from tests.shared_workers import DEBIAN
from torchmark.errors import SetupError
from torchmark.model.costs import Counts
from torchmark.model.job import CountJob, Place, TimeJob
from torchmark.model.outcome import Failure
from torchmark.model.task import Compiled, Snippet, Times
from torchmark.runner.prepare import build_snippets
from torchmark.runner.spec import other_worker
from torchmark.runner.worker import Reply, Worker, count


def expect(worker: Worker, setup: str, cwd: Path | str = "/") -> None:
    outcome = count(worker, CountJob("pass", setup, Place(str(cwd)), number=2, layouts=(0,)), baseline=False)
    assert isinstance(outcome, Counts), outcome


def test_its_own_torch_is_counted(debian_worker: Worker) -> None:
    outcome = count(debian_worker, CountJob("y = x * x", "x = torch.ones(4, 4)", Place("/")))
    assert isinstance(outcome, Counts)
    assert outcome.layouts[0].total() > 100_000
    assert debian_worker.environment.torch_version.startswith("1.13")
    assert debian_worker.environment.python == DEBIAN


def test_nothing_of_ours_is_visible_there(debian_worker: Worker, tmp_path: Path) -> None:
    (tmp_path / "lies_here.py").touch()
    expect(
        debian_worker,
        "import importlib.util as u, sys, os\n"
        f"assert sys.prefix != {sys.prefix!r} and not [p for p in sys.path if {sys.prefix!r} in p or 'nowhere' in p]\n"
        "assert not [u.find_spec(n) for n in ('torchmark', 'ruff', 'lies_here') if u.find_spec(n)]\n"
        "assert not [n for n in sys.modules if 'torchmark' in n]\n"
        "assert not {'PYTHONPATH', 'VIRTUAL_ENV', 'PYTEST_CURRENT_TEST'} & set(os.environ)\n"
        f"assert os.getcwd() == {str(tmp_path)!r}",
        tmp_path,
    )


def test_what_the_user_gives_arrives_and_is_recorded(stub_python: str) -> None:
    worker = Worker(other_worker(stub_python, os.environ, {"MY_SWITCH": "on"}))
    try:
        expect(worker, "import os; assert os.environ['MY_SWITCH'] == 'on' and os.environ['PYTHONHASHSEED'] == '0'")
        assert ("MY_SWITCH", "on") in worker.environment.variables
    finally:
        worker.close()


def test_faults_are_told_from_there_too(debian_worker: Worker) -> None:
    outcome = count(debian_worker, CountJob("x.nothing", "x = 1", Place("/")))
    assert isinstance(outcome, Failure)
    assert outcome.traceback is not None
    assert 'File "<stmt>", line 1, in <module>' in outcome.traceback


def test_cpp_is_built_against_its_own_headers(debian_worker: Worker) -> None:
    setup = "auto x = torch::ones({4, 4});\nTORCH_CHECK(TORCH_VERSION_MAJOR == 1);"
    # One header more than every snippet has: all of them take the compiler three times as long.
    snippet = Snippet("torch::add(x, x);", setup, "#include <torch/version.h>")
    compiled = build_snippets([snippet], debian_worker.sdk, os.environ)[snippet]
    assert isinstance(compiled, Compiled), compiled
    outcome = count(debian_worker, CountJob("", "", Place("/"), compiled=compiled), baseline=False)
    assert isinstance(outcome, Counts), outcome
    assert outcome.layouts[0].total() > 100_000


def test_without_headers_cpp_is_told_and_the_rest_goes_on(debian_worker: Worker) -> None:
    sdk = dataclasses.replace(debian_worker.sdk, folder="/nowhere")
    with pytest.raises(SetupError, match=r"The torch of /usr/bin/python3 has no C\+\+ headers.*libtorch-dev"):
        build_snippets([Snippet("f();")], sdk, os.environ)
    expect(debian_worker, "x = torch.ones(1)")


def test_it_can_be_timed_there() -> None:
    worker = Worker(other_worker(DEBIAN, os.environ, {}, counting=False))
    try:
        reply = worker.run(TimeJob("x + x", "x = torch.ones(4)", Place("/"), min_run_time_s=0.01))
        assert worker.environment.torch_version.startswith("1.13")
    finally:
        worker.close()
    assert isinstance(reply, Reply)
    assert isinstance(reply.message, Times)
    assert min(reply.message.raw_times) > 0


def test_the_command_line_counts_there_and_says_which_torch(program: Program, debian_worker: Worker) -> None:
    done = program(
        "count", "x * w", "--setup", "x, w = torch.ones(4, 4), torch.ones(4, 4)",
        "--python", DEBIAN, "--layouts", "3", "--json", "-",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    (result,) = json.loads(done.stdout)["counts"]
    assert result["environment"]["torch_version"].startswith("1.13")
    assert result["environment"]["python"] == DEBIAN
    assert result["instructions_per_run"] > 1000


@pytest.mark.parametrize("counting", [True, False])
def test_an_interpreter_without_torch_is_told(tmp_path: Path, counting: bool) -> None:
    subprocess.run([DEBIAN, "-m", "venv", "--without-pip", str(tmp_path / "bare")], check=True)
    python = str(tmp_path / "bare" / "bin" / "python3")
    with pytest.raises(SetupError, match="bare/bin/python3 has no torch"):
        Worker(other_worker(python, os.environ, {}, counting=counting)).start()


def test_a_broken_torch_is_told(tmp_path: Path) -> None:
    subprocess.run([DEBIAN, "-m", "venv", "--without-pip", str(tmp_path / "bare")], check=True)
    packages = next((tmp_path / "bare" / "lib").glob("python*/site-packages"))
    (packages / "torch.py").write_text("raise ImportError('libtorch.so: cannot open shared object file')")
    python = str(tmp_path / "bare" / "bin" / "python3")
    with pytest.raises(SetupError, match=r"does not load: ImportError: libtorch\.so: cannot open"):
        Worker(other_worker(python, os.environ, {}, counting=False)).start()
    (packages / "torch.py").write_text("import os; os.write(2, b'illegal instruction'); os.abort()")
    with pytest.raises(SetupError, match="cannot be used: it ended: illegal instruction"):
        Worker(other_worker(python, os.environ, {}, counting=False)).start()
    with pytest.raises(SetupError, match=r"(?s)Valgrind cannot run .*illegal instruction.*torchmark time"):
        Worker(other_worker(python, os.environ, {})).start()


@pytest.mark.parametrize("python", ["/bin/ls", "/no/such/python"])
@pytest.mark.parametrize(
    "command",
    [
        "time 1 --python",
        "count 1 --python",
        "flame 1 --python",
        "flame 1 --base",
        "fuzz x+1 --python",
        "run standard --python",
        "run standard --env one=",
        "ab --stmt 1 --base",
        "ab --stmt 1 --head",
        "overrides --python",
        "overrides --base",
        "selftest --python",
    ],
)
def test_every_command_calls_a_wrong_interpreter_a_usage_error_in_the_same_words(
    program: Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str, python: str
) -> None:
    monkeypatch.chdir(tmp_path)
    *words, option = command.split()
    done = program(*words, *([option + python] if option.endswith("=") else [option, python]))
    assert done.returncode == 2, done.stderr
    assert f"torchmark: {python} is not a Python interpreter: " in done.stderr
    assert done.stderr.endswith(". Name a Python 3.9 or newer that has torch.\n")
