"""`torchmark time` with real workers: which statement is faster, and what a bad one costs the others."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path

import pytest

from tests.in_process import Program
from tests.processes import is_alive
from tests.stub_python import make_stub_python

QUICK = ["--min-run-time", "0.01"]
# Long enough for a process to start on a busy machine: only what never ends takes it all.
SHORT_TIMEOUT = ["--timeout", "3"]


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture(scope="module")
def stub(tmp_path_factory: pytest.TempPathFactory) -> str:
    return make_stub_python(tmp_path_factory.mktemp("stub") / "venv")


@pytest.mark.parametrize(
    ("bad", "told"),
    [
        ("import os; os.kill(os.getpid(), 11)", "The process was ended by SIGSEGV.\n"),
        ("import os; os._exit(3)", "exit"),
        ("while True: pass", "It did not end within 3 s.\n"),
        ("y = 1\ny.missing", '  File "<stmt>", line 2, in <module>\n    y.missing\nAttributeError: '),
    ],
    ids=["crash", "exit", "endless", "raise"],
)
def test_a_statement_that_ends_its_process_costs_the_others_nothing(program: Program, bad: str, told: str) -> None:
    done = program("time", "x = 1", bad, "sum(range(99))", *QUICK, *SHORT_TIMEOUT, "--json", "-")
    assert done.returncode == 1
    assert told in done.stderr
    data = json.loads(done.stdout)
    assert [one["task_spec"]["stmt"] for one in data["measurements"]] == ["x = 1", "sum(range(99))"]
    assert [one["stmt"] for one in data["failures"]] == [bad]
    assert data["comparisons"][0]["fastest"]["stmt"] == "x = 1"


def test_the_result_of_the_only_statement_that_runs_is_shown(program: Program) -> None:
    done = program("time", "torch.ones(1)", "import os; os.kill(os.getpid(), 11)", *QUICK)
    assert done.returncode == 1
    assert done.stdout.startswith("torch.ones(1)\n")
    assert done.stderr == "Failed: import os; os.kill(os.getpid(), 11)\nThe process was ended by SIGSEGV.\n"


def test_one_statement_that_exits_is_reported(program: Program) -> None:
    done = program("time", "import os; os._exit(3)", *QUICK)
    assert (done.returncode, done.stdout) == (1, "")
    assert "3" in done.stderr


def test_statements_that_only_fail_together_are_all_measured(program: Program) -> None:
    # The first takes from the second what it needs, if they share variables.
    stmts = ("shared.clear()", "shared[0]")
    done = program("time", *stmts, "--setup", "shared = [1]", *QUICK)
    assert done.returncode == 0, done.stderr
    assert all(f"  {stmt} " in done.stdout for stmt in stmts)
    assert "Each had a process of its own, because together they fail:" in " ".join(done.stdout.split())


def test_a_table_says_which_statement_is_faster_and_by_how_much(program: Program) -> None:
    done = program("time", "sum(range(9))", "sum(range(9999))", *QUICK)
    text = " ".join(done.stdout.split())
    assert "Measured in turns, in " in text
    assert "sum(range(9)) is faster: sum(range(9999)) takes " in text
    assert "torchmark ab" not in text
    assert max(map(len, done.stdout.splitlines())) <= 80


def test_the_same_statement_twice_is_not_called_different_and_ab_is_named(program: Program) -> None:
    done = program("time", "f()", "f()", "--setup", "import time\ndef f(): time.sleep(0.0005)", "--number", "1")
    assert done.returncode == 0, done.stderr
    assert "  [1] f() " in done.stdout
    assert "  [2] f() " in done.stdout
    assert "cannot tell which is faster" in " ".join(done.stdout.split())
    assert "\n  torchmark ab 'f()' 'f()' --setup 'import time\ndef f(): time.sleep(0.0005)'\n" in done.stdout


@pytest.mark.parametrize("options", [["--number", "5"], ["--adaptive"]], ids=["number", "adaptive"])
def test_options_reach_statements_that_take_turns(program: Program, options: list[str]) -> None:
    done = program("time", "x = 1", "x = 2", "--json", "-", *options)
    data = json.loads(done.stdout)
    first, second = (len(one["raw_times"]) for one in data["measurements"])
    assert first == second
    if options[0] == "--number":
        assert [one["number_per_run"] for one in data["measurements"]] == [5, 5]
        assert first == 7


def test_another_interpreter_has_its_own_torch(program: Program, stub: str) -> None:
    setup = "import sys\nassert torch.__version__ == '0.1'\nassert sys.executable.endswith('venv/bin/python')"
    done = program("time", "torch.ones(1)", "sum(range(999))", "--setup", setup, "--python", stub, *QUICK)
    assert done.returncode == 0, done.stderr
    assert "torch.ones(1) is faster" in " ".join(done.stdout.split())


def test_what_is_no_interpreter_is_one_sentence(program: Program) -> None:
    done = program("time", "pass", "--python", "/nowhere/python")
    assert done.returncode == 2
    assert "/nowhere/python" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_setup_and_statements_come_from_files(program: Program, here: Path) -> None:
    (here / "setup.py").write_text("def f(n):\n    return sum(range(n))\n")
    (here / "slow.py").write_text("y = 9999\nf(y)\n")
    done = program("time", "f(9)", "slow.py", "-s", "@setup.py", *QUICK)
    assert done.returncode == 0, done.stderr
    assert "f(9) is faster: slow.py takes " in " ".join(done.stdout.split())
    (here / "broken.py").write_text("y = 9\nf(z)\n")
    done = program("time", "broken.py", "-s", "@setup.py", *QUICK)
    assert '  File "<stmt>", line 2, in <module>\n    f(z)\nNameError' in done.stderr


def test_a_statement_comes_from_standard_input(program: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO("y = x\ny + 1\n"))
    done = program("time", "-", "--setup", "x = 1", "--json", "-", *QUICK)
    (one,) = json.loads(done.stdout)["measurements"]
    assert one["task_spec"]["stmt"] == "y = x\ny + 1"


@pytest.mark.parametrize("stmt", ["", "pass"])
def test_the_empty_loop_is_called_that(program: Program, stmt: str) -> None:
    assert (
        "NOTE: The statement does nothing: this is the empty loop's own cost." in program("time", stmt, *QUICK).stdout
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["-n", "5"], "--min-run-time to measure for longer"),
        (["--warmup", "3"], "always warmed up"),
        (["--warmup"], "always warmed up"),
        (["--setup-file", "x.py"], "use --setup @FILE"),
        (["--setup", "@nowhere.py"], "The file 'nowhere.py' cannot be read: No such file or directory."),
        (["--timeout", "0"], "--timeout 0 would give up every statement"),
    ],
)
def test_habits_from_other_programs_get_an_answer(program: Program, arguments: list[str], message: str) -> None:
    done = program("time", "pass", *arguments)
    assert done.returncode == 2
    assert message in done.stderr


@pytest.mark.parametrize("command", ["count", "ab", "flame", "fuzz"])
def test_a_setup_that_is_not_there_is_reported_before_anything_starts(program: Program, command: str) -> None:
    done = program(command, "x", "x + 1", "-s", "@nowhere.py")
    assert done.returncode == 2
    assert "The file 'nowhere.py' cannot be read" in done.stderr


def test_nothing_is_left_behind_by_what_never_ends(program: Program, here: Path) -> None:
    stmt = "open('pid', 'w').write(str(os.getpid()))\nwhile True: pass"
    assert program("time", stmt, "--setup", "import os", *SHORT_TIMEOUT).returncode == 1
    assert not is_alive(int((here / "pid").read_text()))


def test_a_setup_can_begin_with_a_decorator(program: Program) -> None:
    setup = "@(lambda f: f)\ndef f(): return 1"
    assert program("time", "f()", "--setup", setup, *QUICK).returncode == 0
