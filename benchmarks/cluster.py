"""Beyond one machine: a real Ray cluster on loopback against a local run, what scheduling costs, and a simulated fleet.

`python -m benchmarks.cluster [suite] [overhead] [simulation]` runs all of it, or what is named; about ten minutes on
two cores, most of it for the standard suite's Python cases, which are counted twice.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import os
import subprocess
import sys
import tempfile
import threading
import time
import tracemalloc
import zlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from benchmarks.context import describe
from benchmarks.raylets import VARIABLES, Raylets
from tests.simulated_fleet import VERSION, SimulatedFaults, SimulatedFleet
from torchmark.errors import StoreError
from torchmark.model.costs import Tally
from torchmark.model.environment import Environment
from torchmark.model.outcome import Failure, FailureKind, Outcome, Result
from torchmark.model.plan import (
    AutogradMode,
    AutoLabels,
    Case,
    Metric,
    Node,
    Order,
    Plan,
    RuntimeMode,
    Sampling,
    Target,
    TimerArgs,
)
from torchmark.model.run import Run
from torchmark.model.task import Language, Times
from torchmark.processes import StopRequest
from torchmark.runner.backend import Backend
from torchmark.runner.cluster.backend import ClusterBackend, make_run_setup
from torchmark.runner.cluster.protocol import (
    Canary,
    CanaryCounted,
    Fleet,
    Measure,
    Measured,
    NodeReply,
    Request,
    RunSetup,
    Survey,
    Surveyed,
)
from torchmark.runner.local import LocalBackend
from torchmark.store.runs import open_store

# What the project has set itself.
MOST_RAY_MS = 5.0
MOST_LOCAL_MS = 1.0
LEAST_UTILISATION = 0.9
CASES = 10_000
# What may be left of each finished case in the parent.
MOST_BYTES = 20
SEEDS = 10
# The more there are, the more of their time is that of starting.
SLOTS = (2, 4, 8)


def make_plan(number: int) -> Plan:
    """So many cases of Python, counted."""
    labels = AutoLabels(RuntimeMode.EAGER, AutogradMode.FORWARD, Language.PYTHON)
    cases = tuple(Case((f"case {n}",), labels, TimerArgs("x + 1")) for n in range(number))
    return Plan(cases, (Target(),), Sampling((Metric.COUNT,), layouts=(1, 2, 3)))


# --- the standard suite ------------------------------------------------------------------------------


def compare_suite() -> list[str]:
    """The standard suite's Python cases, counted here and on three nodes, of which one is killed in the middle."""
    with tempfile.TemporaryDirectory() as folder:
        # One after the other in the same place: the names of files beside them differ in nothing.
        here, there = Path(folder, "here.db"), Path(folder, "away.db")
        local_s = _run(here)
        with Raylets(3) as raylets:
            killed: list[str] = []
            killer = threading.Thread(target=_kill_halfway, args=(raylets, there, killed), daemon=True)
            killer.start()
            ray_s = _run(there, "--backend", "ray", "--address", raylets.address)
            killer.join(5)
            assert killed, "no node was killed"
        one, other = (_load(path) for path in (here, there))
    expected, found = (_index(run.outcomes) for run in (one, other))
    equal = sum(found.get(order) == outcome for order, outcome in expected.items())
    nodes = sorted({outcome.node.name for outcome in other.outcomes if outcome.node})
    assert equal == len(expected) == len(other.outcomes) == len(other.plan.orders), "not the same"
    return [
        f"{len(expected)} cases: {equal} with the same counts, functions and environment as in a local run; "
        f"{len(other.outcomes)} outcomes on {', '.join(nodes)}, of which {killed[0]} was killed once a third was done",
        f"local {local_s:.0f} s; three nodes on the same two cores {ray_s:.0f} s",
    ]


