from __future__ import annotations

import dataclasses
import re
from itertools import product

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.made_summaries import make_case, make_summary
from torchmark.model.caveats import Drift, FewSamples, OtherInstructionSet, OtherPlaces, SeveralThreads, Variation
from torchmark.model.outcome import CompileCosts, Failure, FailureKind, FirstCall
from torchmark.model.plan import AutogradMode, Metric, Plan, RuntimeMode, Sampling, Target
from torchmark.model.run import CaseSummary
from torchmark.model.task import Language, Times
from torchmark.report.text.failures import list_failures
from torchmark.report.text.run_table import describe_compile_costs, fill_cells, make_rows, render_results
from torchmark.report.text.terminal import measure

COSTS = CompileCosts(
    cold=FirstCall(2.5, 0.5, graphs=1, graph_breaks=0, cache_misses=1),
    warm=FirstCall(0.75, 0.5, graphs=1, graph_breaks=0, cache_hits=1),
    steady=Times(10, (5e-4, 4e-4, 6e-4)),
    call=Times(100, (1e-3,)),
)


def test_costs_are_a_few_aligned_lines() -> None:
    assert describe_compile_costs(COSTS).splitlines() == [
        "  steady call           50.0 us",
        "  guards and call       10.0 us",
        "  compile, empty cache  2.00 s",
        "  compile, from cache   250 ms",
        "  graphs                1, no breaks",
    ]


def test_what_was_not_found_in_the_cache_is_not_called_so() -> None:
    again = dataclasses.replace(COSTS, warm=dataclasses.replace(COSTS.warm, cache_hits=0))
    assert "compile, again        250 ms (nothing was found in the cache)" in describe_compile_costs(again)


def test_breaks_and_what_was_left_to_the_interpreter_are_told() -> None:
    cold = FirstCall(2.5, 0.5, graphs=2, graph_breaks=1, abandoned=2, breaks=("print (<setup>, line 2)",))
    text = describe_compile_costs(dataclasses.replace(COSTS, cold=cold))
    assert "graphs                2, 1 break, 2 functions left to the interpreter\n" in text
    assert text.endswith("\n    break: print (<setup>, line 2)")


def test_compiling_is_never_shorter_than_nothing() -> None:
    assert FirstCall(0.1, 0.2, graphs=0, graph_breaks=0).compile_s == 0.0


LANGUAGES = tuple(Language)
BROKEN = Failure(FailureKind.RAISED, "ValueError: no", "Traceback\n  f(x)\nValueError: no")
CRASHED = Failure(FailureKind.CRASHED, "The process was ended by SIGSEGV.")


def plan_of(summaries: list[CaseSummary], metrics: tuple[Metric, ...] = tuple(Metric)) -> Plan:
    cases = tuple(dict.fromkeys(summary.case for summary in summaries))
    targets = tuple(dict.fromkeys(summary.target for summary in summaries)) or (Target(),)
    return Plan(cases, targets, Sampling(metrics))


def render(summaries: list[CaseSummary], width: int = 80, metrics: tuple[Metric, ...] = tuple(Metric)) -> list[str]:
    return render_results(summaries, plan_of(summaries, metrics), width).split("\n")


def test_labels_are_headings_with_a_line_a_case() -> None:
    cases = [make_case("Math", name, language=language) for name in ("add", "mul") for language in LANGUAGES]
    lines = render([make_summary(case, 10.0 ** -(2 * i + 1), 10.0**i) for i, case in enumerate(cases)], 70)
    assert lines[:6] == [
        "                 time     ±  instructions spread  mallocs tensors",
        "Math",
        "  add Python   100 ms ±0.3%             1   0.1%        3       1",
        "         C++  1.00 ms ±0.3%            10   0.1%        3       1",
        "  mul Python  10.0 us ±0.3%           100   0.1%        3       1",
        "         C++   100 ns ±0.3%         1,000   0.1%        3       1",
    ]
    assert lines[-3:] == [
        "All of 4 cases measured.",
        "See where instructions go with:",
        "  torchmark show @ --functions 'Math / add, C++'",
    ]


def test_only_what_was_asked_for_has_columns() -> None:
    summaries = [make_summary(make_case("a"), instructions=None)]
    assert render(summaries, 60, (Metric.WALL,))[0].split() == ["time", "±", "statement"]
    summaries = [make_summary(make_case("a"), time=None)]
    assert render(summaries, 60, (Metric.COUNT,))[0].split() == ["instructions", "spread", "mallocs", "tensors"]


