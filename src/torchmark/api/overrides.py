"""What overriding costs: cases of the user's types, and measuring them against plain Tensors."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Sequence

from torchmark.analysis.overrides import OverrideFinding, OverrideRow, find_overheads, hold_to_expectations
from torchmark.analysis.results import summarise_run
from torchmark.api.runs import RunRequest, RunTask, execute_run
from torchmark.api.statements import make_case
from torchmark.callgrind.profiles import standardise
from torchmark.define.expand import expand
from torchmark.errors import UsageError
from torchmark.model.case import Case, TimerArgs
from torchmark.model.costs import Tally
from torchmark.model.plan import Target
from torchmark.model.run import Run, RunInfo
from torchmark.report.text.failures import sum_up_failure
from torchmark.runner.first_runs import find_faults
from torchmark.runner.local import LocalBackend
from torchmark.store.runs import Store, make_unmistakable
from torchmark.suites.overrides.cases import define_calls, foreign

SUITE = "overrides"


def define_type(spelling: str) -> tuple[Case, ...]:
    """The cases of a type of the user's."""
    kind = foreign(spelling)
    if kind is None:
        raise UsageError(f"{spelling!r} is no type: say which module and which class, as in --type mymodule:MyTensor.")
    return expand(define_calls(kind), suite=SUITE)


def check_types(types: Sequence[str], targets: Sequence[Target]) -> None:
    """A type of which no operand can be made would fail in every call: that is said before anything is measured."""
    kinds = {spelling: kind for spelling in types if (kind := foreign(spelling)) is not None}
    makers = {make_case(TimerArgs(f"{kind.make}([1.0])", kind.setup)): spelling for spelling, kind in kinds.items()}
    for target in dict.fromkeys(targets) if makers else ():
        for case, failure in find_faults(tuple(makers), target).items():
            where = f" in {target.python}" if target.python is not None else ""
            raise UsageError(f"--type {makers[case]}: no operand can be made of it{where}: {sum_up_failure(failure)}.")


@dataclasses.dataclass(frozen=True)
class MeasuredOverrides:
    """What came of it."""

    run: Run
    shown: RunInfo
    """How commands may call the run."""
    rows: tuple[OverrideRow, ...]
    findings: tuple[OverrideFinding, ...]
    exit_code: int


def measure_overrides(
    request: RunRequest, cases: Sequence[Case], cores: Sequence[int], store: Store, *, quiet: bool
) -> MeasuredOverrides:
    """Measure all cases on this machine, keep the run, and hold each against plain Tensors."""
    with contextlib.closing(LocalBackend(cores)) as backend:
        task = RunTask(store, request.make_plan(cases), request)
        code, run = execute_run(task, backend, quiet=quiet, fail_fast=False)
    run, shown = store.load(run.info.id, profiles=True), make_unmistakable(store, run.info)
    tallies = {one.order.case: one.result for one in run.outcomes if isinstance(one.result, Tally)}
    rows = tuple(find_overheads(summarise_run(run), tallies, standardise))
    return MeasuredOverrides(
        run=run, shown=shown, rows=rows, findings=tuple(hold_to_expectations(rows)), exit_code=code
    )
