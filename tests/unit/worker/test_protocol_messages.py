from __future__ import annotations

import json
import math
import os

import pytest

from torchmark.errors import WorkerError
from torchmark.model.environment import Sdk
from torchmark.model.job import (
    CheckJob,
    CompileJob,
    CountJob,
    GaugeJob,
    Given,
    PairJob,
    Place,
    RaceJob,
    ScriptJob,
    SideBlocks,
    TimeJob,
    Way,
)
from torchmark.model.outcome import FailureKind, FirstCall
from torchmark.model.task import Compiled, Times
from torchmark.worker import protocol
from torchmark.worker.protocol import describe_status

PLACE = Place("/tmp", ("/a", "/b"))
SDK = Sdk(
    python="/bin/python",
    folder="/torch",
    version="2.0",
    git_version="abc",
    cxx11_abi=True,
    cxx_flags="-O2",
    cxx_standard=17,
    python_include=None,
)
TIMED = {"kind": "times", "number_per_run": 1, "raw_times": [1.0]}

ALL: list[protocol.Message] = [
    protocol.Hello(1, "/tmp/x", "/lib.so", ("/a",)),
    protocol.Hello(1, "/tmp/x"),
    protocol.Hello(1, "/tmp/x", compiling=True),
    protocol.Ready(
        protocol=1,
        pid=7,
        python_version="3.11",
        torch_version="2.0",
        cpu_capability="AVX2",
        debug_symbols=False,
        sdk=SDK,
    ),
    protocol.Refused("no_torch", "there is none", None),
    protocol.Go(),
    protocol.Started(7),
    protocol.Ended(256),
    protocol.Stop(),
    protocol.Counted(),
    protocol.Separate(3),
    Times(10, (0.1, 0.2)),
    protocol.Raced((Times(10, (0.1, 0.2)), Times(1, (0.3, 0.4)))),
    protocol.Raced(()),
    Times(2**63 - 1, (0.0, 1e9), 0.0, True),
    protocol.Gauged(0.1),
    protocol.PairTimed((SideBlocks((0.1, 0.2), (0, 1), (0, 0)), SideBlocks((0.3, 0.4), (2, 3), (0, 0)))),
    protocol.Counted(True, (("f", "x.py", 1),)),
    protocol.Scripted(),
    protocol.Checked("y differs", 1),
    FirstCall(
        first_s=2.5,
        steady_s=0.5,
        graphs=2,
        graph_breaks=1,
        abandoned=0,
        cache_hits=1,
        cache_misses=1,
        breaks=("print (<setup>, line 2)",),
    ),
    protocol.Failed("raised", "ValueError", "Traceback"),
    CountJob(
        stmt="x",
        setup="y",
        place=PLACE,
        number=10,
        threads=2,
        layouts=(1, 2),
        givens=(Given("w", "pickle", 4, "import x"), Given("v", "torch", 5)),
    ),
    CountJob("x", "y", Place("/")),
    CheckJob(Way("x", "y"), Way("x", "z", Compiled("/lib.so", "abc")), PLACE, uses_compiler=True),
    GaugeJob("x", "y", PLACE, cores=(1, 2)),
    PairJob(stmt="x", setup="y", place=PLACE, number=5, warm=1, firsts=(0, 1), partner="z"),
    ScriptJob("x", "/tmp/y.pt", PLACE),
    CountJob("x", "y", Place("/"), compiled=Compiled("/lib.so", "abc")),
    TimeJob("x", "y", Place("/"), number=7, compiled=Compiled("/lib.so", "abc")),
    TimeJob("x", "y", PLACE, watch_compiler=True),
    CompileJob(
        stmt="x",
        setup="y",
        place=PLACE,
        backend="inductor",
        mode="max-autotune",
        threads=2,
        givens=(Given("w", "pickle", 4),),
    ),
    TimeJob(
        stmt="x",
        setup="y",
        place=PLACE,
        threads=2,
        min_run_time_s=0.5,
        max_run_time_s=1.5,
        givens=(Given("w", "pickle", 4),),
    ),
    RaceJob(
        stmts=("x", "y"),
        setup="z",
        place=PLACE,
        threads=2,
        min_run_time_s=0.5,
        max_run_time_s=1.5,
        givens=(Given("w", "pickle", 4),),
        making="w = 1",
    ),
]