def test_wide_terminals_show_statements_and_narrow_ones_short_words() -> None:
    cases = [
        make_case("nn", "Linear", runtime=runtime, threads=threads, autograd=AutogradMode.FORWARD_BACKWARD)
        for runtime, threads in product((RuntimeMode.EAGER, RuntimeMode.JIT), (1, 2))
    ]
    summaries = [make_summary(case) for case in cases]
    wide, narrow = render(summaries, 120), render(summaries, 75)
    assert wide[0].endswith("statement")
    assert wide[2].startswith("  Linear                 backward")
    assert wide[2].endswith("f(x)")
    assert [line[:12] for line in narrow[2:6]] == ["  Linear bwd", "      bwd 2t", "      TS bwd", "   TS bwd 2t"]
    assert narrow[6] == "bwd: Forward + Backward; TS: TorchScript; 2t: 2 threads."
    assert "A wider terminal shows ±, spread, mallocs, tensors too." in "\n".join(render(summaries, 40)).replace(
        "\n", " "
    )


def test_several_environments_are_blocks_of_each_case() -> None:
    targets = Target("old", "/usr/bin/python3"), Target("new")
    cases = [make_case("nn", "Linear", language=language) for language in LANGUAGES]
    lines = render([make_summary(case, target=target) for case in cases for target in targets], 79)
    assert [line[:18].rstrip() for line in lines[1:7]] == [
        "nn",
        "  Linear",
        "    (old) Python",
        "             C++",
        "    (new) Python",
        "             C++",
    ]
    assert "All of 4 results measured." in lines


def test_caveats_are_marks_explained_once() -> None:
    everywhere = OtherInstructionSet("AVX512", "AVX2")
    summaries = [
        make_summary(make_case("a"), caveats=(Variation(0.12), everywhere)),
        make_summary(make_case("b"), caveats=(Variation(0.3), Drift(0.5), everywhere)),
        *(make_summary(make_case(name), caveats=(SeveralThreads(2), everywhere)) for name in "cd"),
        make_summary(make_case("e"), unchecked="There is nothing to compare it with."),
    ]
    lines = render(summaries, 200)
    assert [re.split(r" {2,}", line)[-2] for line in lines[1:6]] == ["1 v", "1 vd", "1 t", "1 t", "1 ?"]
    legend = [line for line in lines if re.match(r"[a-z?]  |Note", line)][5:]
    assert [line.split("  ")[0] for line in legend[:4]] == ["v", "d", "t", "?"]
    assert "v  2 cases, at worst: The result is unreliable: the middle half of the samples spans 30%" in legend[0]
    assert "t  2 cases: The count is of 2 threads" in legend[2]
    assert "There is nothing to compare it with." in legend[3]
    assert sum("AVX512" in line for line in lines) == 1


def test_a_case_whose_times_and_counts_left_rounds_out_is_one_case() -> None:
    both = tuple(OtherPlaces(metric, n, 5, ("cpu",)) for metric, n in (("wall", 1), ("count", 2)))
    lines = render([make_summary(make_case("a"), caveats=both), make_summary(make_case("b"))], 200)
    assert lines[1].split()[-2] == "e"
    assert [line for line in lines if line.startswith("e  ")] == [
        "e  2 of 5 rounds of counts are left out, taken with another processor. "
        "Run it anew, without --resume, to have all rounds in one result."
    ]


def test_failures_come_last_with_a_line_each() -> None:
    summaries = [
        make_summary(make_case("a"), None, None, failures=((Metric.WALL, BROKEN), (Metric.COUNT, BROKEN))),
        make_summary(make_case("b"), instructions=None, failures=((Metric.COUNT, CRASHED),)),
        make_summary(make_case("c"), instructions=None, missing=(Metric.COUNT,)),
        make_summary(make_case("d"), failures=((Metric.COUNT, CRASHED),)),
    ]
    lines = render(summaries, 70)
    assert [line.split()[:4] for line in lines[1:4]] == [
        ["b", "1.51", "us", "±0.3%"],
        ["c", "1.51", "us", "±0.3%"],
        ["d", "1.51", "us", "±0.3%"],
    ]
    assert "failed" in lines[1]
    assert lines[2].endswith(" -")
    assert lines[3].endswith("!")
    assert lines[-8:] == [
        "3 cases failed:",
        "  a: ValueError: no",
        "  b: counting: The process was ended by SIGSEGV.",
        "  d: counting: The process was ended by SIGSEGV.",
        "",
        "0 of 4 cases measured, 3 failed, 1 not measured yet.",
        "Go on with:  torchmark run --resume",
        "See why with:  torchmark show @ --failures",
    ]


