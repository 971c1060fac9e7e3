"""`ab`: compares two builds of torch, or two statements, and yields a `Judgement` for each case."""

from __future__ import annotations

import contextlib
import dataclasses
import math
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from torchmark.api.benchmarks import choose_cases
from torchmark.api.statements import make_case
from torchmark.compare.comparison import (
    ComparedPair,
    Comparison,
    Evidence,
    count_sides,
    judge_entry,
    leave_out_failed,
    try_sides,
)
from torchmark.compare.experiment import LAYOUTS, Settings
from torchmark.compare.timing_sites import LocalSite, count_here, time_sides
from torchmark.errors import UsageError
from torchmark.model.case import TimerArgs
from torchmark.model.judgement import CaseJudgement as Value
from torchmark.model.line import name_value
from torchmark.model.plan import SUITE_LAYOUTS, Metric, Target
from torchmark.report.as_json import plain_judgement
from torchmark.report.html.fragments import render_judgement
from torchmark.report.text.judgements import describe_judgement
from torchmark.report.text.names import name_case
from torchmark.report.text.verdict_reasons import say_verdict
from torchmark.runner.backend import StopRequest
from torchmark.runner.folders import locate_cache
from torchmark.runner.machine import choose_cores, read_cpu_model
from torchmark.runner.spec import choose_layouts
from torchmark.runner.worker import DEFAULT_TIMEOUT_S
from torchmark.store.ledger import read_selftest

WIDTH = 80


@dataclasses.dataclass(frozen=True, repr=False)
class Judgement(Value):
    """What is said of one case, and why: `verdict`, `cause`, and the evidence in `time` and `count`.

    >>> from torchmark.model.case import AutogradMode, AutoLabels, Case, RuntimeMode, TimerArgs
    >>> from torchmark.model.judgement import Cause, CountEvidence, Spread, Verdict
    >>> from torchmark.model.task import Language
    >>> case = Case(("add",), AutoLabels(RuntimeMode.EAGER, AutogradMode.FORWARD, Language.PYTHON), TimerArgs("x + 1"))
    >>> count = CountEvidence(Spread(1000, 1000, 1000), Spread(1050, 1050, 1050), 3, 3, 1, 1)
    >>> judgement = Judgement(case, Verdict.SLOWER, Cause.COUNT_ALONE, count=count)
    >>> judgement
    Judgement(add, Python: slower, +5.0 % instructions)
    >>> print(judgement)
    add, Python: slower, +5.0 % instructions
      instructions  +50 (+5.0 %), from 1,000 to 1,050
      allocations   3 on both sides
      tensors       1 on both sides
      why           +50 instructions (+5.0 %); it was not timed.
    """

    def to_dict(self) -> dict[str, Any]:
        """All of it as plain values, as `torchmark ab --json` writes them."""
        return plain_judgement(self)

    def __repr__(self) -> str:
        return name_value(self, f"{name_case(self.case)}: {say_verdict(self)}")

    def __str__(self) -> str:
        return describe_judgement(self, WIDTH, "python")

    def _repr_html_(self) -> str:
        return render_judgement(self)


def from_judgement(judgement: Value) -> Judgement:
    """The same with a face."""
    return Judgement(**{field.name: getattr(judgement, field.name) for field in dataclasses.fields(Value)})


MOST_LAYOUTS = 64


