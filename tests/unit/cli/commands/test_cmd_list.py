from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import click
import pytest

from torchmark.cli.cases import selection_options
from torchmark.cli.main import main
from torchmark.define.discovery import Discovered
from torchmark.define.selection import Selection, parse
from torchmark.model.plan import AutogradMode, AutoLabels, Case, Fault, RuntimeMode, TimerArgs
from torchmark.model.task import Language

CASES = tuple(
    Case(label, AutoLabels(RuntimeMode.EAGER, AutogradMode.FORWARD, language), TimerArgs("f", language=language), tags)
    for label, tags in ((("Pointwise", "add"), ("quick",)), (("nn Modules", "Linear"), ()))
    for language in Language
)
FAULTS = (
    Fault("bench_a.py", ("nn", "bad"), "Expected a name\n  f(1)\n    ^", "Name it.", line=7),
    Fault("bench_b.py", (), "SyntaxError"),
)


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, ...]]:
    """Names that cases were looked for under; "faulty" and "empty" are special."""
    names: list[tuple[str, ...]] = []

    def discover(given: Sequence[str]) -> Discovered:
        names.append(tuple(given))
        print("printed by a file of benchmarks")
        return Discovered(() if "empty" in given else CASES, FAULTS if "faulty" in given else ())

    monkeypatch.setattr("torchmark.cli.cases.discover", discover)
    monkeypatch.setenv("COLUMNS", "80")
    return names


def test_the_standard_suite_is_listed_by_default(
    asked: list[tuple[str, ...]], capfd: pytest.CaptureFixture[str]
) -> None:
    assert main(["list"]) == 0
    assert asked == [("standard",)]
    assert capfd.readouterr().out.splitlines() == [
        "Pointwise / add      Eager: Python, C++",
        "nn Modules / Linear  Eager: Python, C++",
        "",
        "4 cases: 2 Python, 2 C++; 4 Eager",
        "Tags: 2 quick",
    ]


def test_what_is_selected_is_listed(asked: list[tuple[str, ...]], capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["list", "a.py", "b", "-k", "not linear", "--language", "CPP"]) == 0
    assert asked == [("a.py", "b")]
    assert capfd.readouterr().out == "Pointwise / add  Eager: C++\n\n1 of 4 cases: 1 C++; 1 Eager\nTags: 1 quick\n"


@pytest.mark.usefixtures("asked")
def test_json_on_standard_output_is_nothing_but_json(capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["list", "faulty", "--tag", "quick", "--language", "cpp", "--json", "-"]) == 2
    data = json.loads(capfd.readouterr().out)
    assert (data["schema"], data["schema_version"]) == ("torchmark.list", 1)
    assert data["cases"] == [
        {
            "key": CASES[1].key,
            "label": ["Pointwise", "add"],
            "autolabels": {"runtime": "Eager", "autograd": "Forward", "language": "C++"},
            "num_threads": 1,
            "tags": ["quick"],
            "suite": "",
            "language": "C++",
            "stmt": "f",
            "setup": "pass",
            "global_setup": "",
        }
    ]
    assert [fault["line"] for fault in data["faults"]] == [7, None]


@pytest.mark.usefixtures("asked")
def test_faults_are_told_together_and_cost_good_cases_nothing(capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["list", "faulty"]) == 2
    out, err = capfd.readouterr()
    assert "4 cases" in out
    assert err.endswith(
        "2 faulty definitions:\n\n"
        "bench_a.py:7: nn / bad\n  Expected a name\n    f(1)\n      ^\n  Name it.\n\n"
        "bench_b.py\n  SyntaxError\n"
    )


@pytest.mark.usefixtures("asked")
@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (
            ["-k", "liner and add", "--threads", "2,4"],
            1,
            "None of 4 cases is selected by -k 'liner and add' --threads 2,4.\nNo case has 'liner'. There is 'Linear'.",
        ),
        (["-k", "add and linear"], 1, "None of 4 cases is selected by -k 'add and linear'."),
        (["--tag", "slow"], 1, "None of 4 cases is selected by --tag slow.\nThe tags are quick."),
        (["empty"], 1, "There are no benchmarks here."),
        (["-k", "(add"], 2, "This parenthesis is not closed.\n  (add\n  ^"),
        (["-k", "a", "-k", "b"], 2, "-k is given more than once: join the expressions with and, or."),
    ],
)
def test_what_selects_nothing_is_told_with_what_there_is(
    arguments: list[str], code: int, message: str, capfd: pytest.CaptureFixture[str]
) -> None:
    assert main(["list", *arguments]) == code
    out, err = capfd.readouterr()
    assert out == ""
    assert err.endswith(f"torchmark: {message}\n")


@pytest.mark.usefixtures("asked")
def test_where_all_is_faulty_nothing_else_is_said(capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["list", "faulty", "empty"]) == 2
    assert "no benchmarks" not in capfd.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ([], Selection()),
        (["-k", "a or b"], Selection(parse("a or b"))),
        (["--runtime", "compile", "--runtime", "eager"], Selection(runtimes=(RuntimeMode.COMPILE, RuntimeMode.EAGER))),
        (["--autograd", "backward"], Selection(autograd=(AutogradMode.FORWARD_BACKWARD,))),
        (["--threads", "1,2", "--threads", "4", "--tag", "x"], Selection(threads=(1, 2, 4), tags=("x",))),
    ],
)
def test_any_command_can_have_the_options(arguments: list[str], expected: Selection) -> None:
    @click.command
    @selection_options
    @click.option("--mine", default=3)
    def command(**given: Any) -> dict[str, Any]:
        return given

    assert command.main(arguments, standalone_mode=False) == {"selection": expected, "mine": 3}
