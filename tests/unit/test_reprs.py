"""Every public result has a `repr` on one line and, unless that line says it all, a fragment for notebooks."""

from __future__ import annotations

import dataclasses
import enum
import inspect
import re
from typing import Any

import pytest
import torch

import torchmark
from tests.made_judgements import DOUBTS, make_count, make_judgement, make_time
from tests.unit.api.test_callgrind_stats_stats import counted, load
from tests.unit.report.html.test_templates import EVIL, Outline
from torchmark.api.ab import from_judgement
from torchmark.define.expand import expand
from torchmark.fuzz.fuzzer import outline
from torchmark.model.outcome import Failure, FailureKind
from torchmark.model.task import LONGEST, fit_line
from torchmark.report.text.terminal import measure

LONG = "torch.add(\n    some_tensor, another_tensor)\n" * 9
WIDE = "加算" * 90
TIMES = [1e-6 * t for t in (1.0, 1.1, 1.05, 1.02, 1.2, 1.07, 1.03, 1.01, 1.09)]
FAILURE = Failure(FailureKind.RAISED, "It fails when it is run once.", f"Traceback\n{EVIL}\nNameError: {LONG}")
FUZZER = torchmark.UnaryOpFuzzer(seed=0, preset="small")


def spec(text: str = LONG) -> torchmark.TaskSpec:
    return torchmark.TaskSpec(text, text, label=text, sub_label=text, description=text, env=text, num_threads=2)


def timed(text: str = LONG) -> torchmark.Measurement:
    return torchmark.Measurement(1, TIMES, spec(text))


def group(text: str = "x + 1") -> torchmark.GroupedBenchmark:
    return torchmark.GroupedStmts(text, setup=torchmark.GroupedSetup("x = 1\n" * 50), num_threads=(1, 2))


def result(label: str = "add", **parts: Any) -> torchmark.BenchmarkResult:
    return torchmark.BenchmarkResult(expand({(label,): group()})[1], **parts)


def fuzzed(**parts: Any) -> torchmark.FuzzedResult:
    return torchmark.FuzzedResult(outline(FUZZER, 3), **parts)


def name_functions(name: str) -> torchmark.FunctionCounts:
    return torchmark.FunctionCounts((torchmark.FunctionCount(3, name),), inclusive=False)


# What measuring gives, each as it is, with texts that are too long, and with texts of somebody who means harm.
RESULTS: dict[str, list[Any]] = {
    "Measurement": [timed(), timed(EVIL), torchmark.Measurement(1, [], spec())],
    "CallgrindStats": [
        counted(),
        load(torchmark, "ones_no_data"),
        dataclasses.replace(counted(), task_spec=spec(EVIL)),
    ],
    "FunctionCounts": [
        counted().stats(),
        counted().stats(inclusive=True),
        name_functions(EVIL),
        name_functions("")[:0],
    ],
    "FunctionCount": [torchmark.FunctionCount(3, LONG), torchmark.FunctionCount(3, EVIL)],
    "Compare": [torchmark.Compare([timed(), timed(EVIL)]), torchmark.Compare([])],
    "Judgement": [
        from_judgement(make_judgement(label, time=make_time(0.02), count=make_count(1000, 50), caveats=DOUBTS))
        for label in ("add", LONG, EVIL, WIDE)
    ],
    "BenchmarkResult": [
        result(measurement=timed(), stats=counted()),
        result(LONG, stats=counted()),
        result(WIDE, measurement=timed()),
        result(EVIL, failures=(FAILURE,), unchecked="It does not compile."),
    ],
    "FuzzedResult": [fuzzed(measurements=(timed("-x"), timed(LONG))), fuzzed(failure=FAILURE)],
}
# Values of few words: their line is all that a notebook shows.
VALUES: dict[str, list[Any]] = {
    "FuzzedItem": [FUZZER[3]],
    "Interval": [torchmark.Measurement(1, [t / 3e6 for t in range(7, 47)], spec()).median_interval()],
    "TaskSpec": [spec(), torchmark.TaskSpec("x", "pass")],
    "TimerArgs": [torchmark.TimerArgs(LONG, LONG, language=torchmark.Language.CPP)],
    "AutoLabels": [case.autolabels for case in expand({("add",): group()})],
    "CompileMode": [torchmark.CompileMode("inductor", "max-autotune")],
    "GroupedBenchmark": [group(), group("x = 1\n" * 40)],
    "GroupedSetup": [torchmark.GroupedSetup(LONG)],
}
# What is made to measure with, and gives none of it back.
TOOLS = {
    "CopyIfCallgrind", "FuzzedParameter", "FuzzedSparseTensor", "FuzzedTensor", "Fuzzer", "ParameterAlias", "Timer",
    "BinaryOpFuzzer", "BinaryOpSparseFuzzer", "SpectralOpFuzzer", "UnaryOpFuzzer", "UnaryOpSparseFuzzer",
}  # fmt: skip
# torch.utils.benchmark shows these on several lines, and scripts print them: theirs are the same to the letter.
AS_THE_REFERENCE = {"Measurement", "CallgrindStats", "FunctionCounts"}


def is_class_of_values(name: str) -> bool:
    value = getattr(torchmark, name)
    return inspect.isclass(value) and not issubclass(value, (enum.Enum, Exception)) and name not in TOOLS


def test_every_public_class_of_values_is_shown_here() -> None:
    assert {*RESULTS, *VALUES} == {name for name in torchmark.__all__ if is_class_of_values(name)}
    for name, shown in {**RESULTS, **VALUES}.items():
        assert all(isinstance(one, getattr(torchmark, name)) for one in shown)


