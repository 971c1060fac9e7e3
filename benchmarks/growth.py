"""How the time of commands that read a store grows with what is in it: `python -m benchmarks.growth [COMMAND]...`.

Commands are `show`, `report`, `compared` (a report of two runs) and `history`; without one, all of them. The stores are
made by code, with times and costs by function as large as those of the standard suite: some seventy blocks and 280
functions a case. Commands run as processes of their own, start of the program included. The table has their processor
time, which other work on the machine hardly changes, beside the time on the clock, which it changes much. The last
column says how many times as long three times as much takes: 3 is in proportion, 9 is with the square. It takes some
minutes, most of them to make the stores.
"""

from __future__ import annotations

import math
import os
import random
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from benchmarks.context import describe
from torchmark.model.costs import Call, Costs, Function, Profile, Tally, add_calls
from torchmark.model.environment import Environment
from torchmark.model.outcome import Outcome
from torchmark.model.plan import (
    AutogradMode,
    AutoLabels,
    Case,
    Metric,
    Order,
    Plan,
    RuntimeMode,
    Sampling,
    Target,
    TimerArgs,
)
from torchmark.model.run import Host, Run, RunInfo
from torchmark.model.task import Language, Times
from torchmark.store.runs import Store, open_store

# Cases in runs that are shown, and runs of as many cases as the standard suite has.
SIZES = (1000, 3000, 10_000)
RUNS, SUITE_CASES = (30, 100, 300), 181
COMMANDS = ("show", "report", "compared", "history")

FUNCTIONS, KNOWN_FUNCTIONS = 280, 3000
BLOCKS = 70
LAYOUTS = (1, 2, 3)
DAY_S = 86_400.0
OWN = Target()
EAGER = AutoLabels(RuntimeMode.EAGER, AutogradMode.FORWARD, Language.PYTHON)
TIMED = Environment("/usr/bin/python3", "3.11.7", "2.13.0", hash_seed="0")
COUNTED = Environment("/usr/bin/python3", "3.11.7", "2.13.0", hash_seed="0", valgrind="valgrind-3.22.0")
HOST = Host("Linux 6.1 x86_64", "A processor", 2, 2)
LIBRARIES = ("libtorch_cpu.so", "libtorch_python.so", "libc10.so", "libc.so.6", "python3.11")
SCOPES = ("at::native::", "torch::autograd::", "c10::impl::", "", "_Py")


def name_functions() -> list[Function]:
    """All functions that any case calls."""
    return [
        Function("???", f"{SCOPES[i % 5]}function_{i}<at::Tensor, long>(at::Tensor const&, bool)", LIBRARIES[i % 5])
        for i in range(KNOWN_FUNCTIONS)
    ]


def make_cases(number: int) -> tuple[Case, ...]:
    """Groups of ten, some of which have words in common."""
    return tuple(
        Case(
            (f"Group {i // 10 % 100}", f"operator {i // 10}", f"variant {i % 10}"),
            EAGER,
            TimerArgs(f"y = x{i % 10} + {i}", setup=f"x = torch.rand(({i % 10 + 1}, {i}))"),
            tags=("quick",) if i % 3 == 0 else (),
            suite="made",
        )
        for i in range(number)
    )


def make_times(number: int, run: int) -> Times:
    """Blocks of runs around the median of the case, which stays the same but for a per cent from run to run."""
    draw = random.Random(f"{number} {run}")
    typical = 1e-3 * (1 + number % 7) * draw.lognormvariate(0, 0.01)
    return Times(100, tuple(typical * draw.lognormvariate(0, 0.02) for _ in range(BLOCKS)), overhead_s=1e-7)


def make_tally(number: int, run: int, functions: Sequence[Function] | None) -> Tally:
    """A count, with a tree of calls if there are functions to choose from. Every tenth case grows by a per cent a run
    or, of many runs, every hundredth."""
    changed = run if number % 10 == 0 else run // 100
    profile = None if functions is None else make_profile(number, changed, functions)
    total = 500_000 + 1000 * number + 5000 * changed if profile is None else profile.total()
    return Tally(
        number=100,
        seeds=LAYOUTS,
        totals=(total - 100, total, total + 100),
        events=(("Ir", total),),
        allocations=300,
        tensor_allocations=200,
        baseline=5000,
        noisy=() if profile is None else tuple(sorted(one.label for one in list(profile.exclusive)[:4])),
        profile=profile,
    )


