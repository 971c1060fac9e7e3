"""`run_benchmarks`: measures all that a definition or a suite describes, each case in a process of its own."""

from __future__ import annotations

import contextlib
import dataclasses
import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from torchmark.api.counter import choose_layouts
from torchmark.api.measurement import Measurement, make_measurement
from torchmark.api.stats import CallgrindStats, make_stats
from torchmark.define.discovery import discover
from torchmark.define.expand import expand
from torchmark.define.expression import parse
from torchmark.define.selection import Selection
from torchmark.define.selection import select as select_cases
from torchmark.define.tree import flatten
from torchmark.errors import DefinitionError, UsageError
from torchmark.model.case import Case
from torchmark.model.compiling import CompileCosts
from torchmark.model.job import CountJob, Place, TimeJob
from torchmark.model.outcome import Failure
from torchmark.model.task import Language, TaskSpec
from torchmark.report.compiling import describe_compile_costs
from torchmark.report.failures import describe_failure
from torchmark.report.units import format_time
from torchmark.runner.artefacts import Models
from torchmark.runner.compiling import CompileCounter, CompileTimer
from torchmark.runner.count import count as count_job
from torchmark.runner.preparing import Prepared, prepare
from torchmark.runner.spec import WorkerSpec, other_worker, own_worker, visible_path
from torchmark.runner.timing import measure_time
from torchmark.runner.worker import Worker


@dataclasses.dataclass(frozen=True)
class BenchmarkResult:
    """What became of one case: what was asked for and could be measured, and why the rest could not."""

    case: Case
    measurement: Measurement | None = None
    stats: CallgrindStats | None = None
    compile_costs: CompileCosts | None = None
    """For cases that use `torch.compile`: what compiling and calling cost, apart from the work itself."""
    failures: tuple[Failure, ...] = ()

    def __str__(self) -> str:
        labels = [text for text in self.case.autolabels.as_dict.values() if text]
        threads = f", {self.case.args.num_threads} threads" if self.case.args.num_threads > 1 else ""
        parts = [f"{' / '.join(self.case.label)}: {', '.join(labels)}{threads}"]
        if self.compile_costs is not None:
            parts.append(describe_compile_costs(self.compile_costs))
        elif self.measurement is not None:
            parts.append(f"  {format_time(self.measurement.median)}")
        if self.stats is not None:
            parts.append(f"  {self.stats.counts() / self.stats.number_per_run:,.0f} instructions")
        parts += [describe_failure(failure) for failure in self.failures]
        return "\n".join(parts)


def run_benchmarks(
    benchmarks: Mapping[Any, Any] | str | Sequence[str],
    select: str = "",
    *,
    time: bool = True,
    count: bool = False,
    min_run_time: float = 0.2,
    layouts: int = 5,
    check: bool | None = None,
    python: str | None = None,
) -> Iterator[BenchmarkResult]:
    """Measure every case, one after the other; a case that fails costs the others nothing.

    benchmarks: a definition, or names of suites ("standard", "modern") and paths of files that define `BENCHMARKS`.
    select: which cases, as in `torchmark list -k`: `"linear and not cpp"`.
    time, count: what to measure; counting needs Valgrind.
    check: whether variants of a group must compute the same; None leaves that to each group and suite.
    python: another interpreter, with its own torch.

    >>> from torchmark import GroupedStmts
    >>> for result in run_benchmarks({"add": GroupedStmts("torch.ones(4) + 1")}, min_run_time=0.01):
    ...     print(result.case.label, result.measurement.median > 0)
    ('add',) True
    """
    cases = _choose_cases(benchmarks, select, check)
    seeds = choose_layouts(layouts)
    return _run(cases, python, _Wanted(time, count, min_run_time, seeds))


@dataclasses.dataclass(frozen=True)
class _Wanted:
    time: bool
    count: bool
    run_time_s: float
    layouts: tuple[int, ...]


