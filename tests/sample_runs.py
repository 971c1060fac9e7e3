"""Runs without measuring, with all that makes an export hard."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

from torchmark.model.costs import Tally
from torchmark.model.environment import Environment
from torchmark.model.outcome import CompileCosts, Failure, FailureKind, FirstCall, Outcome, Result
from torchmark.model.plan import (
    AutogradMode,
    AutoLabels,
    Case,
    CompileMode,
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

EAGER = AutoLabels(RuntimeMode.EAGER, AutogradMode.FORWARD, Language.PYTHON)
COMPILED = dataclasses.replace(EAGER, runtime=RuntimeMode.COMPILE, compiling=CompileMode())

ADD = Case(("Pointwise", "add"), EAGER, TimerArgs("x + 1"), tags=("quick", "all"), suite="standard")
ODD = Case(
    ('=cmd()|"x"', "naïve, \n*new* line"),
    dataclasses.replace(EAGER, language=Language.CPP),
    TimerArgs("f();", num_threads=2, language=Language.CPP),
    suite="standard",
)
FAILING = Case(("fails",), EAGER, TimerArgs("1 / 0"), suite="standard")
MISSING = Case(("missing",), EAGER, TimerArgs("x"), suite="standard")
EMPTY = Case(("no samples",), EAGER, TimerArgs("y"), suite="standard")
MODEL = Case(("model",), COMPILED, TimerArgs("model(x)"), suite="standard")

FAILURE = Failure(FailureKind.RAISED, "-1 is no size\nfor a tensor", traceback="Traceback ...")
ENVIRONMENT = Environment("/usr/bin/python3", "3.11.7", "2.13.0", cpu_capability="AVX2", torch_commit="abc123")
HOST = Host("Linux 6.1 x86_64", "A Fine CPU @ 2.30GHz", 2, 2, compiler="g++ 12")


def times(number: int, *seconds_per_run: float) -> Times:
    return Times(number, tuple(t * number for t in seconds_per_run))


def tally(number: int, *totals: int) -> Tally:
    chosen = sorted(totals)[len(totals) // 2]
    return Tally(
        number=number,
        seeds=tuple(range(len(totals))),
        totals=totals,
        events=(("Ir", chosen),),
        allocations=3 * number,
        tensor_allocations=2 * number,
        baseline=None,
    )


def compile_costs(steady: Times) -> CompileCosts:
    cold = FirstCall(2.5, 0.5, graphs=1, graph_breaks=2)
    return CompileCosts(cold, FirstCall(1.5, 0.5, graphs=1, graph_breaks=2), steady, times(10, 1e-6))


WALL, COUNT = Metric.WALL, Metric.COUNT
RESULTS: dict[tuple[Case, Metric, int], Result] = {
    (ADD, WALL, 0): times(1000, 1.5e-6, 1.6e-6, 1.55e-6, 1.52e-6, 1.57e-6, 1.51e-6, 1.56e-6, 1.58e-6),
    (ADD, WALL, 1): times(2000, 1.4e-6, 1.7e-6),
    (ADD, COUNT, 0): tally(100, 500_000, 500_300, 500_100),
    (ADD, COUNT, 1): tally(100, 500_020, 500_040, 500_030),
    (ODD, WALL, 0): times(1, 0.25),
    (ODD, COUNT, 0): tally(100, 1_234_567),
    (FAILING, WALL, 0): FAILURE,
    (FAILING, WALL, 1): FAILURE,
    (FAILING, COUNT, 0): FAILURE,
    (EMPTY, WALL, 0): Times(1, ()),
    (MODEL, WALL, 0): compile_costs(times(10, 2e-3, 2.1e-3, 2.2e-3)),
}
CASES = (ADD, ODD, FAILING, MISSING, EMPTY, MODEL)


def make_run(
    results: Mapping[tuple[Case, Metric, int], Result],
    cases: Sequence[Case] = CASES,
    targets: Sequence[Target] = (Target(),),
    metrics: Sequence[Metric] = (WALL, COUNT),
) -> Run:
    """A run in which every target has the same results."""
    plan = Plan(tuple(cases), tuple(targets), Sampling(tuple(metrics), repeat=2))
    orders = [Order(case, target, metric, n) for (case, metric, n) in results for target in targets]
    outcomes = tuple(
        Outcome(
            order=order,
            result=results[order.case, order.metric, order.round],
            began=1.7e9 + i,
            ended=1.7e9 + i + 0.5,
            environment=ENVIRONMENT,
        )
        for i, order in enumerate(orders)
    )
    failures = sum(isinstance(outcome.result, Failure) for outcome in outcomes)
    info = RunInfo(
        id="0" * 31 + "1",
        name="sample",
        created=1.7e9,
        finished=1.7e9 + 60.9,
        torchmark="0.1.0",
        host=HOST,
        sources=(Source("standard", "c0ffee", dirty=True),),
        orders=len(plan.orders),
        outcomes=len(outcomes),
        failures=failures,
    )
    return Run(info, plan, outcomes)


def sample_run(targets: Sequence[Target] = (Target(),)) -> Run:
    """All that makes an export hard, in one run."""
    return make_run(RESULTS, targets=targets)


def only(case: Case, metric: Metric, *results: Result) -> Run:
    """A run of one case and one metric, a result a round."""
    return make_run({(case, metric, n): result for n, result in enumerate(results)}, [case], metrics=[metric])
