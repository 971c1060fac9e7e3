"""The examples, most of them in the process of the tests, which has torch already; and what they make of results."""

from __future__ import annotations

import csv
import io
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import pytest
import torch

from examples import compare, end_to_end, fuzzer, op_benchmark, spectral
from examples.end_to_end import Input, Timing
from examples.verdicts import Verdict, judge
from tests.in_process import LentWorker
from tests.shared_workers import DEBIAN
from torchmark import BenchmarkResult, FuzzedItem, Measurement, TaskSpec, UnaryOpFuzzer

ROOT = Path(__file__).parents[2]
WIDTH = 100


def read(capsys: pytest.CaptureFixture[str]) -> str:
    """What was printed, which fits in its width."""
    out = capsys.readouterr().out
    assert max(map(len, out.splitlines())) <= WIDTH
    return out


def test_simple_timeit_shows_three_ways() -> None:
    command = [sys.executable, "-m", "examples.simple_timeit"]
    out = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    assert out.count("Broadcasting add (4x8)") == 3
    assert "1 measurement, 10000 runs, 1 thread" in out


def test_compare_prints_a_plain_and_a_trimmed_table(capsys: pytest.CaptureFixture[str]) -> None:
    compare.main(min_run_time=0.001)
    out = capsys.readouterr().out
    assert out.count("Batched dot product") == 2
    assert out.count("1 threads: -") == out.count("2 threads: -") == 2
    assert out.count("einsum") == 4
    assert "\033" not in out


# --- fuzzer --------------------------------------------------------------------------------------


def test_fuzzer_ranks_each_pair_once(capsys: pytest.CaptureFixture[str]) -> None:
    assert fuzzer.main(["--quick", "-n", "17"]) == 0
    out = read(capsys)
    assert out.startswith("17 pairs. Average attempts per valid config: ")
    assert out.count("\nBest ") == out.count("\nWorst ") == 1
    ranked = [float(line.split()[0]) for line in out.splitlines() if line.startswith("    ")]
    assert len(ranked) == 17
    assert ranked == sorted(ranked)


