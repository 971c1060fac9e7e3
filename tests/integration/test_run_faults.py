"""Runs that are disturbed: whatever is killed, full or locked, going on completes them, and nothing is lost.

Each trial has a folder, a cache and a folder for temporary files of its own. Two trials go on at a time.
"""

from __future__ import annotations

import concurrent.futures
import contextlib
import dataclasses
import json
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.in_process import Program
from tests.victims import CHILD, COMPILER, COUNTER, MARKER, PARENT, TIMER, hunt, list_marked, wait_for
from torchmark.model.outcome import Failure, FailureKind, Outcome
from torchmark.model.plan import Order
from torchmark.model.run import Run
from torchmark.store.runs import open_store

# Another seed gives other moments; that of a trial that fails is part of its name.
SEED = 7
LANES = 2
MOST_ATTEMPTS = 5

# With a short patience for a store that is locked.
LAUNCHER = """
import sys
from torchmark.cli.main import main
from torchmark.store import store_file
store_file.BUSY_TIMEOUT_S = 0.2
sys.exit(main(sys.argv[1:]))
"""
SUITE = """
from torchmark import GroupedSetup, GroupedStmts
CHECK = True
SETUP = GroupedSetup("n = 1", "int n = 1;")
BENCHMARKS = {{
    f"add {{i}}": GroupedStmts(
        f"y = n + {{i}}", f"volatile int y = n + {{i}};" if i else None, setup=SETUP, signature="f(n) -> y"
    )
    for i in range({size})
}}
"""


@dataclasses.dataclass(frozen=True)
class Trial:
    """What is disturbed, how often, and at what moment of its life at the latest."""

    number: int
    fault: str
    kills: int = 1
    longest_s: float = 0.0
    counting: bool = False
    real: bool = False

    @property
    def name(self) -> str:
        parts = [f"{self.fault} x{self.kills}" if self.kills > 1 else self.fault]
        parts += ["counting"] if self.counting else ["real torch"] if self.real else []
        return f"seed {SEED}.{self.number}, {', '.join(parts)}"


# Store and folders that cannot be written; all else is a role of a process that is killed.
FULL_STORE, FULL_CACHE, FULL_TEMP = "full store", "full cache", "full temporary folder"
LOCKED, READ_ONLY = "locked store", "read-only store"
# The disk that --json writes to; the store is on another one.
FULL_JSON = "full disk under --json"
OLD_JSON = '{"of": "the last run"}'
REMOVED_CACHE = "removed cache"
# What somebody removes while a run uses it.
NO_FILE, NO_FOLDER, NO_LOG = "removed store", "removed folder of the store", "removed log of the store"
REMOVALS = (NO_FILE, NO_FOLDER, NO_LOG)


def list_trials() -> Iterator[Trial]:
    kinds: list[tuple[str, int, float, bool, bool, int]] = [
        # What, how often, within which time, whether counting, whether with the real torch, in how many trials.
        (PARENT, 1, 4.0, True, False, 1),
        (COUNTER, 1, 3.0, True, False, 1),
        (COUNTER, 3, 1.0, True, False, 1),
        (CHILD, 3, 0.2, True, False, 1),
        (FULL_TEMP, 1, 3.0, True, False, 1),
        (PARENT, 1, 1.2, False, True, 1),
        (TIMER, 1, 2.0, False, True, 1),
        (CHILD, 1, 0.03, False, True, 1),
        (PARENT, 1, 1.3, False, False, 4),
        (TIMER, 1, 0.8, False, False, 2),
        (TIMER, 4, 0.4, False, False, 1),
        (CHILD, 1, 0.02, False, False, 2),
        (CHILD, 4, 0.02, False, False, 1),
        (COMPILER, 1, 0.2, False, False, 2),
        (COMPILER, 6, 0.1, False, False, 1),
        (FULL_STORE, 1, 0.5, False, False, 2),
        (FULL_CACHE, 1, 0.4, False, False, 1),
        (FULL_TEMP, 1, 0.8, False, False, 1),
        (LOCKED, 1, 0.5, False, False, 2),
        (READ_ONLY, 1, 0.5, False, False, 1),
        (FULL_JSON, 1, 0.0, False, False, 1),
        (REMOVED_CACHE, 1, 5.0, False, False, 2),
        (REMOVED_CACHE, 1, 4.0, True, False, 1),
        (NO_FILE, 1, 0.0, False, False, 1),
        (NO_FOLDER, 1, 0.0, False, False, 1),
        (NO_LOG, 1, 0.0, False, False, 1),
    ]
    number = 0
    for fault, kills, longest_s, counting, real, times in kinds:
        for _ in range(times):
            number += 1
            yield Trial(number, fault, kills, longest_s, counting, real)


