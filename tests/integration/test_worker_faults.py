"""Whatever a job does costs that job only: the outcome tells what happened, and the next job is unharmed.

Workers of both kinds, with a stub torch: what they survive does not depend on torch. `test_cpp.py` has crashes in the
real one.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from torchmark.model.job import CountJob, Job, Place, TimeJob
from torchmark.model.outcome import Failure, FailureKind
from torchmark.runner.spec import other_worker, own_worker, visible_path
from torchmark.runner.worker import Reply, Worker, retry_if_killed

HERE = Place(os.getcwd(), tuple(visible_path()))

# What the statement does, and what is to be said of it.
FAULTS = {
    "raises": ("1 / 0", FailureKind.RAISED, "ZeroDivisionError: division by zero"),
    "does not compile": ("x = = 1", FailureKind.RAISED, "SyntaxError"),
    "stops an iteration": ("next(iter(()))", FailureKind.RAISED, "StopIteration"),
    "is interrupted": ("raise KeyboardInterrupt", FailureKind.RAISED, "KeyboardInterrupt"),
    "exits": ("import sys; sys.exit(3)", FailureKind.EXITED, "exited with code 3"),
    "exits at once": ("import os; os._exit(4)", FailureKind.EXITED, "exited with code 4"),
    "exits at once as if all was well": ("import os; os._exit(0)", FailureKind.NO_RESULT, "ended without a result"),
    "segfaults": ("import ctypes; ctypes.string_at(0)", FailureKind.CRASHED, "SIGSEGV"),
    "aborts": ("import os; os.abort()", FailureKind.CRASHED, "SIGABRT"),
    "is killed": ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", FailureKind.CRASHED, "SIGKILL"),
    "runs out of memory": ("bytearray(1 << 60)", FailureKind.OUT_OF_MEMORY, "MemoryError"),
    "recurses for ever": ("f = lambda: f(); f()", FailureKind.RAISED, "RecursionError"),
    "closes its pipes": ("import os; os.closerange(3, 1024)", FailureKind.NO_RESULT, "ended without a result"),
    "writes to all its pipes": (
        "import os\nfor n in range(3, 64):\n  try: os.write(n, b'x' * 100)\n  except OSError: pass",
        FailureKind.NO_RESULT,
        "",
    ),
}


@pytest.fixture(scope="module", params=["counting", "timing"])
def worker(request: pytest.FixtureRequest, stub_python: str) -> Iterator[Worker]:
    """Each kind in turn: what holds for a worker holds for both."""
    worker = Worker(other_worker(stub_python, os.environ, {}, counting=request.param == "counting"))
    yield worker
    worker.close()


def job_for(worker: Worker, stmt: str, setup: str = "pass") -> Job:
    if worker.spec.counting:
        return CountJob(stmt, setup, HERE, number=2, layouts=(0,))
    return TimeJob(stmt, setup, HERE, min_run_time_s=0.0001, max_run_time_s=0.01)


def expect_unharmed(worker: Worker) -> None:
    was_up = worker.is_up
    assert isinstance(worker.run(job_for(worker, "y = x * x", "x = torch.ones(4)")), Reply)
    assert was_up


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_told_and_the_next_job_succeeds(worker: Worker, fault: str) -> None:
    stmt, kind, message = FAULTS[fault]
    failure = worker.run(job_for(worker, stmt))
    assert isinstance(failure, Failure)
    assert failure.kind is kind
    assert message in failure.message
    expect_unharmed(worker)


def test_torch_without_memory_is_told_apart_from_what_it_raises_otherwise(timing_worker: Worker) -> None:
    failure = timing_worker.run(job_for(timing_worker, "torch.empty(1 << 55)"))
    assert isinstance(failure, Failure)
    assert failure.kind is FailureKind.OUT_OF_MEMORY
    assert "can't allocate memory" in failure.message
    expect_unharmed(timing_worker)


def test_a_traceback_has_the_users_own_lines(worker: Worker) -> None:
    failure = worker.run(job_for(worker, "y = 1\nf(y)", "def f(x):\n    return x.missing"))
    assert isinstance(failure, Failure)
    assert failure.traceback == textwrap.dedent(
        """\
        Traceback (most recent call last):
          File "<stmt>", line 2, in <module>
            f(y)
          File "<setup>", line 2, in f
            return x.missing
        AttributeError: 'int' object has no attribute 'missing'
        """
    )


def test_a_job_that_never_ends_is_ended_with_all_it_started(worker: Worker, tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    stmt = f"""
import os, subprocess, time
other = subprocess.Popen(["sleep", "1000"])
away = subprocess.Popen(["sleep", "1000"], start_new_session=True)
open({str(pids)!r}, "w").write(f"{{os.getpid()}} {{other.pid}} {{away.pid}}")
while True: time.sleep(0.01)
"""
    # Long enough for it to start them, which takes longer under Valgrind.
    limit = 5.0 if worker.spec.counting else 2.0
    failure = worker.run(job_for(worker, stmt), timeout_s=limit)
    assert isinstance(failure, Failure)
    assert failure.kind is FailureKind.TIMED_OUT
    assert f"{limit:g} s" in failure.message
    assert len(pids.read_text().split()) == 3
    for pid in pids.read_text().split():
        assert not Path(f"/proc/{pid}").exists()
    expect_unharmed(worker)


def test_what_a_job_leaves_running_is_ended(worker: Worker, tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    stmt = f"""
import os
if not os.path.exists({str(pids)!r}):
    pid = os.fork()
    if pid == 0:
        os.setsid()
        if os.fork() == 0:
            import time
            time.sleep(1000)
        os._exit(0)
    os.waitpid(pid, 0)
    open({str(pids)!r}, "w").write(str(pid))
