"""`torchmark report`: which results it takes, what it says, and where it refuses."""

from __future__ import annotations

import dataclasses
import html
import json
import re
import shlex
from pathlib import Path
from typing import Any

import pytest

from tests.in_process import Program
from tests.made_contrasts import count_functions, run_of
from tests.sample_runs import ADD, COUNT, FAILING, FAILURE, WALL, times
from torchmark.model.outcome import Result
from torchmark.model.plan import Case, Metric, Target
from torchmark.model.run import Run
from torchmark.store.runs import open_store

STEADY = [1e-6 * (1 + i / 1000) for i in range(9)]


def make_run(name: str, loop: int, *, number: int = 0, **changes: Any) -> Run:
    results: dict[tuple[Case, Metric, int], Result] = {
        (ADD, WALL, 0): times(1000, *STEADY),
        (ADD, COUNT, 0): count_functions(loop, 90_000),
        (FAILING, WALL, 0): FAILURE,
    }
    run = run_of(results, name, **changes)
    return dataclasses.replace(run, info=dataclasses.replace(run.info, id=f"{number:032x}", created=1.7e9 + number))


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """`before`, `after` with more instructions, `elsewhere` on another instruction set, `pair` of two environments."""
    path = tmp_path_factory.mktemp("store") / "runs.db"
    pair = make_run("pair", 10_000, number=4)
    targets = Target("left", "/a/python"), Target("right", "/b/python")
    outcomes = tuple(
        dataclasses.replace(one, order=dataclasses.replace(one.order, target=target))
        for target in targets
        for one in pair.outcomes
    )
    runs = [
        make_run("before", 10_000, number=1),
        make_run("elsewhere", 10_000, number=2, cpu_capability="AVX512"),
        dataclasses.replace(pair, plan=dataclasses.replace(pair.plan, targets=targets), outcomes=outcomes),
        make_run("after", 30_000, number=5),
    ]
    with open_store(path, create=True) as opened:
        for run in runs:
            opened.add(run)
    return path


