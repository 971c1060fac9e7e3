from __future__ import annotations

import dataclasses
import math
import re

from hypothesis import given, settings

from tests.drawings import Drawing
from tests.made_judgements import make_count, make_judgement, make_time, make_visits, random_judgements
from torchmark.model.judgement import CaseJudgement, Explanation, StageChange
from torchmark.report.html.fragments import draw_evidence, render_judgement, strip_sides

EVIL = "<script>alert('x')</script>"


def test_there_is_a_drawing_for_every_kind_of_evidence() -> None:
    time = dataclasses.replace(make_time(0.02), visits=make_visits([[0.02, 0.03], [0.01, 0.02]]))
    judgement = dataclasses.replace(
        make_judgement("add", time=time, count=make_count(10, 50)),
        explanation=Explanation((), (StageChange("kernel", 10, 60),)),
    )
    words = [Drawing(drawn).titles[0] for drawn in draw_evidence(judgement)]
    assert words == [
        "add, Python: difference in time by layout of memory",
        "add, Python: times of both sides, one for each visit",
        "add, Python: instructions by stage",
    ]
    assert render_judgement(judgement).count("<svg") == 3
    assert render_judgement(make_judgement("add", count=make_count(10, 50))).count("<svg") == 0


def test_times_of_sides_are_those_of_all_visits() -> None:
    assert strip_sides(make_time(0.02)) is None
    time = dataclasses.replace(make_time(0.02), visits=make_visits([[0.5]], fresh=[[0.0, 1.0]]))
    sides = strip_sides(time)
    assert sides is not None
    assert [round(1e6 * one, 6) for one in sides[1].samples] == [1.5, 1.0, 2.0]


@settings(deadline=None)
@given(random_judgements)
def test_every_judgement_is_a_page(judgement: CaseJudgement) -> None:
    for drawn in draw_evidence(judgement):
        Drawing(drawn)
    assert "<script" not in render_judgement(judgement)


def test_nobody_can_smuggle_in_markup() -> None:
    page = render_judgement(make_judgement(EVIL, time=make_time(0.0, math.inf)))
    assert not re.search(r"<script", page)
    assert "&lt;script&gt;" in page
