from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.made_contrasts import count_functions, counted_run, run_of
from tests.sample_runs import ADD, COUNT, FAILING, FAILURE, WALL, times
from torchmark.cli.main import main
from torchmark.model.outcome import Result
from torchmark.model.plan import Case, Metric, Order, Target
from torchmark.model.run import Run
from torchmark.store.runs import open_store

BEFORE, AFTER = count_functions(40_000, 60_000), count_functions(40_000, 65_000)
Keep = Callable[..., None]


@pytest.fixture(autouse=True)
def keep(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Keep:
    """Keeps runs in the store of the working folder, the newest last."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "120")
    for name in ("TORCHMARK_STORE", "GITHUB_STEP_SUMMARY"):
        monkeypatch.delenv(name, raising=False)

    def add(*runs: Run) -> None:
        with open_store(Path(".torchmark/results.db"), create=True) as store:
            for run in runs:
                created = 1.7e9 + len(store.list_runs())
                store.add(dataclasses.replace(run, info=dataclasses.replace(run.info, created=created)))

    add(counted_run("before", BEFORE), counted_run("after", AFTER))
    return add


def split_targets(run: Run) -> Run:
    """The same run in two environments, of which the second repeats the first."""
    base, head = Target("base", "/base"), Target("head", "/head")
    outcomes = tuple(
        dataclasses.replace(one, order=Order(one.order.case, target, one.order.metric, one.order.round))
        for one in run.outcomes
        for target in (base, head)
    )
    return dataclasses.replace(run, plan=dataclasses.replace(run.plan, targets=(base, head)), outcomes=outcomes)


def test_a_change_is_shown_and_explained_and_stops_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", "before", "after"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("base  before (")
    assert "Changes are of after against before" in out
    assert "+50.0  interpreter  _PyEval_EvalFrameDefault" in out
    assert "regression" not in out
    assert main(["compare", "before", "after", "--no-explain"]) == 0
    assert "_PyEval" not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("options", "code"),
    [
        (["--fail-on", "slower"], 3),
        (["--limit", "Ir:0"], 3),
        (["--limit", "Ir:50"], 0),
        (["--limit", "Ir:0", "--limit", "Ir:6%@Pointwise/*"], 0),
        (["--fail-on", "undecided,failed,missing"], 0),
        (["--fail-on", "faster"], 2),
        (["--limit", "Ir:lots"], 2),
        (["--ledger", "nowhere"], 2),
        (["--explain", "add", "--no-explain"], 2),
        (["--metric", "wall"], 0),
    ],
)
def test_the_gate_decides_the_exit_code(options: list[str], code: int, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", "before", "after", *options]) == code
    captured = capsys.readouterr()
    assert ("1 regression:" in captured.out) == (code == 3)
    assert bool(captured.err) == (code == 2)


def test_what_was_accepted_passes_and_less_asks_to_be_accepted(capsys: pytest.CaptureFixture[str]) -> None:
    gate = ["--fail-on", "slower", "--limit", "Ir:0"]
    assert main(["accept", "add", "--why", "More to do."]) == 0
    assert main(["compare", "before", "after", *gate]) == 0
    assert "as accepted: Pointwise / add, Python." in capsys.readouterr().out
    assert main(["compare", "after", "before", *gate]) == 0
    out = capsys.readouterr().out
    assert "takes 50 instructions less than accepted" in out
    assert "torchmark accept 'Pointwise / add, Python' --run before --why" in out


def test_an_entry_of_another_torch_is_told_to_be_stale(keep: Keep, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["accept", "add", "--why", "More to do."]) == 0
    keep(counted_run("newer", AFTER, torch_version="2.14.0"))
    assert main(["compare", "after", "newer", "--ledger", "torchmark-ledger"]) == 0
    assert "torch was 2.13.0 and is 2.14.0" in capsys.readouterr().out


def test_an_entry_that_is_garbage_is_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["accept", "add", "--why", "More to do."]) == 0
    (entry,) = Path("torchmark-ledger").iterdir()
    entry.write_text("<<<<<<<")
    assert main(["compare", "before", "after"]) == 4
    assert str(entry) in capsys.readouterr().err


def test_what_is_not_comparable_is_refused_or_keeps_its_caveat(keep: Keep, capfd: pytest.CaptureFixture[str]) -> None:
    keep(counted_run("seeded", BEFORE, hash_seed="5"))
    assert main(["compare", "before", "seeded", "--fail-on", "slower"]) == 4
    captured = capfd.readouterr()
    assert captured.out == ""
    assert "hash seeds" in captured.err
    assert main(["compare", "before", "seeded", "--json", "-"]) == 4
    data = json.loads(capfd.readouterr().out)
    assert (data["judgements"], data["obstacles"][0]["what"], data["exit_code"]) == ([], "hash_seed", 4)
    assert main(["compare", "before", "seeded", "--force", "--fail-on", "slower"]) == 0
    assert "hash seeds" in capfd.readouterr().out


def test_a_case_that_is_defined_otherwise_is_refused_alone(keep: Keep, capsys: pytest.CaptureFixture[str]) -> None:
    other = dataclasses.replace(ADD, args=dataclasses.replace(ADD.args, stmt="x + 2"))
    keep(
        run_of({(ADD, COUNT, 0): BEFORE, (FAILING, COUNT, 0): BEFORE}, "old"),
        run_of({(other, COUNT, 0): BEFORE, (FAILING, COUNT, 0): AFTER}, "new"),
    )
    assert main(["compare", "old", "new"]) == 4
    captured = capsys.readouterr()
    assert "1 case is not comparable" in captured.err
    assert "slower  fails" in captured.out
    assert main(["compare", "old", "new", "--fail-on", "slower"]) == 3
    assert main(["compare", "old", "new", "-k", "fails"]) == 0
    assert main(["compare", "old", "new", "--force"]) == 0


def test_missing_and_new_cases_are_listed_and_can_stop(keep: Keep, capsys: pytest.CaptureFixture[str]) -> None:
    keep(counted_run("other", BEFORE, case=FAILING))
    assert main(["compare", "before", "other"]) == 0
    out = capsys.readouterr().out
    assert "Only in before: 1 case\n  Pointwise / add, Python" in out
    assert "Only in other: 1 case\n  fails, Python" in out
    assert main(["compare", "before", "other", "--fail-on", "slower,missing"]) == 3
    assert "is missing in head" in capsys.readouterr().out


def test_environments_of_runs_can_be_compared(keep: Keep, capsys: pytest.CaptureFixture[str]) -> None:
    keep(split_targets(counted_run("both", BEFORE)))
    for arguments in (["both"], ["both:base", "both:head"], ["before", "both:head"], ["@:head", "@1"]):
        assert main(["compare", *arguments]) == 0, arguments
    assert "against" in capsys.readouterr().out
    for arguments, words in (
        (["before"], "has 1 environment;"),
        (["before", "both"], "'base', 'head'"),
        (["before", "both:haed"], "no environment 'haed'. There is 'head'"),
        (["before", "before"], "are the same"),
        (["before", "nothing"], "no run 'nothing'"),
        (["nothing:head", "before"], "no run 'nothing'"),
    ):
        assert main(["compare", *arguments]) == 2, arguments
        assert words in capsys.readouterr().err


def test_two_runs_of_one_name_are_told_apart(keep: Keep, capsys: pytest.CaptureFixture[str]) -> None:
    run = counted_run("after", AFTER)
    keep(dataclasses.replace(run, info=dataclasses.replace(run.info, id="f" * 32)))
    assert main(["compare", "@1", "@"]) == 0
    assert "Changes are of ffffffffffff against 000000000000" in capsys.readouterr().out


def test_nothing_selected_is_explained(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", "before", "after", "-k", "linaer"]) == 1
    assert "is selected by -k linaer" in capsys.readouterr().err


def test_a_metric_that_was_not_measured_is_refused(keep: Keep, capsys: pytest.CaptureFixture[str]) -> None:
    timed = run_of({(ADD, WALL, 0): times(10, 1.0)}, "timed")
    sampling = dataclasses.replace(timed.plan.sampling, metrics=(WALL,))
    keep(dataclasses.replace(timed, plan=dataclasses.replace(timed.plan, sampling=sampling)))
    assert main(["compare", "before", "timed", "--metric", "count"]) == 2
    assert "In timed only wall was measured." in capsys.readouterr().err


def test_a_summary_is_appended_for_the_step(monkeypatch: pytest.MonkeyPatch) -> None:
    Path("step.md").write_text("# Before\n")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", "step.md")
    assert main(["compare", "before", "after", "--limit", "Ir:0"]) == 3
    text = Path("step.md").read_text()
    assert text.startswith("# Before\n## after against before")
    assert "takes 50 instructions" in text
    assert main(["compare", "before", "after", "--summary", "other.md"]) == 0
    assert Path("step.md").read_text() == text
    assert main(["compare", "before", "after", "--summary", "/nowhere/at/all"]) == 4


def test_explanations_can_be_asked_for_by_name(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", "before", "after", "--explain", "add"]) == 0
    assert "_PyEval_EvalFrameDefault" in capsys.readouterr().out
    assert main(["compare", "before", "after", "--explain", "nothing"]) == 0
    assert "_PyEval_EvalFrameDefault" not in capsys.readouterr().out


GATES = [["--fail-on", "slower"], ["--limit", "Ir:1%"], ["--fail-on", "slower,undecided"]]
NOTHING = "Nothing was compared: no case has results on both sides."


def without_results(run: Run) -> Run:
    """The same run, stopped before its first result."""
    return dataclasses.replace(run, outcomes=())


@pytest.mark.parametrize("gate", [*GATES, ["--ledger", "."]], ids=" ".join)
@pytest.mark.parametrize(
    "head",
    [
        run_of({(ADD, COUNT, 0): FAILURE}, "head"),
        without_results(counted_run("head", BEFORE)),
        counted_run("head", BEFORE, case=FAILING),
    ],
    ids=["fails", "stopped at once", "other cases"],
)
def test_a_gate_lets_nothing_through_where_nothing_was_compared(
    keep: Keep, capfd: pytest.CaptureFixture[str], head: Run, gate: list[str]
) -> None:
    keep(head)
    assert main(["compare", "before", "head", *gate]) == 1
    assert NOTHING in capfd.readouterr().out
    assert main(["compare", "before", "head", *gate, "--json", "-"]) == 1
    said = json.loads(capfd.readouterr().out)
    assert (said["exit_code"], said["gate"]["exit_code"], said["gate"]["nothing_compared"]) == (1, 1, True)
    # Nobody asked for a gate.
    assert main(["compare", "before", "head"]) == 0


def two_cases(name: str, other: Result | None, *, timed: bool = False) -> Run:
    """A run of two cases, of which the second has this result, or none."""
    results: dict[tuple[Case, Metric, int], Result] = {(ADD, COUNT, 0): BEFORE, (FAILING, COUNT, 0): other or FAILURE}
    if timed:
        results |= {(case, WALL, 0): times(10, 1e-6, 1e-6, 1e-6) for case in (ADD, FAILING)}
    run = run_of(results, name)
    kept = tuple(one for one in run.outcomes if other is not None or one.order.case == ADD)
    return dataclasses.replace(run, outcomes=kept)


@pytest.mark.parametrize("gate", GATES, ids=" ".join)
@pytest.mark.parametrize("result", [FAILURE, None], ids=["failed", "not measured"])
def test_a_gate_stops_where_head_has_no_result_that_base_has(
    keep: Keep, capsys: pytest.CaptureFixture[str], result: Result | None, gate: list[str]
) -> None:
    keep(two_cases("whole", BEFORE), two_cases("head", result))
    assert main(["compare", "whole", "head", *gate]) == 1
    assert "Not all of fails, Python was compared: head failed there, or was not measured." in capsys.readouterr().out
    assert main(["compare", "whole", "head"]) == 0
    # The other way round it has become better, and what is left out by the user is not missing.
    assert main(["compare", "head", "whole", *gate]) == 0
    assert main(["compare", "whole", "head", "-k", "add", *gate]) == 0
    # What failed before, too, has not become worse.
    keep(two_cases("again", result))
    assert main(["compare", "head", "again", *gate]) == 0


def test_what_is_asked_for_by_name_stays_a_regression(keep: Keep) -> None:
    keep(two_cases("whole", BEFORE), two_cases("broken", FAILURE), counted_run("short", BEFORE))
    assert main(["compare", "whole", "broken", "--fail-on", "slower,failed"]) == 3
    assert main(["compare", "whole", "short", "--fail-on", "slower,missing"]) == 3
    assert main(["compare", "before", "after", "--fail-on", "slower"]) == 3


def test_a_head_that_was_stopped_before_it_was_timed_does_not_pass(
    keep: Keep, capsys: pytest.CaptureFixture[str]
) -> None:
    keep(two_cases("timed", BEFORE, timed=True), two_cases("counted", BEFORE))
    assert main(["compare", "timed", "counted", "--fail-on", "slower"]) == 1
    assert "head failed there, or was not measured" in capsys.readouterr().out
    assert main(["compare", "timed", "counted", "--fail-on", "slower", "--metric", "count"]) == 0


def test_a_case_that_the_run_of_head_does_not_have_stops_only_if_asked_for(keep: Keep) -> None:
    keep(two_cases("whole", BEFORE), counted_run("narrow", BEFORE))
    assert main(["compare", "whole", "narrow", "--fail-on", "slower"]) == 0
    assert main(["compare", "whole", "narrow", "--fail-on", "slower,missing"]) == 3


def test_a_limit_that_no_case_could_be_held_to_does_not_pass(keep: Keep, capsys: pytest.CaptureFixture[str]) -> None:
    keep(counted_run("same", BEFORE))
    assert main(["compare", "before", "same", "--limit", "time:2%"]) == 1
    out = capsys.readouterr().out
    assert "No case could be held to the limit time:2%: none was timed on both sides." in out
    assert main(["compare", "before", "same", "--limit", "Ir:1%"]) == 0


def test_a_ledger_without_an_entry_for_any_case_is_told(keep: Keep, capsys: pytest.CaptureFixture[str]) -> None:
    keep(counted_run("same", BEFORE))
    Path("empty").mkdir()
    assert main(["compare", "before", "same", "--ledger", "empty"]) == 0
    assert "Note: empty has no entry for any of these cases: base counts for all of them." in capsys.readouterr().err
    assert main(["compare", "before", "after", "--ledger", "empty"]) == 3