def ab(
    base: str | None,
    head: str | None,
    cases: Mapping[Any, Any] | str | os.PathLike[str] | Sequence[str | os.PathLike[str]] | None = None,
    *,
    select: str = "",
    setup: str = "pass",
    python: str | None = None,
    time: bool = True,
    count: bool = True,
    alpha: float = 0.05,
    equivalence: float = 0.01,
    layouts: int = LAYOUTS,
    budget_s: float | None = None,
    timeout_s: float = DEFAULT_TIMEOUT_S,
) -> Iterator[Judgement]:
    """Compare cases in two interpreters, or two statements in one: slower, faster, the same, or undecided.

    base, head: interpreters, each with its own torch; None is the one that runs this. Without `cases` they are
        statements, compared on the variables that `setup` makes, in this interpreter or in `python`.
    cases: a definition, or names of suites and paths of files; `select` chooses among them, as `torchmark list -k`.
    time, count: the witnesses to hear; counting needs Valgrind.
    alpha: how often at most a case that did not change may be looked at again; what is then called a change has been
        seen on fresh layouts of memory besides.
    equivalence: a change within plus and minus this share is called the same.
    layouts: of memory, in which times are taken in turns.
    budget_s: for all times together.

    >>> setup = "x, y = torch.ones(4), torch.ones(4)"
    >>> for found in ab("x + y", "x + y + x + y + x", setup=setup, count=False, layouts=4):
    ...     print(found.time.log_ratio > 0)
    True
    """
    metrics = tuple(metric for metric, asked in ((Metric.WALL, time), (Metric.COUNT, count)) if asked)
    if not metrics:
        raise UsageError("There is nothing to do: ask for `time`, for `count`, or for both.")
    settings = make_settings(alpha, equivalence, layouts, budget_s)
    if cases is None:
        statements = [TimerArgs(_check_statement(stmt), setup) for stmt in (base, head)]
        comparison = compare_statements(statements, python, metrics, settings, timeout_s)
    else:
        if python is not None or setup != "pass":
            raise UsageError("`python` and `setup` are for two statements: with cases, base and head are interpreters.")
        entries = tuple(ComparedPair(case, case) for case in choose_cases(cases, select, check=False))
        comparison = Comparison(
            entries=entries,
            base=Target("base", base),
            head=Target("head", head),
            metrics=metrics,
            settings=settings,
            count_layouts=choose_layouts(SUITE_LAYOUTS),
            timeout_s=timeout_s,
        )
    return _compare(comparison)


def make_settings(alpha: float, equivalence: float, layouts: int, budget_s: float | None) -> Settings:
    """How sure to be, with what is known of this machine."""
    for name, value in (("alpha", alpha), ("equivalence", equivalence)):
        if not 0 < value < 0.5:
            raise UsageError(f"`{name}` is a share between 0 and 0.5, such as 0.01, not {value!r}.")
    if not 2 <= layouts <= MOST_LAYOUTS:
        raise UsageError(f"`layouts` is a number from 2 to {MOST_LAYOUTS}, not {layouts!r}.")
    if budget_s is not None and not 0 <= budget_s < math.inf:
        raise UsageError(f"`budget_s` is a number of seconds, not {budget_s!r}.")
    known = read_selftest(locate_cache(os.environ), read_cpu_model(Path("/")))
    return Settings(
        alpha=alpha,
        equivalence=equivalence,
        layouts=layouts,
        budget_s=budget_s,
        self_test_sd=known.sd if known else None,
    )


def compare_statements(
    statements: Sequence[TimerArgs],
    python: str | None,
    metrics: tuple[Metric, ...],
    settings: Settings,
    timeout_s: float = DEFAULT_TIMEOUT_S,
) -> Comparison:
    """Each statement against the first, in one interpreter."""
    first, *others = (make_case(args) for args in statements)
    target = Target(python=python)
    return Comparison(
        entries=tuple(ComparedPair(first, one) for one in others),
        base=target,
        head=target,
        metrics=metrics,
        settings=settings,
        timeout_s=timeout_s,
    )


def _check_statement(stmt: object) -> str:
    if not isinstance(stmt, str) or not stmt.strip():
        raise UsageError(f"A statement is a text, not {stmt!r}. To compare interpreters, say on which cases.")
    return stmt


def _compare(comparison: Comparison) -> Iterator[Judgement]:
    evidence, stop, cores = Evidence(), StopRequest(), choose_cores()
    rest = try_sides(comparison, evidence)
    if Metric.COUNT in comparison.metrics and rest.entries:
        with contextlib.ExitStack() as stack:
            backend = count_here(rest, cores, stack)
            count_sides(rest, backend, evidence, stop, observe=lambda event: None)
        rest = leave_out_failed(rest, evidence)
    timed = rest.entries if Metric.WALL in comparison.metrics else ()
    for entry in comparison.entries:
        if entry not in timed:
            yield from_judgement(judge_entry(comparison, entry, evidence))
    if not timed:
        return
    with (
        contextlib.closing(LocalSite(rest, cores)) as venue,
        contextlib.closing(time_sides(rest, [venue], evidence, stop)) as decided,
    ):
        for entry in decided:
            yield from_judgement(judge_entry(comparison, entry, evidence))
