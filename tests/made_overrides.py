"""Results of the overrides suite with numbers that somebody made up."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from tests.made_summaries import make_case, make_summary
from tests.stored_runs import INFO
from torchmark.analysis.overrides import OverrideRow, find_overheads
from torchmark.callgrind.profiles import standardise
from torchmark.model.costs import Costs, Function, Profile, Tally
from torchmark.model.plan import Case, Plan, Sampling
from torchmark.model.run import CaseSummary, Run

INTERPRETER = Function("???", "_PyEval_EvalFrameDefault", "/usr/bin/python3.11")
OVERRIDES = Function("???", "torch::check_has_torch_function(_object*, bool)", "/lib/libtorch_python.so")
MALLOC = Function("???", "malloc", "/lib/libc.so.6")
NUMBER = 100


def make_override(call: str, operands: str, *tags: str, stmt: str = "torch.add(x, y)") -> Case:
    return dataclasses.replace(make_case(call, operands, stmt=stmt, suite="overrides"), tags=tags)


PLAIN = make_override("add", "Tensor", "plain", "classic")
SUB = make_override("add", "SubTensor", "subclass", "classic")
LIKE = make_override("add", "WithTorchFunction", "tensor-like", "classic")
OVERRIDING = make_override("add", "SubWithTorchFunction", "subclass", "classic")
MIXED = make_override("mixed add", "Tensor, SubTensor")
WITHIN = make_override("function mode add", "Tensor")
NEG = make_override("neg", "Tensor", "plain", stmt="torch.neg(x)")
NEG_SUB = make_override("neg", "SubTensor", "subclass", stmt="torch.neg(x)")
# Microseconds, and instructions of the interpreter, of overrides and of malloc.
NUMBERS = {
    PLAIN: (1.0, 900, 37, 63),
    SUB: (1.5, 3000, 900, 100),
    LIKE: (3.0, 2000, 700, 100),
    OVERRIDING: (1.8, 3200, 900, 100),
    MIXED: (1.4, 2800, 700, 100),
    WITHIN: (2.0, 1500, 300, 63),
    NEG: (0.9, 800, 50, 50),
    NEG_SUB: (1.3, 2900, 900, 90),
}


def make_tally(*costs: int) -> Tally:
    functions = zip((INTERPRETER, OVERRIDES, MALLOC), costs, strict=True)
    own: dict[Function, Costs] = {function: (NUMBER * cost,) for function, cost in functions}
    profile = Profile(("Ir",), own, own, {})
    total = profile.total()
    return Tally(
        number=NUMBER,
        seeds=(1, 2, 3),
        totals=(total,) * 3,
        events=(("Ir", total),),
        allocations=0,
        tensor_allocations=0,
        baseline=None,
        profile=profile,
    )


def make_override_rows(
    numbers: dict[Case, tuple[float, int, int, int]] = NUMBERS, more: tuple[CaseSummary, ...] = ()
) -> tuple[OverrideRow, ...]:
    summaries = [make_summary(case, us * 1e-6, float(sum(counts))) for case, (us, *counts) in numbers.items()]
    tallies = {case: make_tally(*counts) for case, (_, *counts) in numbers.items()}
    return find_overheads([*summaries, *more], tallies, standardise)


def make_override_run(rows: Sequence[OverrideRow]) -> Run:
    """Without outcomes: they are in the rows."""
    return Run(INFO, Plan(tuple(row.case for row in rows), sampling=Sampling(number=1000, blocks=100)), ())
