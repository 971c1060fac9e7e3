from __future__ import annotations

import os
import shutil
from pathlib import Path

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


PROFILE = "version: 1\ndesc: Trigger: Client Request: layout 0\nevents: Ir\n"


@pytest.fixture
def idle(tmp_path: Path) -> Worker:
    """One whose job has just ended."""
    worker = Worker(own_worker({}, counting=False))
    worker._scratch = tmp_path / "scratch"
    worker._scratch.mkdir()
    (worker._scratch / "1").write_text(PROFILE)
    return worker


def test_profiles_are_taken_and_nothing_is_left(idle: Worker) -> None:
    assert idle._scratch is not None
    (idle._scratch / "2").write_text(PROFILE.replace("layout 0", "discarded"))
    (idle._scratch / "3").write_text("something else")
    assert idle._collect() == (PROFILE,)
    assert list(idle._scratch.iterdir()) == []


def test_whatever_a_job_puts_beside_its_profiles_is_removed_unread(idle: Worker, tmp_path: Path) -> None:
    assert idle._scratch is not None
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "file").write_text(PROFILE.replace("layout 0", "layout 1"))
    (idle._scratch / "folder" / "in it").mkdir(parents=True)
    os.mkfifo(idle._scratch / "pipe")
    (idle._scratch / "link").symlink_to(outside / "file")
    (idle._scratch / "folder link").symlink_to(outside)
    with (idle._scratch / "large").open("w") as file:
        file.write(PROFILE)
        file.truncate((1 << 30) + 1)
    assert idle._collect() == (PROFILE,)
    assert list(idle._scratch.iterdir()) == []
    assert (outside / "file").exists()


def test_a_job_that_removes_its_folder_costs_the_next_one_nothing(idle: Worker) -> None:
    assert idle._scratch is not None
    shutil.rmtree(idle._scratch)
    assert idle._collect() == ()
    # The next job starts another zygote, in a folder of its own.
    assert idle._scratch is None
    assert not idle.is_up


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
