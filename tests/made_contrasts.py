"""Runs to be compared, and judgements on them, without measuring."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from tests.sample_runs import ADD, COUNT, ENVIRONMENT, make_run
from torchmark.model.costs import Function, Profile, Tally
from torchmark.model.environment import Environment
from torchmark.model.judgement import (
    CaseJudgement,
    Cause,
    CountEvidence,
    Explanation,
    FunctionChange,
    Spread,
    TimeEvidence,
    Verdict,
)
from torchmark.model.outcome import Result
from torchmark.model.plan import Case, Metric
from torchmark.model.run import Run

COUNTED = dataclasses.replace(ENVIRONMENT, valgrind="valgrind-3.19.0", hash_seed="0")
LOOP, EVAL = Function("", "loop", "/bin/python"), Function("Python/ceval.c", "_PyEval_EvalFrameDefault", "/bin/python")


def count_functions(loop: int, evaluation: int, *, number: int = 100, layouts: int = 3, **fields: Any) -> Tally:
    """A count of two functions, the same in all layouts."""
    profile = Profile(("Ir",), {LOOP: (loop,), EVAL: (evaluation,)}, {}, {})
    total = loop + evaluation
    seeds = tuple(range(1, layouts + 1))
    made = Tally(
        number=number,
        seeds=seeds,
        totals=(total,) * layouts,
        events=(("Ir", total),),
        allocations=2 * number,
        tensor_allocations=number,
        baseline=None,
        profile=profile,
    )
    return dataclasses.replace(made, **fields)


def run_of(results: Mapping[tuple[Case, Metric, int], Result], name: str, **changes: Any) -> Run:
    """A run of this name with these results; `changes` are of the environment that they have."""
    run = make_run(results, dict.fromkeys(case for case, _, _ in results))  # type: ignore[arg-type]
    environment = dataclasses.replace(COUNTED, **changes)
    outcomes = tuple(dataclasses.replace(one, environment=environment) for one in run.outcomes)
    digits = f"{sum(name.encode()):x}".rjust(32, "0")
    return dataclasses.replace(run, info=dataclasses.replace(run.info, id=digits, name=name), outcomes=outcomes)


def counted_run(name: str, tally: Tally, case: Case = ADD, **changes: Any) -> Run:
    """A run of one case that was counted once."""
    return run_of({(case, COUNT, 0): tally}, name, **changes)


def evidence(base: float, head: float, *, base_allocations: float = 2, head_allocations: float = 2) -> CountEvidence:
    """Counts without any spread."""
    both = Spread(base, base, base), Spread(head, head, head)
    return CountEvidence(*both, base_allocations, head_allocations, 1, 1)


def clock(verdict: Verdict, log_ratio: float) -> TimeEvidence:
    """What the clock says, within half a per cent."""
    return TimeEvidence(
        verdict=verdict,
        log_ratio=log_ratio,
        low=log_ratio - 0.005,
        high=log_ratio + 0.005,
        confidence=0.99,
        base_s=1e-6,
        head_s=1e-6,
        floor=0.003,
        equivalence=0.01,
    )


def judgement(verdict: Verdict, case: Case = ADD, **fields: Any) -> CaseJudgement:
    """A judgement whose cause is of no account."""
    return CaseJudgement(case, verdict, Cause.OPEN, **fields)


def grown(**functions: float) -> Explanation:
    """An explanation by functions that take so many more."""
    changes = (FunctionChange(name, "interpreter", 100.0, 100.0 + delta) for name, delta in functions.items())
    return Explanation(tuple(changes), ())


def environment(**changes: Any) -> Environment:
    """Where counts were taken."""
    return dataclasses.replace(COUNTED, **changes)
