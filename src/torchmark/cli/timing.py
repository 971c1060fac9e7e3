"""How much `torchmark time` measures, and the places where it does: this process, and one for each C++ statement."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from torchmark.analysis.doubt import SUSPECT_IQR
from torchmark.api.measurement import Measurement, make_measurement
from torchmark.cli.compiling import compile_tasks
from torchmark.errors import UsageError
from torchmark.measure.procedures import BLOCKS_OF_FIXED_SIZE
from torchmark.measure.source import has_user_frames, user_traceback
from torchmark.model.job import Place, TimeJob
from torchmark.model.outcome import Failure
from torchmark.model.snippet import Compiled
from torchmark.model.task import TaskSpec
from torchmark.report.failures import describe_failure
from torchmark.runner.spec import own_worker
from torchmark.runner.timing import measure_time
from torchmark.runner.worker import Worker

if TYPE_CHECKING:
    from torchmark.api.timer import Timer

Method: TypeAlias = "Callable[[Timer], Measurement]"

DEFAULT_RUN_TIME_S = 0.2
DEFAULT_ADAPTIVE_RUN_TIME_S = 0.01
# The setup runs before every block and may take far longer than what is timed: stop after this many times the
# run time asked for, and at ten seconds at the earliest.
LIMIT_FACTOR = 10
SHORTEST_LIMIT_S = 10.0
STARTING = "Starting a Python with torch"


class Budget(NamedTuple):
    """How much to measure: for how long, until it is steady or not, or how many runs a block."""

    run_time_s: float
    limit_s: float
    adaptive: bool
    number: int | None


def choose_budget(min_run_time: float | None, adaptive: bool, number: int | None) -> Budget:
    """How much to measure, given the options; options that contradict each other are refused."""
    if number is not None and (adaptive or min_run_time is not None):
        raise UsageError("--number fixes the work to do: leave out --adaptive and --min-run-time with it.")
    default = DEFAULT_ADAPTIVE_RUN_TIME_S if adaptive else DEFAULT_RUN_TIME_S
    run_time = default if min_run_time is None else min_run_time
    return Budget(run_time, max(run_time * LIMIT_FACTOR, SHORTEST_LIMIT_S), adaptive, number)


def choose_method(budget: Budget) -> Method:
    """How to measure with a timer."""
    run_time, limit, adaptive, number = budget
    if number is not None:
        return lambda timer: timer.repeat(BLOCKS_OF_FIXED_SIZE, number)
    if adaptive:
        return lambda timer: timer.adaptive_autorange(min_run_time=run_time, max_run_time=limit)
    return lambda timer: timer.blocked_autorange(min_run_time=run_time, max_run_time=limit)


class Outcomes(NamedTuple):
    """What came out so far: the results, and what is to be told of each statement that failed."""

    results: list[Measurement]
    failures: dict[str, str]


def time_all(
    stmts: Sequence[str], timers: Sequence[Callable[[str], Timer]], method: Method, outcomes: Outcomes
) -> None:
    """Time every statement with every kind of timer; one that fails costs the others nothing."""
    for make_timer in timers:
        for stmt in (stmt for stmt in stmts if stmt not in outcomes.failures):
            try:
                outcomes.results.append(method(make_timer(stmt)))
            except (Exception, SystemExit) as error:
                if not has_user_frames(error) and not isinstance(error, SyntaxError):
                    raise
                outcomes.failures[stmt] = user_traceback(error)


def time_compiled(tasks: Sequence[TaskSpec], budget: Budget, timeout_s: float, outcomes: Outcomes) -> None:
    """Time C++, each task in a process of its own; one that fails costs the others nothing."""
    worker = Worker(own_worker(os.environ, counting=False))
    try:
        compiled = compile_tasks(tasks, worker, STARTING)
        for task in (task for task in tasks if task.stmt not in outcomes.failures):
            outcome = _time_one(worker, task, compiled[task], budget, timeout_s)
            if isinstance(outcome, Measurement):
                outcomes.results.append(outcome)
            else:
                outcomes.failures[task.stmt] = f"{describe_failure(outcome)}\n"
    finally:
        worker.close()


def _time_one(
    worker: Worker, task: TaskSpec, compiled: Compiled | Failure, budget: Budget, timeout_s: float
) -> Measurement | Failure:
    if isinstance(compiled, Failure):
        return compiled
    job = TimeJob(
        stmt=task.stmt,
        setup=task.setup,
        place=Place(os.getcwd()),
        threads=task.num_threads,
        min_run_time_s=budget.run_time_s,
        max_run_time_s=budget.limit_s,
        threshold=SUSPECT_IQR if budget.adaptive else None,
        number=budget.number,
        compiled=compiled,
    )
    times = measure_time(worker, job, timeout_s=timeout_s)
    if isinstance(times, Failure):
        return times
    return make_measurement(times, task)