TRIALS = list(list_trials())


@dataclasses.dataclass
class Report:
    """What a trial came to."""

    problems: list[str]
    hits: int
    attempts: int
    seconds: float
    told: str


class Scene:
    """Where one trial takes place."""

    def __init__(self, trial: Trial, folder: Path, python: str) -> None:
        self.trial, self.folder = trial, folder
        self.disk = folder / "disk"
        self.store, self.temp = folder / "store" / "results.db", folder / "temp"
        self.cache = folder / "cache"
        if trial.fault in (FULL_STORE, READ_ONLY):
            self.store = self.disk / "results.db"
        elif trial.fault == FULL_CACHE:
            self.cache = self.disk / "cache"
        elif trial.fault == FULL_TEMP:
            self.temp = self.disk / "temp"
        self.disk.mkdir()
        self.is_mounted = self.uses_disk and _mount(self.disk)
        self.temp.mkdir()
        self.json = self.disk / "out.json"
        if trial.fault == FULL_JSON:
            self.json.write_text(OLD_JSON)
        (folder / "bench_trial.py").write_text(SUITE.format(size=2 if trial.counting else 4))
        metric = "wall,count" if trial.counting else "wall"
        self.options = ["--metric", metric, "--repeat", "1" if trial.counting else "2", "--min-run-time", "0.01"]
        self.options += ["--layouts", "1", *([] if trial.real else ["--python", python])]
        if trial.real:
            # Compiling against the real headers takes a quarter of a minute.
            self.options += ["--language", "python"]
        self.mark = f"{os.getpid()}.{trial.number}"
        self.saved: dict[Order, Outcome] = {}
        self.environ = {
            **os.environ, "TORCHMARK_CACHE": str(self.cache), "TMPDIR": str(self.temp), "PYTHONWARNINGS": "ignore",
            MARKER: self.mark,
        }  # fmt: skip

    @property
    def uses_disk(self) -> bool:
        return self.trial.fault in (FULL_STORE, FULL_CACHE, FULL_TEMP, READ_ONLY, FULL_JSON)

    def start(self) -> subprocess.Popen[str]:
        """Begin, or go on with what was begun."""
        begun = self.read() is not None
        arguments = ["--resume"] if begun else ["bench_trial.py", *self.options]
        arguments += ["--json", str(self.json)] if self.trial.fault == FULL_JSON else []
        return subprocess.Popen(
            [sys.executable, "-c", LAUNCHER, "run", "--store", str(self.store), *arguments],
            cwd=self.folder,
            env=self.environ,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )

    def read(self) -> Run | None:
        """The run as it is on the disk. From a copy: whoever opens a store repairs it."""
        if not self.store.exists():
            return None
        with tempfile.TemporaryDirectory(dir=self.folder) as copy:
            for suffix in ("", "-wal"):
                with contextlib.suppress(FileNotFoundError):
                    shutil.copy(f"{self.store}{suffix}", f"{copy}/results.db{suffix}")
            if not os.path.getsize(f"{copy}/results.db"):
                return None
            with contextlib.closing(sqlite3.connect(f"{copy}/results.db")) as connection:
                assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
                assert connection.execute("PRAGMA foreign_key_check").fetchall() == []
            with open_store(Path(copy, "results.db"), read_only=True) as store:
                runs = store.list_runs()
                assert len(runs) <= 1
                return store.load(runs[0].id, profiles=True) if runs else None

    def disturb(self, process: subprocess.Popen[str], luck: random.Random) -> int:
        """Do what the trial is about; says how often it could be done."""
        trial = self.trial
        if trial.fault in REMOVALS:
            # After so many of its results, on a fast machine too: by the clock it might have ended.
            least = luck.randint(1, 6)
            wait_for(lambda: len(by_order(self.read())) >= least or process.poll() is not None)
            return self._remove(process)
        if not self.uses_disk and trial.fault not in (LOCKED, REMOVED_CACHE):
            return hunt(process, trial.fault, luck, trial.kills, trial.longest_s)
        if trial.fault in (FULL_STORE, LOCKED, READ_ONLY, FULL_JSON):
            wait_for(lambda: self._has_begun() or process.poll() is not None)
        if trial.fault == REMOVED_CACHE:
            wait_for(lambda: self.cache.exists() or process.poll() is not None)
        time.sleep(luck.uniform(0, trial.longest_s))
        if trial.fault == REMOVED_CACHE:
            shutil.rmtree(self.cache, ignore_errors=True)
            return int(process.poll() is None)
        if trial.fault == LOCKED:
            return self._lock(process)
        if trial.fault == READ_ONLY:
            process.kill()
            process.wait()
            return self._refuse_to_write()
        self._fill()
        return 1

    def _connect(self) -> sqlite3.Connection:
        return sqlite3.connect(f"{self.store.as_uri()}?mode=rw", uri=True, isolation_level=None)

    def _has_begun(self) -> bool:
        with contextlib.suppress(sqlite3.Error), contextlib.closing(self._connect()) as other:
            return bool(other.execute("SELECT 1 FROM runs").fetchall())
        return False

    def _lock(self, process: subprocess.Popen[str]) -> int:
        """Hold the store for as long as the command lasts."""
        with contextlib.closing(self._connect()) as other:
            other.execute("BEGIN IMMEDIATE")
            return int(process.wait(60) == 4)

    def _remove(self, process: subprocess.Popen[str]) -> int:
        """Remove what belongs to the store, unless the run is at its end; says whether the command complained."""
        process.send_signal(signal.SIGSTOP)
        try:
            run = self.read()
            if run is None or run.info.finished is not None or process.poll() is not None:
                return 0
            self.saved = by_order(run)
            if self.trial.fault == NO_FOLDER:
                shutil.rmtree(self.store.parent)
            else:
                os.unlink(self.store if self.trial.fault == NO_FILE else f"{self.store}-wal")
        finally:
            process.send_signal(signal.SIGCONT)
        return int(process.wait(60) == 4)

    def _refuse_to_write(self) -> int:
        """Go on where the store can only be read, which has to be told."""
        _set_writable(self.disk, mounted=self.is_mounted, writable=False)
        again = self.start()
        again.communicate(timeout=60)
        return int(again.returncode == 4)

    def _fill(self) -> None:
        if not self.is_mounted:
            _set_writable(self.disk, mounted=False, writable=False)
            return
        with contextlib.suppress(OSError), open(self.disk / "filler", "wb", buffering=0) as file:
            while True:
                file.write(bytes(4096))

    def tidy(self) -> None:
        """Take the fault away."""
        if self.uses_disk:
            _set_writable(self.disk, mounted=self.is_mounted, writable=True)
            (self.disk / "filler").unlink(missing_ok=True)

    def close(self) -> None:
        if self.is_mounted:
            subprocess.run(["umount", "--lazy", str(self.disk)], check=True)


