from __future__ import annotations

import pytest

from torchmark.model.outcome import Failure, FailureKind
from torchmark.report.text.failures import describe_failure

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
    ],
)
def test_what_happened_is_said_once(failure: Failure, text: str) -> None:
    assert describe_failure(failure) == text.strip()