@pytest.mark.parametrize("message", ALL, ids=lambda m: type(m).__name__)
def test_every_message_survives_json(message: protocol.Message) -> None:
    assert protocol.decode(json.loads(json.dumps(protocol.encode(message)))) == message


@pytest.mark.parametrize(
    "plain",
    [
        {},
        {"kind": "unheard of"},
        {"kind": "started"},
        {"kind": "started", "pid": 1, "more": 2},
        {"kind": "count", "place": {}},
        {"kind": ["times"]},
        {"kind": "started", "pid": 0},
        {"kind": "started", "pid": 1},
        {"kind": "started", "pid": -7},
        {"kind": "started", "pid": 1 << 40},
        {"kind": "started", "pid": True},
        {"kind": "started", "pid": "7"},
        {"kind": "started", "pid": 7.0},
        {"kind": "ended", "status": 1 << 16},
        {"kind": "ended", "status": None},
        {"kind": "separate", "threads": 2**63},
        {"kind": "refused", "reason": "x", "message": 5},
        {"kind": "counted", "optimised_away": 1},
        {"kind": "counted", "functions": [["f", "x.py"]]},
        {"kind": "counted", "functions": [["f", "x.py", -1]]},
        {"kind": "times", "raw_times": [1.0]},
        {**TIMED, "number_per_run": 0},
        {**TIMED, "number_per_run": 2**63},
        {**TIMED, "raw_times": 5},
        {**TIMED, "raw_times": []},
        {**TIMED, "raw_times": ["x"]},
        {**TIMED, "raw_times": [None]},
        {**TIMED, "raw_times": [True]},
        {**TIMED, "raw_times": [-0.1]},
        {**TIMED, "raw_times": [math.nan]},
        {**TIMED, "raw_times": [math.inf]},
        {**TIMED, "raw_times": [1e300]},
        {**TIMED, "raw_times": [10**400]},
        {**TIMED, "overhead_s": -1.0},
        {"kind": "raced", "results": [{"number_per_run": 0, "raw_times": [1.0]}]},
        {"kind": "raced", "results": [{"number_per_run": 1, "raw_times": [1.0] * n} for n in (1, 2)]},
        {"kind": "gauged", "run_s": -1.0},
        {"kind": "pair_timed", "sides": [{"times": [1.0], "faults": [0, 0], "switches": [0]}]},
        {"kind": "pair_timed", "sides": []},
        {"kind": "pair_timed", "sides": [{"times": [1.0], "faults": [-1], "switches": [0]}]},
        {"kind": "first_call", "first_s": 1.0, "steady_s": 1.0, "graphs": -1, "graph_breaks": 0},
        {"kind": "first_call", "first_s": 1.0, "steady_s": 1.0, "graphs": 1, "graph_breaks": 0, "breaks": [5]},
        {"kind": "checked", "problem": "x", "failed": 2},
        {"kind": "failed", "failure": "nosuch", "message": "x", "traceback": None},
        {"kind": "failed", "failure": "raised", "message": "x" * 1_000_000, "traceback": None},
        {"kind": "time", "stmt": "x", "setup": "y", "place": 5},
        {"kind": "ready", "sdk": 3},
    ],
    ids=lambda plain: f"{plain}"[:60],
)
def test_anything_else_is_refused(plain: dict[str, object]) -> None:
    with pytest.raises(WorkerError) as caught:
        protocol.decode(plain)
    assert caught.value.kind == "garbled"


@pytest.mark.parametrize(
    ("status", "kind", "text"),
    [
        (0, FailureKind.NO_RESULT, "ended without a result"),
        (3 << 8, FailureKind.EXITED, "exited with code 3"),
        (9, FailureKind.CRASHED, "was ended by SIGKILL"),
        (11 | 128, FailureKind.CRASHED, "was ended by SIGSEGV"),
        (33, FailureKind.CRASHED, "was ended by signal 33"),
    ],
)
def test_a_status_is_put_into_words(status: int, kind: FailureKind, text: str) -> None:
    assert describe_status(status) == (kind, text)


def test_a_real_status_is_too() -> None:
    pid = os.posix_spawn("/bin/sh", ["sh", "-c", "exit 5"], {})
    assert describe_status(os.waitpid(pid, 0)[1])[1] == "exited with code 5"
