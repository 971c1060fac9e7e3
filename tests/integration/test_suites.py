"""Every case of the suites that come along runs, and its variants compute the same; a suite of faults loses no more.

Everything is timed by one worker. The suite of faults is compiled by itself. What does not compile in it is found
without a compiler, which would otherwise run again for all beside it: see `test_native_build.py`.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
from collections.abc import Iterator, Mapping, Sequence
from types import SimpleNamespace
from typing import cast

import pytest

from torchmark.define.discovery import discover
from torchmark.model.costs import Counts
from torchmark.model.job import BARE_LAYOUT, CountJob, Place, TimeJob
from torchmark.model.outcome import Failure, FailureKind
from torchmark.model.plan import Case, RuntimeMode
from torchmark.model.task import Language, Times
from torchmark.report.text.failures import describe_failure
from torchmark.runner.lab import Lab, Prepared
from torchmark.runner.prepare import Models, Preparation, prepare
from torchmark.runner.spec import own_worker
from torchmark.runner.worker import Worker, count, measure_time

FAULTS = r"""
from torchmark import GroupedModules, GroupedSetup, GroupedStmts, GroupedVariants, TimerArgs

CHECK = True
SETUP = GroupedSetup(
    "x = torch.ones(2); w = torch.ones(2, requires_grad=True); n = 3",
    "auto x = torch::ones({2}); auto w = torch::ones({2}, torch::requires_grad()); int n = 3;",
)


def both(python, cpp, signature=None, **options):
    return GroupedStmts(python, cpp, setup=SETUP, signature=signature, **options)


def script(python, **options):
    return GroupedStmts(python, setup=SETUP, signature="f(x) -> y", torchscript=True, **options)