def test_an_interrupt_shows_what_was_measured(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def measure_two(*_: Any) -> Iterator[fuzzer.Result]:
        for seconds in (1e-3, 2e-3):
            yield fuzzer.Result(measured(seconds), (500, 200), "contiguous", "1 0")
        raise KeyboardInterrupt

    monkeypatch.setattr(fuzzer, "measure_all", measure_two)
    assert fuzzer.main([]) == 130
    out, errors = capsys.readouterr()
    assert "2 pairs." in out
    assert "10.000     100000   500 x 200            contiguous    1 0\n" in out
    assert "Interrupted" in errors


def test_a_reader_that_has_read_enough_is_no_failure() -> None:
    code = "from examples.running import run; run(lambda: print('first\\n' * 100_000) or 0)"
    with subprocess.Popen(
        [sys.executable, "-c", code], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline() == "first\n"
        process.stdout.close()
        assert process.stderr.read() == ""
    assert process.returncode == 1


def measured(seconds: float, **labels: Any) -> Measurement:
    return Measurement(1, [seconds], TaskSpec("x", "pass", **labels))


# --- op_benchmark --------------------------------------------------------------------------------


def test_op_benchmark_shows_every_operator(capsys: pytest.CaptureFixture[str]) -> None:
    assert op_benchmark.main(["--quick", "-n", "2", "--min-run-time", "0.001"]) == 0
    out = read(capsys)
    for stmt in ("torch.median(x, dim=0)", "torch.square(x)", "x + y"):
        assert f"{stmt}: 2 inputs" in out
    assert (out.count("  x: "), out.count("  y: ")) == (6, 2)


def make_items() -> tuple[FuzzedItem, FuzzedItem]:
    first, second = (UnaryOpFuzzer(seed=3, dtype=dtype, preset="small")[0] for dtype in op_benchmark.DTYPES)
    return first, second


def test_inputs_that_differ_in_their_type_alone_are_the_same() -> None:
    assert op_benchmark.find_differences(*make_items()) == []


@pytest.mark.parametrize("key", ["order", "steps", "is_contiguous"])
def test_other_properties_are_a_difference(key: str) -> None:
    first, second = make_items()
    second.tensor_properties["x"][key] = (7,)
    (text,) = op_benchmark.find_differences(first, second)
    assert text.startswith(f"x: {key} is ")


def test_other_parameters_and_other_tensors_are_differences() -> None:
    first, second = make_items()
    second.params["k0"] += 1
    second.params["more"] = 1
    second.tensors["x"] = torch.ones(1, 2, 3)
    second.tensors["y"] = second.tensors["x"]
    words = [text.split(" is ")[0] for text in op_benchmark.find_differences(first, second)]
    assert words == ["parameter more", "parameter k0", "tensor y", "x: shape", "x: stride"]


def test_inputs_that_are_not_the_same_are_not_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    class Unsteady(UnaryOpFuzzer):
        def __init__(self, seed: int, dtype: torch.dtype, preset: str | None) -> None:
            super().__init__(seed + (dtype == torch.int32), dtype, preset=preset)

    monkeypatch.setitem(op_benchmark.OPERATORS, "x", Unsteady)
    with pytest.raises(ValueError, match="Input 0 is not the same for both types: parameter "):
        list(op_benchmark.measure("x", 0, 1, 0.0, "small"))


# --- spectral ------------------------------------------------------------------------------------


def test_spectral_writes_what_it_shows(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "out.csv"
    arguments = ["--quick", "--bench", "rfft", "irfft", "--samples", "2", "--min-run-time", "0.001", "-o", str(path)]
    assert spectral.main(arguments) == 0
    out = read(capsys)
    assert "rfft on cpu, by dim" in out
    assert "1: 725*" in out
    rows = list(csv.DictReader(path.read_text().splitlines()))
    one_thread = [row for row in rows if row["num_threads"] == "1"]
    assert [row["benchmark"] for row in one_thread] == ["rfft"] * 7 + ["irfft"] * 7
    assert [row["dim"] for row in one_thread[:7]] == ["0", "1", "2", "0-1", "0-2", "None", "None"]
    assert [row["shape"] for row in one_thread[:7]] == ["3x540x2"] * 6 + ["725"]


def test_a_row_of_csv_has_the_shape_of_its_input_whatever_the_dims() -> None:
    file = io.StringIO()
    result = Measurement(2, [2e-6, 4e-6, 6e-6], TaskSpec("x", "pass", num_threads=4))
    spectral.write_row(spectral.Result("rfft", "cpu", (128, 256, 20), False, (0, 1), result), file)
    assert file.getvalue() == "rfft,cpu,4,655360,128x256x20,False,0-1,2.0,2.0,1.0\n"
    assert len(spectral.HEADER.split(",")) == file.getvalue().count(",") + 1


def test_threads_are_those_that_there_are_cores_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.sched_getaffinity", lambda _: set(range(8)))
    assert spectral.choose_threads("cpu") == (1, 4)
    assert spectral.choose_threads("cuda") == (1,)


@pytest.mark.parametrize(
    "arguments",
    [
        ["--probability-regular", "1.5"],
        ["--samples", "0"],
        ["--bench", "dct"],
        ["--seed", "-1"],
        ["--min-run-time", "-1"],
    ],
)
def test_spectral_refuses_what_it_cannot_do(arguments: list[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        spectral.main(arguments)


def test_a_file_that_cannot_be_written_is_told_before_anything_is_measured(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match="cannot be written: No such file"):
        spectral.main(["-o", str(tmp_path / "missing" / "out.csv")])


# --- end_to_end ----------------------------------------------------------------------------------


def test_two_interpreters_measure_the_same_inputs(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    # Debian's torch is of before torch.func.
    monkeypatch.setitem(end_to_end.OPS, "newer", ("torch.func.vmap", UnaryOpFuzzer))
    options = ["--quick", "--ops", "add", "newer", "-n", "1", "--min-run-time", "0.001"]
    monkeypatch.setattr("torchmark.runner.lab.Worker", LentWorker)
    assert end_to_end.main(["--base", sys.executable, "--head", DEBIAN, *options]) == 0
    out = read(capsys)
    assert "\nadd 0 " in out
    assert "  head: AttributeError: module 'torch' has no attribute 'func'\n" in out
    assert ", 1 failed." in out
    assert "False alarms" not in out


A, B, C = (Input(f"add {i}", "x + y", "", "4x4 4x4") for i in range(3))


def time_both(of: Input, base: list[float], head: list[float]) -> list[Timing]:
    return [Timing(of, side, t) for pair in zip(base, head, strict=True) for side, t in enumerate(pair)]


def test_a_report_goes_from_faster_to_slower_and_counts(capsys: pytest.CaptureFixture[str]) -> None:
    timings = time_both(A, [1e-6, 1.01e-6, 1e-6], [2e-6, 2e-6, 2.01e-6]) + time_both(B, [1e-6] * 3, [1e-6] * 3)
    timings += [*time_both(C, [1e-6], [1e-6]), Timing(C, 1, None, "It fails.")]
    end_to_end.print_report(timings, 0.05, test_variance=True)
    out = read(capsys)
    assert out.index("add 1") < out.index("add 0") < out.index("add 2")
    assert "2.000   1.980-2.010       1.0%   regressed" in out
    assert "  head: It fails." in out
    assert "0 improved, 1 regressed, 1 unchanged, 1 failed." in out
    assert "False alarms: 1 of 2 inputs" in out


def test_each_input_has_either_build_first_in_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    def give(definition: dict[Any, Any], **_: Any) -> Iterator[BenchmarkResult]:
        yield from (BenchmarkResult(MagicMock(), measured(1.0)) for _ in definition)

    monkeypatch.setattr("torchmark.run_benchmarks", give)
    for inputs in ([A, B], [A, B, C]):
        timings = list(end_to_end.measure_in_turns(inputs, ["old", "new"], 4, 0.1))
        assert len(timings) == 8 * len(inputs)
        for of in inputs:
            sides = [timing.side for timing in timings if timing.of == of]
            assert sides in ([0, 1, 1, 0] * 2, [1, 0, 0, 1] * 2)


def test_what_an_interrupt_left_without_replicates_is_not_judged(capsys: pytest.CaptureFixture[str]) -> None:
    timings = [*time_both(A, [1.0] * 3, [1.0] * 3), Timing(A, 0, 9.0), *time_both(B, [1.0] * 2, [1.0] * 2)]
    judged, failed = end_to_end.judge_all(timings, 0.05)
    assert (list(judged), failed) == ([A], {})
    assert judged[A].ratio == 1
    end_to_end.print_report(timings, 0.05, test_variance=False)
    assert "Inputs that are not judged, because they have been through fewer than 3 rounds: 1." in read(capsys)


STEADY = [1.00, 1.01, 0.99, 1.00, 1.01]


@pytest.mark.parametrize(
    ("head", "verdict"),
    [
        ([1.20, 1.21, 1.19, 1.20, 1.22], Verdict.REGRESSED),
        ([0.80, 0.81, 0.79, 0.80, 0.82], Verdict.IMPROVED),
        # All agree, on less than the threshold.
        ([1.04, 1.05, 1.03, 1.04, 1.05], Verdict.UNCHANGED),
        # Large, but one does not agree.
        ([1.20, 1.21, 1.19, 1.20, 1.00], Verdict.UNCHANGED),
        # All agree, but are further apart than they are from the other build.
        ([1.10, 1.50, 1.20, 1.15, 1.12], Verdict.UNCHANGED),
    ],
)
def test_a_change_is_agreed_on_and_larger_than_threshold_and_noise(head: list[float], verdict: Verdict) -> None:
    assert judge(STEADY, head, 0.05).verdict is verdict


def test_a_slow_spell_that_both_builds_share_hides_no_change() -> None:
    spell = [1.0, 1.0, 3.0, 3.0, 1.0]
    base = [t * s for t, s in zip(STEADY, spell, strict=True)]
    judgement = judge(base, [1.2 * t for t in base], 0.05)
    assert judgement.verdict is Verdict.REGRESSED
    assert judgement.noise == pytest.approx(0)


def test_three_replicates_have_to_be_further_apart_than_five() -> None:
    # Ratios from 1.08 to 1.15, which are as far apart as the replicates of head.
    head = [1.08, 1.10, 1.15, 1.10, 1.10]
    assert judge([1.0] * 5, head, 0.05).verdict is Verdict.REGRESSED
    assert judge([1.0] * 3, head[:3], 0.05).verdict is Verdict.UNCHANGED
    assert judge([1.0] * 3, [1.3 * t for t in head[:3]], 0.05).verdict is Verdict.REGRESSED


def test_one_replicate_out_of_many_may_disagree() -> None:
    assert judge(STEADY * 2, [*[1.2] * 9, 0.9], 0.05).verdict is Verdict.REGRESSED


@pytest.mark.parametrize(("base", "head"), [([1.0] * 2, [1.0] * 2), ([1.0] * 4, [1.0] * 3)])
def test_a_judgement_needs_pairs(base: list[float], head: list[float]) -> None:
    with pytest.raises(ValueError, match="same number of replicates, at least 3"):
        judge(base, head, 0.05)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "two interpreters are needed"),
        (["--base", sys.executable], "two interpreters are needed"),
        (["--base", "a", "--head", "b", "--test-variance"], "give --base or --head, not both"),
        (["--base", sys.executable, "--head", "/nonexistent"], "there is no interpreter /nonexistent"),
        (["--test-variance", "--replicates", "2"], "at least 3 are needed"),
        (["--test-variance", "--threshold", "-100"], "-100 is no number of percent from 0"),
    ],
)
def test_end_to_end_says_what_it_needs(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        end_to_end.main(arguments)
    assert message in capsys.readouterr().err


def test_variance_is_tested_with_the_running_interpreter_or_another() -> None:
    own = end_to_end.parse(["--test-variance"])
    assert own.base == own.head == sys.executable
    other = end_to_end.parse(["--test-variance", "--base", DEBIAN])
    assert other.base == other.head == DEBIAN


def test_an_interpreter_without_torch_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    assert end_to_end.main(["--base", "/usr/bin/true", "--head", "/usr/bin/true"]) == 2
    assert "is not a Python interpreter" in capsys.readouterr().err
