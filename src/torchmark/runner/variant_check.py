"""Holds the variants of a benchmark to compute the same: each is run once, beside the first of its group."""

from __future__ import annotations

import dataclasses
import enum
import os
from collections.abc import Callable, Iterator, Mapping, Sequence

from torchmark.model.case import Case
from torchmark.model.job import CheckJob, Place, Way
from torchmark.model.outcome import Failure, FailureKind
from torchmark.model.snippet import Compiled
from torchmark.runner.jobs import retry_if_killed
from torchmark.runner.worker import DEFAULT_TIMEOUT_S, Reply, Worker
from torchmark.wire.messages import Checked


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

    def __init__(self, bench: CheckWorkers) -> None:
        self._bench = bench
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
            verdict = _excuse(_compare_pair(first, outcome, self._bench), first, outcome)
            if verdict is _FailedVariant.FIRST:
                # It cannot serve as a witness. Its own failure shows when it is measured.
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


def _compare_pair(first: Prepared, second: Prepared, bench: CheckWorkers) -> Failure | _FailedVariant | None:
    """What is wrong with the second one, or that the first does not even run."""
    assert first.check is not None
    assert second.check is not None
    case = second.case
    is_compiled = case.parts is not None
    job = CheckJob(first.check, second.check, bench.place(case), case.args.num_threads, uses_compiler=is_compiled)
    reply = _run(job, bench.compiler if is_compiled else lambda: bench.worker, bench.timeout_s)
    if isinstance(reply, Failure):
        alone = _run(dataclasses.replace(job, second=first.check), lambda: bench.worker, bench.timeout_s)
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
