"""What the command makes of results, wherever they come from: nothing is measured here."""

from __future__ import annotations

import io
import json
import os
import signal
import sys
import threading
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from tests.fake_backend import FakeBackend
from tests.in_process import Program
from torchmark.model.outcome import Failure, FailureKind, Result
from torchmark.model.plan import Order, Plan
from torchmark.model.run import Run
from torchmark.model.task import Times
from torchmark.store.runs import open_store

SUITE = """
from torchmark import GroupedStmts
BENCHMARKS = {{label: GroupedStmts(stmt) for label, stmt in {cases!r}.items()}}
"""
FINE = Times(10, (1e-6,) * 9)
RAISED = Failure(FailureKind.RAISED, "ZeroDivisionError: division by zero")
KILLED = Failure(FailureKind.CRASHED, "The process was ended by SIGKILL.")


class Machine:
    """Measures nothing, and remembers what it was asked for."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.results: dict[str, Result] = {}
        self.on: dict[str, Callable[[], object]] = {}
        self.opened = 0
        self.on_opening: Callable[[], object] = lambda: None

    def measure(self, order: Order) -> Result:
        label = order.case.label[0]
        self.asked.append(label)
        self.on.get(label, lambda: None)()
        return self.results.get(label, FINE)

    def make_backend(self, cores: Sequence[int]) -> FakeBackend:
        machine = self

        class Backend(FakeBackend):
            def open(self, plan: Plan) -> None:
                machine.opened += 1
                machine.on_opening()
                super().open(plan)

        return Backend(self.measure)


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Machine:
    monkeypatch.chdir(tmp_path)
    machine = Machine()
    monkeypatch.setattr("torchmark.runner.local.LocalBackend", machine.make_backend)
    return machine


def define(**cases: str) -> None:
    Path("bench_mine.py").write_text(SUITE.format(cases=cases))


def load() -> Run:
    with open_store(Path(".torchmark/results.db"), read_only=True) as store:
        return store.load(store.list_runs()[0].id)


WALL = ("run", "bench_mine.py", "--metric", "wall")


def test_going_on_with_a_complete_run_does_nothing_and_needs_nothing(machine: Machine, program: Program) -> None:
    define(a="1", b="2")
    first = program(*WALL)
    before = load()
    again = program("run", "--resume")
    assert (first.returncode, again.returncode) == (0, 0)
    assert (machine.asked, machine.opened) == (["a", "b"], 1)
    assert load().outcomes == before.outcomes
    assert again.stdout == first.stdout


def test_going_on_runs_what_is_new_or_defined_otherwise_and_shows_what_is_still_there(
    machine: Machine, program: Program
) -> None:
    define(same="1", changed="2", removed="3")
    program(*WALL)
    before = {one.order.case.label[0]: one for one in load().outcomes}
    machine.asked.clear()
    define(same="1", changed="20", new="4")
    done = program("run", "--resume")
    assert machine.asked == ["changed", "new"]
    assert "removed" not in done.stdout
    after = {one.order.case.label[0]: one for one in load().outcomes}
    assert set(after) == {"same", "changed", "new"}
    assert after["same"] == before["same"]


def test_what_was_killed_is_run_again_and_what_failed_by_itself_is_not(machine: Machine, program: Program) -> None:
    define(raises="1", killed="2", fine="3")
    machine.results = {"raises": RAISED, "killed": KILLED}
    assert program(*WALL).returncode == 1
    machine.asked.clear()
    machine.results.clear()
    done = program("run", "--resume")
    assert machine.asked == ["killed"]
    # One that failed is still there.
    assert done.returncode == 1
    assert "ZeroDivisionError" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--repeat", "3"], "another --repeat"),
        (["--metric", "count"], "another --metric"),
        (["--python", "other"], "other interpreters"),
        (["-k", "a"], "another selection"),
        (["standard"], "benchmarks bench_mine.py, not standard"),
        (["--name", "nobody"], "There is no run 'nobody'"),
    ],
)
def test_a_run_does_not_go_on_as_another(machine: Machine, program: Program, arguments: list[str], words: str) -> None:
    define(a="1")
    program(*WALL)
    refused = program("run", "--resume", *arguments)
    assert refused.returncode == 2
    assert words in refused.stderr


def test_a_time_limit_may_be_another_when_a_run_goes_on(machine: Machine, program: Program) -> None:
    define(a="1")
    program(*WALL)
    assert program("run", "--resume", "--timeout", "5").returncode == 0


def test_fail_fast_stops_at_the_first_failure(machine: Machine, program: Program) -> None:
    define(fine="1", bad="2", never="3")
    machine.results["bad"] = RAISED
    done = program(*WALL, "--fail-fast")
    assert done.returncode == 1
    assert machine.asked == ["fine", "bad"]
    assert "1 not measured yet" in done.stdout


def test_a_dry_run_leaves_no_trace(machine: Machine, program: Program) -> None:
    define(a="1")
    done = program(*WALL, "--dry-run")
    assert done.returncode == 0
    assert machine.asked == []
    assert [path.name for path in Path().iterdir()] == ["bench_mine.py"]


def test_signs_of_life_are_lines_in_a_log_and_nothing_where_quiet_is_asked_for(
    machine: Machine, program: Program
) -> None:
    define(a="1", b="2")
    machine.results["b"] = RAISED
    told = program(*WALL).stderr.splitlines()
    assert told[0].startswith("0 of 2 done")
    assert told[1].startswith("Failed: timing b")
    assert told[-1].startswith("2 of 2 done, 1 failed")
    assert program(*WALL, "--quiet").stderr == ""


class Terminal(io.StringIO):
    """Remembers what was written."""

    encoding = "utf-8"

    def isatty(self) -> bool:
        return True

    def fileno(self) -> int:
        return 2


def test_nothing_is_drawn_while_something_is_timed_and_nobody_is_there_to_draw(
    machine: Machine, program: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    define(a="1", b="2")
    terminal, drawn, threads = Terminal(), [0], []

    def look() -> None:
        # Since the last one was looked at something was drawn: that it ended, and that this one has begun.
        assert len(terminal.getvalue()) > drawn[-1]
        drawn.append(len(terminal.getvalue()))
        threads.append(threading.active_count())

    machine.on = {"a": look, "b": look}
    before = threading.active_count()
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(sys, "stderr", terminal)
    assert program(*WALL).returncode == 0
    # Whatever is written is written by the one thread that was in `look`.
    assert threads == [before, before]
    assert "2/2" in terminal.getvalue()


def test_faults_of_definitions_are_told_and_all_else_is_measured(machine: Machine, program: Program) -> None:
    define(a="1", bad="x = = 1")
    done = program(*WALL)
    assert done.returncode == 2
    assert machine.asked == ["a"]
    assert "1 faulty definition" in done.stderr
    assert "bad" in done.stderr


def test_json_on_standard_output_is_alone_there(machine: Machine, program: Program) -> None:
    Path("bench_mine.py").write_text("print('hello')\n" + SUITE.format(cases={"a": "1"}))
    done = program(*WALL, "--json", "-")
    assert json.loads(done.stdout)
    assert "hello" in done.stderr


def test_a_store_that_cannot_be_made_or_is_a_folder_is_told_before_anything_is_measured(
    machine: Machine, program: Program
) -> None:
    define(a="1")
    for path in (Path("bench_mine.py", "results.db"), Path()):
        done = program(*WALL, "--store", str(path))
        assert done.returncode == 4
        assert "torchmark: " in done.stderr
    assert machine.asked == []


def test_an_interrupt_finishes_what_has_begun_and_shows_what_there_is(machine: Machine, program: Program) -> None:
    define(a="1", b="2")
    machine.on["a"] = lambda: signal.raise_signal(signal.SIGINT)
    done = program(*WALL)
    assert done.returncode == 130
    assert machine.asked == ["a"]
    assert "1 of 2 cases measured, 1 not measured yet" in done.stdout
    assert "Interrupt again to stop at once" in done.stderr
    assert program("run", "--resume").returncode == 0
    assert machine.asked == ["a", "b"]


def test_a_second_interrupt_stops_at_once_and_loses_nothing(machine: Machine, program: Program) -> None:
    define(a="1", b="2")

    def interrupt_twice() -> None:
        signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGINT)
        raise AssertionError("not reached")

    machine.on["b"] = interrupt_twice
    done = program(*WALL)
    assert done.returncode == 130
    assert [one.order.case.label[0] for one in load().outcomes] == ["a"]
    assert "1 of 2 cases measured" in done.stdout


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_an_order_to_end_is_obeyed_and_told_by_the_exit_code(
    machine: Machine, program: Program, number: signal.Signals
) -> None:
    define(a="1", b="2")
    machine.on["b"] = lambda: signal.raise_signal(number)
    assert program(*WALL).returncode == 128 + number
    assert [one.order.case.label[0] for one in load().outcomes] == ["a"]
    # Also while workers are starting.
    machine.on_opening = lambda: signal.raise_signal(number)
    assert program("run", "--resume").returncode == 128 + number
    machine.on_opening = lambda: None
    machine.on.clear()
    assert program("run", "--resume").returncode == 0


def test_a_slip_of_the_finger_makes_no_store(machine: Machine, program: Program) -> None:
    assert program("run", "not_there.py").returncode == 2
    define(a="1")
    assert program("run", "bench_mine.py", "-k", "nothing").returncode == 1
    assert not Path(".torchmark").exists()


def test_shards_share_the_work_and_are_put_together(machine: Machine, program: Program) -> None:
    define(a="1", b="2", c="3")
    for number, asked in ((1, ["a", "c"]), (2, ["b"])):
        machine.asked.clear()
        done = program(*WALL, "--shard", f"{number}/2", "--store", f"{number}.db")
        assert done.returncode == 0
        assert machine.asked == asked
        assert f"{len(asked)} of {len(asked)} done" in done.stderr
        assert f"Shard {number}/2: " in done.stdout
        # What others measure is not shown as if it were missing.
        assert "not measured" not in done.stdout
        assert "torchmark merge" in done.stdout
    assert "shard 2/2" in program("runs", "--store", "2.db").stdout
    shown = program("show", "--store", "1.db").stdout
    assert "shard 1/2: 2 of 3 results" in shown
    assert "Shard 1/2: All of 2 cases measured." in shown
    assert "None of 2 cases is selected by -k b." in program("show", "--store", "1.db", "-k", "b").stderr
    assert program("merge", "1.db", "2.db", "-o", ".torchmark/results.db").returncode == 0
    assert [one.order.case.label[0] for one in load().outcomes] == ["a", "b", "c"]
    assert load().info.finished is not None
    machine.asked.clear()
    assert program("run", "bench_mine.py", "--resume", "--name", "bench_mine").returncode == 0
    assert machine.asked == []


def test_a_shard_goes_on_as_that_shard_and_as_no_other(machine: Machine, program: Program) -> None:
    define(a="1", b="2", c="3", d="4")
    machine.on["c"] = lambda: signal.raise_signal(signal.SIGINT)
    assert program(*WALL, "--shard", "2/2").returncode == 0
    assert program(*WALL, "--shard", "1/2").returncode == 0
    define(a="1", b="2", c="30", d="40")
    machine.asked.clear()
    # An interrupt of the last one that was asked for stops nothing.
    assert program("run", "--resume").returncode == 0
    assert machine.asked == ["c"]
    for arguments, words in ((["--shard", "1/3"], "is shard 1/2, not shard 1/3"), (["--name", "x"], "no run 'x'")):
        refused = program("run", "--resume", *arguments)
        assert refused.returncode == 2
        assert words in refused.stderr
    # Of those that share a name, the one that is meant.
    assert program("run", "--resume", "--name", "bench_mine", "--shard", "2/2").returncode == 0
    assert machine.asked == ["c", "d"]
    assert program(*WALL, "--name", "whole").returncode == 130
    refused = program("run", "--resume", "--name", "whole", "--shard", "2/2")
    assert "is no shard, not shard 2/2" in refused.stderr


def test_a_shard_that_is_stopped_says_so_by_its_exit_code(machine: Machine, program: Program) -> None:
    define(a="1", b="2", c="3", d="4")
    machine.on["a"] = lambda: signal.raise_signal(signal.SIGINT)
    done = program(*WALL, "--shard", "1/2")
    assert done.returncode == 130
    assert "Shard 1/2: 1 of 2 cases measured, 1 not measured yet." in done.stdout
    assert program("run", "--resume").returncode == 0
    assert machine.asked == ["a", "c"]


def test_a_shard_without_anything_to_do_succeeds_and_needs_nothing(machine: Machine, program: Program) -> None:
    define(a="1")
    for arguments in ((), ("--resume",), ("--dry-run",)):
        done = program(*WALL, "--shard", "3/3", *arguments)
        assert done.returncode == 0
        assert "Shard 3/3 is empty: " in done.stderr + done.stdout
        assert "fill 1 shard." in done.stderr + done.stdout
    assert (machine.asked, machine.opened) == ([], 0)
    assert load().info.options[-1] == ("shard", ("3/3",))
    assert program("show").returncode == 0
    assert program("merge", ".torchmark/results.db", "-o", "all.db").returncode == 1


def test_a_dry_run_tells_of_the_shard_alone(machine: Machine, program: Program) -> None:
    define(a="1", b="2", c="3")
    done = program(*WALL, "--shard", "1/2", "--dry-run")
    assert done.stdout.startswith("Shard 1/2:\n2 of 3 cases")
    assert "2 results: about" in done.stdout
    program(*WALL, "--shard", "1/2")
    done = program("run", "--resume", "--dry-run")
    assert "Shard 1/2:" in done.stdout
    assert "Nothing is left to measure." in done.stdout


@pytest.mark.parametrize("shard", ["0/2", "3/2", "2", "1/0"])
def test_a_shard_that_there_is_not_is_refused(machine: Machine, program: Program, shard: str) -> None:
    define(a="1")
    done = program(*WALL, "--shard", shard)
    assert done.returncode == 2
    assert "no shard" in done.stderr
    assert not Path(".torchmark").exists()


# Leaves a trace when it is imported.
TRAP = "from pathlib import Path\nPath('imported').touch()\n" + SUITE.format(cases={"a": "1"})


def move_away(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The folder with its store, as a clone or an archive brings it."""
    here = Path.cwd()
    monkeypatch.chdir(place)
    here.rename(place / "moved")
    monkeypatch.chdir(place / "moved")