def _mount(disk: Path) -> bool:
    """A small disk, where that is allowed."""
    command = ["mount", "-t", "tmpfs", "-o", "size=8m", "torchmark", str(disk)]
    return subprocess.run(command, capture_output=True).returncode == 0


def _set_writable(disk: Path, *, mounted: bool, writable: bool) -> None:
    if mounted:
        subprocess.run(["mount", "-o", f"remount,{'rw' if writable else 'ro'}", str(disk)], check=True)
    else:
        for path in (disk, *disk.iterdir()):
            path.chmod(0o700 if writable else 0o500)


def by_order(run: Run | None) -> dict[Order, Outcome]:
    """What was measured."""
    outcomes = run.outcomes if run else ()
    return {outcome.order: outcome for outcome in outcomes if not isinstance(outcome.result, Failure)}


def carry_out(trial: Trial, folder: Path, python: str) -> Report:
    """Disturb a run, go on with it until it is complete, and see what is wrong."""
    began = time.monotonic()
    folder.mkdir()
    luck = random.Random(f"{SEED}.{trial.number}")
    scene = Scene(trial, folder, python)
    report = Report([], 0, 0, 0.0, "")
    try:
        kept: dict[Order, Outcome] = {}
        code: int | None = None
        while code != 0 and report.attempts < MOST_ATTEMPTS:
            process = scene.start()
            if report.attempts == 0:
                report.hits = scene.disturb(process, luck)
                kept = scene.saved
            _, told = process.communicate(timeout=120)
            code = process.returncode
            report.attempts += 1
            report.told += f"--- attempt {report.attempts}: {code}\n{told}"
            scene.tidy()
            kept = look_at(scene, kept, report)
            if trial.fault == FULL_JSON:
                look_at_json(scene, code, report)
        look_at_the_end(scene, kept, report)
    finally:
        scene.close()
    report.seconds = time.monotonic() - began
    return report


