from __future__ import annotations

import dataclasses
import shlex

from hypothesis import given
from hypothesis import strategies as st

from tests.made_contrasts import count_functions, counted_run, run_of
from tests.made_flames import make_stacks
from tests.made_judgements import make_judgement, make_time, make_visits
from tests.made_overrides import make_override, make_tally
from tests.made_summaries import make_case, make_summary
from tests.sample_runs import ADD, CASES, COUNT, FAILING, sample_run
from torchmark.analysis.flames import MOST_GRAPHS
from torchmark.analysis.verdict.comparable import RunTarget
from torchmark.analysis.verdict.stored import Contrast, compare_runs, identify
from torchmark.api.report_data import (
    Labels,
    Sides,
    choose_explained,
    format_again,
    format_commands,
    join_path,
    make_live_report_data,
    make_report_entries,
    make_report_side,
)
from torchmark.compare.comparison import ComparedPair, Comparison, Evidence
from torchmark.compare.session import ComparisonResult
from torchmark.define.selection import Selection, Word, parse, select
from torchmark.model.caveats import Incomparable
from torchmark.model.costs import Frame, Method, Tally
from torchmark.model.outcome import Failure, FailureKind
from torchmark.model.plan import AutogradMode, Case, Metric, Node, Order, RuntimeMode, Target
from torchmark.model.report_data import ReportEntry
from torchmark.model.run import Run
from torchmark.model.task import Language
from torchmark.report.html.report_page import render_report
from torchmark.report.html.report_story import describe_explained

OWN = Target()


def part(run: Run) -> RunTarget:
    return RunTarget(run, OWN)


def test_a_single_run_has_an_entry_for_each_case_in_its_order() -> None:
    entries = make_report_entries([part(sample_run())])
    assert [entry.case for entry in entries] == list(CASES)
    assert all(len(entry.summaries) == 1 and entry.judgement is None for entry in entries)


def test_a_case_that_only_one_side_has_is_there_with_nothing_on_the_other() -> None:
    base, head = counted_run("a", count_functions(1, 2)), counted_run("b", count_functions(1, 2), FAILING)
    entries = make_report_entries([part(base), part(head)])
    assert [entry.case for entry in entries] == [FAILING, ADD]
    assert [[one is not None for one in entry.summaries] for entry in entries] == [[False, True], [True, False]]


def test_judgements_are_with_their_cases_and_without_all_functions() -> None:
    runs = [counted_run("a", count_functions(100, 200)), counted_run("b", count_functions(100_000, 200))]
    contrast = compare_runs(runs[0], OWN, runs[1], OWN, lambda label: label)
    (judgement,) = contrast.judgements
    assert judgement.explanation is not None
    (entry,) = make_report_entries([part(run) for run in runs], contrast)
    assert entry.judgement == dataclasses.replace(judgement, explanation=None)
    assert entry.obstacles == ()


def test_obstacles_are_with_the_cases_that_both_sides_have() -> None:
    runs = [counted_run("a", count_functions(1, 2)), counted_run("b", count_functions(1, 2), FAILING)]
    common, own = Incomparable("cpu", "one", "another"), Incomparable("definition", "x", "y")
    contrast = Contrast((), obstacles=(common,), case_obstacles=((ADD, (own,)),))
    assert [entry.obstacles for entry in make_report_entries([part(run) for run in runs], contrast)] == [(), ()]
    (entry,) = make_report_entries([part(runs[0]), part(runs[0])], contrast)
    assert entry.obstacles == (common, own)


def test_a_side_tells_each_environment_once() -> None:
    run = run_of({(ADD, COUNT, 0): count_functions(1, 2), (ADD, COUNT, 1): count_functions(1, 2)}, "a")
    side = make_report_side(part(run), "a", "the first")
    assert (side.name, side.title, side.host) == ("a", "the first", run.info.host)
    assert len(side.environments) == 1


def test_a_side_tells_its_nodes_and_which_kinds_counts_are_kept_apart_by() -> None:
    run = run_of({(ADD, COUNT, 0): count_functions(1, 2), (ADD, COUNT, 1): count_functions(1, 2)}, "a")
    assert (make_report_side(part(run), "a").nodes, make_report_side(part(run), "a").count_kinds) == ((), ())
    first, second = run.outcomes
    assert second.environment is not None
    newer = dataclasses.replace(second.environment, valgrind="valgrind-3.22.0")
    outcomes = (
        dataclasses.replace(first, node=Node("a")),
        dataclasses.replace(second, environment=newer, node=Node("b")),
    )
    side = make_report_side(part(dataclasses.replace(run, outcomes=outcomes)), "a")
    assert side.nodes == (Node("a"), Node("b"))
    assert [kind.traits for kind in side.count_kinds] == [
        (("valgrind", "valgrind-3.19.0"),),
        (("valgrind", "valgrind-3.22.0"),),
    ]


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
    report = make_live_report_data(COMPARISON, make_found(), {}, title="x")
    base, head = report.entries[0].summaries
    assert base is not None
    assert head is not None
    assert base.count is not None
    assert head.count is not None
    assert head.count.instructions > base.count.instructions
    assert base.wall is not None
    assert base.wall.samples_s == (1e-6, 1e-6, 1e-6)
    assert [side.name for side in report.sides] == ["base", "head"]


