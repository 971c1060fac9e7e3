from __future__ import annotations

from collections.abc import Callable

import pytest

from torchmark.errors import UsageError, WorkerError
from torchmark.model.costs import Counts
from torchmark.model.job import CountJob, Place
from torchmark.model.outcome import Failure, FailureKind, may_pass_later
from torchmark.runner.worker import Reply, count, retry_if_killed
from torchmark.worker.protocol import Counted

JOB = CountJob("x", "", Place("/"), layouts=(0,))
PROFILE = """version: 1
desc: Trigger: Client Request: layout 0
events: Ir
fl=(1) a.c
fn=(1) f
1 5
totals: 5
"""


class FakeWorker:
    """Has a profile ready."""

    def __init__(self, text: str) -> None:
        self._text = text

    def run(self, *arguments: object) -> Reply:
        return Reply(Counted(), (self._text,))


def count_from(text: str) -> Counts | Failure:
    return count(FakeWorker(text), JOB, baseline=False)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["f", "f\x0cg", "f\u2028g", "f\x1cg", "f\x85g"])
def test_a_profile_is_read_whatever_names_are_in_it(name: str) -> None:
    counts = count_from(PROFILE.replace("(1) f", f"(1) {name}"))
    assert isinstance(counts, Counts)
    assert [function.name for function in counts.layouts[0].exclusive] == [name]


@pytest.mark.parametrize(
    "text",
    [
        PROFILE.replace("events: Ir", "events: Dr"),
        PROFILE.replace("1 5", f"1 {2**63}").replace("totals: 5", f"totals: {2**63}"),
        PROFILE.replace("1 5", "1 -5").replace("totals: 5", "totals: -5"),
        PROFILE.replace("totals: 5\n", ""),
        PROFILE.replace("layout 0", "layout 1"),
        "",
    ],
)
def test_something_else_than_the_profile_is_no_result(text: str) -> None:
    failure = count_from(text)
    assert isinstance(failure, Failure)
    assert failure.kind is FailureKind.NO_RESULT


KILLED = Failure(FailureKind.CRASHED, "The process was ended by SIGKILL.")


def answers(*given: object) -> Callable[[], Failure | str]:
    remaining = list(given)

    def attempt() -> Failure | str:
        answer = remaining.pop(0)
        if isinstance(answer, Exception):
            raise answer
        assert isinstance(answer, (Failure, str))
        return answer

    return attempt


@pytest.mark.parametrize(
    "failure",
    [
        KILLED,
        Failure(FailureKind.CRASHED, "The process was ended by SIGTERM."),
        Failure(FailureKind.WORKER_DIED, ""),
        Failure(FailureKind.NO_RESULT, ""),
    ],
)
def test_bad_luck_gets_a_second_chance_and_no_third(failure: Failure) -> None:
    assert retry_if_killed(answers(failure, "fine")) == "fine"
    assert retry_if_killed(answers(failure, failure, "fine")) == failure


@pytest.mark.parametrize(
    "failure",
    [
        Failure(FailureKind.CRASHED, "The process was ended by SIGSEGV."),
        Failure(FailureKind.RAISED, "SIGKILL"),
        Failure(FailureKind.TIMED_OUT, ""),
        Failure(FailureKind.OUT_OF_MEMORY, ""),
    ],
)
def test_a_fault_of_its_own_does_not(failure: Failure) -> None:
    assert retry_if_killed(answers(failure, "fine")) == failure


def test_a_worker_that_does_not_stay_up_is_a_failure() -> None:
    error = WorkerError("It does not stay up.", kind="worker")
    assert retry_if_killed(answers(error, "fine")) == "fine"
    assert retry_if_killed(answers(error, error)) == Failure(FailureKind.WORKER_DIED, "It does not stay up.")


def test_a_worker_that_was_given_up_is_not_asked_again() -> None:
    with pytest.raises(WorkerError):
        retry_if_killed(answers(WorkerError("Given up.", kind="abandoned"), "fine"))


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), UsageError("The working folder is gone.")])
def test_a_machine_that_lacks_something_is_a_failure_that_may_pass_another_time(error: Exception) -> None:
    failure = retry_if_killed(answers(error))
    assert failure == Failure(FailureKind.MISSING, str(error))
    assert may_pass_later(failure)