def _choose_cases(benchmarks: Mapping[Any, Any] | str | Sequence[str], select: str, check: bool | None) -> list[Case]:
    if isinstance(benchmarks, Mapping):
        cases = expand(flatten(benchmarks), check=bool(check))
    else:
        found = discover([benchmarks] if isinstance(benchmarks, str) else benchmarks)
        if found.faults:
            first = found.faults[0]
            raise DefinitionError(f"{first.file}, {' / '.join(first.label) or 'the whole file'}: {first.message}")
        cases = found.cases
    if check is False:
        cases = tuple(dataclasses.replace(case, check=None) for case in cases)
    chosen = list(select_cases(cases, Selection(parse(select)) if select.strip() else Selection()))
    if not chosen:
        raise UsageError(f"None of {len(cases)} cases is selected by {select!r}.")
    return chosen


class _Bench:
    """The workers that are needed, started when they are."""

    def __init__(self, python: str | None, stack: contextlib.ExitStack) -> None:
        self.place = Place(os.getcwd(), tuple(visible_path()) if python is None else None)
        timing = dataclasses.replace(_specify(python, counting=False), checking=True)
        counting = _specify(python, counting=True)
        self.timer = Worker(timing)
        self.counter = Worker(counting)
        self.compile_timer = CompileTimer(timing)
        self.compile_counter = CompileCounter(counting)
        self.models = stack.enter_context(Models(os.environ))
        for used in (self.timer, self.counter, self.compile_timer, self.compile_counter):
            stack.callback(used.close)


def _specify(python: str | None, *, counting: bool) -> WorkerSpec:
    if python is None:
        return own_worker(os.environ, counting=counting)
    return other_worker(python, os.environ, {}, counting=counting)


def _run(cases: Sequence[Case], python: str | None, wanted: _Wanted) -> Iterator[BenchmarkResult]:
    with contextlib.ExitStack() as stack:
        bench = _Bench(python, stack)
        prepared = prepare(cases, bench.timer, bench.compile_timer.worker, bench.models, bench.place, os.environ)
        for case in cases:
            outcome = prepared[case]
            if isinstance(outcome, Failure):
                yield BenchmarkResult(case, failures=(outcome,))
            else:
                yield _measure(case, outcome, bench, wanted)


def _measure(case: Case, prepared: Prepared, bench: _Bench, wanted: _Wanted) -> BenchmarkResult:
    spec, failures = _describe(case), []
    measurement = stats = costs = None
    if wanted.time:
        timed = _time(prepared, bench, wanted)
        if isinstance(timed, Failure):
            failures.append(timed)
        elif isinstance(timed, CompileCosts):
            costs, measurement = timed, make_measurement(timed.steady, spec)
        else:
            measurement = timed
    if wanted.count:
        counted = _count(prepared, bench, wanted, spec)
        if isinstance(counted, Failure):
            failures.append(counted)
        else:
            stats = counted
    return BenchmarkResult(case, measurement, stats, costs, tuple(failures))


def _time(prepared: Prepared, bench: _Bench, wanted: _Wanted) -> Measurement | CompileCosts | Failure:
    args = prepared.case.args
    if prepared.case.parts is not None:
        return bench.compile_timer.measure(prepared.case, bench.place, run_time_s=wanted.run_time_s)
    job = TimeJob(args.stmt, args.setup, bench.place, args.num_threads, wanted.run_time_s, compiled=prepared.compiled)
    times = measure_time(bench.timer, job)
    return times if isinstance(times, Failure) else make_measurement(times, _describe(prepared.case))


def _count(prepared: Prepared, bench: _Bench, wanted: _Wanted, spec: TaskSpec) -> CallgrindStats | Failure:
    args = prepared.case.args
    if prepared.case.parts is not None:
        counter = bench.compile_counter
        counts = counter.count(prepared.case, bench.place, layouts=wanted.layouts)
        return counts if isinstance(counts, Failure) else make_stats(spec, counts, counter.environment)
    job = CountJob(
        args.stmt,
        args.setup,
        bench.place,
        threads=args.num_threads,
        layouts=wanted.layouts,
        compiled=prepared.compiled,
    )
    # A loop of compiled code costs next to nothing.
    counts = count_job(bench.counter, job, baseline=args.language == Language.PYTHON)
    return counts if isinstance(counts, Failure) else make_stats(spec, counts, bench.counter.environment)


def _describe(case: Case) -> TaskSpec:
    args = case.args
    return TaskSpec(
        stmt=args.stmt,
        setup=args.setup,
        global_setup=args.global_setup,
        label=" / ".join(case.label),
        sub_label=", ".join(text for text in case.autolabels.as_dict.values() if text),
        num_threads=args.num_threads,
    )