def look_at(scene: Scene, kept: dict[Order, Outcome], report: Report) -> dict[Order, Outcome]:
    """After each attempt: what was saved before is there as it was, and nobody is left."""
    found = by_order(scene.read())
    report.problems += [f"lost {order}" for order, outcome in kept.items() if found.get(order) != outcome]
    if not wait_for(lambda: not list_marked(scene.mark, scene.cache)):
        report.problems.append(f"left behind: {list_marked(scene.mark, scene.cache)}")
    return found


def look_at_json(scene: Scene, code: int, report: Report) -> None:
    """The file is that of the last run until this one has written all of its own, and a failure is told."""
    text = scene.json.read_text()
    if report.attempts == 1 and (code == 0 or text != OLD_JSON):
        report.problems.append(f"code {code}, and the JSON is {text:.80}")
    elif code == 0 and json.loads(text)["schema"] != "torchmark.show":
        report.problems.append(f"other JSON: {text:.80}")


def look_at_the_end(scene: Scene, found: dict[Order, Outcome], report: Report) -> None:
    run = scene.read()
    if run is None or run.info.finished is None or len(run.outcomes) != len(run.plan.orders):
        report.problems.append("not complete")
    elif set(found) != set(run.plan.orders):
        report.problems.append("something failed for good")
    # What Python leaves when it is killed while it looks whether a folder can be written has another kind of name.
    # The two empty files that runs take turns by stay for the next.
    temporary = [path for kind in ("torchmark-*-*", "cc*", "tmp*") for path in scene.temp.glob(kind)]
    if left := [*temporary, *scene.cache.glob("snippets/making-*"), *scene.cache.glob("models")]:
        report.problems.append(f"files are left: {left}")
    if "Traceback" in report.told:
        report.problems.append("a bug was shown")


@pytest.fixture(scope="module")
def reports(
    stub_python: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[int, concurrent.futures.Future[Report]]]:
    """All trials, on their way."""
    base = tmp_path_factory.mktemp("trials")
    with concurrent.futures.ThreadPoolExecutor(LANES) as lanes:
        yield {one.number: lanes.submit(carry_out, one, base / str(one.number), stub_python) for one in TRIALS}
        lanes.shutdown(cancel_futures=True)


@pytest.mark.parametrize("trial", TRIALS, ids=lambda trial: trial.name)
def test_a_run_that_is_disturbed_is_completed_by_going_on_and_loses_nothing(
    reports: dict[int, concurrent.futures.Future[Report]], trial: Trial
) -> None:
    report = reports[trial.number].result()
    print(f"{report.hits} hits, {report.attempts} attempts, {report.seconds:.1f} s\n{report.told}")
    assert report.problems == []


def test_the_trials_have_hit_whatever_they_aimed_at(
    reports: dict[int, concurrent.futures.Future[Report]],
) -> None:
    hits: dict[str, int] = {}
    for trial in TRIALS:
        hits[trial.fault] = hits.get(trial.fault, 0) + reports[trial.number].result().hits
    # A moment that was drawn may lie behind the end.
    assert all(hits.values()), hits
    assert len(TRIALS) >= 30


