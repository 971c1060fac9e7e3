from __future__ import annotations

import dataclasses
import json
import pickle

import pytest

from tests.made_judgements import DOUBTS, fail, make_count, make_judgement, make_time, make_visits
from torchmark.api.ab import Judgement as Judged
from torchmark.api.ab import from_judgement
from torchmark.model.judgement import CaseJudgement, Side
from torchmark.report.as_json import to_json_judgement
from torchmark.report.text.judgements import describe_judgement

EVIL = "<script>alert('x')</script> & \"q\""
JUDGEMENT = make_judgement("add", time=make_time(0.02), count=make_count(1000, 50), caveats=DOUBTS)


def test_it_is_the_judgement_with_a_face() -> None:
    judged = from_judgement(JUDGEMENT)
    assert isinstance(judged, CaseJudgement)
    assert [field.name for field in dataclasses.fields(Judged)] == [f.name for f in dataclasses.fields(CaseJudgement)]
    assert all(getattr(judged, f.name) == getattr(JUDGEMENT, f.name) for f in dataclasses.fields(CaseJudgement))
    assert judged == from_judgement(JUDGEMENT)
    with pytest.raises(dataclasses.FrozenInstanceError):
        judged.verdict = JUDGEMENT.verdict  # type: ignore[misc]


def test_its_texts_are_those_of_the_reports() -> None:
    judged = from_judgement(JUDGEMENT)
    assert str(judged) == describe_judgement(JUDGEMENT, 80, "python")
    assert repr(judged) == "Judgement(add, Python: slower, +2.0 %)"
    assert judged.to_dict() == to_json_judgement(JUDGEMENT)
    assert json.loads(json.dumps(judged.to_dict()))["verdict"] == "slower"


def test_in_python_options_are_those_of_python() -> None:
    judged = from_judgement(JUDGEMENT)
    for text in (str(judged), judged._repr_html_()):
        assert "layouts=" in text
        assert "--layouts" not in text


def test_a_notebook_shows_verdict_evidence_and_doubts() -> None:
    html = from_judgement(JUDGEMENT)._repr_html_()
    for text in ("<strong>slower, +2.0 %</strong> add, Python", "+50 (+5.0 %), from 1,000 to 1,050", "1.4 % with"):
        assert text in html
    assert html.count("<tr>") == 6
    assert html.count("<div") == html.count("</div>")


def test_nobody_can_smuggle_in_markup() -> None:
    judged = from_judgement(make_judgement(EVIL, failures=fail(Side.HEAD)))
    assert "<script>" not in judged._repr_html_()
    assert "&lt;script&gt;" in judged._repr_html_()


def test_it_can_be_pickled_and_compared_with_all_its_visits() -> None:
    time = dataclasses.replace(make_time(0.02), visits=make_visits([[0.02, 0.03]], fresh=[[0.01]]))
    judged = from_judgement(make_judgement("add", time=time))
    assert pickle.loads(pickle.dumps(judged)) == judged
    assert hash(judged.time) == hash(time)
    assert judged != from_judgement(make_judgement("add", time=make_time(0.02)))