@pytest.mark.parametrize("arguments", [[], ["--dry-run"], ["--name", "bench_mine"]])
def test_a_run_from_elsewhere_imports_no_file_that_is_not_named_again(
    machine: Machine, program: Program, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, arguments: list[str]
) -> None:
    (tmp_path / "work").mkdir()
    monkeypatch.chdir("work")
    define(a="1")
    program(*WALL)
    Path("bench_mine.py").write_text(TRAP)
    move_away(tmp_path, monkeypatch)
    refused = program("run", "--resume", *arguments)
    assert refused.returncode == 2
    assert f"import {tmp_path}/moved/bench_mine.py" in refused.stderr
    assert f"torchmark run bench_mine.py --resume --name {load().info.id[:12]}" in refused.stderr
    assert not Path("imported").exists()
    assert os.getcwd() not in sys.path
    assert program("run", "./bench_mine.py", "--resume", *arguments).returncode == 0
    assert Path("imported").exists()


@pytest.mark.parametrize("arguments", [[], ["--dry-run"], ["--name", "standard"]])
def test_a_run_from_elsewhere_starts_no_program_that_is_not_named_again(
    machine: Machine, program: Program, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, arguments: list[str]
) -> None:
    (tmp_path / "work").mkdir()
    monkeypatch.chdir("work")
    only = ("run", "standard", "-k", "clone", "--metric", "wall", "--python", "./tools/check")
    assert program(*only).returncode == 0
    move_away(tmp_path, monkeypatch)
    machine.opened = 0
    refused = program("run", "--resume", *arguments)
    assert refused.returncode == 2
    assert f"start {tmp_path}/moved/tools/check" in refused.stderr
    assert "--python ./tools/check" in refused.stderr
    assert machine.opened == 0
    assert program("run", "--resume", "--python", "tools/check", *arguments).returncode == 0


