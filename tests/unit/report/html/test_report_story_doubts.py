"""What is to be doubted: each thing once, with whom it is of where that is not everybody."""

from __future__ import annotations

import dataclasses

from tests.made_reports import BASE, HEAD, make_entry, make_report
from tests.made_summaries import make_case, make_summary
from torchmark.model.caveats import Drift, LayoutSensitive, NotInTurns, OtherInstructionSet
from torchmark.model.report_data import ReportEntry
from torchmark.report.html.report_story import EntryStatus, describe_doubts, find_common, find_status, list_doubts

A, B = make_case("a"), make_case("b")


def doubt(case_entry: ReportEntry, *caveats: LayoutSensitive | NotInTurns) -> ReportEntry:
    assert case_entry.judgement is not None
    return dataclasses.replace(case_entry, judgement=dataclasses.replace(case_entry.judgement, caveats=caveats))


def test_what_holds_for_all_cases_is_told_once_and_of_no_single_one() -> None:
    report = make_report(
        [doubt(make_entry(A), NotInTurns(), LayoutSensitive(0.02)), doubt(make_entry(B), NotInTurns())]
    )
    common = find_common(report)
    assert common == (NotInTurns(),)
    kinds = [[kind for kind, _ in list_doubts(entry, report.sides, common)] for entry in report.entries]
    assert kinds == [["layout_sensitive"], []]
    assert sum("one after the other" in text for text in describe_doubts(report)) == 1


def test_a_caveat_of_one_side_has_its_name_and_one_of_both_has_none() -> None:
    drifting = make_summary(A, caveats=(Drift(0.2),))
    one, both = ReportEntry(A, (make_summary(A), drifting)), ReportEntry(A, (drifting, drifting))
    assert list_doubts(one, (BASE, HEAD), ())[0][1].startswith("after: The statement became 20% slower")
    assert list_doubts(both, (BASE, HEAD), ())[0][1].startswith("The statement became 20% slower")


def test_why_results_were_not_compared_is_told_on_one_line() -> None:
    entry = ReportEntry(A, (make_summary(A, unchecked="too\nlarge"),))
    assert list_doubts(entry, (HEAD,), ()) == [
        ("unchecked", "Its results were not compared with other variants': too large")
    ]


def test_what_is_true_of_a_whole_environment_makes_no_case_doubtful() -> None:
    summary = make_summary(A, caveats=(OtherInstructionSet("AVX512", "AVX2"),))
    entry = ReportEntry(A, (summary,))
    assert find_status(entry) is EntryStatus.MEASURED
    assert list_doubts(entry, (HEAD,), ()) == []
    assert describe_doubts(make_report([entry], compared=False))[0].startswith("torch uses AVX512")
