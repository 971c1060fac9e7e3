from __future__ import annotations

import dataclasses
import math

import pytest
from hypothesis import given

from tests.made_judgements import CRASHED, fail, make_count, make_judgement, make_time, random_judgements
from torchmark.model.judgement import CaseJudgement, Cause, CountEvidence, Side, TimeEvidence, Verdict
from torchmark.report.text.verdict_reasons import SHORT_CAUSES, explain_cause


@pytest.mark.parametrize(
    ("time", "count", "cause", "text"),
    [
        (
            make_time(0.001),
            make_count(9000, 0),
            Cause.UNCHANGED,
            "The same instructions, and the time is the same within 0.5 %.",
        ),
        (
            make_time(0.41),
            make_count(10000, 4000),
            Cause.CONFIRMED,
            "+4,000 instructions (+40 %), 41 % more time: both changed in the same direction.",
        ),
        (
            make_time(0.0, 0.006, base_s=1e-5, verdict=Verdict.SAME),
            make_count(87500, 350),
            Cause.BELOW_RESOLUTION,
            # 350 / 12 = 29.2 ns; 10 us * (exp(0.006) - 1) = 60.2 ns.
            "+350 instructions (+0.4 %): time should be about 29 ns more, and changed by less than 60 ns.",
        ),
        (
            make_time(0.0, base_s=1e-5, verdict=Verdict.SAME),
            make_count(10000, -120, (3, 2)),
            Cause.BELOW_RESOLUTION,
            "-120 instructions (-1.2 %) and -1 allocations: "
            "time should be about 10 ns less, and changed by less than 40 ns.",
        ),
        (
            make_time(-0.05, confirmed=True),
            make_count(9000, 1),
            Cause.NOT_INSTRUCTIONS,
            "+1 instruction (+0.01 %), but 5.0 % less time, on fresh layouts of memory too: caches, branches, the "
            "allocator or data.",
        ),
        (
            make_time(0.05, layout_sd=0.014),
            make_count(9000, 0),
            Cause.LAYOUT,
            "The same instructions, and a time that moves by 1.4 % with the layout of memory: where things lie decides."
            " Less than 5.4 % either way; more layouts of memory would decide.",
        ),
        (
            make_time(-0.05),
            make_count(10000, 500),
            Cause.TRADE_OFF,
            "+500 instructions (+5.0 %), but 5.0 % less time: time decides.",
        ),
        (make_time(0.05), None, Cause.TIME_ALONE, "Instructions were not counted: 5.0 % more time."),
        (None, make_count(10000, 50), Cause.COUNT_ALONE, "+50 instructions (+0.5 %); it was not timed."),
        (
            make_time(0.0, 0.021, needed_s=8),
            make_count(9000, 0),
            Cause.OPEN,
            "Less than 2.1 % either way; about 8 s more would decide.",
        ),
        (
            make_time(0.0, 0.021),
            None,
            Cause.OPEN,
            "Less than 2.1 % either way; more layouts of memory would decide.",
        ),
        (
            make_time(0.0, 0.021, layouts=0),
            None,
            Cause.OPEN,
            "Less than 2.1 % either way; taking turns might decide: `torchmark ab`.",
        ),
        (
            make_time(0.0, math.inf, layouts=1),
            None,
            Cause.OPEN,
            "There is no interval yet: too little was measured for one.",
        ),
    ],
)
def test_every_cause_is_told_with_its_numbers(
    time: TimeEvidence | None, count: CountEvidence | None, cause: Cause, text: str
) -> None:
    judgement = make_judgement("add", time=time, count=count)
    assert judgement.cause is cause
    assert explain_cause(judgement) == text


def test_what_failed_is_told_once_for_both_sides() -> None:
    judgement = make_judgement("f", failures=fail(Side.BASE))
    reason = "It fails when it is run once. AttributeError: module 'torch' has no attribute 'f'"
    assert explain_cause(judgement) == f"on base: {reason}"
    both = dataclasses.replace(judgement, failures=fail(*Side))
    assert explain_cause(both) == f"on base and head: {reason}"
    other = dataclasses.replace(judgement, failures=fail(Side.BASE) + fail(Side.HEAD, failure=CRASHED))
    assert explain_cause(other) == f"on base: {reason}; on head: The process was ended by SIGSEGV."
    assert explain_cause(make_judgement("f")) == "Neither times nor counts exist for both sides."


def test_every_cause_has_a_few_words_too() -> None:
    assert set(SHORT_CAUSES) == set(Cause)


@given(random_judgements)
def test_any_evidence_is_a_sentence(judgement: CaseJudgement) -> None:
    text = explain_cause(judgement)
    assert text.isprintable()
    assert text
