from __future__ import annotations

import pytest

from torchmark.model.outcome import Failure, FailureKind
from torchmark.runner.link import Ending
from torchmark.runner.worker import _judge
from torchmark.wire.messages import Counted, Failed


@pytest.mark.parametrize(
    ("ending", "kind", "text"),
    [
        (Ending(Failed("raised", "ValueError: x", "Traceback"), 9, False, "", ""), FailureKind.RAISED, "ValueError"),
        (Ending(Failed("raised", "ValueError: x", None), 9, True, "", ""), FailureKind.RAISED, "ValueError"),
        (Ending(None, 9, True, "", ""), FailureKind.TIMED_OUT, "within 2.5 s"),
        (Ending(None, 9, False, "", ""), FailureKind.CRASHED, "SIGKILL"),
        (Ending(None, 0, False, "", ""), FailureKind.NO_RESULT, "without a result"),
    ],
)
def test_the_most_telling_reason_is_given(ending: Ending, kind: FailureKind, text: str) -> None:
    failure = _judge(ending, 2.5)
    assert isinstance(failure, Failure)
    assert failure.kind is kind
    assert text in failure.message


def test_an_answer_counts_although_the_time_was_up_or_the_process_killed() -> None:
    assert _judge(Ending(Counted(), 9, True, "", ""), 1.0) == Counted()
