from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from torchmark.model.job import CheckJob, Place, Way
from torchmark.model.outcome import Failure, FailureKind, may_pass_later
from torchmark.model.plan import AutogradMode, AutoLabels, Case, RuntimeMode, TimerArgs
from torchmark.model.task import Compiled, Language
from torchmark.runner.lab import Lab, Prepared, VariantChecker
from torchmark.runner.worker import Reply
from torchmark.worker.protocol import Checked

PLACE = Place("/")
Answer = Callable[[CheckJob], "Checked | Failure"]


class FakeWorker:
    """Answers by looking at the two statements."""

    def __init__(self, answer: Answer) -> None:
        self._answer = answer
        self.pairs: list[tuple[str, str]] = []

    def run(self, job: CheckJob, timeout_s: float) -> Reply | Failure:
        self.pairs.append((job.first.stmt, job.second.stmt))
        answer = self._answer(job)
        return answer if isinstance(answer, Failure) else Reply(answer, ())


def make_case(name: str, runtime: RuntimeMode, *, threads: int = 1, label: str = "add") -> tuple[Case, Prepared]:
    labels = AutoLabels(runtime, AutogradMode.FORWARD, Language.PYTHON)
    case = Case((label,), labels, TimerArgs(name, num_threads=threads))
    return case, Prepared(case, check=Way(name, ""))


EAGER = make_case("eager", RuntimeMode.EAGER)
SCRIPT = make_case("script", RuntimeMode.JIT)
SCRIPT_2 = make_case("script", RuntimeMode.JIT, threads=2)
COMPILED = make_case("compiled", RuntimeMode.COMPILE)
CRASH = Failure(FailureKind.CRASHED, "The process was ended by SIGSEGV.")
ALL = dict([EAGER, SCRIPT, SCRIPT_2, COMPILED])


def compare(prepared: dict[Case, Prepared | Failure], answer: Answer) -> tuple[dict[Case, Failure], FakeWorker]:
    worker = FakeWorker(answer)
    lab = SimpleNamespace(timer=worker, compile_timer=SimpleNamespace(worker=worker), place=lambda case: PLACE)
    return dict(VariantChecker(cast(Lab, lab), 9.0).compare(prepared)), worker


def test_every_variant_is_held_to_the_first_whatever_its_threads() -> None:
    problems, worker = compare({**ALL}, lambda job: Checked(None))
    assert problems == {}
    assert worker.pairs == [("eager", "script"), ("eager", "compiled")]


def test_one_that_differs_fails_with_all_its_thread_counts_and_costs_no_other() -> None:
    problems, _ = compare({**ALL}, lambda job: Checked("y differs" if job.second.stmt == "script" else None))
    assert set(problems) == {SCRIPT[0], SCRIPT_2[0]}
    assert problems[SCRIPT[0]].kind is FailureKind.DIFFERENT
    assert problems[SCRIPT[0]].message == "It does not compute what Python (Eager) does. y differs"


def test_if_the_first_cannot_be_run_the_next_one_is_the_witness() -> None:
    problems, worker = compare({**ALL}, lambda job: Checked("boom", 0 if job.first.stmt == "eager" else None))
    assert worker.pairs == [("eager", "script"), ("script", "compiled")]
    assert set(problems) == {COMPILED[0]}


def test_one_that_raises_is_told_with_its_own_traceback() -> None:
    problems, _ = compare({**ALL}, lambda job: Checked("Traceback", 1 if job.second.stmt == "script" else None))
    assert problems[SCRIPT[0]].traceback == "Traceback"


def test_one_that_crashes_cannot_be_compared_and_is_told_so() -> None:
    problems, _ = compare({**ALL}, lambda job: CRASH if job.second.stmt == "script" else Checked(None))
    assert problems[SCRIPT[0]].kind is FailureKind.CRASHED
    assert problems[SCRIPT[0]].message.startswith("Its results could not be compared with those of Python (Eager)")


def test_if_the_first_crashes_alone_too_nobody_else_is_blamed() -> None:
    problems, worker = compare({**ALL}, lambda job: CRASH if job.first.stmt == "eager" else Checked(None))
    assert problems == {}
    assert worker.pairs == [("eager", "script"), ("eager", "eager"), ("script", "compiled")]


def test_the_smallest_number_of_threads_is_the_one_that_is_compared() -> None:
    two, one = (make_case(f"on {n}", RuntimeMode.JIT, threads=n) for n in (2, 1))
    _, worker = compare(dict([EAGER, two, one]), lambda job: Checked(None))
    assert worker.pairs == [("eager", "on 1")]


@pytest.mark.parametrize("lonely", [dict([EAGER]), {EAGER[0]: Prepared(EAGER[0]), SCRIPT[0]: SCRIPT[1]}])
def test_what_has_nobody_to_be_compared_with_is_left_alone(lonely: dict[Case, Prepared | Failure]) -> None:
    problems, worker = compare(lonely, lambda job: Checked("never asked"))
    assert problems == {}
    assert worker.pairs == []


def test_groups_are_not_held_to_each_other() -> None:
    other = make_case("other", RuntimeMode.EAGER, label="multiply")
    _, worker = compare(dict([EAGER, other]), lambda job: Checked(None))
    assert worker.pairs == []


def test_a_variant_that_failed_before_is_passed_over() -> None:
    failed: dict[Case, Prepared | Failure] = {**ALL, EAGER[0]: Failure(FailureKind.NOT_COMPILED, "no")}
    _, worker = compare(failed, lambda job: Checked(None))
    assert worker.pairs == [("script", "compiled")]


def test_who_is_killed_gets_another_chance() -> None:
    killed = iter([Failure(FailureKind.CRASHED, "The process was ended by SIGKILL.")])
    problems, _ = compare({**ALL}, lambda job: next(killed, Checked(None)))
    assert problems == {}


def test_a_machine_that_fails_convicts_nobody_and_passes_nobody() -> None:
    def fail(job: CheckJob) -> Checked:
        raise OSError(28, "No space left on device")

    problems, _ = compare({**ALL}, fail)
    assert set(problems) == {SCRIPT[0], SCRIPT_2[0], COMPILED[0]}
    assert all(may_pass_later(problem) for problem in problems.values())


def test_what_fails_because_its_files_are_gone_from_the_cache_may_pass_later(tmp_path: Path) -> None:
    library = tmp_path / "library.so"
    way = Compiled(str(library), "key")
    case = EAGER[0]
    failure = Failure(FailureKind.RAISED, "The compiled snippet cannot be loaded.")
    for prepared in (
        Prepared(case, way),
        Prepared(case, check=Way("", "", way)),
        Prepared(case, model=str(library)),
    ):
        library.touch()
        assert prepared.excuse(failure) == failure
        library.unlink()
        assert may_pass_later(prepared.excuse(failure))
        assert str(library) in prepared.excuse(failure).message


@pytest.mark.parametrize("failed", [0, 1])
def test_variants_are_not_blamed_for_files_that_are_gone(failed: int) -> None:
    gone = Prepared(SCRIPT[0], check=Way("script", "", Compiled("/nowhere/library.so", "key")))
    problems, _ = compare({**dict([EAGER]), SCRIPT[0]: gone}, lambda job: Checked("not loaded", failed))
    assert may_pass_later(problems[SCRIPT[0]])
