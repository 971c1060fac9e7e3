"""Times several statements in turns in a child of the zygote, on variables that one setup has made.

What disturbs the machine for a while disturbs all of them, and in each round another one comes first.
"""

from __future__ import annotations

import contextlib
import dataclasses
import gc
import math
import random
import time
from collections.abc import Callable, Sequence
from typing import Any

from torchmark.measure import blocks
from torchmark.measure.clock import choose_clock
from torchmark.measure.parsing import run_setup, warned_already
from torchmark.measure.procedures import BLOCKS_OF_FIXED_SIZE
from torchmark.measure.snippet import Clock, SnippetTimer
from torchmark.measure.source import STMT_NAME
from torchmark.measure.steps import Engine, carry_out
from torchmark.model.job import RaceJob
from torchmark.wire.messages import Raced

# With fewer there is no interval of a median with a confidence of 95 %.
FEWEST_ROUNDS = 6
# Those are run even if there is no time left for them, unless they alone take this many times the time there is.
TOO_SLOW = 3.0
# As many blocks are to fit into the time that a statement is to run for: the fewest rounds, and some more, because
# blocks become a little longer than they need to be.
BLOCKS_TO_FIT = 8
# The first run loads and allocates what later ones find, and the first two of TorchScript serve to optimise it.
WARM_UP_RUNS = 3
# The share of all time that warming up may take; then it ends after the run that it is at.
WARM_UP_SHARE = 0.1
# The order of statements is the same whenever a job is done again.
ORDER_SEED = 0
# What tracebacks call the code that makes an input.
INPUT_NAME = "<input>"

Now = Callable[[], float]


@dataclasses.dataclass(frozen=True)
class RaceBudget:
    """How long each statement is to run, and how long all of it may take."""

    min_run_time_s: float
    max_run_time_s: float
    threshold: float | None = None
    number: int | None = None

    def is_spent(
        self, totals: Sequence[float], rounds: int, elapsed_s: float, round_s: float, *, steady: bool = True
    ) -> bool:
        """Whether to stop after so many rounds, with what each statement has run for, if a round takes `round_s`."""
        if self.number is not None:
            return rounds >= BLOCKS_OF_FIXED_SIZE
        fits = elapsed_s + round_s <= self.max_run_time_s
        if rounds < FEWEST_ROUNDS:
            return not fits and FEWEST_ROUNDS * round_s > TOO_SLOW * self.max_run_time_s
        return not fits or (steady and all(total >= self.min_run_time_s for total in totals))


def race(job: RaceJob, namespace: dict[str, Any]) -> Raced:
    """Carry the job out."""
    with contextlib.ExitStack() as stack:
        # As while a statement runs, and as there the setup may switch it on.
        stack.callback(gc.enable if gc.isenabled() else gc.disable)
        gc.disable()
        # Functions of the setup need their source while statements call them.
        _sources = run_setup(job.making, namespace, INPUT_NAME), run_setup(job.setup, namespace)
        clock, collecting = choose_clock(), gc.isenabled()
        timers = []
        for position, stmt in enumerate(job.stmts, start=1):
            name = f"<stmt {position}>" if len(job.stmts) > 1 else STMT_NAME
            timers.append(make_timer(stmt, name, clock, namespace, collecting=collecting))
            stack.enter_context(timers[-1].one_setup())
        budget = RaceBudget(job.min_run_time_s, job.max_run_time_s, job.threshold, job.number)
        return take_turns(timers, budget, time.perf_counter)


def make_timer(stmt: str, name: str, clock: Clock, namespace: dict[str, Any], *, collecting: bool) -> SnippetTimer:
    """A timer of a statement whose globals are `namespace`.

    Globals that it assigns are locals of its own with the same values to begin with: `x += 1` finds an x, and what the
    name stands for afterwards is no business of other statements.
    """
    timer = SnippetTimer(stmt, "pass", clock, namespace, name)
    assigned = [local for local in (*timer.code.co_varnames, *timer.code.co_cellvars) if local in namespace]
    # By way of the module: a name of the user's may be `globals`.
    lines = [f"{local} = __import__('builtins').globals()[{local!r}]" for local in assigned]
    if collecting:
        lines.insert(0, "__import__('gc').enable()")
    if not lines:
        return timer
    with warned_already():
        return SnippetTimer(stmt, "\n".join(lines), clock, namespace, name)


def take_turns(engines: Sequence[Engine], budget: RaceBudget, now: Now) -> Raced:
    """Choose block sizes, then time one block of each in every round until the budget is spent by the clock `now`."""
    start = now()
    numbers = choose_numbers(engines, budget, now)
    times: list[list[float]] = [[] for _ in engines]
    totals = [0.0 for _ in engines]
    watches = [blocks.SteadyEnough(number, budget.threshold or math.inf) for number in numbers]
    steady = [False for _ in engines]
    order = list(range(len(engines)))
    chance = random.Random(ORDER_SEED)
    first_round, rounds, spent = now(), 0, False
    while not spent:
        chance.shuffle(order)
        for i in order:
            t = carry_out(engines[i], blocks.time_block(numbers[i]))
            times[i].append(t)
            totals[i] += t
            steady[i] = watches[i](t)
        rounds += 1
        end = now()
        spent = budget.is_spent(totals, rounds, end - start, (end - first_round) / rounds, steady=all(steady))
    return Raced(numbers, tuple(tuple(series) for series in times))


def choose_numbers(engines: Sequence[Engine], budget: RaceBudget, now: Now) -> tuple[int, ...]:
    """How many runs make a block of each.

    For each there is an even part of half of the time. One that follows slow ones still has the time that it is to run
    for: a block that is too short for the clock tells nothing.
    """
    share = budget.max_run_time_s / max(len(engines), 1)
    search_s = max(share / 2, min(budget.min_run_time_s, budget.max_run_time_s))
    numbers = []
    for engine in engines:
        _warm_up(engine, share * WARM_UP_SHARE, now)
        if budget.number is not None:
            numbers.append(budget.number)
            continue
        time_left = count_down(search_s, now)
        search = blocks.fitted_block_size(budget.min_run_time_s / BLOCKS_TO_FIT, time_left)
        numbers.append(carry_out(engine, search).number)
    return tuple(numbers)


def count_down(seconds: float, now: Now) -> Now:
    """What is left of so many seconds from now on."""
    end = now() + seconds
    return lambda: end - now()


def _warm_up(engine: Engine, at_most_s: float, now: Now) -> None:
    time_left = count_down(at_most_s, now)
    for _ in range(WARM_UP_RUNS):
        engine.timeit(1)
        if time_left() <= 0:
            break