"""
    before = _descendants(worker)
    assert isinstance(worker.run(job_for(worker, stmt)), Reply)
    assert pids.exists()
    assert _descendants(worker) == before
    expect_unharmed(worker)


def test_a_flood_of_output_is_drained_and_its_end_is_kept(worker: Worker) -> None:
    stmt = """
import sys
for _ in range(2000): sys.stdout.write("x" * 1000)
sys.stdout.write("the end")
sys.stderr.write("my last words")
raise ValueError
"""
    failure = worker.run(job_for(worker, stmt))
    assert isinstance(failure, Failure)
    assert failure.kind is FailureKind.RAISED
    assert failure.stdout.endswith("the end")
    assert len(failure.stdout) < 10_000
    assert failure.stderr.endswith("my last words")
    expect_unharmed(worker)


def test_the_last_words_of_a_crash_are_kept(worker: Worker) -> None:
    failure = worker.run(job_for(worker, "import os; os.write(2, b'about to crash'); os.abort()"))
    assert isinstance(failure, Failure)
    assert "about to crash" in failure.stderr
    expect_unharmed(worker)


def test_a_job_cannot_be_heard_or_asked_for_input(worker: Worker, capfd: pytest.CaptureFixture[str]) -> None:
    assert isinstance(worker.run(job_for(worker, "import sys; print('hello'); assert sys.stdin.read() == ''")), Reply)
    assert capfd.readouterr() == ("", "")


def test_an_interrupt_of_the_parent_ends_the_job_and_keeps_the_worker(worker: Worker) -> None:
    worker.start()
    with _alarm(1.0), pytest.raises(KeyboardInterrupt):
        worker.run(job_for(worker, "while True: pass"))
    expect_unharmed(worker)


def test_a_job_that_kills_its_worker_is_told_apart_from_one_that_merely_waited(own_stub: str) -> None:
    worker = Worker(own_worker(os.environ, counting=False))
    try:
        failure = worker.run(job_for(worker, "import os, signal; os.kill(os.getppid(), signal.SIGKILL)"))
        assert isinstance(failure, Failure)
        assert failure.kind is FailureKind.WORKER_DIED
        assert not worker.is_up
        assert isinstance(worker.run(job_for(worker, "pass")), Reply)
        # Killed from outside while nobody used it: the next job is none the wiser.
        os.kill(_zygote(worker), signal.SIGKILL)
        job = job_for(worker, "pass")
        assert isinstance(retry_if_killed(lambda: worker.run(job)), Reply)
    finally:
        worker.close()


def test_a_worker_that_hangs_is_given_up(own_stub: str, monkeypatch: pytest.MonkeyPatch) -> None:
    worker = Worker(own_worker(os.environ, counting=False))
    try:
        worker.start()
        job = job_for(worker, "import os, signal, time; os.kill(os.getppid(), signal.SIGSTOP); time.sleep(100)")
        with monkeypatch.context() as patch:
            patch.setattr("torchmark.runner.link.ANSWER_TIMEOUT_S", 0.5)
            failure = worker.run(job, timeout_s=0.5)
        assert isinstance(failure, Failure)
        assert failure.kind is FailureKind.WORKER_DIED
        assert isinstance(worker.run(job_for(worker, "pass")), Reply)
    finally:
        worker.close()


def test_an_interrupt_of_an_interrupt_costs_the_worker_and_nothing_else(
    own_stub: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    worker = Worker(own_worker(os.environ, counting=False))
    try:
        worker.start()
        assert worker._link is not None
        monkeypatch.setattr(worker._link, "interrupt", lambda: signal.raise_signal(signal.SIGALRM))
        with _alarm(0.5), pytest.raises(KeyboardInterrupt):
            worker.run(job_for(worker, "while True: pass"))
        assert not worker.is_up
        assert isinstance(worker.run(job_for(worker, "pass")), Reply)
    finally:
        worker.close()


# More than what fits into a set for `select`, which is also more than a user may usually open before asking for it.
MANY_FILES = """
import os, resource
_, most = resource.getrlimit(resource.RLIMIT_NOFILE)
resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
files = [os.open("/dev/null", 0) for _ in range(1100)]
"""
ODD_PARENTS = {
    "whose standard streams are closed": "import os; os.closerange(0, 3)",
    "that has many open files": MANY_FILES,
    "that ignores the end of children": "import signal; signal.signal(signal.SIGCHLD, signal.SIG_IGN)",
    "whose locale knows only ASCII": "import locale; locale.setlocale(locale.LC_ALL, 'C')",
}
IN_ODD_PARENT = """
import fcntl, sys, threading
# Out of the way of the standard streams.
result = open(fcntl.fcntl(open(sys.argv[1], "w"), fcntl.F_DUPFD, 10), "w")
exec(sys.argv[2])
sys.executable = sys.argv[3]
import os
from torchmark.model.job import TimeJob, Place
from torchmark.runner.worker import Worker
from torchmark.runner.spec import own_worker
def run():
    worker = Worker(own_worker(os.environ, counting=False))
    jobs = [TimeJob(stmt, "pass", Place("/"), min_run_time_s=0.001) for stmt in ("pass", "1/0")]
    print([type(worker.run(job)).__name__ for job in jobs], file=result, flush=True)
    worker.close()
