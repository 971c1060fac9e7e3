"""From runs to the entries of a report: every case once, with what each side has of it."""

from __future__ import annotations

import dataclasses

from tests.made_contrasts import count_functions, counted_run, run_of
from tests.sample_runs import ADD, CASES, COUNT, FAILING, sample_run
from torchmark.analysis.verdict.comparable import RunTarget
from torchmark.analysis.verdict.stored import Contrast, compare_runs
from torchmark.api.report_data import make_report_entries, make_report_side
from torchmark.model.comparison import Incomparable
from torchmark.model.node import Node
from torchmark.model.plan import Target
from torchmark.model.run import Run

OWN = Target()


def part(run: Run) -> RunTarget:
    return RunTarget(run, OWN)


def test_a_single_run_has_an_entry_for_each_case_in_its_order() -> None:
    entries = make_report_entries([part(sample_run())])
    assert [entry.case for entry in entries] == list(CASES)
    assert all(len(entry.exhibits) == 1 and entry.judgement is None for entry in entries)


def test_a_case_that_only_one_side_has_is_there_with_nothing_on_the_other() -> None:
    base, head = counted_run("a", count_functions(1, 2)), counted_run("b", count_functions(1, 2), FAILING)
    entries = make_report_entries([part(base), part(head)])
    assert [entry.case for entry in entries] == [FAILING, ADD]
    assert [[one is not None for one in entry.exhibits] for entry in entries] == [[False, True], [True, False]]


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


def test_a_party_tells_each_environment_once() -> None:
    run = run_of({(ADD, COUNT, 0): count_functions(1, 2), (ADD, COUNT, 1): count_functions(1, 2)}, "a")
    party = make_report_side(part(run), "a", "the first")
    assert (party.name, party.title, party.host) == ("a", "the first", run.info.host)
    assert len(party.environments) == 1


def test_a_party_tells_its_nodes_and_which_kinds_counts_are_kept_apart_by() -> None:
    run = run_of({(ADD, COUNT, 0): count_functions(1, 2), (ADD, COUNT, 1): count_functions(1, 2)}, "a")
    assert (make_report_side(part(run), "a").nodes, make_report_side(part(run), "a").count_kinds) == ((), ())
    first, second = run.outcomes
    assert second.environment is not None
    newer = dataclasses.replace(second.environment, valgrind="valgrind-3.22.0")
    outcomes = (
        dataclasses.replace(first, node=Node("a")),
        dataclasses.replace(second, environment=newer, node=Node("b")),
    )
    party = make_report_side(part(dataclasses.replace(run, outcomes=outcomes)), "a")
    assert party.nodes == (Node("a"), Node("b"))
    assert [kind.traits for kind in party.count_kinds] == [
        (("valgrind", "valgrind-3.19.0"),),
        (("valgrind", "valgrind-3.22.0"),),
    ]