def test_a_run_of_a_bundled_suite_goes_on_wherever_it_began_and_sees_nothing_of_the_folder(
    machine: Machine, program: Program, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "work").mkdir()
    monkeypatch.chdir("work")
    assert program("run", "standard", "-k", "clone", "--metric", "wall").returncode == 0
    assert program("run", "--resume").returncode == 0
    assert sys.path[0] == os.getcwd()
    move_away(tmp_path, monkeypatch)
    assert program("run", "--resume").returncode == 0
    assert os.getcwd() not in sys.path


def test_without_a_place_for_the_key_runs_are_measured_and_not_trusted(
    machine: Machine, program: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("XDG_STATE_HOME")
    monkeypatch.setenv("HOME", "relative")
    define(a="1")
    assert program(*WALL).returncode == 0
    assert load().info.seal == ""
    assert program("run", "--resume").returncode == 2
    assert program("run", "bench_mine.py", "--resume").returncode == 0


def test_a_run_stays_trusted_when_it_is_exported_and_imported_here(machine: Machine, program: Program) -> None:
    define(a="1")
    assert program(*WALL).returncode == 0
    assert program("export", "-o", "run.json").returncode == 0
    assert program("import", "run.json", "--store", "other.db").returncode == 0
    assert program("run", "--resume", "--name", "bench_mine", "--store", "other.db").returncode == 0
    assert "seal" not in program("show", "--json", "-").stdout
