"""Measures the cases of one target in its workers, and checks that variants of a benchmark compute the same."""

from __future__ import annotations

import dataclasses
import functools
import os
import time
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from typing import Literal, TypeAlias

from torchmark.callgrind.profiles import tally
from torchmark.model.costs import Tally
from torchmark.model.environment import Environment
from torchmark.model.job import CheckJob, Way
from torchmark.model.outcome import CompileCosts, Failure, FailureKind, Outcome, Result
from torchmark.model.plan import Case, Metric, Order, Sampling
from torchmark.model.task import Compiled, Times
from torchmark.runner.compile_cases import CompileCounter, CompileTimer
from torchmark.runner.worker import TargetWorkers, Worker, expect, retry_if_killed
from torchmark.worker.protocol import Checked


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


Verdict: TypeAlias = Failure | Literal["first"] | None
"""What is wrong with the second of two that are compared, or that the first does not even run."""


def find_group(case: Case) -> Hashable:
    """What is the same for cases that are held to compute the same: those with a backward pass apart."""
    return case.suite, case.label, case.autolabels.autograd


def find_references(cases: Sequence[Case]) -> dict[Hashable, Case]:
    """What the others of a group are held to: the first that can be checked."""
    return {find_group(case): case for case in reversed(cases) if case.check is not None}


class VariantChecker:
    """What the variants of each group are held to: the first of it that runs, with the smallest number of threads."""

    def __init__(self, lab: Lab, timeout_s: float) -> None:
        self._lab = lab
        self._timeout_s = timeout_s
        self._firsts: dict[object, Prepared] = {}

    def compare(self, prepared: Mapping[Case, Prepared | Failure]) -> Iterator[tuple[Case, Failure]]:
        """Those that do not compute what the first of their group does, which may be one that came earlier."""
        groups: dict[Hashable, dict[object, list[Case]]] = {}
        for case in prepared:
            groups.setdefault(find_group(case), {}).setdefault(case.autolabels, []).append(case)
        for group, by_variant in groups.items():
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
            verdict = _excuse(_compare_pair(first, outcome, self._lab, self._timeout_s), first, outcome)
            if verdict == "first":
                # Nothing can be compared with it. Its own failure shows when it is measured.
                first = outcome
            elif isinstance(verdict, Failure):
                yield labels, verdict
        if first is not None:
            self._firsts[group] = first


def _excuse(verdict: Verdict, *prepared: Prepared) -> Verdict:
    """What is wrong, unless it is that files of the cache have gone."""
    if verdict is None:
        return None
    known = verdict if isinstance(verdict, Failure) else Failure(FailureKind.RAISED, "")
    excused = next((one.excuse(known) for one in prepared if one.excuse(known) is not known), known)
    return verdict if excused is known else excused


def _compare_pair(first: Prepared, second: Prepared, lab: Lab, timeout_s: float) -> Verdict:
    assert first.check is not None
    assert second.check is not None
    case = second.case
    is_compiled = case.parts is not None
    job = CheckJob(first.check, second.check, lab.place(case), case.args.num_threads, uses_compiler=is_compiled)
    # What uses `torch.compile` has a worker of its own, which takes long to start.
    checked = retry_if_killed(
        lambda: expect((lab.compile_timer.worker if is_compiled else lab.timer).run(job, timeout_s=timeout_s), Checked)
    )
    if isinstance(checked, Failure):
        itself = dataclasses.replace(job, second=first.check)
        alone = retry_if_killed(lambda: lab.timer.run(itself, timeout_s=timeout_s))
        # One that does not come to an end with itself does so with nobody; unless it is the machine that fails.
        is_guilty = isinstance(alone, Failure) and alone.kind is not FailureKind.MISSING
        return "first" if is_guilty else _explain_difference(first.case, checked.message, checked)
    if checked.failed is not None:
        failed = Failure(FailureKind.RAISED, "It fails when it is run once.", checked.problem)
        return failed if checked.failed else "first"
    return None if checked.problem is None else _explain_difference(first.case, checked.problem)


def _explain_difference(first: Case, problem: str, failure: Failure | None = None) -> Failure:
    labels = first.autolabels.as_dict
    other = f"{labels['language']} ({labels['runtime']})"
    if failure is None:
        return Failure(FailureKind.DIFFERENT, f"It does not compute what {other} does. {problem}")
    message = f"Its results could not be compared with those of {other}: {problem}"
    return dataclasses.replace(failure, message=message)


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
    return Outcome(order, result, began, time.time(), environment=environment, cores=used, unchecked=prepared.unchecked)


class Lab(TargetWorkers):
    """The workers of a target for cases: these may be compared with each other, and use `torch.compile`."""

    @functools.cached_property
    def compile_timer(self) -> CompileTimer:
        timer = CompileTimer(dataclasses.replace(self._spec, checking=True), self._environ)
        self._keep(timer.abandon)
        return timer

    @functools.cached_property
    def compile_counter(self) -> CompileCounter:
        counter = CompileCounter(self._counting, self._environ)
        self._keep(counter.abandon)
        return counter

    def time(
        self, prepared: Prepared, sampling: Sampling, cores: Sequence[int] = ()
    ) -> tuple[Times | CompileCosts | Failure, Environment | None]:
        """Time a case, on these cores if some are given, and say where."""
        case, timer = prepared.case, self.timer if prepared.case.parts is None else self.compile_timer.worker
        if cores:
            timer.pin(cores)
        result: Times | CompileCosts | Failure
        if case.parts is not None:
            run_time_s, timeout_s = sampling.min_run_time_s, sampling.timeout_s
            result = self.compile_timer.measure(case, self.place(case), run_time_s=run_time_s, timeout_s=timeout_s)
        else:
            result = self.time_side(
                self.make_side(case, prepared.compiled),
                sampling.timeout_s,
                run_time_s=sampling.min_run_time_s,
                number=sampling.number,
                blocks=sampling.blocks,
            )
        return prepared.excuse(result) if isinstance(result, Failure) else result, timer.environment

    def count(
        self, prepared: Prepared, sampling: Sampling, counter: Worker | None
    ) -> tuple[Tally | Failure, Environment | None]:
        """Count a case with one of the workers that count, or with that for compiled ones; and say where."""
        case, layouts, timeout_s = prepared.case, sampling.layouts, sampling.timeout_s
        if case.parts is not None:
            compiled = self.compile_counter
            counts = compiled.count(case, self.place(case), layouts=layouts, timeout_s=timeout_s)
            result = counts if isinstance(counts, Failure) else tally(counts, layouts)
            environment = compiled.worker.environment
        else:
            assert counter is not None
            result = self.count_side(self.make_side(case, prepared.compiled), counter, layouts, timeout_s)
            environment = counter.environment
        return prepared.excuse(result) if isinstance(result, Failure) else result, environment
