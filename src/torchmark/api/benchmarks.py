"""`run_benchmarks`: measures all that a definition or a suite describes, each case in a process of its own."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import math
import os
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Protocol, TypeVar

from torchmark.api.counter import choose_layouts
from torchmark.api.measurement import Measurement, make_measurement
from torchmark.api.stats import CallgrindStats, make_stats
from torchmark.define.discovery import discover
from torchmark.define.expand import expand
from torchmark.define.expression import parse
from torchmark.define.selection import Selection
from torchmark.define.selection import select as select_cases
from torchmark.define.tree import flatten
from torchmark.errors import DefinitionError, SetupError, UsageError
from torchmark.model.case import Case
from torchmark.model.compiling import CompileCosts
from torchmark.model.job import CountJob, Place, TimeJob
from torchmark.model.outcome import Failure, FailureKind
from torchmark.model.task import Language, TaskSpec
from torchmark.model.times import Times
from torchmark.report.compiling import describe_compile_costs
from torchmark.report.failures import describe_failure
from torchmark.report.faults import describe_fault
from torchmark.report.units import format_time
from torchmark.report.wording import state_fact
from torchmark.runner.artefacts import Models
from torchmark.runner.comparing import Bench, Prepared
from torchmark.runner.compiling import CompileCounter, CompileTimer
from torchmark.runner.count import count as count_job
from torchmark.runner.preparing import prepare
from torchmark.runner.spec import WorkerSpec, other_worker, own_worker, visible_path
from torchmark.runner.timing import measure_time
from torchmark.runner.worker import DEFAULT_TIMEOUT_S, Worker


class _Closing(Protocol):
    def close(self) -> None: ...


T = TypeVar("T", bound=_Closing)
R = TypeVar("R")


@dataclasses.dataclass(frozen=True)
class BenchmarkResult:
    """What became of one case: what was asked for and could be measured, and why the rest could not."""

    case: Case
    measurement: Measurement | None = None
    stats: CallgrindStats | None = None
    compile_costs: CompileCosts | None = None
    """For cases that use `torch.compile`: what compiling and calling cost, apart from the work itself."""
    failures: tuple[Failure, ...] = ()

    unchecked: str | None = None
    """Why its results could not be compared with those of the other variants, although they should be."""

    def __str__(self) -> str:
        labels = [text for text in self.case.autolabels.as_dict.values() if text]
        threads = f", {self.case.args.num_threads} threads" if self.case.args.num_threads > 1 else ""
        return "\n".join([f"{' / '.join(self.case.label)}: {', '.join(labels)}{threads}", *self._lines()])

    def _lines(self) -> Iterator[str]:
        if self.compile_costs is not None:
            yield describe_compile_costs(self.compile_costs)
        elif self.measurement is not None:
            yield f"  {format_time(self.measurement.median)}"
        if self.stats is not None:
            yield f"  {self.stats.counts() / self.stats.number_per_run:,.0f} instructions"
        caveats = [
            caveat for result in (self.measurement, self.stats) if result is not None for caveat in result.caveats
        ]
        yield from (f"  NOTE: {state_fact(caveat)}" for caveat in caveats)
        if self.unchecked is not None:
            yield f"  NOTE: It was not compared with the other variants. {self.unchecked}"
        for failure in self.failures:
            yield textwrap.indent(describe_failure(failure), "  ")


def run_benchmarks(
    benchmarks: Mapping[Any, Any] | str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    select: str = "",
    *,
    time: bool = True,
    count: bool = False,
    min_run_time: float = 0.2,
    layouts: int = 5,
    check: bool | None = None,
    python: str | None = None,
    timeout_s: float = DEFAULT_TIMEOUT_S,
) -> Iterator[BenchmarkResult]:
    """Measure every case, one after the other; a case that fails costs the others nothing.

    benchmarks: a definition, or names of suites ("standard", "modern") and paths of files that define `BENCHMARKS`.
    select: which cases, as in `torchmark list -k`: `"linear and not cpp"`.
    time, count: what to measure; counting needs Valgrind.
    check: whether variants of a group must compute the same where the group does not say; False switches it off for
        all, None leaves it to each suite.
    python: another interpreter, with its own torch. It sees none of your modules.
    timeout_s: for each process that is started.

    >>> from torchmark import GroupedStmts
    >>> for result in run_benchmarks({"add": GroupedStmts("torch.ones(4) + 1")}, min_run_time=0.01):
    ...     print(result.case.label, result.measurement.median > 0)
    ('add',) True
    """
    for name, flag in (("time", time), ("count", count), ("check", check)):
        if flag not in (True, False) and not (name == "check" and flag is None):
            raise UsageError(f"`{name}` is True or False, not {flag!r}.")
    if not time and not count:
        raise UsageError("There is nothing to do: ask for `time`, for `count`, or for both.")
    for name, seconds in (("min_run_time", min_run_time), ("timeout_s", timeout_s)):
        if type(seconds) not in (int, float) or not 0 <= seconds < math.inf:
            raise UsageError(f"`{name}` is a number of seconds, not {seconds!r}.")
    wanted = _Wanted(time, count, min_run_time, choose_layouts(layouts), timeout_s)
    return _run(choose_cases(benchmarks, select, check), python, wanted)


@dataclasses.dataclass(frozen=True)
class _Wanted:
    time: bool
    count: bool
    run_time_s: float
    layouts: tuple[int, ...]
    timeout_s: float


def choose_cases(benchmarks: object, select: str, check: bool | None) -> list[Case]:
    """The cases that are meant. A DefinitionError tells all faults together."""
    if isinstance(benchmarks, Mapping):
        cases = expand(flatten(benchmarks), check=bool(check))
    else:
        found = discover(_list_names(benchmarks), check=check)
        if found.faults:
            raise DefinitionError("\n\n".join(describe_fault(fault) for fault in found.faults))
        cases = found.cases
    if check is False:
        cases = tuple(dataclasses.replace(case, check=None) for case in cases)
    if not isinstance(select, str):
        raise UsageError(f'`select` is a text such as "linear and not cpp", not {select!r}.')
    chosen = list(select_cases(cases, Selection(parse(select)) if select.strip() else Selection()))
    if not chosen:
        raise UsageError(f"None of {len(cases)} cases is selected by {select!r}." if cases else "There are no cases.")
    return chosen


def _list_names(benchmarks: object) -> list[str]:
    names = [benchmarks] if isinstance(benchmarks, (str, os.PathLike)) else benchmarks
    if not isinstance(names, Sequence) or isinstance(names, bytes):
        raise UsageError(f"Benchmarks are a dictionary, or names of suites and files, not {type(benchmarks)}.")
    for name in names:
        if not isinstance(name, (str, os.PathLike)):
            raise UsageError(f"A suite has a name or a path, not {name!r}.")
    return [os.fspath(name) for name in names]


class _Workers:
    """Those that are needed, made when they are, and ended with the stack."""

    def __init__(self, python: str | None, stack: contextlib.ExitStack) -> None:
        self._python = python
        self._stack = stack

    def _specify(self, *, counting: bool) -> WorkerSpec:
        if self._python is None:
            return own_worker(os.environ, counting=counting)
        return other_worker(self._python, os.environ, {}, counting=counting)

    def _keep(self, used: T) -> T:
        self._stack.callback(used.close)
        return used

    @functools.cached_property
    def timer(self) -> Worker:
        return self._keep(Worker(dataclasses.replace(self._specify(counting=False), checking=True)))

    @functools.cached_property
    def counter(self) -> Worker:
        # Whatever is selected: what a case counts must not depend on the others.
        return self._keep(Worker(dataclasses.replace(self._specify(counting=True), scripting=True)))

    @functools.cached_property
    def compile_timer(self) -> CompileTimer:
        return self._keep(CompileTimer(dataclasses.replace(self._specify(counting=False), checking=True)))

    @functools.cached_property
    def compile_counter(self) -> CompileCounter:
        return self._keep(CompileCounter(self._specify(counting=True)))

    def place(self, case: Case) -> Place:
        """The working folder; and, for our own interpreter, where modules are found, those beside the suite first."""
        if self._python is not None:
            return Place(os.getcwd())
        beside = [os.path.dirname(os.path.abspath(case.suite))] if os.path.isfile(case.suite) else []
        return Place(os.getcwd(), (*beside, *visible_path()))


def _run(cases: Sequence[Case], python: str | None, wanted: _Wanted) -> Iterator[BenchmarkResult]:
    with contextlib.ExitStack() as stack:
        workers = _Workers(python, stack)
        # Without which nothing can be done at all.
        workers.timer.start()
        bench = Bench(workers.timer, lambda: workers.compile_timer.worker, workers.place, wanted.timeout_s)
        prepared = prepare(cases, bench, stack.enter_context(Models(os.environ)), os.environ)
        for case in cases:
            outcome = prepared[case]
            if isinstance(outcome, Failure):
                yield BenchmarkResult(case, failures=(outcome,))
            else:
                yield _measure(case, outcome, workers, wanted)


def _measure(case: Case, prepared: Prepared, workers: _Workers, wanted: _Wanted) -> BenchmarkResult:
    spec, failures = _describe(case), []
    measurement = stats = costs = None
    if wanted.time:
        timed = _attempt(lambda: _time(prepared, workers, wanted))
        if isinstance(timed, Failure):
            failures.append(timed)
        elif isinstance(timed, CompileCosts):
            costs, measurement = timed, make_measurement(timed.steady, spec)
        else:
            measurement = make_measurement(timed, spec)
    if wanted.count:
        counted = _attempt(lambda: _count(prepared, workers, wanted, spec))
        if isinstance(counted, Failure):
            failures.append(counted)
        else:
            stats = counted
    return BenchmarkResult(case, measurement, stats, costs, tuple(failures), prepared.unchecked)


def _attempt(measure: Callable[[], R]) -> R | Failure:
    """What the machine lacks for one way of measuring costs that way only."""
    try:
        return measure()
    except SetupError as error:
        return Failure(FailureKind.MISSING, str(error))


def _time(prepared: Prepared, workers: _Workers, wanted: _Wanted) -> Times | CompileCosts | Failure:
    case = prepared.case
    args, place = case.args, workers.place(case)
    if case.parts is not None:
        timer = workers.compile_timer
        return timer.measure(case, place, run_time_s=wanted.run_time_s, timeout_s=wanted.timeout_s)
    job = TimeJob(args.stmt, args.setup, place, args.num_threads, wanted.run_time_s, compiled=prepared.compiled)
    return measure_time(workers.timer, job, timeout_s=wanted.timeout_s)


def _count(prepared: Prepared, workers: _Workers, wanted: _Wanted, spec: TaskSpec) -> CallgrindStats | Failure:
    case = prepared.case
    args, place = case.args, workers.place(case)
    counter: CompileCounter | Worker
    if case.parts is not None:
        counter = workers.compile_counter
        counts = counter.count(case, place, layouts=wanted.layouts, timeout_s=wanted.timeout_s)
    else:
        counter = workers.counter
        job = CountJob(
            args.stmt,
            args.setup,
            place,
            threads=args.num_threads,
            layouts=wanted.layouts,
            compiled=prepared.compiled,
        )
        # A loop of compiled code costs next to nothing.
        baseline = args.language == Language.PYTHON
        counts = count_job(counter, job, timeout_s=wanted.timeout_s, baseline=baseline)
    return counts if isinstance(counts, Failure) else make_stats(spec, counts, counter.environment)


def _describe(case: Case) -> TaskSpec:
    args = case.args
    return TaskSpec(
        stmt=args.stmt.strip(),
        setup=args.setup.strip() or "pass",
        global_setup=args.global_setup,
        label=" / ".join(case.label),
        sub_label=", ".join(text for text in case.autolabels.as_dict.values() if text),
        num_threads=args.num_threads,
    )
