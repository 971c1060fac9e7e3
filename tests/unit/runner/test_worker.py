from __future__ import annotations

import pytest

from torchmark.errors import SetupError
from torchmark.model.outcome import Failure, FailureKind
from torchmark.runner.link import Ending, LinkLost
from torchmark.runner.spec import own_worker
from torchmark.runner.worker import Worker, _judge
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


@pytest.mark.parametrize("losses", [1, 2])
def test_a_zygote_that_is_lost_while_it_starts_is_started_once_more(
    monkeypatch: pytest.MonkeyPatch, losses: int
) -> None:
    worker = Worker(own_worker({}, counting=False))
    lost = iter([LinkLost("ended")] * losses)

    def open_link() -> str:
        for loss in lost:
            raise loss
        return "a link"

    monkeypatch.setattr(worker, "_open_link", open_link)
    if losses == 1:
        worker.start()
        assert worker.is_up
    else:
        with pytest.raises(SetupError, match="cannot be used: it ended"):
            worker.start()
