"""`torchmark fuzz` and `measure_inputs` with real workers: rules that are there are found, others are not."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tests.in_process import Program
from torchmark import UnaryOpFuzzer, UsageError, measure_inputs

# Long enough for a ratio on which a rule does not depend, short enough for many inputs.
QUICK = ["--min-run-time", "0.002", "-q"]
# A call of a function costs the first statement, too: but for the sleep, both are the same.
PLANTED = """
import time
def plain(x):
    return x.neg()
def moody(x):
    if k0 > 1024 and not x.is_contiguous():
        time.sleep(0.0005)
    return x.neg()
"""


def fuzz(program: Program, *arguments: str, code: int = 0) -> dict[str, Any]:
    done = program("fuzz", *arguments, *QUICK, "--json", "-")
    assert done.returncode == code, done.stderr
    plain: dict[str, Any] = json.loads(done.stdout)
    return plain


def test_a_planted_rule_is_found_exactly(program: Program) -> None:
    plain = fuzz(program, "plain(x)", "moody(x)", "--setup", PLANTED, "-n", "300")
    (contest,) = plain["contests"]
    conditions = {(c["feature"], c["relation"], c["value"]) for c in contest["rules"][0]["conditions"]}
    assert conditions == {("k0", ">", 1024), ("x is contiguous", "is", False)}
    assert contest["rules"][0]["ratio_inside"] > 5


def test_two_equal_statements_have_no_rule(program: Program) -> None:
    plain = fuzz(program, "x.neg()", "x.neg()", "-n", "60", "--seed", "1")
    assert plain["contests"][0]["rules"] == []
    assert len(plain["contests"][0]["ratios"]) == 60


def test_a_fuzzer_of_the_users_and_several_types(program: Program, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(
        "import torch\nfrom torchmark import *\nprint('not a result')\n"
        "def make(seed=5, dtype=torch.float32):\n"
        "    n = FuzzedParameter('n', 2, 9, 'uniform')\n"
        "    return Fuzzer([n], [FuzzedTensor('x', ('n',), dtype=dtype)], seed=seed)\n"
    )
    plain = fuzz(program, "x + n", "--fuzzer", f"{tmp_path}/mine.py:make", "--dtype", "int32,float64", "-n", "4")
    assert [one["features"]["dtype"] for one in plain["inputs"]] == ["int32", "float64", "int32", "float64"]
    assert "dtype=torch.int32" in plain["inputs"][0]["code"]
    assert plain["contests"][0]["base"] is None


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["x", "--fuzzer", "ternary"], "There is no fuzzer 'ternary'. There are: unary, binary"),
        (["x", "--fuzzer", "nowhere.py:f"], "There is no file 'nowhere.py'"),
        (["x", "--fuzzer", "json:dumps"], "'json:dumps' does not take these options"),
        (["x", "--fuzzer", "json:nothing"], "json has no 'nothing'"),
        (["x", "--dtype", "float31"], "torch has no dtype 'float31'"),
        (["x", "--dtype", "quint8"], "torchmark: torch.quint8 cannot be filled with random values"),
        (["x", "--device", "toaster"], "'toaster' is not a device of torch, such as 'cpu'"),
        (["x", "--only", "3", "-n", "4"], "--only says which inputs"),
        (["x", "--only", "3;4"], "is not a list of inputs"),
        (["x", "--preset", "huge"], "huge"),
        (["x", "--seed", "-1"], "--seed"),
    ],
)
def test_what_makes_no_sense_is_refused_before_anything_is_measured(
    program: Program, arguments: list[str], words: str
) -> None:
    done = program("fuzz", *arguments)
    assert done.returncode == 2
    assert words in done.stderr
    assert done.stdout == ""


def test_an_input_that_fails_costs_only_itself(program: Program) -> None:
    stmt = "x.neg() if x.dim() == 2 else undefined"
    done = program("fuzz", stmt, "torch.neg(x)", "-n", "12", *QUICK)
    assert done.returncode == 1
    assert "NameError: name 'undefined' is not defined" in done.stderr
    assert "of 12 inputs" in done.stdout


def test_an_input_is_shown_with_the_code_that_makes_it(program: Program) -> None:
    done = program("fuzz", "x.neg()", "torch.neg(x)", "--only", "17,17", *QUICK)
    assert done.returncode == 0
    assert done.stdout.count("# Input 17: x ") == 1
    assert "torch.manual_seed(" in done.stdout


def test_an_interrupt_shows_what_was_measured_so_far(tmp_path: Path) -> None:
    flag = tmp_path / "flag"
    setup = f"import pathlib, time\npathlib.Path({str(flag)!r}).open('a').write('.')"
    process = subprocess.Popen(
        [
            sys.executable,
            "-m",
            "torchmark",
            "fuzz",
            "x.neg()",
            "torch.neg(x)",
            "-n",
            "100000",
            "--setup",
            setup,
            *QUICK,
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    for _ in range(600):
        if process.poll() is not None or (flag.exists() and flag.stat().st_size >= 5):
            break
        time.sleep(0.1)
    process.send_signal(signal.SIGINT)
    shown, errors = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "of 100000 inputs: fuzzer unary" in shown
    assert "In the middle B takes" in shown
    assert "torchmark: interrupted" in errors
    assert "Traceback" not in errors


def test_another_interpreter_makes_the_same_inputs() -> None:
    fuzzer = UnaryOpFuzzer(0, preset="small")
    stmts = ["x.sum().item()"]
    total = fuzzer[3].tensors["x"].sum().item()
    (ours,) = measure_inputs(fuzzer, stmts, [3], min_run_time=0.001, setup="assert torch.__version__ >= '2'")
    (theirs,) = measure_inputs(
        fuzzer,
        stmts,
        [3],
        min_run_time=0.001,
        python="/usr/bin/python3",
        setup=f"assert abs(x.sum().item() / {total!r} - 1) < 1e-5 and torch.__version__ < '2'",
    )
    assert ours.failure is None
    assert theirs.failure is None
    assert theirs.environment is not None
    assert theirs.environment.torch_version.startswith("1.13")
    assert ours.code == theirs.code


def test_statements_that_are_none_are_refused() -> None:
    fuzzer = UnaryOpFuzzer(0, preset="small")
    for wrong in ([], [1]):
        with pytest.raises(UsageError, match="Statements are texts"):
            measure_inputs(fuzzer, wrong)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="number of seconds"):
        measure_inputs(fuzzer, "x", min_run_time=-1)
    with pytest.raises(UsageError, match="from 1"):
        measure_inputs(fuzzer, "x", threads=0)
