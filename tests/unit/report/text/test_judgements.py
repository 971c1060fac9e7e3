from __future__ import annotations

import dataclasses
import math
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.made_judgements import CRASHED, DOUBTS, fail, make_count, make_judgement, make_time, random_judgements
from tests.made_summaries import make_case
from torchmark.model.caveats import ComparisonCaveat, Incomparable, LayoutSensitive, SlowSpells, Unmatched
from torchmark.model.judgement import CaseJudgement, Cause, Side, Verdict
from torchmark.model.plan import AutogradMode
from torchmark.report.text.judgements import (
    close,
    describe_judgement,
    order_judgements,
    render_judgements,
    render_side_failures,
)
from torchmark.report.text.terminal import measure

UNMATCHED = Unmatched("libraries", ("libtorch_cpu.so",))
SEVERAL = [
    make_judgement("view", time=make_time(0.001), count=make_count(5000, 0)),
    make_judgement("nn", "ReLU", time=make_time(0.001, 0.021, needed_s=8), count=make_count(8000, 0)),
    make_judgement("fft", failures=fail(Side.BASE)),
    make_judgement("Math", "mul", time=make_time(-0.052), count=make_count(9154, -612)),
    make_judgement(
        "Math", "add", time=make_time(0.41), count=make_count(9154, 3712, (3, 5)), caveats=(LayoutSensitive(0.014),)
    ),
]


def test_the_largest_change_comes_first_and_what_is_the_same_last() -> None:
    assert render_judgements(SEVERAL, 80).split("\n") == [
        "           case         time            ±  per run  instr.     %  mallocs",
        "slower     Math / add   +41% +40% to +42%  +410 ns  +3,712  +41%       +2 l",
        "faster     Math / mul  -5.2%        ±0.4%   -52 ns    -612 -6.7%",
        "failed     fft: on base: It fails when it is run once. AttributeError: module '…",
        "undecided  nn / ReLU   +0.1%        ±2.1%    +1 ns       0",
        "same       view        +0.1%        ±0.4%    +1 ns       0",
        "",
        "Changes are of head against base, for one run. ± is the 99 % interval of the",
        "change in time.",
        "l  Its time moves by 1.4 % with the layout of memory. More layouts (--layouts)",
        "   make it firmer.",
        "",
        "5 cases: 1 slower (+41 %, Math / add), 1 faster (-5.2 %, Math / mul), 1 same, 1",
        "undecided, 1 failed on base.",
    ]


def test_a_narrow_terminal_keeps_verdicts_names_and_times() -> None:
    lines = render_judgements(SEVERAL, 40, base="1.13", head="2.13").split("\n")
    assert lines[:6] == [
        "           case         time  instr.",
        "slower     Math / add   +41%  +3,712 l",
        "faster     Math / mul  -5.2%    -612",
        "failed     fft: on base: It fails when…",
        "undecided  nn / ReLU   +0.1%       0",
        "same       view        +0.1%       0",
    ]
    text = " ".join(lines)
    assert "Changes are of 2.13 against 1.13, for one run." in text
    assert "A wider terminal shows ±, %, per run, mallocs too." in text


def test_a_wide_terminal_tells_why() -> None:
    lines = render_judgements(SEVERAL, 200).split("\n")
    assert lines[0].endswith("why")
    assert lines[1].endswith("+2 l  instructions and time agree")
    assert lines[4].endswith("nothing is shown yet")


def test_without_times_instructions_have_the_columns() -> None:
    counted = [make_judgement("a", count=make_count(8000, 400)), make_judgement("b", count=make_count(8000, 4))]
    assert render_judgements(counted, 80).split("\n")[:3] == [
        "        case  instr.      %  why",
        "slower  a       +400  +5.0%  not timed",
        "same    b         +4 +0.05%  not timed",
    ]
    assert "interval" not in render_judgements(counted, 80)
    mixed = render_judgements([*counted, make_judgement("c", time=make_time(0.02))], 40).split("\n")
    assert mixed[1].split()[:3] == ["slower", "a", "-"]