BENCHMARKS = {
    "other output": both("y = x + w", "auto y = x - w;", "f(x, w) -> y"),
    "other gradient": both(
        "y = (x * w).sum()", "auto y = (x * (2 * w - w.detach())).sum();", "f(x, w, n) -> y", autograd=True
    ),
    "other type": both("y = x.double()", "auto y = x;", "f(x) -> y"),
    "other variable": both("x += 1", "x += 2;"),
    "other value": both("x + 1", "x + 2;"),
    "other script": script("y = x + 1 if torch.jit.is_scripting() else x", num_threads=(1, 2)),
    "not checked": both("x + 1", "x + 2;", check=False),
    "several outputs": both("a, b = x + 1, x.size()", "auto a = x + 1; auto b = x.sizes();", "f(x) -> a, b"),
    "several outputs of TorchScript": both(
        "a, b = x + 1, x - 1", "auto a = x + 1; auto b = x - 1;", "f(x) -> a, b", torchscript=True
    ),
    "number as argument": both(
        "y = (x * w).sum() * n", "auto y = (x * w).sum() * n;", "f(x, w, n) -> y", autograd=True
    ),
    "file scope": GroupedVariants(
        "# @setup\nx = torch.ones(1)\n# @a\nx * 3",
        "// @global_setup\nstatic int three() { return 3; }\n"
        "// @setup\nauto x = torch::ones({1});\n// @a\nx * three();",
    ),
    "no script": script("y = x + len(locals())"),
    "does not compile": both("x + 1", "x + (;"),
    "crashes": both("y = x + 1", "auto y = x + 1; *(volatile int *)8 = 1;", "f(x) -> y"),
    "raises": both("y = x + nothing", "auto y = x + 1;", "f(x) -> y"),
    "as it is": TimerArgs("x + 1", "x = torch.ones(1)"),
}
"""
# What is not measured, and why; all else is.
EXPECTED = {
    ("other output", "Eager", "C++"): FailureKind.DIFFERENT,
    ("other gradient", "Eager", "C++"): FailureKind.DIFFERENT,
    ("other type", "Eager", "C++"): FailureKind.DIFFERENT,
    ("other variable", "Eager", "C++"): FailureKind.DIFFERENT,
    ("other value", "Eager", "C++"): FailureKind.DIFFERENT,
    ("other script", "TorchScript", "Python"): FailureKind.DIFFERENT,
    ("no script", "TorchScript", "Python"): FailureKind.RAISED,
    ("does not compile", "Eager", "C++"): FailureKind.NOT_COMPILED,
    ("crashes", "Eager", "C++"): FailureKind.CRASHED,
    ("raises", "Eager", "Python"): FailureKind.RAISED,
}
PLACE = Place(os.getcwd())
# Enough for a few blocks.
RUN_TIME_S = 0.0005


@pytest.fixture(scope="module")
def timer() -> Iterator[Worker]:
    worker = Worker(dataclasses.replace(own_worker(os.environ, counting=False), checking=True))
    yield worker
    worker.close()


Made = Mapping[Case, Prepared | Failure]


@contextlib.contextmanager
def preparing(paths: Sequence[str], timer: Worker) -> Iterator[Made]:
    found = discover(paths)
    assert found.faults == ()
    # What torch.compile makes of a case is tested elsewhere: each takes seconds to compile.
    cases = [case for case in found.cases if case.autolabels.runtime is not RuntimeMode.COMPILE]
    lab = SimpleNamespace(timer=timer, compile_timer=SimpleNamespace(worker=timer), place=lambda case: PLACE)
    # What a statement computes does not depend on it, and hundreds of them take a compiler less time.
    environ = {**os.environ, "CXXFLAGS": "-O0"}
    with Models(os.environ) as models:
        yield prepare(cases, Preparation(cast(Lab, lab), models, environ))


@pytest.fixture(scope="module")
def prepared(timer: Worker) -> Iterator[Made]:
    """Both suites."""
    with preparing(["standard", "modern"], timer) as made:
        yield made
    assert not Models(os.environ).folder.exists()


def describe(failures: Mapping[Case, Failure]) -> str:
    return "\n".join(
        f"{case.key}\n{failure.message}\n{describe_failure(failure)}" for case, failure in failures.items()
    )


def test_all_variants_of_both_suites_are_ready_and_compute_the_same(prepared: Made) -> None:
    failures = {case: outcome for case, outcome in prepared.items() if isinstance(outcome, Failure)}
    assert not failures, describe(failures)
    # None for want of something to compare.
    unchecked = [c.key for c, o in prepared.items() if c.check and not (isinstance(o, Prepared) and o.check)]
    assert unchecked == []


def test_every_case_of_both_suites_can_be_timed(prepared: Made, timer: Worker) -> None:
    outcomes = {case: time(outcome, timer) for case, outcome in prepared.items()}
    failures = {case: outcome for case, outcome in outcomes.items() if isinstance(outcome, Failure)}
    assert not failures, describe(failures)
    assert len(outcomes) > 300


def time(outcome: Prepared | Failure, timer: Worker) -> Times | Failure:
    if isinstance(outcome, Failure):
        return outcome
    args = outcome.case.args
    return measure_time(
        timer,
        TimeJob(
            stmt=args.stmt,
            setup=args.setup,
            place=PLACE,
            threads=args.num_threads,
            min_run_time_s=RUN_TIME_S,
            max_run_time_s=1.0,
            compiled=outcome.compiled,
        ),
    )


def test_cases_of_every_kind_can_be_counted(prepared: Made, counting_worker: Worker) -> None:
    # All of them take minutes, without telling more.
    kinds = {(case.suite, case.autolabels): outcome for case, outcome in prepared.items()}
    failures: dict[Case, Failure] = {}
    for outcome in kinds.values():
        assert isinstance(outcome, Prepared)
        args = outcome.case.args
        job = CountJob(
            stmt=args.stmt,
            setup=args.setup,
            place=PLACE,
            number=10,
            threads=1,
            layouts=(BARE_LAYOUT,),
            compiled=outcome.compiled,
        )
        counts = count(counting_worker, job, baseline=False)
        if isinstance(counts, Failure):
            failures[outcome.case] = counts
        else:
            assert isinstance(counts, Counts)
            assert counts.layouts[0].total() > 0
    assert not failures, describe(failures)


@pytest.fixture(scope="module")
def outcomes(timer: Worker, tmp_path_factory: pytest.TempPathFactory) -> dict[Case, Times | Failure]:
    """What becomes of the suite of faults."""
    path = tmp_path_factory.mktemp("mine") / "bench_faults.py"
    path.write_text(FAULTS)
    with preparing([str(path)], timer) as made:
        return {case: time(outcome, timer) for case, outcome in made.items()}


def test_what_differs_or_fails_is_not_measured_and_all_else_is(outcomes: Mapping[Case, Times | Failure]) -> None:
    failed = {
        (case.label[0], case.autolabels.as_dict["runtime"], case.autolabels.as_dict["language"]): outcome.kind
        for case, outcome in outcomes.items()
        if isinstance(outcome, Failure)
    }
    assert failed == EXPECTED


def find(outcomes: Mapping[Case, Times | Failure], label: str, **wanted: object) -> list[Times | Failure]:
    return [
        outcome
        for case, outcome in outcomes.items()
        if case.label[0] == label and all(getattr(case.autolabels, name) == value for name, value in wanted.items())
    ]


def test_a_difference_names_what_differs_and_from_what(outcomes: Mapping[Case, Times | Failure]) -> None:
    def message(label: str) -> str:
        return next(outcome.message for outcome in find(outcomes, label) if isinstance(outcome, Failure))

    assert message("other output").startswith("It does not compute what Python (Eager) does. y differs: ")
    assert "w.grad differs" in message("other gradient")
    assert "x differs" in message("other variable")
    assert "the value differs" in message("other value")


def test_a_difference_costs_all_thread_counts_of_its_variant(outcomes: Mapping[Case, Times | Failure]) -> None:
    scripted = find(outcomes, "other script", runtime=RuntimeMode.JIT)
    assert [isinstance(outcome, Failure) for outcome in scripted] == [True, True]


def test_a_model_that_torchscript_refuses_says_so(outcomes: Mapping[Case, Times | Failure]) -> None:
    (refused,) = find(outcomes, "no script", runtime=RuntimeMode.JIT)
    assert isinstance(refused, Failure)
    assert refused.message.startswith("There is no TorchScript of this model: ")


def test_a_fault_in_python_does_not_cost_the_cpp_beside_it(outcomes: Mapping[Case, Times | Failure]) -> None:
    (python,) = find(outcomes, "raises", language=Language.PYTHON)
    assert isinstance(python, Failure)
    assert "name 'nothing' is not defined" in (python.traceback or "")
    assert [type(outcome) for outcome in find(outcomes, "raises", language=Language.CPP)] == [Times]