def _run(store: Path, *options: str) -> float:
    command = [sys.executable, "-m", "torchmark", "run", "standard", "--language", "python", "--metric", "count"]
    began = time.monotonic()
    done = subprocess.run(
        [*command, "--store", str(store), *options],
        # Python keeps the names of files in the folders that it searches: here nobody makes any meanwhile.
        cwd=store.parent,
        env={**os.environ, **VARIABLES},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return time.monotonic() - began


def _kill_halfway(raylets: Raylets, path: Path, killed: list[str]) -> None:
    """Once a third of the cases is done."""
    for _ in range(3000):
        time.sleep(0.2)
        # It may be about to be made.
        with contextlib.suppress(StoreError), open_store(path, read_only=True) as store:
            if any(run.outcomes * 3 > run.orders for run in store.list_runs()):
                killed.append(raylets.kill())
                return


def _load(path: Path) -> Run:
    with open_store(path, read_only=True) as store:
        return store.load(store.list_runs()[0].id, profiles=True)


def _index(outcomes: Sequence[Outcome]) -> dict[Order, tuple[Any, ...]]:
    return {one.order: (one.result, one.environment, one.unchecked) for one in outcomes}


# --- what scheduling costs ---------------------------------------------------------------------------


ENVIRONMENT = Environment("python", "3", "2", valgrind="1")


class _Counter:
    """Counts nothing."""

    environment = ENVIRONMENT

    def start(self) -> None:
        """It is there."""

    def pin(self, cores: Sequence[int]) -> None:
        """Anywhere."""


class _FakeLab:
    """A lab that measures nothing."""

    def __init__(self, target: Target, environ: object) -> None:
        self.target = target

    def start(self) -> None:
        """It is there."""

    def make_counter(self) -> _Counter:
        """One that counts nothing."""
        return _Counter()

    def count(self, prepared: object, sampling: Sampling, counter: object) -> tuple[Tally | Times, object]:
        """At once."""
        return Times(1, (1.0,)), ENVIRONMENT

    def abandon(self) -> None:
        """There is nothing to end."""


def measure_overhead(backend: Backend) -> tuple[float, float]:
    """Milliseconds for each case, and bytes that are left of each when it is done."""
    plan = make_plan(CASES)
    orders = plan.orders
    backend.open(plan)
    sizes: list[int] = []
    done, began = 0, 0.0
    tracemalloc.start(1)
    for event in backend.execute(plan, orders, StopRequest()):
        if isinstance(event, Outcome):
            done += 1
            if done == 1:
                # From the first on: what starts once is no cost of a case.
                began = time.perf_counter()
            if done in (CASES // 10, CASES - 100):
                sizes.append(tracemalloc.get_traced_memory()[0])
    tracemalloc.stop()
    assert done == CASES
    return (time.perf_counter() - began) / (done - 1) * 1e3, (sizes[1] - sizes[0]) / (CASES * 0.9)


def compare_overhead() -> list[str]:
    """With nothing to measure, all that is left is scheduling."""
    make_lab: Any = _FakeLab
    local = LocalBackend((0, 1), make_lab=make_lab)
    local_ms, local_bytes = measure_overhead(local)
    local.close()
    with Raylets(3) as raylets:
        ray_ms, ray_bytes = measure_overhead(_open_fake(raylets.address))
    assert local_ms < MOST_LOCAL_MS
    assert ray_ms < MOST_RAY_MS
    return [
        f"{CASES:,} cases that take no time, with tracemalloc on: local {local_ms:.2f} ms a case, "
        f"Ray (3 nodes, loopback) {ray_ms:.2f} ms",
        f"what the parent keeps of a finished case: local {local_bytes:.1f} bytes, Ray {ray_bytes:.1f}",
    ]


class FakeNodeServer:
    """Answers at once, with results that are made of the orders."""

    def __init__(self, run_setup: RunSetup, fetch: Callable[[object], object], name: str | None = None) -> None:
        self._run_setup = run_setup
        self.node = Node(name or "fake", "fake")

    def answer(self, request: Request) -> NodeReply:
        """What `NodeServer` would answer, without the work."""
        environments = (ENVIRONMENT,) * len(self._run_setup.targets)
        if isinstance(request, Survey):
            return Surveyed(self.node, self._run_setup.torchmark, "libc", environments)
        if isinstance(request, Canary):
            return CanaryCounted((1,) * len(environments), environments)
        assert isinstance(request, Measure)
        now = time.time()
        return Measured(
            tuple(
                Outcome(
                    order=order, result=Times(1, (1.0,)), began=now, ended=now, environment=ENVIRONMENT, node=self.node
                )
                for order in request.orders
            )
        )


def _open_fake(address: str) -> ClusterBackend:
    os.environ.update(VARIABLES)
    from torchmark.runner.cluster import ray_fleet

    def connect(plan: Plan) -> Any:
        ray_fleet.connect(address)
        run_setup = make_run_setup(plan, os.environ)
        return ray_fleet.RayFleet(run_setup, FakeNodeServer), run_setup

    return ClusterBackend(connect)


# --- a fleet that is not there -----------------------------------------------------------------------


def simulate() -> Iterator[str]:
    """A hundred thousand cases on a hundred nodes, of which some die, some are slow and some count otherwise."""
    for slots in SLOTS:
        for seed in range(SEEDS):
            yield _simulate(slots, seed)


def _simulate(slots: int, seed: int) -> str:
    plan = make_plan(100_000)
    faults = SimulatedFaults(node_lifetime_s=1800.0, crash=1e-4, lost=1e-4, slow=0.02, odd=0.005)
    fleet = SimulatedFleet(100, slots, _take_s, _measure, faults, seed)
    backend = ClusterBackend(functools.partial(_open_simulated, fleet))
    backend.open(plan)
    found: dict[Order, Result] = {}
    doubled = 0
    for event in backend.execute(plan, plan.orders, StopRequest()):
        if isinstance(event, Outcome):
            doubled += event.order in found
            found[event.order] = event.result
    assert found == {order: _measure(order) for order in plan.orders}
    assert not doubled
    assert slots > SLOTS[0] or fleet.utilisation > LEAST_UTILISATION, fleet.utilisation
    return (
        f"{slots} slots a node, seed {seed}: {len(found):,} outcomes, none doubled; {fleet.died} nodes died; "
        f"{fleet.answered_at / 60:.1f} min, {100 * fleet.utilisation:.1f} % of the slots' time used"
    )


def _open_simulated(fleet: Fleet, plan: Plan) -> tuple[Fleet, RunSetup]:
    return fleet, dataclasses.replace(make_run_setup(plan, {}), torchmark=VERSION)


def _take_s(order: Order) -> float:
    """From 0.24 to 2 seconds, 1.12 in the mean, which is what cases of the standard suite take."""
    return 0.24 + 1.76 * (zlib.crc32(order.case.label[0].encode()) % 1000) / 1000


def _measure(order: Order) -> Result:
    return Failure(FailureKind.RAISED, order.case.label[0])


PARTS = {"suite": compare_suite, "overhead": compare_overhead, "simulation": simulate}


def main(names: Sequence[str]) -> None:
    """Run these parts."""
    print(describe(), flush=True)
    for name in names or PARTS:
        print(f"\n{name}", flush=True)
        for line in PARTS[name]():
            print(f"- {line}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
