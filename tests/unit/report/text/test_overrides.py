from __future__ import annotations

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.made_overrides import (
    LIKE,
    NUMBERS,
    PLAIN,
    SUB,
    make_override,
    make_override_rows,
    make_override_run,
    make_tally,
)
from tests.made_summaries import make_case, make_summary, make_wall
from torchmark.analysis.overrides import OverrideRow, find_overheads, hold_to_expectations
from torchmark.callgrind.profiles import standardise
from torchmark.model.caveats import FewSamples
from torchmark.model.outcome import Failure, FailureKind
from torchmark.model.plan import Metric
from torchmark.model.run import CaseSummary
from torchmark.report.text.overrides import (
    describe_finding,
    list_classic_lines,
    render_costs,
    render_overrides,
    render_stages,
)
from torchmark.report.text.terminal import measure


def test_calls_are_headings_with_their_statement_and_a_line_a_type() -> None:
    assert render_costs(make_override_rows(), 80)[:8] == [
        "                         min   std median    ± instr    +ns +instr",
        "add: torch.add(x, y)",
        "  Tensor               1.000 0.003  1.004 0.3% 1,000",
        "  SubTensor            1.500 0.004  1.506 0.3% 4,000   +500 +3,000",
        "  WithTorchFunction    3.000 0.008  3.012 0.3% 2,800 +2,000 +1,800",
        "  SubWithTorchFunction 1.800 0.005  1.807 0.3% 4,200   +800 +3,200",
        "mixed add: torch.add(x, y)",
        "  Tensor, SubTensor    1.400 0.004  1.406 0.3% 3,600   +400 +2,600",
    ]


def test_stages_stand_in_the_order_of_a_call_and_only_those_that_differ() -> None:
    assert render_stages(make_override_rows(), 80)[:4] == [
        "                       interp t_func alloc",
        "add: torch.add(x, y)",
        "  SubTensor            +2,100   +863   +37",
        "  WithTorchFunction    +1,100   +663   +37",
    ]


def test_where_there_is_little_room_small_stages_are_one_column_and_all_adds_up() -> None:
    head, _, first, *_ = render_stages(make_override_rows(), 38)
    assert head.split() == ["interp", "rest"]
    assert first.split() == ["SubTensor", "+2,100", "+900"]


def test_where_there_is_little_room_columns_give_way_and_the_overhead_stays() -> None:
    heads = [render_costs(make_override_rows(), width)[0].split() for width in (66, 62, 56, 48)]
    assert heads == [
        ["min", "std", "median", "±", "instr", "+ns", "+instr"],
        ["min", "std", "median", "instr", "+ns", "+instr"],
        ["min", "median", "instr", "+ns", "+instr"],
        ["min", "instr", "+ns", "+instr"],
    ]


@given(st.integers(60, 200), st.text(min_size=1, max_size=60))
def test_no_line_is_wider_than_it_may_be(width: int, name: str) -> None:
    rows = make_override_rows({**NUMBERS, make_override("add", name): (123.4, 10**6, 10**5, 10**4)})
    for lines in (render_costs(rows, width), render_stages(rows, width)):
        assert max(map(measure, lines)) <= width
        assert not any("\n" in line or "\x1b" in line for line in lines)


def test_a_statement_of_several_lines_stands_on_one() -> None:
    case = make_override("disabling add", "Tensor", stmt="with off():\n    torch.add(x, y)")
    assert "disabling add: with off(): torch.add(x, y)" in render_costs(
        make_override_rows({PLAIN: NUMBERS[PLAIN], case: NUMBERS[SUB]}), 80
    )


def test_what_is_in_doubt_failed_or_is_missing_can_be_seen() -> None:
    failed = (Metric.COUNT, Failure(FailureKind.RAISED, "no"))
    summaries = [
        make_summary(PLAIN, caveats=(FewSamples(9, 100),)),
        make_summary(SUB, instructions=None, failures=(failed,)),
        make_summary(make_override("add", "late"), time=None, instructions=None, missing=tuple(Metric)),
        make_summary(make_override("add", "never"), time=None, instructions=None, failures=(failed,)),
    ]
    lines = render_costs(find_overheads(summaries, {PLAIN: make_tally(1, 2, 3)}, standardise), 80)
    assert lines[2].endswith(" f")
    assert "failed" in lines[3]
    assert lines[4].split() == ["late", "-", "-"]
    # Nothing is known of it but that it failed, which is told elsewhere.
    assert len(lines) == 5


def test_nothing_gives_no_table() -> None:
    assert render_costs((), 80) == []
    assert render_stages((), 80) == []
    assert render_stages(make_override_rows({PLAIN: NUMBERS[PLAIN]}), 80) == []


