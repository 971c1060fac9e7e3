"""What is told of inputs that failed."""

from __future__ import annotations

import pytest

from torchmark.model.outcome import Failure, FailureKind
from torchmark.report.text.failures import HOPELESS, KINDS_SHOWN, describe_failure, describe_input_failures, is_hopeless

TRACE = "Traceback (most recent call last):\nValueError: no\n"


@pytest.mark.parametrize(
    ("failure", "text"),
    [
        (Failure(FailureKind.RAISED, "ValueError: no", TRACE), TRACE.strip()),
        (
            Failure(FailureKind.RAISED, "It fails when it is run once.", TRACE),
            f"It fails when it is run once.\n{TRACE}",
        ),
        (Failure(FailureKind.NOT_COMPILED, "Line 1: no.", "<stmt>:1: error: no\n"), "<stmt>:1: error: no"),
        (Failure(FailureKind.NOT_COMPILED, "Nothing was compiled."), "Nothing was compiled."),
        (Failure(FailureKind.TIMED_OUT, "It did not end.\n"), "It did not end."),
        (
            Failure(FailureKind.CRASHED, "The process was ended by SIGSEGV.", stderr="bad\n"),
            "The process was ended by SIGSEGV.\nIts last words on standard error:\n  bad",
        ),
    ],
)
def test_what_happened_is_said_once(failure: Failure, text: str) -> None:
    assert describe_failure(failure) == text.strip()


BROKEN = Failure(FailureKind.RAISED, "ValueError: no", "Traceback\nValueError: no")


def shape_failure(index: int, stmt: int = 1) -> Failure:
    message = f"RuntimeError: shape '[3]' is invalid for input of size {list(range(index + 1))}"
    return Failure(FailureKind.RAISED, message, f'Traceback\n  File "<stmt {stmt}>", line 1\n{message}')


def test_the_same_failure_is_told_once_with_its_inputs() -> None:
    lines = describe_input_failures([(i, BROKEN) for i in range(3, 13)], 13, 13)
    assert lines == ["Failed on 10 inputs (3, 4, 5, 6, 7, 8, 9, 10, ...):", "Traceback\nValueError: no"]


def test_failures_that_differ_in_sizes_are_told_once_and_the_first_is_shown() -> None:
    head, text = describe_input_failures([(i, shape_failure(i)) for i in range(3)], 3, 3)
    assert head == "Failed on 3 inputs (0, 1, 2), the first of them so:"
    assert text.endswith("of size [0]")


def test_failures_of_different_statements_are_told_apart() -> None:
    assert len(describe_input_failures([(0, shape_failure(0, 1)), (1, shape_failure(0, 2))], 2, 2)) == 4


def test_of_many_sorts_the_most_frequent_are_told() -> None:
    failures = [(i, Failure(FailureKind.RAISED, f"ValueError: {chr(97 + i)}")) for i in range(KINDS_SHOWN + 2)]
    lines = describe_input_failures([*failures, (20, failures[-1][1])], 20, 20)
    assert lines[:2] == ["Failed on 2 inputs (6, 20):", "ValueError: g"]
    assert lines[-1] == "Failed in other ways: 2 inputs. With --json, all are written."


def test_what_fails_everywhere_with_the_same_words_is_hopeless() -> None:
    assert is_hopeless([BROKEN] * HOPELESS, HOPELESS, 100)
    assert not is_hopeless([BROKEN] * HOPELESS, HOPELESS + 1, 100)
    assert not is_hopeless([shape_failure(i) for i in range(HOPELESS)], HOPELESS, 100)
    assert describe_input_failures([(i, BROKEN) for i in range(HOPELESS)], HOPELESS, 100)[-1].startswith(
        "The other 90 were not"
    )
