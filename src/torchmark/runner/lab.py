"""Measures the cases of one target in its workers, and checks that variants of a benchmark compute the same."""

from __future__ import annotations

import dataclasses
import enum
import functools
import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Protocol, TypeVar

from torchmark.callgrind.profiles import tally
from torchmark.errors import SetupError
from torchmark.model.costs import Tally, Trace
from torchmark.model.environment import Environment
from torchmark.model.job import BARE_LAYOUT, CheckJob, CountJob, Place, TimeJob, Way
from torchmark.model.outcome import CompileCosts, Failure, FailureKind, Outcome, Result
from torchmark.model.plan import Case, Metric, Order, Sampling, Target
from torchmark.model.task import Compiled, Language, Times
from torchmark.runner.compile_cases import CompileCounter, CompileTimer
from torchmark.runner.spec import WorkerSpec, find_interpreter, other_worker, own_worker, visible_path
from torchmark.runner.worker import DEFAULT_TIMEOUT_S, Reply, Worker, count, measure_time, retry_if_killed
from torchmark.worker.protocol import Checked


@dataclasses.dataclass(frozen=True)
class CheckWorkers:
    """Where cases are run before they are measured: workers without Valgrind, and the place of each case."""

    worker: Worker
    compiler: Callable[[], Worker]
    """Gives the worker for what uses `torch.compile`, which takes long to start."""
    place: Callable[[Case], Place]
    timeout_s: float = DEFAULT_TIMEOUT_S


@dataclasses.dataclass(frozen=True)
class Prepared:
    """A case whose texts are complete, and where to find it if it is C++."""

    case: Case
    compiled: Compiled | None = None
    check: Way | None = None
    """How to find out what it computes."""
    unchecked: str | None = None
    """Why that cannot be found out, although it should be."""
    model: str | None = None
    """The file of its TorchScript model, if it loads one."""

    def excuse(self, failure: Failure) -> Failure:
        """A failure of this case; if a file that it needs has gone from the cache, that is why it failed."""
        libraries = (self.compiled, self.check.compiled if self.check else None)
        files = [self.model, *(one.library for one in libraries if one is not None)]
        gone = next((file for file in files if file is not None and not os.path.exists(file)), None)
        if gone is None:
            return failure
        message = f"{gone} was removed from the cache while it was needed. Run it again: torchmark run --resume."
        return dataclasses.replace(failure, kind=FailureKind.MISSING, message=message)


class _FailedVariant(enum.Enum):
    """Who it is, where two are compared and one does not even run."""

    FIRST = enum.auto()


class VariantChecker:
    """What the variants of each group are held to: the first of it that runs, with the smallest number of threads."""

    def __init__(self, workers: CheckWorkers) -> None:
        self._workers = workers
        self._firsts: dict[object, Prepared] = {}

    def compare(self, prepared: Mapping[Case, Prepared | Failure]) -> Iterator[tuple[Case, Failure]]:
        """Those that do not compute what the first of their group does, which may be one that came earlier."""
        for group, cases in _group(prepared).items():
            by_variant: dict[object, list[Case]] = {}
            for case in cases:
                by_variant.setdefault(case.autolabels, []).append(case)
            for labels, problem in self._compare_group(group, by_variant, prepared):
                yield from ((case, problem) for case in by_variant[labels])

    def _compare_group(
        self,
        group: object,
        by_variant: Mapping[object, Sequence[Case]],
        prepared: Mapping[Case, Prepared | Failure],
    ) -> Iterator[tuple[object, Failure]]:
        first = self._firsts.get(group)
        for labels, cases in by_variant.items():
            outcome = prepared[min(cases, key=lambda case: case.args.num_threads)]
            if isinstance(outcome, Failure) or outcome.check is None:
                continue
            if first is None:
                first = outcome
                continue
            verdict = _excuse(_compare_pair(first, outcome, self._workers), first, outcome)
            if verdict is _FailedVariant.FIRST:
                # Nothing can be compared with it. Its own failure shows when it is measured.
                first = outcome
            elif isinstance(verdict, Failure):
                yield labels, verdict
        if first is not None:
            self._firsts[group] = first


def _excuse(verdict: Failure | _FailedVariant | None, *prepared: Prepared) -> Failure | _FailedVariant | None:
    """What is wrong, unless it is that files of the cache have gone."""
    if verdict is None:
        return None
    known = verdict if isinstance(verdict, Failure) else Failure(FailureKind.RAISED, "")
    excused = next((one.excuse(known) for one in prepared if one.excuse(known) is not known), known)
    return verdict if excused is known else excused


def _group(prepared: Mapping[Case, Prepared | Failure]) -> dict[object, list[Case]]:
    """Cases that must agree: of the same label, with or without a backward pass."""
    groups: dict[object, list[Case]] = {}
    for case in prepared:
        groups.setdefault((case.suite, case.label, case.autolabels.autograd), []).append(case)
    return groups


