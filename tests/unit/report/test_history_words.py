from __future__ import annotations

import dataclasses

import pytest

from tests.made_histories import ADD, OWN
from tests.sample_runs import COUNT, WALL
from torchmark.model.history import Difference, Ground, History, Shift, ShiftStanding
from torchmark.report.text.history import Words, spell_command

OPEN = Shift(
    metrics=(WALL,),
    position=5,
    previous=4,
    standing=ShiftStanding.UNCONFIRMED,
    ground=Ground.NONE,
    before=0.0,
    after=0.0953101798,
    pythons=("/a/python", "/b c/python"),
)


@pytest.mark.parametrize("ground", Ground)
def test_every_ground_has_words(ground: Ground) -> None:
    text = Words().tell(dataclasses.replace(OPEN, ground=ground, others=3, common=0.1))
    assert text.startswith("time +10.0 %, unconfirmed: ")
    assert text.endswith(".")


def test_a_version_stands_for_its_commit_and_commits_are_short() -> None:
    differences = (
        Difference("torch", "2.12", "2.13"),
        Difference("torch commit", "0" * 40, "1" * 40),
        Difference("commit", None, "2" * 40),
        Difference("$MKL_CBWR", "\x1b[1m" + "x" * 100, None),
    )
    text = Words(plain=True).tell(dataclasses.replace(OPEN, differences=differences))
    assert "torch 2.12 -> 2.13, commit none -> 2222222222, $MKL_CBWR  [1mxxx" in text
    assert text.endswith("… -> none.")
    assert "11111" not in text
    assert "1111111111." in Words().tell(dataclasses.replace(OPEN, differences=differences[1:2]))


def test_from_no_instructions_at_all_there_is_no_share() -> None:
    shift = Shift(
        metrics=(COUNT,),
        position=1,
        previous=0,
        standing=ShiftStanding.CONFIRMED,
        ground=Ground.EXACT,
        before=0.0,
        after=1234.0,
    )
    assert Words().tell(shift) == "instructions +1,234, confirmed: counts are exact."


def test_a_command_quotes_what_has_to_be_quoted() -> None:
    case = dataclasses.replace(ADD, label=('a "b"',), suite="my suite.py")
    history = History(case, OWN, (), ())
    there = {"/a/python", "/b c/python"}
    command = spell_command(history, OPEN, there)
    assert command == (
        "torchmark ab 'my suite.py' --base /a/python --head '/b c/python' -k '\"a \"\"b\"\"\" and python'"
    )
    assert spell_command(history, dataclasses.replace(OPEN, standing=ShiftStanding.CONFIRMED), there) is None
    assert spell_command(history, dataclasses.replace(OPEN, pythons=None), there) is None
    assert spell_command(history, OPEN, {"/a/python"}) is None
