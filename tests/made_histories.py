"""Runs of many days without measuring."""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Mapping, Sequence

from tests.sample_runs import EAGER, ENVIRONMENT, FAILURE, HOST
from torchmark.model.costs import Tally
from torchmark.model.environment import Environment
from torchmark.model.outcome import Outcome, Result
from torchmark.model.plan import Case, Metric, Order, Plan, Sampling, Target, TimerArgs
from torchmark.model.run import Host, Run, RunInfo, Source
from torchmark.model.task import Times

ADD = Case(("Pointwise", "add"), EAGER, TimerArgs("x + 1"), suite="standard")
OTHERS = tuple(
    Case(("Pointwise", name), EAGER, TimerArgs(f"{name}(x)"), suite="standard") for name in ("mul", "sub", "exp")
)
TIMED = dataclasses.replace(ENVIRONMENT, hash_seed="0")
COUNTED = dataclasses.replace(TIMED, valgrind="3.22.0")
DAY = 86400.0
OWN = Target()

# Seconds and instructions of a run; None is a failure.
Values = tuple["float | None", "int | None"]


def count(value: int, spread: int = 4) -> Tally:
    """A hundred runs in three layouts."""
    totals = tuple(100 * (value + delta) for delta in (-spread, 0, spread))
    return Tally(
        number=100,
        seeds=(1, 2, 3),
        totals=totals,
        events=(("Ir", totals[1]),),
        allocations=100,
        tensor_allocations=100,
        baseline=None,
    )


def make_day(
    number: int,
    values: Mapping[Case, Values],
    *,
    timed: Environment = TIMED,
    counted: Environment | None = None,
    host: Host = HOST,
    commit: str = "c0ffee",
    target: Target = OWN,
) -> Run:
    """The run of one day; what is counted is counted in the same torch and Python that is timed."""
    if counted is None:
        counted = dataclasses.replace(timed, valgrind=COUNTED.valgrind)
    plan = Plan(tuple(values), (target,), Sampling(layouts=(1, 2, 3)))
    outcomes = []
    for case, (seconds, instructions) in values.items():
        results: list[tuple[Metric, Result, Environment]] = [
            (Metric.WALL, FAILURE if seconds is None else Times(10, (10 * seconds,) * 3), timed),
            (Metric.COUNT, FAILURE if instructions is None else count(instructions), counted),
        ]
        outcomes += [
            Outcome(order=Order(case, target, metric), result=result, began=0.0, ended=1.0, environment=where)
            for metric, result, where in results
        ]
    created = 1.7e9 + number * DAY
    info = RunInfo(
        id=f"{number:032x}",
        name=f"day-{number}",
        created=created,
        finished=created + 60,
        torchmark="0.1.0",
        host=host,
        sources=(Source("standard", commit),),
        orders=2 * len(values),
        outcomes=len(outcomes),
        failures=sum(outcome.result is FAILURE for outcome in outcomes),
    )
    return Run(info, plan, tuple(outcomes))


def make_days(
    levels: Sequence[float | None],
    counts: Sequence[int | None] | None = None,
    others: Sequence[float] | None = None,
    *,
    environments: Mapping[int, Environment] | None = None,
    seed: int = 7,
) -> list[Run]:
    """A run a day. Times of `add` have these levels, and noise of 0.3 %; those of other cases have theirs.

    An environment holds from its day on.
    """
    draw, days, timed = random.Random(seed), [], TIMED
    for day, level in enumerate(levels):
        timed = (environments or {}).get(day, timed)
        values: dict[Case, Values] = {
            ADD: (
                None if level is None else level * 1e-6 * draw.lognormvariate(0, 0.003),
                5000 if counts is None else counts[day],
            )
        }
        if others is not None:
            values |= {case: (others[day] * 1e-5 * draw.lognormvariate(0, 0.003), 9000) for case in OTHERS}
        days.append(make_day(day, values, timed=timed))
    return days
