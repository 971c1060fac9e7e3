from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import NoReturn

import pytest

from tests.sample_runs import ENVIRONMENT
from torchmark.errors import SetupError
from torchmark.model.job import (
    CheckJob,
    CompileJob,
    CountJob,
    GaugeJob,
    Job,
    PairJob,
    Place,
    RaceJob,
    SideBlocks,
    TimeJob,
    Way,
)
from torchmark.model.outcome import Failure, FailureKind, FirstCall
from torchmark.model.plan import AutogradMode, AutoLabels, Case, Metric, Order, RuntimeMode, Sampling, Target, TimerArgs
from torchmark.model.task import Language, Times
from torchmark.processes import LARGEST_KEPT, skip_small_pids
from torchmark.runner.lab import Lab, Prepared, carry_out
from torchmark.runner.link import Ending, LinkLost
from torchmark.runner.spec import own_worker
from torchmark.runner.worker import ATTEMPTS, Worker, _judge, check_answer
from torchmark.worker.protocol import (
    Checked,
    Counted,
    Failed,
    Gauged,
    Message,
    PairTimed,
    Raced,
    Separate,
    Started,
)

HERE = Place("/")
COUNT = CountJob("x", "", HERE, layouts=(1, 2))
TIME = TimeJob("x", "", HERE)
RACE = RaceJob(("x", "y"), "", HERE)
PAIR = PairJob(stmt="x", setup="", place=HERE, number=5, warm=1, firsts=(0, 1))
TOGETHER = PairJob(stmt="x", setup="", place=HERE, number=5, warm=1, firsts=(0, 1), partner="y")
BLOCKS = SideBlocks((1.0, 2.0), (0, 0), (0, 0))
ONE_SIDE = PairTimed((BLOCKS,))
TWO_SIDES = PairTimed((BLOCKS, BLOCKS))


@pytest.mark.parametrize(
    ("job", "answer"),
    [
        (COUNT, Counted()),
        (COUNT, Separate(2)),
        (TIME, Times(3, (1.0,))),
        (TimeJob("x", "", HERE, number=7), Times(7, (1.0,))),
        (TimeJob("x", "", HERE, number=7, blocks=2), Times(7, (1.0, 2.0), 0.0)),
        (RACE, Raced((Times(1, (1.0,)), Times(2, (2.0,))))),
        (GaugeJob("x", "", HERE), Gauged(1.0)),
        (PAIR, ONE_SIDE),
        (TOGETHER, TWO_SIDES),
        (CompileJob("x", "", HERE), FirstCall(2.0, 1.0, 1, 0)),
        (CheckJob(Way("x", ""), Way("y", ""), HERE), Checked(None)),
        (TIME, Failed("raised", "ValueError", None)),
        (TIME, None),
    ],
)
def test_what_a_job_asks_for_is_believed(job: Job, answer: Message | None) -> None:
    assert check_answer(job, answer) is answer


@pytest.mark.parametrize(
    ("job", "answer"),
    [
        (TIME, Counted()),
        (TIME, Started(7)),
        (TIME, COUNT),
        (COUNT, Times(1, (1.0,))),
        (CountJob("x", "", HERE, layouts=(1,)), Separate(2)),
        (TimeJob("x", "", HERE, number=7), Times(8, (1.0,))),
        (TimeJob("x", "", HERE, number=7, blocks=2), Times(7, (1.0,))),
        (RACE, Raced((Times(1, (1.0,)),))),
        (PAIR, TWO_SIDES),
        (TOGETHER, ONE_SIDE),
        (PAIR, PairTimed((SideBlocks((1.0,), (0,), (0,)),))),
    ],
)
def test_an_answer_to_another_question_is_a_failure(job: Job, answer: Message) -> None:
    found = check_answer(job, answer)
    assert isinstance(found, Failed)
    assert found.failure == FailureKind.NO_RESULT.value


@pytest.mark.parametrize(("pid", "started"), [(7, 1), (LARGEST_KEPT, 1), (LARGEST_KEPT + 1, 0), (70_000, 0)])
def test_numbers_are_used_up_only_where_they_are_small(monkeypatch: pytest.MonkeyPatch, pid: int, started: int) -> None:
    run, codes = subprocess.run, []

    def note(*args: object, **options: object) -> None:
        codes.append(run(*args, **options).returncode)  # type: ignore[call-overload]

    monkeypatch.setattr(os, "getpid", lambda: pid)
    monkeypatch.setattr(subprocess, "run", note)
    skip_small_pids()
    assert codes == [0] * started


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


class LostLink:
    """A zygote that is lost with each job: before the job has begun, or once it has."""

    def __init__(self, job: int | None) -> None:
        self.job = job

    def carry_out(self, *_: object) -> NoReturn:
        raise LinkLost("was killed", self.job)

    def read_log(self) -> str:
        return ""

    def close(self, *_: object) -> None: ...

    kill = close


@pytest.mark.parametrize("loses", ["while it starts", "before a job", "with a job"])
def test_a_worker_that_does_not_stay_up_is_started_twice_and_no_more(
    monkeypatch: pytest.MonkeyPatch, loses: str
) -> None:
    starts: list[LostLink] = []

    def open_link(worker: Worker) -> LostLink:
        starts.append(LostLink(7 if loses == "with a job" else None))
        worker._environment = ENVIRONMENT
        if loses == "while it starts":
            raise LinkLost("was killed")
        return starts[-1]

    monkeypatch.setattr(Worker, "_open_link", open_link)
    monkeypatch.setattr(Worker, "pin", lambda *_: None)
    lab = Lab(Target(), {})
    case = Case(("x",), AutoLabels(RuntimeMode.EXPLICIT, AutogradMode.EXPLICIT, Language.PYTHON), TimerArgs("x"))
    order = Order(case, Target(), Metric.WALL)
    outcome = carry_out(lab, order, Prepared(case), Sampling(), (0,))
    assert isinstance(outcome.result, Failure)
    kind = FailureKind.MISSING if loses == "while it starts" else FailureKind.WORKER_DIED
    assert outcome.result.kind is kind
    assert len(starts) == ATTEMPTS
