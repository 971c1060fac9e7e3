"""What the page says first."""

from __future__ import annotations

import dataclasses

import pytest

from tests.made_judgements import make_judgement, make_time
from tests.made_reports import make_entry, make_failed, make_report, make_small
from tests.made_summaries import make_case, make_summary
from torchmark.model.judgement import StageChange, Verdict
from torchmark.model.plan import Metric
from torchmark.model.report_data import ReportEntry
from torchmark.report.html.report_story import (
    EntryStatus,
    describe_story,
    find_status,
    hold_default_gate,
    make_headline,
    name_sides,
)

A, B = make_case("a"), make_case("b")
SLOWER, FASTER, SAME = make_entry(A, 0.1), make_entry(B, -0.1), make_entry(A, 0.0)
UNDECIDED = dataclasses.replace(SAME, judgement=make_judgement(case=A, time=make_time(0.0, 0.5)))
NOT_COMPARED = dataclasses.replace(SAME, judgement=None)
ONLY_HEAD = ReportEntry(A, (None, make_summary(A)))
ONLY_BASE = ReportEntry(A, (make_summary(A), None))


@pytest.mark.parametrize(
    ("entries", "headline"),
    [
        ((SLOWER,), "1 of 1 case is slower"),
        ((SLOWER, FASTER, SAME), "1 of 3 cases is slower, 1 is faster"),
        ((FASTER, SAME), "No case is slower, 1 of 2 is faster"),
        ((SAME, SAME), "Nothing changed in 2 cases"),
        ((SAME, make_failed(B)), "Nothing changed in 1 case, 1 failed"),
        ((UNDECIDED, SAME), "No change was found; 1 of 2 cases is undecided"),
        ((make_failed(A), make_failed(B)), "Every case failed"),
        ((NOT_COMPARED, ONLY_HEAD), "Nothing was compared"),
        ((), "There are no cases"),
    ],
)
def test_the_headline_of_a_comparison_is_its_answer(entries: tuple[ReportEntry, ...], headline: str) -> None:
    assert make_headline(make_report(entries)) == headline


def test_the_headline_of_a_run_tells_failures_and_caveats_first() -> None:
    measured, failed = make_entry(A, compared=False), make_failed(B, compared=False)
    missing = ReportEntry(A, (make_summary(A, None, None, missing=(Metric.WALL,)),))
    assert make_headline(make_report([measured], compared=False)) == "1 case measured"
    assert make_headline(make_report([failed], compared=False)) == "The case failed"
    told = make_headline(make_report([measured, failed, missing], compared=False))
    assert told == "1 of 3 cases measured, 1 failed, 1 is not measured yet"
    assert "1 with caveats" in make_headline(dataclasses.replace(make_small(compared=False), entries=_doubtful()))


def _doubtful() -> tuple[ReportEntry, ...]:
    return tuple(
        entry
        for entry in make_small(compared=False).entries
        if find_status(entry) in (EntryStatus.DOUBTFUL, EntryStatus.MEASURED)
    )


def test_the_story_counts_every_case_once_names_the_worst_and_the_stage_it_is_in() -> None:
    story = " ".join(describe_story(make_small()))
    assert "Of 5 cases, 2 slower, 1 failed, 1 faster, 1 same" in story
    assert "the worst is Pointwise / add, Python (+12 %)" in story
    assert "the best is Pointwise / mul, Python (-5.0 %)" in story
    assert (
        "All slower ones together take 1,400 more instructions a run, all of them in the stage “argument parsing”."
        in story
    )


def test_where_other_stages_lost_some_no_share_of_the_sum_is_told() -> None:
    entry = make_entry(A, 0.1)
    stages = (StageChange("interpreter", 0.0, 900.0), StageChange("kernel", 500.0, 100.0))
    assert entry.breakdown is not None
    mixed = dataclasses.replace(entry, breakdown=dataclasses.replace(entry.breakdown, stages=stages))
    story = " ".join(describe_story(make_report([mixed])))
    assert "500 more instructions a run. The stage that gained most is interpreter (+900)." in story


def test_a_run_alone_tells_what_was_measured_and_where_instructions_are() -> None:
    story = " ".join(describe_story(make_small(compared=False)))
    assert "Of 5 cases, 4 timed and 4 counted." in story
    assert "in the stage “kernel”" in story


def test_the_sides_are_named_with_their_torch() -> None:
    assert (
        name_sides(make_small()) == "after (torch 2.14.0, Python 3.11.7) against before (torch 2.13.0, Python 3.11.7)"
    )


def test_a_gate_stops_what_is_slower_failed_or_missing_and_nothing_else() -> None:
    stopped = hold_default_gate(make_report([SLOWER, FASTER, make_failed(B), ONLY_BASE, UNDECIDED]))
    assert stopped is not None
    assert len(stopped.regressions) == 3
    passed = hold_default_gate(make_report([FASTER, SAME, UNDECIDED, ONLY_HEAD]))
    assert passed is not None
    assert not passed.regressions
    assert hold_default_gate(make_small(compared=False)) is None


@pytest.mark.parametrize("verdict", Verdict)
def test_every_verdict_is_a_status(verdict: Verdict) -> None:
    entry = dataclasses.replace(SAME, judgement=dataclasses.replace(make_judgement(case=A), verdict=verdict))
    assert find_status(entry).value == verdict.value
