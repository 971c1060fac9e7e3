from __future__ import annotations

import dataclasses

from tests.made_flames import make_stacks
from tests.made_judgements import make_judgement, make_time, make_visits
from tests.made_overrides import make_override, make_tally
from torchmark.api.report_data import make_live_report_data
from torchmark.compare.comparison import ComparedPair, Comparison, Evidence
from torchmark.compare.session import ComparisonResult
from torchmark.model.costs import Tally
from torchmark.model.flame import Frame, Method
from torchmark.model.outcome import Failure, FailureKind
from torchmark.model.plan import Metric, Order, Target
from torchmark.report.html.report_page import render_report

CASE, OTHER = make_override("add", "SubTensor"), make_override("add", "Tensor")
COMPARISON = Comparison(
    (ComparedPair(CASE, CASE), ComparedPair(OTHER, OTHER)), Target("base", "/a"), Target("head", "/b")
)
FAILED = Failure(FailureKind.RAISED, "AttributeError: <nothing>")


def make_found() -> ComparisonResult:
    time = dataclasses.replace(make_time(0.02), visits=make_visits([[0.02, 0.03], [0.01]]))
    counted: dict[Order, Tally | Failure] = {
        Order(CASE, COMPARISON.base, Metric.COUNT): make_tally(900, 37, 63),
        Order(CASE, COMPARISON.head, Metric.COUNT): make_tally(950, 37, 63),
        Order(OTHER, COMPARISON.base, Metric.COUNT): FAILED,
    }
    judgements = (make_judgement(case=CASE, time=time), make_judgement(case=OTHER))
    return ComparisonResult(Evidence(counted), judgements)


def test_both_sides_have_what_was_counted_and_the_times_of_their_visits() -> None:
    dossier = make_live_report_data(COMPARISON, make_found(), {}, title="x")
    base, head = dossier.entries[0].exhibits
    assert base is not None
    assert head is not None
    assert base.count is not None
    assert head.count is not None
    assert head.count.instructions > base.count.instructions
    assert base.wall is not None
    assert base.wall.samples_s == (1e-6, 1e-6, 1e-6)
    assert [party.name for party in dossier.parties] == ["base", "head"]


def test_what_failed_on_one_side_is_told_of_that_side() -> None:
    base, head = make_live_report_data(COMPARISON, make_found(), {}, title="x").entries[1].exhibits
    assert base is not None
    assert head is not None
    assert base.failures == ((Metric.COUNT, FAILED),)
    assert head.failures == ()


def test_exact_graphs_are_taken_where_there_are_some() -> None:
    stacks = make_stacks(((Frame("f"),), 100))
    entries = make_live_report_data(COMPARISON, make_found(), {CASE: (stacks, stacks)}, title="x").entries
    assert [flame.method for flame in entries[0].flames] == [Method.CALLERS]
    plain = make_live_report_data(COMPARISON, make_found(), {}, title="x").entries
    assert [flame.method for flame in plain[0].flames] == [Method.CALL_GRAPH]


def test_differences_by_layout_are_drawn_and_commands_compare_again() -> None:
    entry = make_live_report_data(COMPARISON, make_found(), {}, title="x").entries[0]
    assert len(entry.drawings) == 1
    (command,) = entry.commands
    assert "--base /a --head /b" in command.text


def test_it_can_be_a_page() -> None:
    page = render_report(make_live_report_data(COMPARISON, make_found(), {}, title="A <title>"))
    assert "A &lt;title&gt;" in page
    assert "<nothing>" not in page