def test_instructions_rank_where_there_is_no_time() -> None:
    by_count = make_judgement("a", count=make_count(1000, -500))
    by_time = [make_judgement("b", time=make_time(change)) for change in (0.5, 1.5)]
    assert order_judgements([by_count, *by_time]) == [by_time[1], by_count, by_time[0]]
    # All instructions are gone.
    gone = make_judgement("c", count=make_count(1000, -1000))
    assert order_judgements([*by_time, gone])[0] == gone


def test_many_cases_that_are_the_same_are_one_line() -> None:
    same = [make_judgement(str(i), time=make_time(0.001), count=make_count(5000, i % 2)) for i in range(21)]
    folded = render_judgements([*SEVERAL[3:], *same], 80).split("\n")
    assert folded[3] == "same    21 cases, within 0.5%; 10 with other instructions"
    assert folded[4] == ""
    assert len(render_judgements([*SEVERAL[3:], *same], 80, all_cases=True).split("\n")) == len(folded) + 20
    assert "21 cases" not in "\n".join(render_judgements(same[:20], 80).split("\n"))


def test_what_holds_for_all_is_a_note_and_no_mark() -> None:
    judgements = [
        make_judgement("a", time=make_time(0.05), caveats=(UNMATCHED, LayoutSensitive(0.02))),
        make_judgement("b", time=make_time(0.04), caveats=(UNMATCHED, LayoutSensitive(0.03), SlowSpells(0.5, 1.9))),
        make_judgement("c", failures=fail(Side.HEAD)),
    ]
    lines = render_judgements(judgements, 200).split("\n")
    assert lines[1].endswith("+50 ns l   not counted")
    assert lines[2].endswith("+40 ns lh  not counted")
    assert sum(line.startswith("Note: Base and head load different native libraries") for line in lines) == 1
    assert sum(line.startswith("l  2 cases, at worst: Its time moves by 3.0 %") for line in lines) == 1
    assert sum(line.startswith("h  The machine was") for line in lines) == 1


def test_all_that_differs_is_told_if_only_for_some_cases() -> None:
    hashes = Incomparable("hash_seed", "0", "1")
    codes = [Incomparable("definition", f"stmt: {i}", "stmt: x") for i in range(2)]
    caveats: list[tuple[ComparisonCaveat, ...]] = [(hashes, codes[0]), (hashes, codes[1]), ()]
    lines = render_judgements([make_judgement("a", time=make_time(0.1), caveats=one) for one in caveats], 200)
    told = [line[:90] for line in lines.split("\n") if line.startswith("i  ")]
    assert told == [
        "i  2 cases: Python had different hash seeds, which move counts: base 0, head 1. Measure bo",
        "i  2 cases, for example: The sides do not measure the same: base stmt: 0, head stmt: x. Me",
    ]


def test_what_failed_in_part_is_marked() -> None:
    judgement = make_judgement("a", time=make_time(0.05), failures=fail(Side.BASE, failure=CRASHED))
    lines = render_judgements([judgement], 80).split("\n")
    assert " !" in lines[1]
    assert "!  A part of it failed; the verdict is on the rest." in lines
    assert "  failed    on base: The process was ended by SIGSEGV." in describe_judgement(judgement).split("\n")


def test_names_do_not_steer_the_terminal_and_wide_characters_keep_columns() -> None:
    judgements = [make_judgement("加算", time=make_time(0.02)), make_judgement("\x1b[31m\nred", time=make_time(0.01))]
    lines = render_judgements(judgements, 60).split("\n")
    assert {measure(line[: line.index("%")]) for line in lines[1:3]} == {23}
    assert "\x1b" not in "\n".join(lines)


def test_names_that_do_not_fit_stand_above_their_numbers() -> None:
    names = ["Tensor, SubWithTorchFunction", "TensorLike, SubWithTorchFunction", "SubWithTorchFunction, Tensor"]
    judgements = [
        make_judgement("mixed add", name, time=make_time(0.05), count=make_count(9154, 245)) for name in names
    ]
    assert render_judgements(judgements, 80).split("\n")[1:7] == [
        "slower  mixed add / Tensor, SubWithTorchFunction",
        "                                              +5.0% ±0.4%   +50 ns    +245 +2.7%",
        "slower  mixed add / TensorLike, SubWithTorchFunction",
        "                                              +5.0% ±0.4%   +50 ns    +245 +2.7%",
        "slower  mixed add / SubWithTorchFunction, Tensor",
        "                                              +5.0% ±0.4%   +50 ns    +245 +2.7%",
    ]
    assert "…" not in render_judgements(judgements, 100)


