"""A real Ray cluster of three nodes on loopback: the same results as here, whatever becomes of nodes and drivers."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks.raylets import VARIABLES, Raylets
from torchmark.errors import StoreError
from torchmark.model.costs import Tally
from torchmark.model.outcome import ActivityKind
from torchmark.model.plan import Metric
from torchmark.model.run import Run
from torchmark.store.runs import open_store

PATIENCE_S = 600

PYTHON = """
from torchmark import GroupedSetup, GroupedStmts

SETUP = GroupedSetup("x = torch.ones(8)", "int x = 1;")
BENCHMARKS = {
    **{f"python {n}": GroupedStmts(f"x + {n}", setup=SETUP) for n in range(9)},
    **{f"both {n}": GroupedStmts(f"y = x * {n}", f"torchmark::keep(x * {n});", setup=SETUP) for n in range(3)},
}
"""


@pytest.fixture(scope="module")
def caches(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("caches")


@pytest.fixture(scope="module")
def raylets(caches: Path) -> Iterator[Raylets]:
    with Raylets(3, caches=caches) as raylets:
        yield raylets


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Where the program runs. Stores are beside it: names of files within are kept by Python, and so are counted."""
    work = tmp_path / "work"
    work.mkdir()
    (work / "bench_small.py").write_text(textwrap.dedent(PYTHON))
    return work


def start(folder: Path, *arguments: str, cache: Path | None = None) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "torchmark", *arguments]
    environ = {**os.environ, **VARIABLES, **({} if cache is None else {"TORCHMARK_CACHE": str(cache)})}
    return subprocess.Popen(
        command, cwd=folder, env=environ, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )


def finish(process: subprocess.Popen[str], code: int = 0) -> str:
    output, _ = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == code, output
    return output


def load(path: Path) -> Run:
    with open_store(path, read_only=True) as store:
        return store.load(store.list_runs()[0].id, profiles=True)


def wait_for_outcomes(process: subprocess.Popen[str], path: Path, number: int) -> None:
    for _ in range(PATIENCE_S * 10):
        time.sleep(0.1)
        if process.poll() is not None:
            break
        # It may be about to be made.
        with contextlib.suppress(StoreError), open_store(path, read_only=True) as store:
            if any(run.outcomes >= number for run in store.list_runs()):
                return
    process.kill()
    raise AssertionError(f"it does not begin: {process.communicate()[0]}")


def test_counts_are_those_of_a_local_run_although_a_node_is_killed(
    folder: Path, tmp_path: Path, raylets: Raylets, caches: Path, stub_python: str
) -> None:
    # With the standard suite and the real torch, `python -m benchmarks.cluster suite` shows the same.
    options = ("run", "bench_small.py", "--python", stub_python, "--metric", "count", "--store")
    process = start(folder, *options, "../there.db", "--backend", "ray", "--address", raylets.address)
    wait_for_outcomes(process, tmp_path / "there.db", 2)
    killed = raylets.kill()
    output = finish(process)
    assert "All of 15 cases measured." in output
    there = load(tmp_path / "there.db")
    assert len(there.outcomes) == len({outcome.order for outcome in there.outcomes}) == len(there.plan.orders) == 15
    assert {outcome.node.name for outcome in there.outcomes if outcome.node} <= {"node-0", "node-1", killed}

    # The cache's path is as long as those of the nodes: that of a library which is loaded from it is counted.
    finish(start(folder, *options, "../here.db", cache=caches / "node-9"))
    here = load(tmp_path / "here.db")
    found = {outcome.order: outcome for outcome in there.outcomes}
    for outcome in here.outcomes:
        other = found[outcome.order]
        assert isinstance(outcome.result, Tally)
        assert isinstance(other.result, Tally)
        assert other.environment == outcome.environment
        assert other.result.totals == outcome.result.totals, outcome.order.case.label

    # C++ was compiled once, and went to the others as it was.
    assert [one.kind for one in there.activities].count(ActivityKind.COMPILE) == 1
    assert len({path.parts[-3] for path in caches.glob("*/snippets/*.so")} - {"node-9"}) == 1
    shipped = [path.read_bytes() for path in caches.glob("*/shipping/*.so")]
    assert len(shipped) > 1
    assert len(set(shipped)) == 1
    raylets.add()


def test_a_killed_driver_goes_on_where_it_was(folder: Path, tmp_path: Path, raylets: Raylets, stub_python: str) -> None:
    store = tmp_path / "runs.db"
    some = " or ".join(f"'python {n}'" for n in range(5))
    timing = ("--python", stub_python, "--metric", "wall", "--min-run-time", "0.5")
    options = ("run", "bench_small.py", "-k", some, *timing)
    away = ("--store", "../runs.db", "--backend", "ray", "--address", raylets.address)
    process = start(folder, *options, *away)
    wait_for_outcomes(process, store, 1)
    process.send_signal(signal.SIGKILL)
    finish(process, -signal.SIGKILL)
    before = load(store)
    assert 1 <= len(before.outcomes) < 5
    finish(start(folder, "run", "--resume", *away))
    after = load(store)
    assert after.info.id == before.info.id
    assert len(after.outcomes) == len(after.plan.orders) == 5
    kept = {outcome.order: outcome for outcome in after.outcomes}
    assert all(kept[outcome.order] == outcome for outcome in before.outcomes)
    assert all(outcome.order.metric is Metric.WALL and outcome.node is not None for outcome in after.outcomes)