def test_what_compiling_costs_is_a_table_of_its_own() -> None:
    steady = Times(1, (1e-6,))
    first, again = FirstCall(3.0, 0.0, 1, 0, breaks=("print() in line 3",)), FirstCall(0.5, 0.0, 1, 0, cache_hits=1)
    costs = CompileCosts(first, again, steady, Times(1, (2e-7,)))
    cases = make_case("MLP", runtime=RuntimeMode.COMPILE), make_case("MLP")
    lines = render([make_summary(cases[0], compiling=costs), make_summary(cases[1])])
    start = next(i for i, line in enumerate(lines) if line.startswith("torch.compile "))
    assert lines[start].split()[1:] == ["guards", "first", "cached", "graphs", "breaks"]
    assert lines[start + 1].split() == ["MLP", "200", "ns", "3.00", "s", "500", "ms", "1", "0"]
    assert lines[start + 2] == "  MLP: print() in line 3"


def test_nothing_to_show_is_said() -> None:
    assert render([]) == ["Nothing was measured."]


def test_colours_do_not_change_the_text() -> None:
    summaries = [make_summary(make_case("a", "b"), failures=((Metric.COUNT, CRASHED),))]
    coloured = render_results(summaries, plan_of(summaries), 80, colour=True)
    assert re.sub(r"\033\[\d+m", "", coloured).split("\n") == render(summaries)
    assert coloured != "\n".join(render(summaries))


LABELS = st.lists(st.text(max_size=30), min_size=1, max_size=3).map(tuple)
SUMMARIES = st.builds(
    lambda label, runtime, language, threads, suite, time, count, failed, target: make_summary(
        make_case(*label, runtime=runtime, language=language, threads=threads, suite=suite),
        time,
        count,
        target=Target(target),
        failures=((Metric.WALL, Failure(FailureKind.RAISED, failed)),) if failed else (),
        caveats=(FewSamples(1, 6),) if threads > 1 else (),
    ),
    LABELS,
    st.sampled_from(RuntimeMode),
    st.sampled_from(Language),
    st.integers(1, 3),
    st.sampled_from(["", "標準"]),
    st.none() | st.floats(1e-12, 1e6),
    st.none() | st.floats(0, 1e15),
    st.text(max_size=90),
    st.sampled_from(["", "新しい torch " * 4, "a\x1b[31m"]),
)


@settings(max_examples=60)
@given(
    st.lists(SUMMARIES, min_size=1, max_size=6, unique_by=lambda s: (s.case.suite, s.case.key, s.target)),
    st.integers(40, 130),
)
def test_no_line_is_too_wide_and_no_case_is_lost(summaries: list[CaseSummary], width: int) -> None:
    lines = render(summaries, width)
    assert max(map(measure, lines)) <= width
    assert all(line.isprintable() for line in lines)
    text = "\n".join(lines)
    shown = [summary for summary in summaries if summary.wall or summary.count or not summary.failures]
    for summary in shown:
        cells = fill_cells(summary)
        assert any(cells["time"].strip() in line and cells["instructions"] in line for line in lines)
    assert len(make_rows(shown, plan_of(shown).targets)) == len(shown)
    failed = sum(bool(summary.failures) for summary in summaries)
    # A name that is too long for the line of its reason has lines of its own.
    assert len(list_failures(summaries, plan_of(summaries), width)) >= failed + bool(failed)
    assert (f"of {len(summaries)} " if len(summaries) > 1 else "1 ") in text


def test_lines_of_wide_characters_fit_too() -> None:
    summary = make_summary(make_case("🌀" * 9, runtime=RuntimeMode.JIT, threads=2))
    for width in range(40, 131):
        assert max(map(measure, render([summary], width))) <= width


def test_a_report_ends_with_what_to_do_next_also_where_nothing_was_counted() -> None:
    case = make_case("a")
    assert (
        render([make_summary(case, 1e-6, None)], metrics=(Metric.WALL,))[-1] == "See this again with:  torchmark show @"
    )
    assert render([make_summary(case, 1e-6, 100.0)])[-1].startswith("See where instructions go with:")