def test_so_do_those_of_cases_that_failed() -> None:
    judgements = [make_judgement(f"{'a' * 40}{n}{'b' * 40}", failures=fail(Side.BASE)) for n in range(2)]
    lines = render_judgements(judgements, 80).split("\n")
    assert lines[1] == f"failed  {'a' * 40}0{'b' * 31}"
    assert lines[2] == f"        {'b' * 9}:"
    assert lines[3].startswith("          on base: It fails when it is run once.")
    assert lines[4] == f"failed  {'a' * 40}1{'b' * 31}"


@settings(max_examples=150, deadline=None)
@given(st.sets(st.text("ab", min_size=1, max_size=60), max_size=6), st.integers(40, 200), st.booleans())
def test_every_row_can_be_told_from_all_others(names: set[str], width: int, failed: bool) -> None:
    failures, time = (fail(Side.BASE), None) if failed else ((), make_time(0.05))
    judgements = [make_judgement(name, time=time, failures=failures) for name in sorted(names)]
    table = render_judgements(judgements, width).split("\n\n")[0]
    rows = re.split("^(?:slower|failed)", table, flags=re.MULTILINE)[1:]
    assert len(set(rows)) == len(names)


def test_colours_do_not_change_the_text() -> None:
    coloured = render_judgements(SEVERAL, 80, colour=True)
    assert coloured != render_judgements(SEVERAL, 80)
    assert re.sub(r"\033\[\d+m", "", coloured) == render_judgements(SEVERAL, 80)


def test_one_judgement_is_told_in_full() -> None:
    judgement = make_judgement(
        case=make_case("Math", "add", autograd=AutogradMode.FORWARD_BACKWARD, stmt="x + y\nz"),
        base_case=make_case("Math", "add", stmt="x.add(y)"),
        time=make_time(0.019, confirmed=True),
        count=make_count(9154, 245, (3, 5), spread=10),
        caveats=(LayoutSensitive(0.014),),
    )
    assert describe_judgement(judgement, 80).split("\n") == [
        "Math / add, backward, Python: slower, +1.9 %",
        "  head          x + y ...",
        "  base          x.add(y)",
        "  time          +1.9 % (+1.5 % to +2.3 %), about +19 ns on 1.00 us",
        "  instructions  +245 (+2.7 %), from 9,154 to 9,399; over layouts 9,144 to 9,164",
        "                and 9,389 to 9,409",
        "  allocations   +2, from 3 to 5",
        "  tensors       1 on both sides",
        "  measured      in turns, in 6 layouts of memory, 4 visits each, 0.47 s; seen",
        "                again on fresh layouts; 99 % confidence",
        "  why           +245 instructions (+2.7 %) and +2 allocations, 1.9 % more time:",
        "                both changed in the same direction.",
        "  Note: Its time moves by 1.4 % with the layout of memory. More layouts",
        "    (--layouts) make it firmer.",
    ]


def test_what_instructions_alone_make_slower_is_told_by_instructions() -> None:
    judgement = make_judgement("a", time=make_time(-0.001), count=make_count(1000, 50))
    assert (judgement.verdict, judgement.cause) == (Verdict.SLOWER, Cause.BELOW_RESOLUTION)
    assert describe_judgement(judgement).startswith("a, Python: slower, +5.0 % instructions\n")
    assert close([judgement]) == "1 case: 1 slower (+5.0 % instructions, a)."


def test_times_of_stored_runs_are_told_to_be_one_after_the_other() -> None:
    judgement = make_judgement("a", time=make_time(0.05, layouts=0))
    assert "  measured  one side after the other, 0.47 s; 99 % confidence" in describe_judgement(judgement).split("\n")