threading.Thread(target=run).start()
"""


@pytest.mark.parametrize("oddity", ODD_PARENTS)
def test_it_works_from_a_thread_of_a_program(tmp_path: Path, stub_python: str, oddity: str) -> None:
    result = tmp_path / "result"
    command = [sys.executable, "-c", IN_ODD_PARENT, str(result), ODD_PARENTS[oddity], stub_python]
    environ = {**os.environ, "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "LC_ALL": "C"}
    subprocess.run(command, env=environ if "ASCII" in oddity else None, timeout=60)
    assert result.read_text() == "['Reply', 'Failure']\n"


def test_a_program_ends_although_a_thread_of_its_own_waits_for_a_job(stub_python: str) -> None:
    program = """
import os, sys, threading, time
sys.executable = sys.argv[1]
from torchmark.model.job import TimeJob, Place
from torchmark.api.timer_engines import get_worker
from torchmark.runner.spec import own_worker
worker = get_worker(own_worker(os.environ, counting=False))
worker.start()
print(worker._link._process.pid, worker._scratch, flush=True)
job = TimeJob("import time; time.sleep(1000)", "pass", Place("/"))
threading.Thread(target=worker.run, args=(job,), daemon=True).start()
time.sleep(0.5)
"""
    command = [sys.executable, "-c", program, stub_python]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    zygote, scratch = done.stdout.split()
    assert not _is_alive(int(zygote))
    assert not Path(scratch).exists()


def test_closing_leaves_no_process_and_no_file(own_stub: str) -> None:
    worker = Worker(own_worker(os.environ, counting=False))
    worker.start()
    zygote, scratch = _zygote(worker), worker._scratch
    assert scratch is not None
    assert scratch.exists()
    worker.close()
    assert not Path(f"/proc/{zygote}").exists()
    assert not scratch.exists()


PROGRAM = """
import os, sys
sys.executable = sys.argv[2]
from torchmark.model.job import TimeJob, CountJob, Place
from torchmark.runner.spec import own_worker
from torchmark.runner.worker import Worker
worker = Worker(own_worker(os.environ, counting=sys.argv[1] == "counting"))
worker.start()
print(worker._link._process.pid, worker._scratch, flush=True)
stmt = "import time; time.sleep(1000)"
job = CountJob(stmt, "pass", Place("/")) if sys.argv[1] == "counting" else TimeJob(stmt, "pass", Place("/"))
worker.run(job)
"""


def start_parent(kind: str, python: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", PROGRAM, kind, python],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        # Whoever runs these tests in the background may have interrupts switched off, for all below.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )


@pytest.mark.parametrize(
    ("kind", "with_signal"),
    [
        ("counting", signal.SIGKILL),
        ("timing", signal.SIGKILL),
        ("timing", signal.SIGTERM),
        ("timing", signal.SIGINT),
    ],
)
def test_when_the_parent_is_ended_nothing_is_left(stub_python: str, kind: str, with_signal: signal.Signals) -> None:
    parent = start_parent(kind, stub_python)
    assert parent.stdout is not None
    zygote, scratch = parent.stdout.readline().split()
    job = _wait_for(lambda: _children(int(zygote)))
    parent.send_signal(with_signal)
    parent.wait(timeout=60)
    parent.stdout.close()
    for pid in (int(zygote), *job):
        _wait_for(lambda pid=pid: not _is_alive(pid))  # type: ignore[misc]
    assert not Path(scratch).exists()


def _zygote(worker: Worker) -> int:
    assert worker._link is not None
    return worker._link._process.pid


def _children(pid: int) -> list[int]:
    with contextlib.suppress(OSError):
        return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    return []


def _descendants(worker: Worker) -> list[int]:
    return _children(_zygote(worker))


def _is_alive(pid: int) -> bool:
    try:
        # A zombie that its new parent has not looked at yet is gone all the same.
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def _wait_for(look: Callable[[], Any]) -> Any:
    """Until there is something; not for ever."""
    end = time.monotonic() + 60
    while time.monotonic() < end:
        found = look()
        if found:
            return found
        time.sleep(0.01)
    raise AssertionError("waited in vain")


@contextlib.contextmanager
def _alarm(seconds: float) -> Iterator[None]:
    """A terminal's interrupt after some time."""
    before = signal.signal(signal.SIGALRM, signal.default_int_handler)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
