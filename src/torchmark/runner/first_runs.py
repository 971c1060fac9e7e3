"""Statements are run once, without Valgrind, before they are counted or timed: code that fails is reported at once."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

from torchmark.measure.snippet import write_script
from torchmark.measure.source import user_traceback
from torchmark.model.job import PairedSide
from torchmark.model.outcome import Failure, FailureKind
from torchmark.model.plan import Case, Target
from torchmark.model.task import Language
from torchmark.runner.lab import Lab
from torchmark.runner.prepare import Models, make_parts
from torchmark.runner.worker import retry_if_killed

# A statement that runs longer does not fail at once, and is left to whoever measures it.
FIRST_RUN_S = 10.0
# The kinds of failure that code has wherever and however often it runs.
FAULTS = (FailureKind.NOT_COMPILED, FailureKind.RAISED, FailureKind.EXITED, FailureKind.CRASHED)


def check_syntax(stmt: str, setup: str) -> Failure | None:
    """The error in Python code for this interpreter, if it has one. Nothing is started for that.

    >>> check_syntax("x +", "x = 1").kind.value, check_syntax("x + 1", "x = 1")
    ('raised', None)
    """
    try:
        write_script(stmt, setup)
    except SyntaxError as error:
        return Failure(FailureKind.RAISED, user_traceback(error).rstrip())
    return None


def try_sides(sides: Mapping[Case, PairedSide | Failure], lab: Lab) -> dict[Case, PairedSide | Failure]:
    """Run each once, and put its failure in the place of one that fails at once."""
    return {case: side if isinstance(side, Failure) else _run_once(side, lab) or side for case, side in sides.items()}


def _run_once(side: PairedSide, lab: Lab) -> Failure | None:
    found = retry_if_killed(lambda: lab.time_side(side, FIRST_RUN_S, number=1, blocks=1))
    return found if isinstance(found, Failure) and found.kind in FAULTS else None


def find_faults(cases: Sequence[Case], target: Target) -> dict[Case, Failure]:
    """The statements among these cases that fail at once in a target. Cases of suites are not run."""
    found = find_syntax_faults(cases, target)
    left = [case for case in _list_statements(cases) if case not in found]
    if left:
        lab = Lab(target, statements=True)
        try:
            lab.start()
            with Models(os.environ) as models:
                tried = try_sides(make_parts(left, lab, models), lab)
        finally:
            lab.abandon()
        found |= {case: one for case, one in tried.items() if isinstance(one, Failure) and one.kind in FAULTS}
    return found


def find_syntax_faults(cases: Sequence[Case], target: Target) -> dict[Case, Failure]:
    """The statements among these cases that cannot be compiled. Nothing is started for that."""
    if target.python is not None:
        # Another interpreter may know more syntax than this one.
        return {}
    stmts = [case for case in _list_statements(cases) if case.args.language == Language.PYTHON]
    return {case: failure for case in stmts if (failure := check_syntax(case.args.stmt, case.args.setup))}


def _list_statements(cases: Sequence[Case]) -> list[Case]:
    return [case for case in dict.fromkeys(cases) if not case.suite and case.parts is None]
