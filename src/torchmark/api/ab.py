"""`ab`: compares two builds of torch, or two statements, and yields a `Judgement` for each case."""

from __future__ import annotations

import contextlib
import dataclasses
import math
import os
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from torchmark.analysis.verdict.stored import CountedCase, identify
from torchmark.api.benchmarks import choose_cases
from torchmark.api.gate import GateOptions, apply_gate, decide_exit_code, format_accept
from torchmark.api.statements import make_case
from torchmark.compare.comparison import ComparedPair, Comparison, Evidence, judge_pair
from torchmark.compare.experiment import LAYOUTS, Settings
from torchmark.compare.session import HERE, ComparisonResult, Observer, find_out
from torchmark.errors import UsageError
from torchmark.files import locate_cache
from torchmark.model.costs import Tally
from torchmark.model.gate import GateResult
from torchmark.model.judgement import CaseJudgement as Value
from torchmark.model.judgement import Verdict
from torchmark.model.plan import SUITE_LAYOUTS, Metric, Target, TimerArgs
from torchmark.model.task import name_value
from torchmark.processes import StopRequest
from torchmark.report.as_json import to_json_comparison, to_json_judgement
from torchmark.report.html.fragments import render_judgement
from torchmark.report.text.gate import list_sentences, render_comparison, summarise_markdown
from torchmark.report.text.judgements import describe_judgement
from torchmark.report.text.names import name_case
from torchmark.report.text.verdict_reasons import describe_verdict
from torchmark.runner.machine import choose_cores, read_cpu_model
from torchmark.runner.spec import choose_layouts
from torchmark.runner.worker import DEFAULT_TIMEOUT_S
from torchmark.store.ledger import read_selftest

WIDTH = 80
BASE, HEAD = "base", "head"
TITLE = "torchmark ab: head against base"


@dataclasses.dataclass(frozen=True, repr=False)
class Judgement(Value):
    """What is said of one case, and why: `verdict`, `cause`, and the evidence in `time` and `count`.

    >>> from torchmark.model.plan import AutogradMode, AutoLabels, Case, RuntimeMode, TimerArgs
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
        return to_json_judgement(self)

    def __repr__(self) -> str:
        return name_value(self, f"{name_case(self.case)}: {describe_verdict(self)}")

    def __str__(self) -> str:
        return describe_judgement(self, WIDTH, "python")

    def _repr_html_(self) -> str:
        return render_judgement(self)


def from_judgement(judgement: Value) -> Judgement:
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
    time, count: what to measure; counting needs Valgrind.
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
    evidence = Evidence()
    entries = find_out(comparison, evidence, choose_cores(), Observer(), HERE, StopRequest())
    with contextlib.closing(entries) as found_out:
        for entry in found_out:
            yield from_judgement(judge_pair(comparison, entry, evidence))


@dataclasses.dataclass(frozen=True)
class GatedComparison:
    """A comparison that was carried out and held against a gate, in all forms that it is told in."""

    comparison: Comparison
    found: ComparisonResult
    result: GateResult
    gate: GateOptions
    store: str
    """What commands have to say of the store."""

    @property
    def exit_code(self) -> int:
        """That of all commands that compare; it is a failure if every case failed."""
        all_failed = all(one.verdict is Verdict.FAILED for one in self.found.judgements)
        return decide_exit_code(self.result, ended=self.found.exit_code, all_failed=all_failed)

    def show(self, width: int, *, colour: bool, all_cases: bool, explaining: bool = True) -> str:
        # Only what is kept can be accepted.
        accept = None if self.found.run is None else format_accept(self.gate, self.store, ["--env", HEAD])
        text = render_comparison(
            self.found.judgements,
            self.result,
            width,
            colour=colour,
            all_cases=all_cases,
            explaining=explaining,
            accept=accept,
        )
        if self.found.run is None or self.found.exit_code != 0:
            return text
        store = f" --store {shlex.quote(self.store)}" if self.store else ""
        return "\n\n".join(filter(None, (text, f"Counts are kept: torchmark compare {self.found.run}{store}")))

    def summarise(self) -> str:
        return summarise_markdown(self.found.judgements, title=TITLE, gate=list_sentences(self.result))

    def to_dict(self) -> dict[str, Any]:
        targets = self.comparison.base, self.comparison.head
        sides = [(target, self.found.evidence.find_environment(target)) for target in targets]
        return to_json_comparison(sides, self.found.judgements, self.result, self.exit_code)


def hold_against_gate(
    comparison: Comparison, found: ComparisonResult, gate: GateOptions, store: str, tell: Callable[[str], None]
) -> GatedComparison:
    """Hold head's counts against the ledger; `tell` hears what the user should know besides."""
    counts = {}
    for entry in comparison.entries:
        _, order = comparison.list_orders(entry)
        tally = found.evidence.counted.get(order)
        if isinstance(tally, Tally):
            counts[identify(entry.head)] = CountedCase(tally, found.evidence.environments.get(order))
    result = apply_gate(found.judgements, counts, gate, tell)
    return GatedComparison(comparison=comparison, found=found, result=result, gate=gate, store=store)
