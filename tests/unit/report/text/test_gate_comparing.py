from __future__ import annotations

import dataclasses
import json

from tests.made_contrasts import evidence, grown, judgement
from tests.sample_runs import ADD, FAILING
from torchmark.analysis.verdict.stored import Contrast
from torchmark.model.caveats import Incomparable
from torchmark.model.judgement import Verdict
from torchmark.report.as_json import to_json_contrast
from torchmark.report.text.gate import MOST_NAMES, describe_refusal, describe_unpaired, explain_judgements

CPU = Incomparable("cpu", "One", "Another")
TEXT = Incomparable("definition", "stmt: 1", "stmt: 2")


def test_a_refusal_gives_the_reasons_and_a_way_out() -> None:
    text = describe_refusal(Contrast((), obstacles=(CPU,)), 200)
    assert text.startswith(
        "These runs are not comparable:\n  The sides ran on different processors: base One, head Another"
    )
    assert text.endswith("--force compares them all the same, and keeps the caveat.")
    text = describe_refusal(Contrast((), case_obstacles=((ADD, (TEXT,)),)), 200)
    assert text.startswith("1 case is not comparable:\n  Pointwise / add, Python: The sides do not measure the same")
    many = describe_refusal(Contrast((), case_obstacles=((ADD, (TEXT,)),) * (MOST_NAMES + 2)), 200)
    assert "  and 2 more" in many


def test_lines_of_a_refusal_fit() -> None:
    long = dataclasses.replace(TEXT, base="x " * 400)
    assert all(len(line) <= 60 for line in describe_refusal(Contrast((), obstacles=(long, CPU)), 60).splitlines())


def test_cases_of_one_side_are_named() -> None:
    contrast = Contrast((), missing=(ADD,), new=(FAILING,) * (MOST_NAMES + 1))
    lines = describe_unpaired(contrast, "before", "after", 80).splitlines()
    assert lines[:3] == ["Only in before: 1 case", "  Pointwise / add, Python", "Only in after: 21 cases"]
    assert lines[-1] == "  and 1 more"
    assert describe_unpaired(Contrast(()), "before", "after", 80) == ""


def test_explanations_stand_below_the_names_of_their_cases() -> None:
    explained = judgement(Verdict.SLOWER, count=evidence(100, 150), explanation=grown(f=50))
    text = explain_judgements([explained, judgement(Verdict.SAME)], 80)
    assert text.startswith("Pointwise / add, Python\n")
    assert text.count("Pointwise") == 1
    assert "+50.0" in text


def test_plain_values_have_everything() -> None:
    contrast = Contrast(
        judgements=(judgement(Verdict.SAME),),
        missing=(ADD,),
        new=(FAILING,),
        obstacles=(CPU,),
        case_obstacles=((ADD, (TEXT,)),),
    )
    plain = json.loads(json.dumps(to_json_contrast(contrast, forced=True)))
    assert plain["forced"] is True
    assert plain["obstacles"][0]["what"] == "cpu"
    assert plain["case_obstacles"][0]["obstacles"][0]["base"] == "stmt: 1"
    assert [plain[name][0]["case"] for name in ("judgements", "missing", "new")] == [
        "Pointwise / add, Python",
        "Pointwise / add, Python",
        "fails, Python",
    ]
