from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from torchmark import DefinitionError, GroupedStmts, UsageError, run_benchmarks
from torchmark.api.benchmarks import BenchmarkResult, choose_cases
from torchmark.define.expand import expand
from torchmark.model.case import Case
from torchmark.model.outcome import Failure, FailureKind

ADD = GroupedStmts("x + 1")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"min_run_time": -1}, "`min_run_time` is a number of seconds, not -1"),
        ({"min_run_time": float("nan")}, "`min_run_time` is a number of seconds, not nan"),
        ({"min_run_time": "x"}, "`min_run_time` is a number of seconds, not 'x'"),
        ({"timeout_s": float("inf")}, "`timeout_s` is a number of seconds, not inf"),
        ({"select": None}, "`select` is a text"),
        ({"select": "subtract"}, "None of 1 cases is selected by 'subtract'"),
        ({"select": "and"}, "and"),
        ({"time": False}, "nothing to do"),
        ({"check": "no"}, "`check` is True or False, not 'no'"),
        ({"layouts": 0}, "`layouts` must be at least 1"),
        ({"benchmarks": {}}, "There are no cases"),
        ({"benchmarks": 5}, "names of suites and files, not <class 'int'>"),
        ({"benchmarks": ADD}, "names of suites and files, not <class"),
        ({"benchmarks": b"standard"}, "names of suites and files, not <class 'bytes'>"),
        ({"benchmarks": [5]}, "a name or a path, not 5"),
        ({"benchmarks": "standrad"}, "Did you mean standard"),
    ],
)
def test_what_cannot_be_run_is_told_before_anything_is_started(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        run_benchmarks(**{"benchmarks": {"add": ADD}, **arguments})


SUITE = """
from torchmark import GroupedStmts, GroupedSetup
def group(**options):
    return GroupedStmts("y = x", setup=GroupedSetup("x = 1"), signature="f(x) -> y", compile="eager", **options)
BENCHMARKS = {"silent": group(), "checked": group(check=True), "unchecked": group(check=False)}
"""


@pytest.mark.parametrize(
    ("text", "check", "checked"),
    [
        ("", None, {"checked"}),
        ("", True, {"silent", "checked"}),
        ("", False, set()),
        ("CHECK = True", None, {"silent", "checked"}),
        ("CHECK = True", False, set()),
    ],
)
def test_whether_results_are_compared_is_said_by_the_group_the_call_or_the_suite(
    tmp_path: Path, text: str, check: bool | None, checked: set[str]
) -> None:
    path = tmp_path / "bench_mine.py"
    path.write_text(f"{SUITE}\n{text}")
    cases = choose_cases(path, "", check)
    assert {case.label[0] for case in cases if case.check is not None} == checked


def test_all_faults_of_a_suite_are_told_together(tmp_path: Path) -> None:
    (tmp_path / "bench_bad.py").write_text(
        "from torchmark import GroupedStmts\n"
        'BENCHMARKS = {"a": GroupedStmts("x +"), "b": GroupedStmts("x", signature="f("), "c": GroupedStmts("x")}'
    )
    with pytest.raises(DefinitionError) as caught:
        run_benchmarks([str(tmp_path)])
    assert "bench_bad.py:2: a" in str(caught.value)
    assert "bench_bad.py:2: b" in str(caught.value)


def case() -> Case:
    return expand({("add",): ADD})[0]


def test_a_result_says_what_failed_and_why() -> None:
    failure = Failure(FailureKind.RAISED, "There is no TorchScript of this model: no", "Traceback\nValueError: no\n")
    text = str(BenchmarkResult(case(), failures=(failure,)))
    assert text.splitlines() == [
        "add: Eager, Forward, Python",
        "  There is no TorchScript of this model: no",
        "  Traceback",
        "  ValueError: no",
    ]


def test_a_result_says_that_it_was_not_compared() -> None:
    text = str(BenchmarkResult(case(), unchecked="It does not compile."))
    assert text.endswith("NOTE: It was not compared with the other variants. It does not compile.")