# What a statement writes where its answer is expected, and what else it does.
FORGED = {
    "nested without end": b"[" * 200_000,
    "no mapping": b"5",
    "texts for times": b'{"kind":"times","number_per_run":1,"raw_times":["x"],"overhead_s":null}',
    "no runs": b'{"kind":"times","number_per_run":0,"raw_times":[1.0],"overhead_s":null}',
    "no list": b'{"kind":"times","number_per_run":1,"raw_times":5,"overhead_s":null}',
    "no blocks": b'{"kind":"times","number_per_run":1,"raw_times":[],"overhead_s":null}',
    "not a number": b'{"kind":"times","number_per_run":1,"raw_times":[NaN],"overhead_s":null}',
    "endless": b'{"kind":"times","number_per_run":1,"raw_times":[1e999],"overhead_s":null}',
    "before it began": b'{"kind":"times","number_per_run":1,"raw_times":[-5.0],"overhead_s":null}',
    "more runs than can be kept": b'{"kind":"times","number_per_run":1'
    + b"0" * 400
    + b',"raw_times":[1.0],"overhead_s":null}',
    "a count": b'{"kind":"counted"}',
    "an unknown failure": b'{"kind":"failed","failure":"nosuch","message":"x","traceback":null}',
    "a failure of no text": b'{"kind":"failed","failure":"raised","message":5,"traceback":null}',
    "a job": b'{"kind":"time","place":5}',
    "a greeting": b'{"kind":"ready","sdk":3}',
    "a process": b'{"kind":"started","pid":1}',
    "an unknown kind": b'{"kind":["timed"]}',
}
FORGE = """
import os, stat, struct
answer = {answer!r}
open_ones = [n for n in range(3, 64) if os.path.exists(f"/proc/self/fd/{{n}}")]
# The first pipe is for the answer.
where = next(n for n in open_ones if stat.S_ISFIFO(os.fstat(n).st_mode))
data = struct.pack("!I", len(answer)) + answer
while data:
    data = data[os.write(where, data):]
{after}
"""
TIMED = b'{"kind":"times","number_per_run":1,"raw_times":[1.0],"overhead_s":null,"optimised_away":false}'


def test_whatever_arrives_as_an_answer_costs_its_own_case_and_the_run_can_be_used(
    program: Program, own_stub: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    stmts = {name: FORGE.format(answer=answer, after="os._exit(0)") for name, answer in FORGED.items()}
    stmts["beside the true one"] = FORGE.format(answer=TIMED, after="")
    stmts["before a crash"] = FORGE.format(answer=TIMED, after="os.abort()")
    stmts["before the end"] = FORGE.format(answer=TIMED, after="os._exit(0)")
    Path("bench_forged.py").write_text(
        f"import torchmark\nstmts = {stmts!r}\n"
        "BENCHMARKS = {name: torchmark.TimerArgs(stmt) for name, stmt in stmts.items()}\n"
        "BENCHMARKS['honest'] = torchmark.TimerArgs('x + 1', 'x = 1')\n"
    )
    done = program("run", "bench_forged.py", "--metric", "wall")
    assert "Traceback" not in done.stdout + done.stderr
    assert done.returncode == 1
    with open_store(tmp_path / ".torchmark" / "results.db") as store:
        outcomes = store.load(store.list_runs()[0].id).outcomes
    kinds = {outcome.order.case.label[0]: getattr(outcome.result, "kind", None) for outcome in outcomes}
    crashed = {"before a crash": FailureKind.CRASHED, "honest": None}
    assert kinds == {**dict.fromkeys([*stmts, "honest"], FailureKind.NO_RESULT), **crashed}
    for command in (["show"], ["export"], ["report", "-o", "page.html"], ["run", "--resume"]):
        again = program(*command)
        assert "Traceback" not in again.stdout + again.stderr, command
        assert again.returncode == (1 if "run" in command else 0), (command, again.stderr)