def make_profile(number: int, changed: int, known: Sequence[Function]) -> Profile:
    """Each function is called by one before it."""
    draw = random.Random(number)
    functions = draw.sample(known, FUNCTIONS)
    callers = [0, *(draw.randrange(max(0, i - 25), i) for i in range(1, FUNCTIONS))]
    costs = [int(draw.paretovariate(0.8) * 500) for _ in functions]
    costs[number % FUNCTIONS] += changed * sum(costs) // 100
    spent = list(costs)
    for i in range(FUNCTIONS - 1, 0, -1):
        spent[callers[i]] += spent[i]
    exclusive: dict[Function, Costs] = {one: (cost,) for one, cost in zip(functions, costs, strict=True)}
    calls = {(functions[callers[i]], functions[i]): Call(100, (spent[i],)) for i in range(1, FUNCTIONS)}
    inclusive = add_calls(list(exclusive.values()), ((callers[i], i, (spent[i],)) for i in range(1, FUNCTIONS)))
    return Profile(("Ir",), exclusive, dict(zip(functions, map(tuple, inclusive), strict=True)), calls)


def make_run(cases: Sequence[Case], number: int, functions: Sequence[Function] | None) -> Run:
    """The run of one day, timed and counted."""
    plan = Plan(tuple(cases), (OWN,), Sampling(layouts=LAYOUTS))
    created = 1.7e9 + number * DAY_S
    outcomes = tuple(outcome for i, case in enumerate(cases) for outcome in _measure(case, i, number, functions))
    info = RunInfo(
        id=f"{number:032x}",
        name=f"day-{number}",
        created=created,
        finished=created + 60,
        torchmark="0.1.0",
        host=HOST,
        sources=(),
        orders=len(outcomes),
        outcomes=len(outcomes),
        failures=0,
    )
    return Run(info, plan, outcomes)


def _measure(case: Case, i: int, run: int, functions: Sequence[Function] | None) -> Iterator[Outcome]:
    began = 1.7e9 + run * DAY_S + i
    yield Outcome(Order(case, OWN, Metric.WALL), make_times(i, run), began, began + 0.3, TIMED)
    yield Outcome(Order(case, OWN, Metric.COUNT), make_tally(i, run, functions), began, began + 0.9, COUNTED)


def fill(path: Path, runs: int, cases: int, functions: Sequence[Function] | None) -> None:
    """A store with so many runs of so many cases."""
    with open_store(path, create=True) as store:
        _add_runs(store, runs, make_cases(cases), functions)


def _add_runs(store: Store, runs: int, cases: Sequence[Case], functions: Sequence[Function] | None) -> None:
    for number in range(runs):
        store.add(make_run(cases, number, functions))


def time_command(arguments: Sequence[str], folder: Path) -> tuple[float, float]:
    """Seconds of the processor and of the clock that a command of torchmark's takes."""
    program = str(Path(sys.executable).with_name("torchmark"))
    silent = [(os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0)]
    before, start = os.times(), time.perf_counter()
    process = os.posix_spawn(program, [program, *arguments], os.environ, file_actions=silent)
    _, status = os.waitpid(process, 0)
    elapsed, after = time.perf_counter() - start, os.times()
    if os.waitstatus_to_exitcode(status) not in (0, 1):
        raise SystemExit(f"torchmark {' '.join(arguments)} failed in {folder}.")
    return after.children_user - before.children_user + after.children_system - before.children_system, elapsed


def main(wanted: Sequence[str]) -> None:
    """Fill one store after the other, run the commands on it, and print a table."""
    print(describe(), "\n")
    print("| command | size | processor | clock | growth |")
    print("| --- | ---: | ---: | ---: | ---: |", flush=True)
    last: dict[str, tuple[int, float]] = {}
    with tempfile.TemporaryDirectory() as name:
        for command, size, arguments in _list_jobs(wanted, Path(name)):
            seconds, elapsed = time_command(arguments, Path(name))
            growth = ""
            if command in last:
                before, took = last[command]
                growth = f"{(seconds / took) ** (math.log(3) / math.log(size / before)):.1f}"
            last[command] = size, seconds
            print(f"| {command} | {size:,} | {seconds:.2f} s | {elapsed:.2f} s | {growth} |", flush=True)


def _list_jobs(wanted: Sequence[str], folder: Path) -> Iterator[tuple[str, int, list[str]]]:
    """Each command with its size and its arguments, once the store for it is there."""
    page = str(folder / "page.html")
    functions = name_functions()
    for size in SIZES if set(wanted) & {"show", "report", "compared"} else ():
        store = folder / f"cases-{size}.db"
        fill(store, 2 if "compared" in wanted else 1, size, functions)
        if "show" in wanted:
            yield "show", size, ["show", "@", "--store", str(store)]
        if "report" in wanted:
            yield "report", size, ["report", "@", "-o", page, "--store", str(store)]
        if "compared" in wanted:
            yield "compared", size, ["report", "@", "@1", "-o", page, "--store", str(store)]
        store.unlink()
    for size in RUNS if "history" in wanted else ():
        store = folder / f"runs-{size}.db"
        fill(store, size, SUITE_CASES, None)
        yield "history", size, ["history", "--store", str(store)]
        store.unlink()


if __name__ == "__main__":
    main(sys.argv[1:] or COMMANDS)