def test_statements_are_compared_and_fuzzed_on_nodes(folder: Path, raylets: Raylets) -> None:
    away = ("--backend", "ray", "--address", raylets.address)
    setup = ("--setup", "x = torch.ones(64)")
    comparing = start(folder, "ab", "x + 1", "(x + 1).exp()", *setup, "--metric", "wall", "--layouts", "2", *away)
    output = finish(comparing)
    assert re.search(r"time +\+\d+ %", output)
    assert re.search(r"in turns, in \d layouts of memory", output)
    fuzzing = start(folder, "fuzz", "x + y", "y + x", "--preset", "small", "-n", "6", "--top", "3", *away)
    output = finish(fuzzing)
    assert "6 inputs" in output
    assert len(re.findall(r"#\d  x", output)) == 6


def list_session(session: int) -> dict[int, set[str]]:
    """The living processes of a session, each with the sockets that it has open."""
    found: dict[int, set[str]] = {}
    for entry in Path("/proc").iterdir():
        # It may have ended meanwhile.
        with contextlib.suppress(OSError):
            if entry.name.isdigit() and os.getsid(int(entry.name)) == session:
                state = (entry / "stat").read_text().rpartition(")")[2].split()[0]
                links = (os.readlink(link) for link in (entry / "fd").iterdir())
                if state != "Z":
                    found[int(entry.name)] = {link[8:-1] for link in links if link.startswith("socket:[")}
    return found


def list_listening(sockets: set[str]) -> set[str]:
    """The addresses that these listen at, as the kernel writes them."""
    lines = [line.split() for name in ("tcp", "tcp6") for line in Path("/proc/net", name).read_text().splitlines()]
    return {line[1].partition(":")[0] for line in lines if line[3] == "0A" and line[9] in sockets}


def test_without_a_cluster_one_is_started_on_loopback_and_ended(folder: Path, tmp_path: Path, stub_python: str) -> None:
    home = tmp_path / "home"
    home.mkdir()
    environ = {name: value for name, value in os.environ.items() if not name.startswith("RAY_")}
    environ |= {"RAY_TMPDIR": str(tmp_path), "HOME": str(home)}
    options = ("-k", "'python 1'", "--python", stub_python, "--metric", "wall", "--min-run-time", "0.1")
    command = [sys.executable, "-m", "torchmark", "run", "bench_small.py", *options, "--backend", "ray"]
    process = subprocess.Popen(
        [*command, "--store", "../alone.db"],
        cwd=folder,
        env=environ,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    listening: set[str] = set()
    most = 0
    for _ in range(PATIENCE_S * 10):
        if process.poll() is not None:
            break
        session = list_session(process.pid)
        most = max(most, len(session))
        listening |= list_listening(set().union(*session.values()))
        time.sleep(0.1)
    output = finish(process)
    assert output.count("a local one with") == 1
    assert "is started on 127.0.0.1, and stopped at the end." in output
    assert "1 case measured." in output
    assert most > 4
    # 127.0.0.1, and the same as an address of version 6.
    assert listening
    assert listening <= {"0100007F", "0000000000000000FFFF00000100007F"}
    (outcome,) = load(tmp_path / "alone.db").outcomes
    assert outcome.node is not None
    assert outcome.environment is not None
    assert not any(name.startswith("RAY_") for name, _ in outcome.environment.variables)
    assert not (home / ".ray").exists()
    for _ in range(100):
        if not list_session(process.pid):
            break
        time.sleep(0.1)
    assert not list_session(process.pid)


def test_a_cluster_that_is_not_there_is_told(folder: Path) -> None:
    process = start(folder, "run", "bench_small.py", "--backend", "ray", "--address", "127.0.0.1:1", "-q")
    output = finish(process, 3)
    assert "There is no Ray cluster" in output
    assert "--address" in output


def test_without_ray_one_sentence_says_what_to_install(folder: Path) -> None:
    code = "import sys; sys.modules['ray'] = None; from torchmark.cli.main import main; sys.exit(main(sys.argv[1:]))"
    command = [sys.executable, "-c", code, "run", "bench_small.py", "--backend", "ray"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=PATIENCE_S)
    assert done.returncode == 3
    assert done.stderr == "torchmark: Ray is not installed: pip install 'torchmark[ray]'.\n"