def test_the_closing_sentence_names_the_extremes() -> None:
    judgements = [
        *(make_judgement(str(i), time=make_time(i / 10)) for i in range(1, 4)),
        *(make_judgement(str(-i), time=make_time(-i / 10)) for i in range(1, 3)),
        make_judgement("f", failures=fail(Side.BASE)),
        make_judgement("g", failures=fail(Side.HEAD)),
        make_judgement("h", failures=fail(Side.BASE, Side.HEAD)),
        make_judgement("i"),
    ]
    assert close(judgements) == (
        "9 cases: 3 slower (worst: +30 %, 3), 2 faster (best: -20 %, -2), 1 failed on base, 1 failed on head, "
        "1 failed on base and head, 1 failed."
    )


def test_nothing_to_show_is_said() -> None:
    assert render_judgements([], 80) == "Nothing was compared."
    assert render_side_failures([]) == ""


def test_each_reason_is_told_once_a_side_with_the_cases_it_hit() -> None:
    judgements = [
        make_judgement("a", failures=fail(Side.BASE)),
        make_judgement("b", failures=fail(Side.BASE) + fail(Side.HEAD, failure=CRASHED)),
        make_judgement("c", time=make_time(0.1)),
    ]
    assert render_side_failures(judgements, 100).split("\n") == [
        "Failed on base, 2 cases: It fails when it is run once. AttributeError: module 'torch' has no",
        "  attribute 'f'",
        "  a; b",
        "Failed on head, 1 case: The process was ended by SIGSEGV.",
        "  b",
    ]


@settings(max_examples=150, deadline=None)
@given(st.lists(random_judgements, max_size=6), st.integers(40, 200), st.booleans())
def test_no_line_is_wider_than_the_terminal(judgements: list[CaseJudgement], width: int, all_cases: bool) -> None:
    texts = [render_judgements(judgements, width, all_cases=all_cases), render_side_failures(judgements, width)]
    texts += [describe_judgement(judgement, width) for judgement in judgements]
    for line in "\n".join(texts).split("\n"):
        assert measure(line) <= width
        assert line.isprintable()


@settings(max_examples=150, deadline=None)
@given(st.lists(random_judgements, min_size=1, max_size=30))
def test_every_judgement_is_in_one_count_of_the_closing_sentence(judgements: list[CaseJudgement]) -> None:
    plain = [dataclasses.replace(judgement, case=make_case("a")) for judgement in judgements]
    total, parts = close(plain).split(": ", 1)
    counts = re.findall(r"(?:^|, )(\d+) (slower|faster|same|undecided|failed)", parts)
    assert sum(int(number) for number, _ in counts) == len(judgements) == int(total.split()[0])
    for verdict in Verdict:
        expected = sum(judgement.verdict is verdict for judgement in judgements)
        assert sum(int(number) for number, word in counts if word == verdict.value) == expected


def test_a_case_without_numbers_leaves_no_blank_line_in_the_table() -> None:
    # Names that are cut to the same text stand on lines of their own.
    empty = dataclasses.replace(make_judgement("加算" * 40, time=make_time(0.5)), time=None, cause=Cause.UNCHANGED)
    counted = dataclasses.replace(empty, count=make_count(1000, 100_000_000_000))
    table = render_judgements([empty, counted], 80).split("\n\nChanges are")[0]
    assert "" not in table.split("\n")


@settings(deadline=None)
@given(st.lists(random_judgements, max_size=8))
def test_every_case_has_a_line_and_the_order_is_that_of_the_verdicts(judgements: list[CaseJudgement]) -> None:
    ordered = order_judgements(judgements)
    assert sorted(map(id, ordered)) == sorted(map(id, judgements))
    ranks = [{Verdict.FAILED: 1, Verdict.UNDECIDED: 2, Verdict.SAME: 3}.get(one.verdict, 0) for one in ordered]
    assert ranks == sorted(ranks)
    if judgements:
        table = render_judgements(judgements, 120, all_cases=True).split("\n\n")[0].split("\n")
        rows = [line for line in table[1:] if not line.startswith(" ")]
        assert [line.split()[0] for line in rows] == [judgement.verdict.value for judgement in ordered]


@pytest.mark.parametrize("width", [40, 80, 200])
def test_all_marks_at_once_fit(width: int) -> None:
    judgements = [make_judgement("a" * 300, time=make_time(math.e**9, 0.1), caveats=DOUBTS), *SEVERAL]
    assert max(map(measure, render_judgements(judgements, width).split("\n"))) <= width