def _compare_pair(first: Prepared, second: Prepared, workers: CheckWorkers) -> Failure | _FailedVariant | None:
    """What is wrong with the second one, or that the first does not even run."""
    assert first.check is not None
    assert second.check is not None
    case = second.case
    is_compiled = case.parts is not None
    job = CheckJob(first.check, second.check, workers.place(case), case.args.num_threads, uses_compiler=is_compiled)
    reply = _run(job, workers.compiler if is_compiled else lambda: workers.worker, workers.timeout_s)
    if isinstance(reply, Failure):
        alone = _run(dataclasses.replace(job, second=first.check), lambda: workers.worker, workers.timeout_s)
        # One that does not come to an end with itself does so with nobody; unless it is the machine that fails.
        is_guilty = isinstance(alone, Failure) and alone.kind is not FailureKind.MISSING
        return _FailedVariant.FIRST if is_guilty else _explain_difference(first.case, reply.message, reply)
    checked = reply.message
    assert isinstance(checked, Checked)
    if checked.failed is not None:
        failed = Failure(FailureKind.RAISED, "It fails when it is run once.", checked.problem)
        return failed if checked.failed else _FailedVariant.FIRST
    return None if checked.problem is None else _explain_difference(first.case, checked.problem)


def _run(job: CheckJob, get_worker: Callable[[], Worker], timeout_s: float) -> Reply | Failure:
    return retry_if_killed(lambda: get_worker().run(job, timeout_s=timeout_s))


def _explain_difference(first: Case, problem: str, failure: Failure | None = None) -> Failure:
    labels = first.autolabels.as_dict
    other = f"{labels['language']} ({labels['runtime']})"
    if failure is not None:
        message = f"Its results could not be compared with those of {other}: {problem}"
        return dataclasses.replace(failure, message=message)
    return Failure(FailureKind.DIFFERENT, f"It does not compute what {other} does. {problem}")


def trace(worker: Worker, job: CountJob, payload: bytes = b"", timeout_s: float = DEFAULT_TIMEOUT_S) -> Trace | Failure:
    """Count once, in the heap as it happens to be, whatever layouts the job names."""
    assert worker.spec.stacks
    counts = count(worker, dataclasses.replace(job, layouts=(BARE_LAYOUT,)), payload, timeout_s, baseline=False)
    return counts if isinstance(counts, Failure) else Trace(counts.layouts[0], counts.functions, counts.number)


def measure(attempt: Callable[[], tuple[Result, Environment | None]]) -> tuple[Result, Environment | None]:
    """The result of the last attempt, and where that was."""
    environment: Environment | None = None

    def run() -> Result:
        nonlocal environment
        result, environment = attempt()
        return result

    return retry_if_killed(run), environment


def refuse_threads(threads: int, cores: int) -> Failure:
    """There are fewer cores than threads, whose time would be that of waiting for each other."""
    there = "is 1 core" if cores == 1 else f"are {cores} cores"
    return Failure(
        FailureKind.MISSING, f"It runs with {threads} threads, and there {there} to time it on. Counting it would work."
    )


def carry_out(
    lab: Lab,
    order: Order,
    prepared: Prepared,
    sampling: Sampling,
    cores: Sequence[int],
    counter: Worker | None = None,
) -> Outcome:
    """Count a case on these cores, by this worker unless it is compiled; or time it on the last of them."""
    began, threads = time.time(), order.case.args.num_threads
    used, environment = tuple(cores), None
    result: Result
    if order.metric is Metric.COUNT:
        if counter is not None:
            counter.pin(used)
        result, environment = measure(lambda: lab.count(prepared, sampling, counter))
    else:
        # Not the first ones, where most systems have their interrupts.
        used = used[-threads:]
        if threads > len(cores):
            result = refuse_threads(threads, len(cores))
        else:
            result, environment = measure(lambda: lab.time(prepared, sampling, used))
    return Outcome(
        order=order,
        result=result,
        began=began,
        ended=time.time(),
        environment=environment,
        cores=used,
        unchecked=prepared.unchecked,
    )


class Closing(Protocol):
    """Something that has to be ended."""

    def close(self) -> None:
        """End it."""

    def abandon(self) -> None:
        """End it at once."""


Used = TypeVar("Used", bound=Closing)