def test_headings_are_bold_where_there_are_colours() -> None:
    plain, coloured = render_costs(make_override_rows(), 80), render_costs(make_override_rows(), 80, colour=True)
    assert coloured[1] == f"\033[1m{plain[1]}\033[0m"
    assert coloured[2] == plain[2]


# For pasting, these are never broken.
CLASSIC = "Type "


def render(rows: tuple[OverrideRow, ...], width: int = 80) -> str:
    return render_overrides(make_override_run(rows), rows, hold_to_expectations(rows), width)


def test_all_of_it_fits_80_columns_but_for_what_is_there_to_be_pasted() -> None:
    text = render(make_override_rows())
    assert all(measure(line) <= 80 for line in text.splitlines() if not line.startswith(CLASSIC))
    assert "of 100 blocks of 1,000 calls each" in text.replace("\n", " ")


def test_the_lines_of_old_have_their_wording_and_are_normalised() -> None:
    times = make_wall(4e-6, 5e-6, 6e-6)
    summaries = [
        CaseSummary(PLAIN, make_summary(PLAIN).target, times),
        dataclasses.replace(make_summary(SUB), wall=make_wall(7.25e-6)),
        make_summary(LIKE, time=None),
        make_summary(make_case("add", "TensorLike")),
    ]
    assert list_classic_lines(find_overheads(summaries, {}, standardise)) == [
        "Type tensor had a minimum time of 4 us and a standard deviation of 1 us.",
        "Type SubTensor had a minimum time of 7.25 us and a standard deviation of nan us.",
    ]


def words(changes: dict[str, tuple[float, int, int, int]]) -> list[str]:
    numbers = {case: changes.get(case.label[1], values) for case, values in NUMBERS.items()}
    return [describe_finding(finding) for finding in hold_to_expectations(make_override_rows(numbers))]


def test_findings_say_whether_they_are_met_and_by_which_numbers() -> None:
    assert words({}) == [
        "Met: plain Tensors are cheapest in every call. Closest is add / WithTorchFunction, with +1,800 instructions.",
        "Met: overrides cost plain Tensors next to nothing. Functions for them take at most 50 instructions of a call "
        "(neg); expected are less than 100.",
        "Met: subclasses of Tensor pay 400 ns to 800 ns more (neg / SubTensor; add / SubWithTorchFunction). Expected "
        "is little, less than 1.00 us: 3 of 3 cases.",
        "Met: Tensor-likes pay 2.00 us more (add / WithTorchFunction). Expected is a couple of us, less than 2.50 us: "
        "1 of 1 case.",
        "Met: the overhead of torch.add should grow from Tensor to subclasses to Tensor-likes. It grows so: "
        "Tensor (0), SubTensor (500 ns), SubWithTorchFunction (800 ns), WithTorchFunction (2.00 us).",
    ]


@pytest.mark.parametrize(
    ("name", "numbers", "told"),
    [
        (
            "WithTorchFunction",
            (5.0, 1, 1, 1),
            "Not met: plain Tensors are cheapest, except in 1 of 5 cases; closest is",
        ),
        ("Tensor", (1.0, 9, 300, 9), "Not met: overrides cost plain Tensors next to nothing."),
        ("SubTensor", (9.0, 3000, 900, 100), "Not met: subclasses of Tensor pay 800 ns to 8.10 us more"),
        ("WithTorchFunction", (9.0, 3000, 900, 100), "Not met: Tensor-likes pay 8.00 us"),
        ("WithTorchFunction", (1.1, 3000, 900, 100), "Not met: the overhead of torch.add should grow"),
    ],
)
def test_what_is_not_met_begins_with_that(name: str, numbers: tuple[float, int, int, int], told: str) -> None:
    assert any(text.startswith(told) for text in words({name: numbers}))


def test_what_failed_is_told_and_all_else_is_shown() -> None:
    failure = Failure(FailureKind.RAISED, "AttributeError: no add")
    broken = make_summary(
        make_override("method", "mine:Mine", "given"),
        time=None,
        instructions=None,
        failures=((Metric.WALL, failure), (Metric.COUNT, failure)),
    )
    text = render(make_override_rows(more=(broken,)))
    assert "1 case failed:\n  method / mine:Mine: AttributeError: no add" in text
    assert "8 of 9 cases measured, 1 failed." in text


def test_what_a_type_is_called_steers_no_terminal() -> None:
    assert "\x1b" not in render(make_override_rows({**NUMBERS, make_override("add", "a\x1b[31m"): NUMBERS[SUB]}))
