from __future__ import annotations

import pytest

from torchmark.model.compiling import FirstCall
from torchmark.model.job import CheckJob, CompileJob, CountJob, DuelJob, GaugeJob, Job, Place, RaceJob, TimeJob, Way
from torchmark.model.outcome import FailureKind
from torchmark.runner.worker import check_answer
from torchmark.wire.messages import Checked, Counted, Dueled, Failed, Gauged, Message, Raced, Separate, Started, Timed

HERE = Place("/")
COUNT = CountJob("x", "", HERE, layouts=(1, 2))
TIME = TimeJob("x", "", HERE)
RACE = RaceJob(("x", "y"), "", HERE)
DUEL = DuelJob(stmt="x", setup="", place=HERE, number=5, warm=1, firsts=(0, 1))
TOGETHER = DuelJob(stmt="x", setup="", place=HERE, number=5, warm=1, firsts=(0, 1), rival="y")
ONE_SIDE = Dueled(((1.0, 2.0),), ((0, 0),), ((0, 0),))
TWO_SIDES = Dueled(((1.0, 2.0), (1.0, 2.0)), ((0, 0), (0, 0)), ((0, 0), (0, 0)))


@pytest.mark.parametrize(
    ("job", "answer"),
    [
        (COUNT, Counted()),
        (COUNT, Separate(2)),
        (TIME, Timed(3, (1.0,), None)),
        (TimeJob("x", "", HERE, number=7), Timed(7, (1.0,), None)),
        (TimeJob("x", "", HERE, number=7, blocks=2), Timed(7, (1.0, 2.0), 0.0)),
        (RACE, Raced((1, 2), ((1.0,), (2.0,)))),
        (GaugeJob("x", "", HERE), Gauged(1.0, 2.0)),
        (DUEL, ONE_SIDE),
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
        (COUNT, Timed(1, (1.0,), None)),
        (CountJob("x", "", HERE, layouts=(1,)), Separate(2)),
        (TimeJob("x", "", HERE, number=7), Timed(8, (1.0,), None)),
        (TimeJob("x", "", HERE, number=7, blocks=2), Timed(7, (1.0,), None)),
        (RACE, Raced((1,), ((1.0,),))),
        (DUEL, TWO_SIDES),
        (TOGETHER, ONE_SIDE),
        (DUEL, Dueled(((1.0,),), ((0,),), ((0,),))),
    ],
)
def test_an_answer_to_another_question_is_a_failure(job: Job, answer: Message) -> None:
    found = check_answer(job, answer)
    assert isinstance(found, Failed)
    assert found.failure == FailureKind.NO_RESULT.value