@pytest.fixture
def report(program: Program, store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Program:
    """The command in a folder of its own, with the runs at hand."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TORCHMARK_STORE", str(store))
    return lambda *arguments: program("report", *arguments)


def read(path: str = "report.html") -> dict[str, Any]:
    match = re.search(r'id="torchmark-page">(.*?)</script>', Path(path).read_text(), re.DOTALL)
    assert match
    found: dict[str, Any] = json.loads(match[1])
    return found


def test_without_arguments_it_is_the_newest_run_and_report_html(report: Program) -> None:
    done = report()
    assert done.returncode == 0, done.stderr
    assert re.search(r"^Written: report.html \([\d.]+ KiB, 2 cases\)$", done.stdout, re.MULTILINE)
    assert read()["parties"] == ["after"]


def test_base_comes_last_and_the_first_is_held_against_it(report: Program) -> None:
    done = report("after", "before", "-o", "x.html", "--title", "My change")
    assert done.stdout.startswith("1 of 2 cases is slower.")
    assert read("x.html")["parties"] == ["before", "after"]
    assert "My change</title>" in Path("x.html").read_text()


def test_stages_functions_and_flame_graphs_come_from_the_stored_profiles(report: Program) -> None:
    report("after", "before")
    page = read()
    about = page["details"][0]
    texts = page["texts"]
    assert [[texts[row[0]], *row[2:]] for row in about["functions"]] == [
        ["loop", 100, 300],
        ["_PyEval_EvalFrameDefault", 900, 900],
    ]
    assert page["flames"][0] == [""]
    report("after", "before", "--no-flames")
    assert read()["flames"] == [[], []]


def test_two_environments_of_one_run_are_held_against_each_other(report: Program) -> None:
    assert report("pair").returncode == 0
    assert read()["parties"] == ["pair:left", "pair:right"]
    assert report("pair:right").returncode == 0
    assert read()["parties"] == ["pair:right"]


def test_what_is_not_comparable_is_told_and_not_judged_unless_forced(report: Program) -> None:
    done = report("elsewhere", "before")
    assert done.stdout.startswith("Nothing was compared.")
    assert "These results are not comparable" in done.stderr
    assert "torch used different instruction sets" in Path("report.html").read_text()
    assert [one.get("apart") for one in read()["details"]] == [1, 1]
    report("elsewhere", "before", "--force")
    assert "verdict" in read()["details"][0]
    assert "apart" not in read()["details"][0]


def test_cases_are_selected_as_elsewhere(report: Program) -> None:
    report("-k", "add")
    assert len(read()["details"]) == 1
    done = report("-k", "nothing")
    assert done.returncode == 1
    assert "None of 2 cases is selected" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("nowhere",), "There is no run 'nowhere'"),
        (("after", "after"), "are the same"),
        (("after:x",), "has no environment 'x'"),
        (("-o", "."), ". is a folder."),
        (("-o", "no/such/x.html"), "There is no folder"),
    ],
)
def test_what_cannot_be_meant_is_told_and_leaves_no_file(
    report: Program, arguments: tuple[str, ...], message: str
) -> None:
    done = report(*arguments)
    assert done.returncode == 2
    assert message in done.stderr
    assert not Path("report.html").exists()


def test_a_file_that_is_there_is_replaced(report: Program) -> None:
    Path("report.html").write_text("old")
    assert report().returncode == 0
    assert read()["parties"] == ["after"]


def test_the_page_goes_to_standard_output_if_it_is_asked_to(report: Program) -> None:
    done = report("-o", "-")
    assert done.stdout.startswith("<!DOCTYPE html>")
    assert "Written" not in done.stdout


@pytest.mark.parametrize("head_is_counted", [False, True])
def test_a_side_that_was_not_counted_has_no_instructions_anywhere(
    program: Program, tmp_path: Path, head_is_counted: bool
) -> None:
    path = tmp_path / "runs.db"
    timed = run_of({(ADD, WALL, 0): times(1000, *STEADY)}, "timed")
    with open_store(path, create=True) as opened:
        opened.add(make_run("counted", 10_000, number=1))
        opened.add(timed)
    sides = ("counted", "timed") if head_is_counted else ("timed", "counted")
    done = program("report", *sides, "--store", str(path), "-o", str(tmp_path / "page.html"))
    assert done.returncode == 0, done.stderr
    page = read(str(tmp_path / "page.html"))
    details = next(one for one in page["details"] if "functions" in one)
    absent = 0 if head_is_counted else 1
    for row in (*details["functions"], *details["stages"]):
        assert row[len(row) - 2 + absent] is None
        assert row[len(row) - 1 - absent] is not None
    assert ["counted, the only side that was counted"] in page["flames"]
    assert not [row for row in page["keys"] if "stage" in [key for key, _ in page["columns"]]]


def test_the_command_on_the_page_makes_the_same_page(report: Program, store: Path) -> None:
    options = ["--force", "--no-flames", "--title", "New parser", "-k", "add or linear", "--language", "python"]
    report("after", "elsewhere", *options, "-o", "one.html")
    (command,) = re.findall(r"torchmark report [^<]*", html.unescape(Path("one.html").read_text()))
    program, name, *words = shlex.split(command)
    assert (program, name) == ("torchmark", "report")
    report(*words, "-o", "two.html")
    compared = [text for text in read("one.html")["texts"] if text.startswith("torchmark compare elsewhere after ")]
    assert compared
    assert all(" --force" in text for text in compared)
    one, two = (re.sub(r"\d\d:\d\d UTC", "", Path(f"{name}.html").read_text()) for name in ("one", "two"))
    assert one == two


def test_a_run_of_several_environments_is_asked_for_one_with_an_example(report: Program) -> None:
    done = report("after", "pair")
    assert done.returncode == 2
    assert "'left', 'right'. Say which one is meant, as in pair:left." in done.stderr
