"""Comparisons whose answer is known: a build against itself, and against itself with a slowdown of a known size.

A module of its own beside `cli/commands/cmd_selftest.py`: it measures, judges and stores, which no command does.
"""

from __future__ import annotations

import dataclasses
import math
import os
import random
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

from torchmark.analysis.verdict.sequential import Trust, summarise_trials
from torchmark.analysis.verdict.visits import choose_pace, reduce_visit
from torchmark.compare.experiment import DEFAULTS, FEWEST_LAYOUTS, LAYOUTS, PairTimer, SequentialComparison, Settings
from torchmark.errors import WorkerError
from torchmark.files import cache_folder
from torchmark.model.gate import SelfTest, Trial
from torchmark.model.job import PairedCase, PairedSide, RunTime, Visit
from torchmark.model.job import Place as JobPlace
from torchmark.model.plan import Target
from torchmark.report.text.failures import describe_failure
from torchmark.runner.machine import read_cpu_model
from torchmark.runner.paired_workers import Failures, PairedWorkers
from torchmark.stats.distribution import quantile
from torchmark.store.ledger import read_selftest, write_selftest

# What people compare most: a small operator, about a microsecond.
STMT = "torch.add(x, y)"
SETUP = "x, y = torch.ones(4, 4), torch.ones(4, 4)"
# An assignment of one local variable to another takes the interpreter one to three nanoseconds.
SLOWING = "z = x"
# As many make the difference that one of them is known by, from so many visits of each layout.
MANY = 100
GAUGES = 2

T = TypeVar("T", RunTime, Visit)


@dataclasses.dataclass(frozen=True)
class SelfTestExtent:
    """How thorough a self-test is: slowdowns to find, trials without one and with each, layouts of memory, and how
    long trials may go on."""

    sizes_s: tuple[float, ...]
    nulls: int
    trials: int
    layouts: int
    at_most_s: float | None = None


THOROUGH = SelfTestExtent(sizes_s=(5e-9, 10e-9, 20e-9, 50e-9, 100e-9), nulls=60, trials=20, layouts=LAYOUTS)
# In twenty seconds, most of which starting processes takes.
QUICK = SelfTestExtent(sizes_s=(10e-9, 50e-9), nulls=12, trials=5, layouts=FEWEST_LAYOUTS, at_most_s=6.0)


@dataclasses.dataclass(frozen=True)
class TrialPlan:
    """What was found out before the first trial, and the trials to make."""

    run_s: float
    """One run of the statement."""
    slowings: Mapping[int, float]
    order: tuple[int, ...]
    """For each trial, how many assignments to put in."""


def start_workers(python: str, cores: Sequence[int], extent: SelfTestExtent) -> PairedWorkers:
    """Both sides of a self-test, in all their layouts."""
    workers = PairedWorkers(Target(python=python), Target(python=python), cores)
    try:
        workers.start(range(2 * extent.layouts))
    except BaseException:
        workers.close()
        raise
    return workers


def plan_trials(place: PairTimer, extent: SelfTestExtent) -> TrialPlan:
    """The trials in a random order, but that the first of each kind come first: there may be no time for all."""
    run_s = gauge_statement(place)
    slowings = choose_slowings(place, extent.sizes_s)
    order = [0] * extent.nulls + [number for number in slowings for _ in range(extent.trials)]
    random.Random(0).shuffle(order)
    return TrialPlan(run_s, slowings, (0, *slowings, *order))


def make_trials(place: PairTimer, plan: TrialPlan, extent: SelfTestExtent, note: Callable[[int], None]) -> Trust:
    """Make the trials, as many as fit into the time and of each kind one at least. `note` gets how many are done."""
    end = None if extent.at_most_s is None else time.monotonic() + extent.at_most_s
    trials: list[Trial] = []
    fewest = 1 + len(plan.slowings)
    for trial in run_trials(place, plan.slowings, plan.order, Settings(layouts=extent.layouts)):
        trials.append(trial)
        note(len(trials))
        if end is not None and time.monotonic() > end and len(trials) >= fewest:
            break
    return summarise_trials(trials)


def keep_trust(trust: Trust, extent: SelfTestExtent) -> None:
    """Keep the result for later comparisons; a quick look does not take the place of a thorough one."""
    cpu_model, folder = read_cpu_model(Path("/")), cache_folder(os.environ)
    known = read_selftest(folder, cpu_model)
    if extent == THOROUGH or known is None or known.trials <= trust.trials:
        test = SelfTest(
            cpu_model=cpu_model,
            date=time.strftime("%Y-%m-%d"),
            trials=trust.trials,
            false_alarms=trust.false_alarms,
            sd=trust.sd,
        )
        write_selftest(folder, test)


def make_part(slowing: int = 0) -> PairedSide:
    """The statement, with so many assignments behind it."""
    return PairedSide("\n".join([STMT, *[SLOWING] * slowing]), SETUP, JobPlace("/"))


def gauge_slowing(place: PairTimer) -> float:
    """Seconds that one assignment adds where the machine is fast: the ratio is of blocks in turns, which spells of the
    machine leave alone, and the fastest of the visits tells what it is a ratio of."""
    paired_case = PairedCase(make_part(), make_part(MANY))
    pace = choose_pace(_check(place.gauge(paired_case)).head_s)
    visits = [
        reduce_visit(_check(place.visit(layout, paired_case, pace))) for layout in place.layouts for _ in range(GAUGES)
    ]
    ratio = quantile(sorted(visit.log_ratio for visit in visits), 0.5)
    return max(math.expm1(ratio), 1e-6) * min(visit.base_s for visit in visits) / MANY


def _check(outcome: T | Failures) -> T:
    if isinstance(outcome, tuple):
        raise WorkerError(f"The self-test cannot run here: {describe_failure(outcome[0].failure)}", kind="selftest")
    return outcome


def choose_slowings(place: PairTimer, sizes_s: Sequence[float]) -> dict[int, float]:
    """How many assignments come closest to these sizes, and what size they really have."""
    each = gauge_slowing(place)
    counts = dict.fromkeys(max(1, round(size / each)) for size in sizes_s)
    return {count: count * each for count in counts}


def gauge_statement(place: PairTimer) -> float:
    """Seconds of one run of the statement."""
    return _check(place.gauge(PairedCase(make_part(), make_part()))).base_s


def run_trials(
    place: PairTimer,
    slowings: Mapping[int, float],
    schedule: Iterable[int],
    settings: Settings = DEFAULTS,
    seed: int = 0,
) -> Iterator[Trial]:
    """Make one comparison after the other.

    `schedule` has, for each trial, how many assignments to put in; 0 for none. It should be in random order, so that
    all sizes meet the same machine. Layouts have been started.
    """
    for number, count in enumerate(schedule):
        paired_case = PairedCase(make_part(), make_part(count))
        began = time.monotonic()
        experiment = SequentialComparison(place, settings, seed=seed + number)
        ((_, timing),) = experiment.decide({STMT: paired_case})
        if timing.evidence is None:
            problem = describe_failure(timing.failures[0].failure) if timing.failures else "nothing was measured."
            raise WorkerError(f"A trial of the self-test failed: {problem}", kind="selftest")
        yield Trial(
            slowings[count] if count else 0.0,
            timing.evidence.verdict,
            timing.evidence.log_ratio,
            time.monotonic() - began,
        )
