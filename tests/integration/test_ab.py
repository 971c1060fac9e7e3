"""`torchmark ab`, `torchmark selftest` and `torchmark.ab` as a user calls them, with real workers."""

from __future__ import annotations

import dataclasses
import json
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest

import torchmark
from tests.in_process import Program
from tests.shared_workers import DEBIAN
from tests.victims import wait_for
from torchmark.api import selftest
from torchmark.cli.commands import cmd_selftest
from torchmark.model.judgement import Verdict
from torchmark.store.ledger import read_selftest

SETUP = "x, y = torch.ones(4, 4), torch.ones(4, 4)"
FEW = ["--layouts", "3", "-q"]
TIMES = [*FEW, "--metric", "wall"]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def judge(program: Program, *arguments: str) -> dict[str, Any]:
    """What the command writes as JSON, by the name of the case."""
    done = program("ab", *arguments, "--json", "-")
    assert done.returncode == 0, done.stderr
    plain = json.loads(done.stdout)
    assert plain["exit_code"] == 0
    return {one["label"][-1]: one for one in plain["judgements"]}


def test_a_statement_that_does_three_times_the_work_is_slower_by_all_witnesses(program: Program) -> None:
    stmt = "torch.add(x, y)"
    (found,) = judge(program, stmt, f"{stmt}; {stmt}; {stmt}", "--setup", SETUP, *FEW).values()
    assert (found["verdict"], found["cause"]) == ("slower", "confirmed")
    assert found["time"]["confirmed"] is True
    assert found["time"]["low"] > 0.5
    assert found["time"]["layouts"] == 6
    assert found["instructions"]["change"] > 0.5
    assert found["allocations"]["head"] - found["allocations"]["base"] >= 2
    explained = found["explanation"]
    assert sum(stage["delta"] for stage in explained["stages"]) == pytest.approx(found["instructions"]["delta"])
    assert abs(explained["rest"]["delta"]) < 0.02 * explained["delta"]


def test_the_same_statement_twice_is_the_same_to_the_instruction(program: Program) -> None:
    (found,) = judge(program, "x + y", "x + y", "--setup", SETUP, "--metric", "count", *FEW).values()
    assert (found["verdict"], found["cause"]) == ("same", "count_alone")
    assert found["instructions"]["delta"] == 0
    assert found["time"] is None


def test_a_case_that_one_build_lacks_costs_no_other(program: Program, folder: Path) -> None:
    (folder / "bench_mine.py").write_text(
        "from torchmark import TimerArgs\n"
        "BENCHMARKS = {\n"
        # The same in both: nothing that would have to be seen again on fresh layouts.
        "    'here': TimerArgs('time.sleep(0.0005)', 'import time'),\n"
        f"    'newer': TimerArgs('torch.nn.functional.rms_norm(x, (4,))', {SETUP!r}),\n"
        "    'nowhere': TimerArgs('torch.no_such_thing()'),\n"
        "}\n"
    )
    times = ["--metric", "wall", "--layouts", "2", "-q"]
    found = judge(program, "--base", DEBIAN, "--head", sys.executable, "bench_mine.py", *times)
    assert found["here"]["verdict"] in ("slower", "faster", "same", "undecided")
    assert found["here"]["failures"] == []
    assert [caveat["kind"] for caveat in found["here"]["caveats"]][:1] == ["unmatched"]
    assert found["newer"]["verdict"] == "failed"
    assert [one["side"] for one in found["newer"]["failures"]] == ["base"]
    assert "rms_norm" in found["newer"]["failures"][0]["message"]
    assert [one["side"] for one in found["nowhere"]["failures"]] == ["base", "head"]


def test_cpp_takes_turns_in_processes_of_its_own(program: Program, own_stub: str) -> None:
    arguments = ["--language", "cpp", "--setup", "volatile int n = 0;", *TIMES]
    (found,) = judge(program, "n = n + 1;", "for (int i = 0; i < 50; i++) n = n + 1;", *arguments).values()
    assert found["verdict"] == "slower"
    assert found["time"]["ratio"] > 5


def test_a_gate_stops_what_is_slower_and_tells_it_to_github(
    program: Program, folder: Path, own_stub: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(folder / "summary.md"))
    stmt = "sum(range(100))"
    arguments = (stmt, f"{stmt}; {stmt}", *TIMES)
    done = program("ab", *arguments, "--fail-on", "slower")
    assert done.returncode == 3, done.stdout + done.stderr
    assert "1 regression" in done.stdout
    assert "slower" in (folder / "summary.md").read_text()
    assert program("ab", *arguments, "--limit", "time:400%").returncode == 0
    assert program("ab", *reversed(arguments[:2]), *arguments[2:], "--fail-on", "slower").returncode == 0


