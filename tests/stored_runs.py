"""A run with a result of every kind, as the golden store has it; and how to make that store.

`python -m tests.stored_runs` writes the files of the newest version. Those of earlier versions stay as they are.
"""

from __future__ import annotations

import dataclasses
import json
import sys
from pathlib import Path

from torchmark.model.costs import Call, Function, Profile, Tally
from torchmark.model.environment import Environment
from torchmark.model.outcome import (
    Activity,
    ActivityKind,
    CompileCosts,
    Failure,
    FailureKind,
    FirstCall,
    Outcome,
    Result,
)
from torchmark.model.plan import (
    Artefact,
    AutogradMode,
    AutoLabels,
    Case,
    Check,
    CompileMode,
    CompileParts,
    Metric,
    Order,
    Plan,
    RuntimeMode,
    Sampling,
    Target,
    TimerArgs,
)
from torchmark.model.run import Host, Run, RunInfo, Source
from torchmark.model.task import Language, Times
from torchmark.store.documents import export_run
from torchmark.store.runs import open_store
from torchmark.store.store_file import SCHEMA_VERSION

GOLDEN = Path(__file__).parent / "golden"

BEGAN = 1_700_000_000.25
MAIN, LOOP, ADD = (
    Function("", "main", "/bin/python"),
    Function("eval.c", "loop"),
    Function("add.cpp", "at::add", "lib.so"),
)

ADD_CASE = Case(
    ("nn Modules", "add"),
    AutoLabels(RuntimeMode.EAGER, AutogradMode.FORWARD, Language.PYTHON),
    TimerArgs("x + 1", "x = torch.ones(4)"),
    tags=("small",),
    check=Check("torchmark_give('y', x + 1)", "x = torch.ones(4)"),
    suite="standard",
)
CPP_CASE = Case(
    ("nn Modules", "add"),
    AutoLabels(RuntimeMode.JIT, AutogradMode.FORWARD_BACKWARD, Language.CPP),
    TimerArgs(
        stmt="x.add(1);",
        setup='auto x = load("model");',
        global_setup="#include <vector>",
        num_threads=2,
        language=Language.CPP,
    ),
    artefact=Artefact("model", "jit_model = torch.jit.script(f)"),
    suite="standard",
)
COMPILED_CASE = Case(
    ("größe \udcff\x00",),  # a name that no file system has to have
    AutoLabels(RuntimeMode.COMPILE, AutogradMode.EXPLICIT, Language.PYTHON, CompileMode("inductor", "max-autotune")),
    TimerArgs("compiled_model(x)"),
    parts=CompileParts("model = f", "compiled_model(x)", CompileMode("inductor", "max-autotune")),
    suite="bench_mine.py",
)
OWN, OTHER = Target(), Target("torch 2.1", "/opt/other/bin/python")
ENVIRONMENT = Environment(
    python="/opt/bin/python",
    python_version="3.11.7",
    torch_version="2.2.0+cpu",
    cpu_capability="AVX2",
    native_capability="AVX512",
    debug_symbols=True,
    valgrind="3.22.0",
    hash_seed="0",
    variables=(("MKL_NUM_THREADS", "1"), ("OMP_NUM_THREADS", "1")),
    torch_commit="8ac9b20d4b090c213799e81acf48a55ea8d437d6",
    torch_build="PyTorch built with:\n  - GCC 9.3",
)
PROFILE = Profile(
    events=("Ir", "Dr"),
    exclusive={MAIN: (10, 1), LOOP: (20, 2), ADD: (70, 7)},
    inclusive={MAIN: (100, 10), LOOP: (90, 9), ADD: (70, 7)},
    calls={(MAIN, LOOP): Call(1, (90, 9)), (LOOP, ADD): Call(100, (70, 7))},
    trigger="loop",
)
BASELINE = Profile(("Ir", "Dr"), {MAIN: (5, 1)}, {MAIN: (5, 1)}, {})
TALLY = Tally(
    number=100,
    seeds=(0, 1, 2),
    totals=(100, 99, 101),
    events=(("Ir", 100), ("Dr", 10)),
    allocations=3,
    tensor_allocations=1,
    baseline=5,
    noisy=("eval.c:loop",),
    profile=PROFILE,
    baseline_profile=BASELINE,
    text="events: Ir Dr\nfn=main\n1 10 1\n",
)
FIRST_CALL = FirstCall(2.5, 0.5, graphs=2, graph_breaks=1, abandoned=1, cache_misses=2, breaks=("print() in line 3",))
COSTS = CompileCosts(
    FIRST_CALL, FirstCall(0.75, 0.5, 2, 1, cache_hits=2), Times(10, (5.0, 5.5)), Times(10, (0.1,), 1e-9)
)
FAILURE = Failure(
    FailureKind.RAISED, "ValueError: no", 'Traceback:\n  File "<stmt>", line 1\n', stdout="out\x00", stderr="é\udcff\n"
)
KILLED = Failure(FailureKind.CRASHED, "The process was ended by SIGKILL.")