def test_what_failed_on_one_side_is_told_of_that_side() -> None:
    base, head = make_live_report_data(COMPARISON, make_found(), {}, title="x").entries[1].summaries
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


ONE, TWO = (
    Sides("run"),
    Sides(head="after", head_python="/b/python", base="before", base_python="/a/python", store="my store.db"),
)


def find_meant(command: str, cases: list[Case]) -> list[Case]:
    words = shlex.split(command)
    if "-k" not in words:
        return cases
    return list(select(cases, Selection(expression=parse(words[words.index("-k") + 1]))))


def test_a_label_that_others_begin_with_means_only_itself() -> None:
    cases = [make_case("Pointwise", name) for name in ("add", "add_", "add_ scalar", "mul")]
    command = format_commands(cases[0], Labels(cases), ONE)[0].text
    assert find_meant(command, cases) == [cases[0]]
    assert command == (
        """torchmark run standard -k '"Pointwise / add" and not "Pointwise / add_"' """
        "--language python --runtime eager --autograd forward --threads 1"
    )


@given(st.lists(st.text("ab /", min_size=1), min_size=1, max_size=30))
def test_a_label_leaves_out_the_shortest_of_those_that_hold_it(labels: list[str]) -> None:
    cases = [make_case(label) for label in labels]
    paths = {join_path(case) for case in cases} - {""}
    for path in paths:
        longer = [other for other in paths if path in other and path != other]
        least = [one for one in longer if not any(other in one for other in longer if other != one)]
        expected = [path, *sorted(least, key=lambda text: (len(text), text))] if len(least) <= 3 else [path]
        assert str(Labels(cases).name_exactly(path)) == " and not ".join(str(Word(text)) for text in expected)


def test_labels_are_compared_in_one_pass_however_many_there_are() -> None:
    # Looking for each of them in all others would not end.
    cases = [make_case("Pointwise", f"op{i:05}", "x" * 100) for i in range(5_000)]
    labels = Labels([*cases, make_case("Pointwise", "op00001", "x" * 50)])
    found = [command.text for case in cases[:2] for command in format_commands(case, labels, ONE)[:1]]
    assert [" and not " in text for text in found] == [False, False]
    assert str(labels.name_exactly(f"Pointwise / op00001 / {'x' * 50}")).count("op00001") == 2


@given(st.lists(st.text(min_size=1), min_size=1, max_size=3))
def test_any_label_can_be_typed_and_is_found_again(label: list[str]) -> None:
    case = make_case(*label)
    for command in format_commands(case, Labels([case]), ONE):
        assert command.text.isprintable()
        assert case in find_meant(command.text, [case])


def test_variants_are_spelt_as_the_options_that_select_them() -> None:
    case = make_case(
        "f",
        runtime=RuntimeMode.JIT,
        autograd=AutogradMode.FORWARD_BACKWARD,
        language=Language.CPP,
        threads=2,
        suite="my suite.py",
    )
    text = format_commands(case, Labels([case]), ONE)[0].text
    assert (
        text == "torchmark run 'my suite.py' -k f --language cpp --runtime torchscript --autograd backward --threads 2"
    )


def test_two_interpreters_are_compared_in_turns_and_runs_as_they_are_kept() -> None:
    anew, kept = (command.text for command in format_commands(make_case("f"), Labels([make_case("f")]), TWO))
    assert anew.startswith("torchmark ab standard -k f ")
    assert anew.endswith(" --base /a/python --head /b/python")
    assert kept.startswith("torchmark compare before after -k f ")
    assert kept.endswith(" --store 'my store.db'")


def test_runs_of_one_interpreter_are_measured_again_one_by_one() -> None:
    sides = Sides("after", "/a/python", "before", "/a/python")
    assert format_commands(make_case("f"), Labels([make_case("f")]), sides)[0].text.startswith("torchmark run ")


def test_the_page_itself_can_be_had_again() -> None:
    assert format_again(TWO)[0].text == "torchmark report after before --store 'my store.db'"
    assert format_again(ONE)[0].text == "torchmark report run"
    assert format_again(TWO, ("--force",))[0].text == "torchmark report after before --force --store 'my store.db'"


def make_counted(number: int, instructions: float) -> ReportEntry:
    case = make_case(f"case {number}")
    return ReportEntry(case, (make_summary(case, instructions=instructions),))


def test_functions_are_shown_of_as_many_cases_as_a_page_has_room_for() -> None:
    few = [make_counted(i, 100.0 + i) for i in range(MOST_GRAPHS)]
    assert choose_explained(few) == [identify(entry.case) for entry in few]
    many = [*few, make_counted(MOST_GRAPHS, 1e6)]
    assert choose_explained(many) == [identify(entry.case) for entry in [many[-1], *few[:0:-1]]]


def test_a_page_says_of_how_many_cases_its_stages_are() -> None:
    many = [make_counted(i, 100.0) for i in range(MOST_GRAPHS + 1)]
    assert describe_explained(many) == f"0 of {MOST_GRAPHS + 1} cases"
    assert describe_explained(many[1:]) == "all cases"


def test_what_was_not_counted_has_no_functions() -> None:
    case = make_case("timed")
    assert (
        choose_explained([ReportEntry(case, (make_summary(case, instructions=None),)), ReportEntry(case, (None,))])
        == []
    )