@pytest.mark.parametrize(
    ("arguments", "code", "text"),
    [
        ([], 2, "two statements"),
        (["x + 1"], 2, "two statements"),
        (["--base", "/no/such/python"], 2, "/no/such/python is not a Python interpreter"),
        (["--base", sys.executable, "--stmt", "1", "standard"], 2, "either statements or suites"),
        (["--base", sys.executable, "--setup", "pass"], 2, "--stmt"),
        (["1", "2", "-k", "linear"], 2, "cases are selected of these"),
        (["1", "2", "--threads", "1,2"], 2, "one number of --threads"),
        (["1", "2", "--limit", "speed:3"], 2, "speed"),
        (["1", "2", "--equivalence", "70%"], 2, "below a half"),
        (["1", "2", "--timeout", "0"], 2, "--timeout 0"),
        (["--base", sys.executable, "-k", "no_such_case"], 1, "None of 181 cases"),
        (["1 +", "2", "--metric", "wall"], 1, "SyntaxError"),
        (["y + 1", "y", "--metric", "wall"], 1, "Define the name with --setup"),
        (["x" * 5000], 2, "two statements"),
        ([".", "1"], 2, "is a suite or a file"),
    ],
)
def test_what_cannot_be_meant_is_told(
    program: Program, own_stub: str, arguments: list[str], code: int, text: str
) -> None:
    done = program("ab", *arguments, "-q", "--layouts", "2")
    assert done.returncode == code, done.stderr
    assert text in done.stdout + done.stderr
    assert 'Traceback (most recent call last):\n  File "/' not in done.stderr


LAUNCHER = """
import sys
from torchmark.cli.main import main
sys.executable = sys.argv[1]
sys.exit(main(sys.argv[2:]))
"""


def test_an_interrupt_shows_what_is_known_and_leaves_nobody(stub_python: str, folder: Path) -> None:
    setup = "import time; open('begun', 'a').write('.')"
    command = [sys.executable, "-c", LAUNCHER, stub_python, "ab", "time.sleep(0.02)", "time.sleep(0.021)"]
    command += ["--setup", setup]
    process = subprocess.Popen([*command, *TIMES], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert wait_for(lambda: (folder / "begun").exists() and len((folder / "begun").read_text()) > 3)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    assert "time.sleep(0.021)" in out
    mine = f"torchmark-{process.pid:010}-"
    assert not [path for path in Path(tempfile.gettempdir()).iterdir() if path.name.startswith(mine)]


def test_judgements_come_one_by_one_in_python(own_stub: str) -> None:
    (found,) = torchmark.ab("x.sum()", "x.sum() + x.sum()", setup="x = torch.ones(4)", count=False, layouts=3)
    assert isinstance(found, torchmark.Judgement)
    assert found.verdict is torchmark.Verdict.SLOWER
    assert found.to_dict()["verdict"] == "slower"
    assert "slower" in repr(found)
    assert "slower" in found._repr_html_()


def test_wrong_arguments_are_refused_at_once() -> None:
    for wrong in (
        {"alpha": 0.7},
        {"equivalence": 0},
        {"layouts": 1},
        {"budget_s": -1},
        {"time": False, "count": False},
    ):
        with pytest.raises(torchmark.UsageError):
            torchmark.ab("1", "2", **wrong)
    with pytest.raises(torchmark.UsageError, match="on which cases"):
        torchmark.ab(None, sys.executable)
    with pytest.raises(torchmark.UsageError, match="two statements"):
        torchmark.ab(None, None, "standard", setup="x = 1")


def test_a_copy_of_an_environment_is_not_called_another_build(stub_python: str, folder: Path) -> None:
    home = Path(stub_python).parents[1]
    shutil.copytree(home, folder / "copy", symlinks=True)
    cases = {"add": torchmark.TimerArgs("torch.ones(4) + 1")}
    (found,) = torchmark.ab(stub_python, str(folder / "copy/bin/python"), cases, count=False, layouts=3)
    assert found.failures == ()
    assert found.verdict in (Verdict.SAME, Verdict.UNDECIDED)


def test_the_command_and_the_function_count_alike_under_names_of_one_length(
    program: Program, stub_python: str, folder: Path
) -> None:
    copy = folder / "a copy with a name that is much longer than the first one"
    shutil.copytree(Path(stub_python).parents[1], copy, symlinks=True)
    stmt, sides = "torch.ones(4) + 1", (stub_python, str(copy / "bin/python"))
    (by_command,) = judge(
        program, "--base", sides[0], "--head", sides[1], "--stmt", stmt, "--metric", "count", "-q"
    ).values()
    (by_function,) = torchmark.ab(*sides, {stmt: torchmark.TimerArgs(stmt)}, time=False)
    plain = by_function.to_dict()
    assert plain["instructions"]["base"] == by_command["instructions"]["base"] > 0
    assert plain["instructions"]["head"] == by_command["instructions"]["head"]
    assert plain["instructions"]["delta"] == by_command["instructions"]["delta"] == 0


def test_the_self_test_is_kept_for_the_floor(
    program: Program, folder: Path, own_stub: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TORCHMARK_CACHE", str(folder / "cache"))
    short = dataclasses.replace(selftest.QUICK, nulls=2, trials=1, sizes_s=(1e-6,), at_most_s=0.0)
    monkeypatch.setattr(cmd_selftest, "QUICK", short)
    done = program("selftest", "--quick", "-q", "--json", "out.json")
    assert done.returncode == 0, done.stderr
    assert "against itself: 0 false alarms" in done.stdout
    plain = json.loads((folder / "out.json").read_text())
    assert plain["trials"] >= 1
    assert [power["found"] for power in plain["powers"]] == [plain["powers"][0]["trials"]]
    kept = json.loads((folder / "cache/selftest.json").read_text())
    known = read_selftest(folder / "cache", kept["cpu_model"])
    assert known is not None
    assert known.sd == plain["sd"]
    assert read_selftest(folder / "cache", "Zilog Z80") is None