@pytest.mark.parametrize("name", sorted({*RESULTS, *VALUES} - AS_THE_REFERENCE))
def test_a_repr_is_one_line_that_fits_a_terminal(name: str) -> None:
    for one in {**RESULTS, **VALUES}[name]:
        text = repr(one)
        assert text.startswith(f"{name}(")
        assert text.isprintable()
        assert measure(text) <= LONGEST
        assert "object at 0x" not in text


@pytest.mark.parametrize("name", RESULTS)
def test_a_notebook_gets_markup_in_which_all_tags_are_closed_and_all_texts_escaped(name: str) -> None:
    for one in RESULTS[name]:
        html = one._repr_html_()
        assert "script" not in Outline(html.replace("<wbr>", "")).tags
        # The notebook's own colours, light or dark.
        assert "background" not in html
        assert not re.search(r"[;\" ]color: *(#000|#fff|black|white)", html)


def test_a_list_of_results_is_read_line_by_line() -> None:
    assert repr(result(measurement=timed("x"), stats=counted())) == (
        "BenchmarkResult(add: Eager, Forward, Python, 2 threads: 1.05 us, 11 instructions)"
    )
    assert repr(result()) == "BenchmarkResult(add: Eager, Forward, Python, 2 threads: not measured)"
    failed = repr(result(failures=(Failure(FailureKind.CRASHED, "The process was ended by SIGSEGV."),)))
    assert failed.endswith("2 threads: failed: The process was ended by SIGSEGV.)")
    assert repr(fuzzed(measurements=(timed("-x"), timed("x.neg()")))).endswith(": -x 1.05 us, x.neg() 1.05 us)")


def test_values_are_shown_as_calls_without_what_is_as_usual() -> None:
    assert repr(torchmark.TaskSpec("x", "pass", num_threads=2)) == "TaskSpec('x', setup='pass', num_threads=2)"
    assert repr(torchmark.TimerArgs("x;", language=torchmark.Language.CPP)) == "TimerArgs('x;', language=Language.CPP)"
    item = torchmark.FuzzedItem({"x": torch.ones(4, 3)}, {}, {"n": 4})
    assert repr(item) == "FuzzedItem(x 4x3 torch.float32; n=4)"
    assert measure(fit_line(WIDE, 21)) <= 21


def test_counts_are_a_table_of_the_functions_that_cost_most() -> None:
    stats = load(torchmark, "ones_no_data")
    page = Outline(stats._repr_html_().replace("<wbr>", ""))
    runs, net = stats.number_per_run, stats.counts(net=True)
    for text in (
        f"{stats.counts() / runs:,.1f} per run, {runs} runs counted",
        f"{net / runs:,.1f} per run; the empty loop is ",
        stats.stats()[0].function,
        f"{len(stats.stats()) - 15} more functions",
        "total",
    ):
        assert text in page.text
    # Nothing was allocated as far as anybody knows, and no layout was looked at.
    assert "allocations" not in page.text
    assert "layouts" not in page.text


def test_counts_show_what_they_rest_on() -> None:
    text = Outline(counted()._repr_html_().replace("<wbr>", "")).text
    for fact in ("median of 3, which differ by 1.8%", "0.70 per run", "torch 2.13", "varies with the layout of memory"):
        assert fact in text
    assert "compare counts with counts only" in text


def test_a_difference_has_signs_and_a_total_and_no_shares() -> None:
    one, two = (load(torchmark, name) for name in ("ones_no_data", "ones_with_data"))
    delta = two.delta(one)
    text = Outline(delta._repr_html_().replace("<wbr>", "")).text
    assert "share" not in text
    assert f"{delta.sum():+,}" in text
    assert f"{delta[0].count:+,}" in text
    assert f"{delta[-1].count:+,}" in text
    largest = max(delta, key=lambda entry: abs(entry.count))
    assert largest.function.removeprefix("???:") in text


def test_the_rows_of_a_table_and_the_rest_add_up() -> None:
    counts = load(torchmark, "ones_no_data").stats()
    rows = re.findall(r">([\d,]+)</td>\s*<td[^>]*>([^<]*)</td>", counts._repr_html_())
    numbers = [int(number.replace(",", "")) for number, _ in rows]
    assert sum(numbers[:-1]) == numbers[-1] == counts.sum()
    assert len(numbers) == 15 + 2


def test_a_long_name_wraps_between_its_parts() -> None:
    html = name_functions("at::native::add<float, (anonymous)>(a, b)")._repr_html_()
    assert "at::<wbr>native::<wbr>add&lt;<wbr>float,<wbr>" in html


def test_a_case_shows_its_measurement_its_counts_and_what_failed_under_one_title() -> None:
    html = result(measurement=timed("x"), stats=counted(), failures=(FAILURE,))._repr_html_()
    for text in ("1.05 us", "11.1 per run", "It fails when it is run once."):
        assert text in html
    assert html.count("x: x") == 1
    alone = result(failures=(FAILURE,))._repr_html_()
    assert "add: Eager, Forward, Python" in alone


def test_an_input_is_a_small_table() -> None:
    slow = torchmark.Measurement(1, [2 * t for t in TIMES], spec("x.neg()"))
    text = Outline(fuzzed(measurements=(timed("-x"), slow))._repr_html_().replace("<wbr>", "")).text
    for cell in ("input 3", "1.05 us", "2.10 us", "2.00x", "x.neg()"):
        assert cell in text


def test_notes_in_plain_text_are_wrapped_between_words() -> None:
    lines = str(counted()).splitlines()
    assert all(len(line) <= 80 for line in lines)
    assert "NOTE: torch uses AVX512 on this machine, but AVX2 under Valgrind. Counts" in lines
    assert lines[-1] == "      counts only."
