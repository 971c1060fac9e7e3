"""Times one statement, or several in turns, in a child of the zygote."""

from __future__ import annotations

import contextlib
import dataclasses
import gc
import math
import random
import time
from collections.abc import Callable, Sequence
from typing import Any

from torchmark.measure import steps
from torchmark.measure.clock import choose_clock, choose_native_clock
from torchmark.measure.compiled import CompiledTimer
from torchmark.measure.dynamo import Watch
from torchmark.measure.snippet import Clock, SnippetTimer, run_setup, warned_already
from torchmark.measure.source import SETUP_NAME, STMT_NAME, SourceFile
from torchmark.model.job import RaceJob, TimeJob
from torchmark.model.outcome import FailureKind
from torchmark.model.task import Times
from torchmark.worker.protocol import Failed, Raced

# Before the compiler is watched. The first run compiles; the second may be the first with some inputs that are new.
WATCHED_WARM_UP_RUNS = 3


def measure_time(job: TimeJob, namespace: dict[str, Any]) -> Times | Failed:
    blocks = choose_steps(job)
    if job.compiled is not None:
        timer = CompiledTimer(job.compiled, choose_native_clock())
        return dataclasses.replace(steps.carry_out(timer, blocks), optimised_away=timer.optimised_away)
    engine = SnippetTimer(job.stmt, job.setup, choose_clock(), namespace)
    outcome = engine.follow(_watched(blocks)) if job.watch_compiler else steps.carry_out(engine, blocks)
    return Failed(FailureKind.RECOMPILED.value, outcome, None) if isinstance(outcome, str) else outcome


def _watched(blocks: steps.Steps[Times]) -> steps.Steps[Times | str]:
    """The same after a warm-up and with one setup for all, or what `torch.compile` has compiled meanwhile."""
    yield WATCHED_WARM_UP_RUNS
    watch = Watch()
    times = yield from steps.flatten(blocks)
    return watch.find_compiling() or times


def choose_steps(job: TimeJob) -> steps.Steps[Times]:
    if job.number is not None and job.blocks is not None:
        return steps.fixed(job.blocks, job.number)
    if job.number is not None:
        return steps.repeated(steps.BLOCKS_OF_FIXED_SIZE, job.number)
    if job.threshold is not None:
        return steps.adaptive(job.threshold, job.min_run_time_s, job.max_run_time_s, None)
    return steps.blocked_within(job.min_run_time_s, job.max_run_time_s, None, time.perf_counter)


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


def is_spent(
    job: RaceJob, totals: Sequence[float], rounds: int, elapsed_s: float, round_s: float, *, steady: bool = True
) -> bool:
    """Whether to stop after so many rounds, with what each statement has run for, if a round takes `round_s`."""
    if job.number is not None:
        return rounds >= steps.BLOCKS_OF_FIXED_SIZE
    fits = elapsed_s + round_s <= job.max_run_time_s
    if rounds < FEWEST_ROUNDS:
        return not fits and FEWEST_ROUNDS * round_s > TOO_SLOW * job.max_run_time_s
    return not fits or (steady and all(total >= job.min_run_time_s for total in totals))


def race(job: RaceJob, namespace: dict[str, Any]) -> Raced:
    with contextlib.ExitStack() as stack:
        setups = ((job.making, INPUT_NAME), (job.setup, SETUP_NAME))
        timers, _sources = share_setup(stack, setups, job.stmts, namespace)
        return take_turns(timers, job, time.perf_counter)


def share_setup(
    stack: contextlib.ExitStack, setups: Sequence[tuple[str, str]], stmts: Sequence[str], namespace: dict[str, Any]
) -> tuple[list[SnippetTimer], list[SourceFile]]:
    """Timers of statements on the variables that setups make, once; these come with what errors call them.

    The source of the setups is for the caller to keep: their functions need it while statements call them.
    """
    # As while a statement runs, and as there the setup may switch it on.
    stack.callback(gc.enable if gc.isenabled() else gc.disable)
    gc.disable()
    sources = [run_setup(text, namespace, name) for text, name in setups]
    clock, collecting = choose_clock(), gc.isenabled()
    timers = []
    for position, stmt in enumerate(stmts, start=1):
        name = f"<stmt {position}>" if len(stmts) > 1 else STMT_NAME
        timers.append(_make_timer(stmt, name, clock, namespace, collecting=collecting))
        stack.enter_context(timers[-1].one_setup())
    return timers, sources


def _make_timer(stmt: str, name: str, clock: Clock, namespace: dict[str, Any], *, collecting: bool) -> SnippetTimer:
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


def take_turns(engines: Sequence[steps.Engine], job: RaceJob, now: Now) -> Raced:
    """Choose block sizes, then time one block of each in every round until the time of the job is over by `now`."""
    start = now()
    numbers = choose_numbers(engines, job, now)
    times: list[list[float]] = [[] for _ in engines]
    totals = [0.0] * len(engines)
    watches = [steps.SteadyEnough(number, job.threshold or math.inf) for number in numbers]
    steady = [False] * len(engines)
    order = list(range(len(engines)))
    chance = random.Random(ORDER_SEED)
    first_round, rounds, spent = now(), 0, False
    while not spent:
        chance.shuffle(order)
        for i in order:
            t = steps.carry_out(engines[i], steps.time_block(numbers[i]))
            times[i].append(t)
            totals[i] += t
            steady[i] = watches[i](t)
        rounds += 1
        end = now()
        spent = is_spent(job, totals, rounds, end - start, (end - first_round) / rounds, steady=all(steady))
    return Raced(tuple(Times(number, tuple(series)) for number, series in zip(numbers, times)))


def choose_numbers(engines: Sequence[steps.Engine], job: RaceJob, now: Now) -> tuple[int, ...]:
    """How many runs make a block of each.

    For each there is an even part of half of the time. One that follows slow ones still has the time that it is to run
    for: a block that is too short for the clock tells nothing.
    """
    share = job.max_run_time_s / max(len(engines), 1)
    search_s = max(share / 2, min(job.min_run_time_s, job.max_run_time_s))
    numbers = []
    for engine in engines:
        _warm_up(engine, share * WARM_UP_SHARE, now)
        if job.number is not None:
            numbers.append(job.number)
            continue
        search = steps.fitted_block_size(job.min_run_time_s / BLOCKS_TO_FIT, count_down(search_s, now))
        numbers.append(steps.carry_out(engine, search).number)
    return tuple(numbers)


def count_down(seconds: float, now: Now) -> Now:
    """What is left of so many seconds from now on."""
    end = now() + seconds
    return lambda: end - now()


def _warm_up(engine: steps.Engine, at_most_s: float, now: Now) -> None:
    time_left = count_down(at_most_s, now)
    for _ in range(WARM_UP_RUNS):
        engine.timeit(1)
        if time_left() <= 0:
            break
