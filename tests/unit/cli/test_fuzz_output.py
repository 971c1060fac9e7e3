"""What a study shows and writes, from results that were made by hand."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from torchmark.api.inputs import FuzzedResult
from torchmark.api.measurement import Measurement
from torchmark.cli.commands.cmd_fuzz import command
from torchmark.cli.fuzz_output import FuzzResults, follow, render, report, to_json_fuzz
from torchmark.model.inputs import FuzzedInput
from torchmark.model.outcome import Failure, FailureKind
from torchmark.model.task import TaskSpec
from torchmark.report.text.failures import HOPELESS

ABOUT = {"fuzzer": "unary", "preset": "small", "seed": 0, "dtype": None}
BROKEN = Failure(FailureKind.RAISED, "ValueError: no", "Traceback\nValueError: no")


def make_input(index: int, n: int = 8) -> FuzzedInput:
    tensor = {"size": (n, 2), "steps": (1, 2), "order": (1, 0), "numel": 2 * n}
    return FuzzedInput(index, {"n": n, "x is contiguous": index % 2 == 0}, {"x": tensor}, f"x = {index}")


def make_result(index: int, *seconds: float, n: int = 8) -> FuzzedResult:
    measurements = [Measurement(10, [t * 10] * 8, TaskSpec(f"f{i}(x)", "")) for i, t in enumerate(seconds)]
    return FuzzedResult(make_input(index, n), tuple(measurements))


def make_study(count: int, *, slow: int = 0) -> FuzzResults:
    """`slow` times as slow where x is not contiguous."""
    study = FuzzResults(("f0(x)", "f1(x)"), count, ABOUT)
    for i in range(count):
        ratio = slow if slow and i % 2 else 1.0 + 0.001 * (i % 7)
        study.results.append(make_result(i, 1e-6, ratio * 1e-6, n=8 + (i * 37) % 101))
    return study


def show(study: FuzzResults, width: int = 80, top: int = 2) -> str:
    return "\n".join(render(study, study.comparisons(), width, top))


def test_the_extremes_are_shown_with_their_inputs_and_what_lies_between() -> None:
    text = show(make_study(7))
    assert "A  f0(x)\nB  f1(x)" in text
    assert "7 inputs: fuzzer unary, preset small, seed 0" in text
    assert "3 inputs between these" in text
    assert "#6  x " in text
    assert "every 1,2 order 1,0" in text
    assert "In the middle B takes 1.00 times as long as A" in text
    assert "--only 6" in text


def test_one_input_has_no_middle() -> None:
    assert "B takes 1.00 times as long as A.\n" in show(make_study(1))


def test_few_inputs_are_all_shown_once() -> None:
    lines = show(make_study(3), top=5).splitlines()
    assert sum("#" in line for line in lines) == 3
    assert "between these" not in "\n".join(lines)


def test_every_line_fits_but_for_the_command_to_copy() -> None:
    for width in (40, 60, 80, 120):
        *lines, command = show(make_study(9), width).splitlines()
        assert command.startswith("  torchmark fuzz 'f0(x)' 'f1(x)'")
        assert all(len(line) <= width or line.startswith("See how") for line in lines)
        assert ("95 %" in lines[4]) == (width >= 60)


def test_a_rule_is_told_in_words() -> None:
    text = " ".join(show(make_study(90, slow=3)).split())
    assert '"f1(x)" is slower than "f0(x)" when x is not contiguous: 3.0' in text


def test_a_rule_on_long_statements_names_them_by_their_letters() -> None:
    study = make_study(90, slow=3)
    study.stmts = ("f0(x)", "f1(\nx)")
    assert '"B" is slower than "A" when x is not contiguous: 3.0' in " ".join(show(study).split())


def test_where_nothing_explains_it_no_rule_is_told() -> None:
    assert "slower than" not in show(make_study(90))


def test_one_statement_is_shown_by_its_elements() -> None:
    study = FuzzResults(("f0(x)",), 2, ABOUT, [make_result(0, 1e-6), make_result(1, 2e-6)])
    text = show(study)
    assert "ns/element" in text
    assert "B" not in text.split("torchmark fuzz")[0].replace("95 %", "")


def test_inputs_that_failed_are_not_counted_as_measured() -> None:
    study = make_study(3)
    study.results.extend(FuzzedResult(make_input(i), failure=BROKEN) for i in range(3, 13))
    study.total = 13
    assert "3 of 13 inputs" in show(study)


def test_what_fails_everywhere_is_given_up() -> None:
    taken = []

    def results() -> Iterator[FuzzedResult]:
        for i in range(100):
            taken.append(i)
            yield FuzzedResult(make_input(i), failure=BROKEN)

    study = FuzzResults(("f(x)",), 100, ABOUT)
    follow(study, results(), quiet=True)
    assert len(taken) == HOPELESS
    assert render(study, study.comparisons(), 80, 5) == []


def test_what_fails_only_at_first_or_in_several_ways_is_not_given_up() -> None:
    other = Failure(FailureKind.RAISED, "TypeError: no", None)
    study = FuzzResults(("f(x)",), 30, ABOUT)
    failures = [BROKEN, other] * 15
    follow(study, (FuzzedResult(make_input(i), failure=f) for i, f in enumerate(failures)), quiet=True)
    assert len(study.results) == 30


def test_json_has_raw_times_ratios_and_rules() -> None:
    study = make_study(90, slow=3)
    study.results.append(FuzzedResult(make_input(90), failure=BROKEN))
    plain = json.loads(json.dumps(to_json_fuzz(study, study.comparisons())))
    assert (plain["schema"], plain["schema_version"]) == ("torchmark.fuzz", 1)
    assert plain["inputs"][0]["measurements"][1]["raw_times"] == [pytest.approx(1e-5)] * 8
    assert plain["inputs"][0]["code"] == "x = 0"
    assert plain["environment"] is None
    assert plain["inputs"][90]["failure"] == {"kind": "raised", "text": "Traceback\nValueError: no"}
    (contest,) = plain["contests"]
    assert contest["slower"] == 45
    assert contest["searched"] + contest["held_back"] == 90
    (rule,) = contest["rules"]
    assert rule["conditions"] == [{"feature": "x is contiguous", "relation": "is", "value": False}]
    assert rule["ratio_inside"] == pytest.approx(3)


def test_one_statement_on_inputs_without_elements_is_told_so() -> None:
    study = FuzzResults(("f0(x)",), 1, ABOUT, [make_result(0, 1e-6, n=0)])
    assert show(study) == "No input has elements to compare the time with: give two statements."


def test_the_command_to_copy_gives_the_same_statements_and_options_again() -> None:
    setup = "a = 1\nb = 'é \"q\"'"
    for stmts in (("x['a']", "torch.neg(\nx)"), ("-x", "--x")):
        study = make_study(2)
        study.stmts, study.about = stmts, {**ABOUT, "setup": setup, "min-run-time": 0.5, "timeout": 3.0}
        text = show(study)
        context = command.make_context("fuzz", shlex.split(text[text.index("torchmark fuzz") :])[2:])
        given = {name: context.params[name] for name in ("stmts", "setup", "min_run_time", "timeout", "only")}
        assert given == {"stmts": stmts, "setup": setup, "min_run_time": 0.5, "timeout": 3.0, "only": (1,)}
        assert "setup a = 1 ..., min-run-time" in " ".join(text.split())


def test_where_nothing_was_tried_a_file_keeps_what_is_in_it(tmp_path: Path) -> None:
    (tmp_path / "old.json").write_text("old")
    report(FuzzResults(("f(x)",), 3, ABOUT), 5, str(tmp_path / "old.json"), with_code=False)
    assert (tmp_path / "old.json").read_text() == "old"


def test_code_of_inputs_is_shown_where_it_is_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    report(make_study(1), 5, None, with_code=True)
    shown = capsys.readouterr().out
    assert shown.endswith("as long as A.\n\n# Input 0: x 8x2 every 1,2 order 1,0\nx = 0\n")
    assert "Too few inputs" not in shown
