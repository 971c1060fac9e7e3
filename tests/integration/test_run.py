"""`torchmark run` as a user sees it, with real workers, compilers and signals; what they run is next to nothing.

What the command makes of results is in `tests/unit/cli/commands/test_cmd_run.py`, what it makes of disturbances in
`test_run_faults.py`.
"""

from __future__ import annotations

import contextlib
import os
import pty
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.in_process import Program
from tests.victims import wait_for
from torchmark.model.costs import Tally
from torchmark.model.outcome import ActivityKind, Failure, FailureKind
from torchmark.model.plan import Metric
from torchmark.model.run import Run
from torchmark.model.task import Times
from torchmark.store.runs import open_store

SUITE = """
from torchmark import GroupedStmts, GroupedSetup, TimerArgs
SETUP = GroupedSetup("n = 1", "int n = 1;")
BENCHMARKS = {
    "a": GroupedStmts("y = n + 1", "volatile int y = n + 1;", setup=SETUP, signature="f(n) -> y"),
    "b": GroupedStmts("y = n + 2", "volatile int y = n + 2;", setup=SETUP, signature="f(n) -> y"),
}
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bench_mine.py").write_text(SUITE)
    return tmp_path


def quick(python: str, *, metric: str = "wall") -> list[str]:
    return ["run", "--python", python, "--metric", metric, "--min-run-time", "0.001", "--layouts", "1"]


def load(folder: Path) -> Run:
    with open_store(folder / ".torchmark/results.db", read_only=True) as store:
        return store.load(store.list_runs()[0].id)


def define(folder: Path, **cases: str) -> None:
    texts = [f"    {label!r}: TimerArgs({stmt!r})," for label, stmt in cases.items()]
    (folder / "bench_mine.py").write_text("\n".join(["from torchmark import TimerArgs\nBENCHMARKS = {", *texts, "}\n"]))


def start(*arguments: str, **options: object) -> subprocess.Popen[str]:
    return subprocess.Popen(  # type: ignore[call-overload, no-any-return]
        [sys.executable, "-m", "torchmark", *arguments],
        **{"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, **options},
        # Whoever runs these tests in the background may have interrupts switched off, for all below.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )


def test_whatever_is_timed_has_the_machine_for_itself(stub_python: str, folder: Path, program: Program) -> None:
    done = program(*quick(stub_python, metric="wall,count"), "bench_mine.py", "--repeat", "2", "--cores", "2")
    assert done.returncode == 0, done.stderr
    run = load(folder)
    kinds = {Metric.WALL: Times, Metric.COUNT: Tally}
    assert all(isinstance(one.result, kinds[one.order.metric]) for one in run.outcomes)
    assert {one.kind for one in run.activities} == {ActivityKind.START, ActivityKind.COMPILE, ActivityKind.CHECK}
    timed = [(one.began, one.ended) for one in run.outcomes if one.order.metric is Metric.WALL]
    others = [(one.began, one.ended) for one in run.outcomes if one.order.metric is Metric.COUNT]
    others += [(one.began, one.ended) for one in run.activities]
    assert len(timed) == 8
    for began, ended in timed:
        beside = [span for span in (*timed, *others) if span != (began, ended)]
        assert len(beside) == 7 + 8 + len(run.activities)
        assert all(end <= began or ended <= start for start, end in beside)


def test_interpreters_are_measured_in_turns_and_stand_side_by_side(
    stub_python: str, folder: Path, program: Program
) -> None:
    envs = ["--env", f"base={stub_python}", "--env", f"branch={stub_python}"]
    options = [part for part in quick(stub_python) if part not in ("--python", stub_python)]
    done = program(*options, "bench_mine.py", "--language", "python", *envs)
    assert done.returncode == 0, done.stderr
    outcomes = sorted(load(folder).outcomes, key=lambda one: one.began)
    order = [(one.order.case.label[0], one.order.target.name) for one in outcomes]
    assert order == [("a", "base"), ("a", "branch"), ("b", "base"), ("b", "branch")]
    assert "base" in done.stdout
    assert "branch" in done.stdout


def test_one_core_is_enough_but_for_what_needs_more(stub_python: str, folder: Path, program: Program) -> None:
    text = "from torchmark import TimerArgs\nBENCHMARKS = {'one': TimerArgs('1'), 'two': TimerArgs('1', num_threads=2)}"
    (folder / "bench_mine.py").write_text(text)
    done = program(*quick(stub_python), "bench_mine.py", "--cores", "1")
    assert done.returncode == 1
    one, two = (outcome.result for outcome in load(folder).outcomes)
    assert isinstance(one, Times)
    assert isinstance(two, Failure)
    assert "2 threads" in two.message
    assert "1 core" in two.message


def test_a_suite_may_print_and_import_what_lies_beside_it(stub_python: str, folder: Path, program: Program) -> None:
    (folder / "sub").mkdir()
    (folder / "sub" / "beside.py").write_text("STMT = 'y = 1'")
    text = "import beside\nfrom torchmark import TimerArgs\nprint('hello')\nBENCHMARKS = {'a': TimerArgs(beside.STMT)}"
    (folder / "sub" / "bench_it.py").write_text(text)
    done = program(*quick(stub_python), "sub")
    assert done.returncode == 0
    assert "hello" not in done.stdout


def test_whatever_a_case_does_costs_that_case_only(stub_python: str, folder: Path, program: Program) -> None:
    daemon = "import os\nif os.fork() == 0:\n    os.setsid()\n    import time\n    time.sleep(1000)"
    define(
        folder,
        daemon=daemon,
        flood="print('x' * 1_000_000)",
        exits="import os; os._exit(3)",
        kills="import os, signal; os.kill(os.getppid(), signal.SIGKILL)",
        fine="y = 1",
    )
    done = program(*quick(stub_python), "bench_mine.py")
    assert done.returncode == 1
    results = {one.order.case.label[0]: one.result for one in load(folder).outcomes}
    failed = {label: result.kind for label, result in results.items() if isinstance(result, Failure)}
    assert failed == {"exits": FailureKind.EXITED, "kills": FailureKind.WORKER_DIED}


def test_a_case_that_takes_the_working_folder_away_costs_those_behind_it_until_it_is_there_again(
    stub_python: str, folder: Path, program: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    define(folder, a="y = 1", b="import os; os.path.isdir('../gone') and os.rmdir('../gone')", c="y = 2")
    (folder / "gone").mkdir()
    monkeypatch.chdir(folder / "gone")
    store = ["--store", str(folder / ".torchmark/results.db")]
    assert program(*quick(stub_python), str(folder / "bench_mine.py"), *store).returncode == 1
    first, second, third = (one.result for one in load(folder).outcomes)
    assert isinstance(first, Times)
    # It was in the folder when that went.
    assert isinstance(second, (Times, Failure))
    assert isinstance(third, Failure)
    assert "The working folder" in third.message
    (folder / "gone").mkdir()
    monkeypatch.chdir(folder / "gone")
    program("run", "--resume", *store)
    assert isinstance(load(folder).outcomes[2].result, Times)


@pytest.mark.parametrize(
    ("arguments", "environ", "code", "words"),
    [
        (["--python", "/nowhere/python"], {}, 2, "/nowhere/python is not a Python interpreter"),
        (["--metric", "count"], {"PATH": "/nowhere"}, 3, "Missing: valgrind"),
        ([], {"CXX": "/nowhere/c++"}, 1, "There is no C++ compiler"),
        ([], {"TORCHMARK_CACHE": "/proc/nowhere"}, 1, "Name another folder in TORCHMARK_CACHE"),
    ],
)
def test_what_is_missing_is_told(
    stub_python: str,
    program: Program,
    monkeypatch: pytest.MonkeyPatch,
    arguments: list[str],
    environ: dict[str, str],
    code: int,
    words: str,
) -> None:
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    done = program(*quick(stub_python), "bench_mine.py", *arguments)
    assert done.returncode == code
    assert words in done.stderr


def test_two_at_once_in_one_folder_do_not_disturb_each_other(stub_python: str, folder: Path) -> None:
    both = [start(*quick(stub_python), "bench_mine.py", "--name", name) for name in ("one", "two")]
    assert [(one.communicate(timeout=60), one.returncode)[1] for one in both] == [0, 0]
    with open_store(folder / ".torchmark/results.db", read_only=True) as store:
        runs = store.list_runs()
        assert {run.name for run in runs} == {"one", "two"}
        assert all(run.finished and run.outcomes == run.orders for run in runs)


def test_a_reader_that_has_enough_costs_no_result(stub_python: str, folder: Path) -> None:
    read, write = os.pipe()
    os.close(read)
    process = start(*quick(stub_python), "bench_mine.py", "--language", "python", stdout=write)
    os.close(write)
    _, told = process.communicate(timeout=60)
    assert process.returncode == 1
    assert "Traceback" not in told
    assert load(folder).info.finished


def test_a_terminal_sees_a_bar(stub_python: str) -> None:
    ours, theirs = pty.openpty()
    process = start(
        *quick(stub_python), "bench_mine.py", "--language", "python",
        stdout=subprocess.DEVNULL, stderr=theirs, env={**os.environ, "TERM": "xterm"},
    )  # fmt: skip
    os.close(theirs)
    seen = b""
    # The end of a terminal is an error.
    with contextlib.suppress(OSError):
        while piece := os.read(ours, 1 << 16):
            seen += piece
    os.close(ours)
    assert process.wait(60) == 0
    assert b"0/2" in seen
    assert b"timing" in seen
    # Nothing stays of it.
    assert seen.endswith(b"\x1b[J")


@pytest.fixture
def interrupted(stub_python: str, folder: Path) -> Iterator[subprocess.Popen[str]]:
    """A run in whose second case something goes on until it is allowed to end."""
    wait = "import os, time\nopen('begun', 'w').close()\nwhile not os.path.exists('enough'):\n    time.sleep(0.01)"
    define(folder, a="y = 1", b=wait, c="y = 2")
    process = start(*quick(stub_python), "bench_mine.py")
    assert wait_for((folder / "begun").exists)
    yield process
    process.kill()
    process.communicate()


def read_until(process: subprocess.Popen[str], words: str) -> None:
    assert process.stderr is not None
    # Somebody who waits in vain would wait for ever.
    alarm = threading.Timer(30, process.kill)
    alarm.start()
    while words not in process.stderr.readline():
        assert process.poll() is None
    alarm.cancel()


def labels(folder: Path) -> list[str]:
    return [one.order.case.label[0] for one in load(folder).outcomes]


def test_the_first_interrupt_lets_what_has_begun_finish(interrupted: subprocess.Popen[str], folder: Path) -> None:
    interrupted.send_signal(signal.SIGINT)
    read_until(interrupted, "Interrupt again")
    (folder / "enough").touch()
    shown, _ = interrupted.communicate(timeout=60)
    assert interrupted.returncode == 130
    assert labels(folder) == ["a", "b"]
    assert "2 of 3 cases measured, 1 not measured yet." in shown
    assert "torchmark run --resume" in shown


@pytest.mark.parametrize(("numbers", "code"), [((signal.SIGINT, signal.SIGINT), 130), ((signal.SIGTERM,), 143)])
def test_the_second_interrupt_or_an_order_to_end_stops_at_once_and_loses_nothing(
    interrupted: subprocess.Popen[str], folder: Path, numbers: tuple[signal.Signals, ...], code: int
) -> None:
    *first, last = numbers
    for number in first:
        interrupted.send_signal(number)
        read_until(interrupted, "Interrupt again")
    interrupted.send_signal(last)
    shown, _ = interrupted.communicate(timeout=60)
    assert interrupted.returncode == code
    assert labels(folder) == ["a"]
    assert "1 of 3 cases measured, 2 not measured yet." in shown


def test_the_value_of_a_secret_is_nowhere_in_what_is_kept_and_shown(
    stub_python: str, folder: Path, program: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TORCH_HUB_TOKEN", "hunter2")
    monkeypatch.setenv("TORCH_PLAIN", "seen")
    done = program(*quick(stub_python), "bench_mine.py", "--language", "python", "--json", "run.json")
    assert done.returncode == 0, done.stderr
    assert program("export", "-o", "export.json").returncode == 0
    assert program("report", "-o", "report.html").returncode == 0
    (environment,) = {one.environment for one in load(folder).outcomes}
    assert environment is not None
    assert dict(environment.variables).items() >= {"TORCH_HUB_TOKEN": "(hidden)", "TORCH_PLAIN": "seen"}.items()
    for file in filter(Path.is_file, folder.rglob("*")):
        assert b"hunter2" not in file.read_bytes(), file
    assert "hunter2" not in done.stdout + done.stderr
    assert "TORCH_HUB_TOKEN" in (folder / "report.html").read_text()