PLAN = Plan(
    (ADD_CASE, CPP_CASE, COMPILED_CASE), (OWN, OTHER), Sampling(min_run_time_s=0.1, layouts=(0, 1, 2), timeout_s=60.0)
)
HOST = Host(
    system="Linux 6.1 x86_64",
    cpu_model="AMD EPYC",
    cores_online=8,
    cores_allowed=2,
    cpu_quota=1.5,
    compiler="g++ 12.2.0",
)
SOURCES = (Source("standard"), Source("bench_mine.py", "0" * 40, dirty=True))
INFO = RunInfo(
    id="018bcfe568fa4c21b1f6d7e83a90c512",
    name="before",
    created=BEGAN,
    finished=None,
    torchmark="0.1.0",
    host=HOST,
    sources=SOURCES,
    seed=7,
    options=(("k", ("add or größe",)), ("tag", ("small", "large"))),
)


def make_outcomes() -> tuple[Outcome, ...]:
    """One of every kind."""
    results: list[tuple[Order, Result]] = [
        (Order(ADD_CASE, OWN, Metric.WALL), Times(1000, (0.1, 0.1000000000000001, 1 / 3), 2.5e-08)),
        (Order(ADD_CASE, OTHER, Metric.WALL), FAILURE),
        (Order(ADD_CASE, OWN, Metric.COUNT), TALLY),
        (Order(CPP_CASE, OWN, Metric.COUNT), dataclasses.replace(TALLY, profile=BASELINE, noisy=None, text=None)),
        (Order(CPP_CASE, OTHER, Metric.WALL), KILLED),
        (Order(COMPILED_CASE, OWN, Metric.WALL), COSTS),
    ]
    return tuple(
        Outcome(
            order=order,
            result=result,
            began=BEGAN + i,
            ended=BEGAN + i + 0.5,
            environment=ENVIRONMENT if i else None,
            cores=(0, 1),
            unchecked="too large" if i else None,
        )
        for i, (order, result) in enumerate(results)
    )


def make_run() -> Run:
    """The run that the golden files have."""
    activities = (
        Activity(ActivityKind.START, OWN, BEGAN - 20, BEGAN - 1.5),
        Activity(kind=ActivityKind.COMPILE, target=OTHER, began=BEGAN - 1.5, ended=BEGAN, size=3),
    )
    info = dataclasses.replace(INFO, orders=12, outcomes=6, failures=2)
    return Run(info, PLAN, make_outcomes(), activities)


def main() -> None:
    """Write the files."""
    path = GOLDEN / f"store_v{SCHEMA_VERSION}.db"
    if path.exists():
        sys.exit(f"{path} is there already: what has been written once stays as it is.")
    with open_store(path, create=True) as store:
        store.add(make_run())
    (GOLDEN / "run_v1.json").write_text(json.dumps(export_run(make_run()), indent=1) + "\n")


if __name__ == "__main__":
    main()