class Lab:
    """The workers of one target. A worker is used by one thread at a time; different ones by different threads."""

    def __init__(
        self,
        target: Target,
        environ: Mapping[str, str] = os.environ,
        alias: str | None = None,
        path: Sequence[str] | None = None,
        *,
        trying: bool = False,
    ) -> None:
        """`alias` is another name of the target's interpreter, for those that count in it.

        `path` is where modules are found, if that is not where this program finds them. For `trying` statements only,
        its timer starts sooner: it compares no results, and does not tell all of its environment.
        """
        self.target = target
        self._path = path
        self._alias = alias
        self._environ = environ
        # As it is now: a statement may take it away.
        self._folder = os.getcwd()
        self._lock = threading.Lock()
        self._closed = False
        spec = self._specify(counting=False)
        self.timer = Worker(dataclasses.replace(spec, checking=not trying, probed=not trying), environ)
        self._used: list[Closing] = [self.timer]

    def start(self) -> None:
        """Start the worker without which nothing can be done at all. SetupError says what is missing."""
        self.timer.start()

    def make_counter(self) -> Worker:
        """One more worker that counts; not started by this."""
        # Whatever is selected: what a case counts must not depend on the others.
        return self._keep(Worker(self._rename(self._specify(counting=True)), self._environ))

    def make_tracer(self) -> Worker:
        """A worker that counts with all callers; not started by this."""
        spec = dataclasses.replace(self._rename(self._specify(counting=True)), stacks=True)
        return self._keep(Worker(spec, self._environ))

    @functools.cached_property
    def compile_timer(self) -> CompileTimer:
        """What times cases of `torch.compile`."""
        spec = dataclasses.replace(self._specify(counting=False), checking=True)
        return self._keep(CompileTimer(spec, self._environ))

    @functools.cached_property
    def compile_counter(self) -> CompileCounter:
        """What counts cases of `torch.compile`."""
        return self._keep(CompileCounter(self._specify(counting=True), self._environ))

    def check_workers(self, timeout_s: float) -> CheckWorkers:
        """Where cases are run before they are measured."""
        return CheckWorkers(self.timer, lambda: self.compile_timer.worker, self.place, timeout_s)

    def place(self, case: Case) -> Place:
        """The working folder; and, for our own interpreter, where modules are found, those beside the suite first."""
        if self.target.python is not None:
            return Place(self._folder)
        beside = [os.path.dirname(os.path.abspath(case.suite))] if os.path.isfile(case.suite) else []
        return Place(self._folder, (*beside, *(visible_path() if self._path is None else self._path)))

    def time(
        self, prepared: Prepared, sampling: Sampling, cores: Sequence[int] = ()
    ) -> tuple[Times | CompileCosts | Failure, Environment | None]:
        """Time a case, on these cores if some are given, and say where."""
        case = prepared.case
        args, place = case.args, self.place(case)
        try:
            if case.parts is not None:
                timer = self.compile_timer
                if cores:
                    timer.worker.pin(cores)
                costs = timer.measure(case, place, run_time_s=sampling.min_run_time_s, timeout_s=sampling.timeout_s)
                return costs, timer.worker.environment
            if cores:
                self.timer.pin(cores)
            job = TimeJob(
                stmt=args.stmt,
                setup=args.setup,
                place=place,
                threads=args.num_threads,
                min_run_time_s=sampling.min_run_time_s,
                number=sampling.number,
                compiled=prepared.compiled,
                blocks=sampling.blocks,
            )
            times = measure_time(self.timer, job, timeout_s=sampling.timeout_s)
            return prepared.excuse(times) if isinstance(times, Failure) else times, self.timer.environment
        except SetupError as error:
            return Failure(FailureKind.MISSING, str(error)), None

    def count(
        self, prepared: Prepared, sampling: Sampling, counter: Worker | None
    ) -> tuple[Tally | Failure, Environment | None]:
        """Count a case with one of the workers that count, or with that for compiled ones; and say where."""
        case = prepared.case
        args, place, layouts = case.args, self.place(case), sampling.layouts
        try:
            if case.parts is not None:
                compiled = self.compile_counter
                counts = compiled.count(case, place, layouts=layouts, timeout_s=sampling.timeout_s)
                environment = compiled.environment
            else:
                assert counter is not None
                job = CountJob(
                    args.stmt,
                    args.setup,
                    place,
                    threads=args.num_threads,
                    layouts=layouts,
                    compiled=prepared.compiled,
                )
                # A loop of compiled code costs next to nothing.
                baseline = args.language == Language.PYTHON
                counts = count(counter, job, timeout_s=sampling.timeout_s, baseline=baseline)
                environment = counter.environment
        except SetupError as error:
            return Failure(FailureKind.MISSING, str(error)), None
        return (prepared.excuse(counts) if isinstance(counts, Failure) else tally(counts, layouts)), environment

    def close(self) -> None:
        """End all workers."""
        with self._lock:
            self._closed = True
            used = list(self._used)
        for one in used:
            one.close()

    def abandon(self) -> None:
        """End all workers at once, whatever they do and whoever waits for them."""
        with self._lock:
            self._closed = True
            used = list(self._used)
        for one in used:
            one.abandon()

    def _specify(self, *, counting: bool) -> WorkerSpec:
        if self.target.python is None:
            return own_worker(self._environ, counting=counting)
        return other_worker(self.target.python, self._environ, {}, counting=counting)

    def _rename(self, spec: WorkerSpec) -> WorkerSpec:
        """For cases of suites, and by the other name if there is one."""
        spec = dataclasses.replace(spec, scripting=True)
        if self._alias is None:
            return spec
        real = find_interpreter(spec.python, dict(spec.variables))
        return dataclasses.replace(spec, python=self._alias, known_as=real)

    def _keep(self, used: Used) -> Used:
        with self._lock:
            self._used.append(used)
            if self._closed:
                used.abandon()
        return used
