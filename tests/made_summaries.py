"""Cases and summaries with numbers that somebody made up."""

from __future__ import annotations

from torchmark.analysis.summarise import find_median_interval, summarise
from torchmark.model.caveats import Caveat
from torchmark.model.outcome import CompileCosts, Failure
from torchmark.model.plan import AutogradMode, AutoLabels, Case, Metric, RuntimeMode, Target, TimerArgs
from torchmark.model.run import CaseSummary, CountSummary, WallSummary
from torchmark.model.task import Language


def make_case(
    *label: str,
    runtime: RuntimeMode = RuntimeMode.EAGER,
    autograd: AutogradMode = AutogradMode.FORWARD,
    language: Language = Language.PYTHON,
    threads: int = 1,
    suite: str = "",
    stmt: str = "f(x)",
) -> Case:
    labels = AutoLabels(runtime, autograd, language)
    return Case(label, labels, TimerArgs(stmt, num_threads=threads, language=language), suite=suite)


def make_wall(*samples: float, compiling: CompileCosts | None = None) -> WallSummary:
    return WallSummary(summarise(samples), find_median_interval(samples, 0.95), samples, compiling)


def make_count(instructions: float, spread: float | None = 0.001, allocations: float = 3.0) -> CountSummary:
    return CountSummary(
        instructions=instructions,
        spread=spread,
        allocations=allocations,
        tensor_allocations=1.0,
        baseline=96.0,
        number=100,
        totals=(int(instructions * 100),),
    )


def make_summary(
    case: Case,
    time: float | None = 1.5e-6,
    instructions: float | None = 12345.0,
    *,
    target: Target | None = None,
    failures: tuple[tuple[Metric, Failure], ...] = (),
    caveats: tuple[Caveat, ...] = (),
    missing: tuple[Metric, ...] = (),
    compiling: CompileCosts | None = None,
    unchecked: str | None = None,
) -> CaseSummary:
    return CaseSummary(
        case=case,
        target=target or Target(),
        wall=None if time is None else make_wall(*(time * (1 + i / 1000) for i in range(9)), compiling=compiling),
        count=None if instructions is None else make_count(instructions),
        failures=failures,
        caveats=caveats,
        unchecked=unchecked,
        missing=missing,
    )
