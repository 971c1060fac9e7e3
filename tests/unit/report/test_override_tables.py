from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from tests.made_overrides import NUMBERS, PLAIN, SUB, make_override, make_override_rows, make_tally
from tests.made_summaries import make_summary
from torchmark.analysis.overrides import find_overheads
from torchmark.callgrind.profiles import standardise
from torchmark.model.caveat import FewSamples
from torchmark.model.outcome import Failure, FailureKind
from torchmark.model.plan import Metric
from torchmark.report.text.overrides import tabulate_costs, tabulate_stages


def test_calls_are_headings_with_their_statement_and_a_line_a_type() -> None:
    assert tabulate_costs(make_override_rows(), 80)[:8] == [
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
    assert tabulate_stages(make_override_rows(), 80)[:4] == [
        "                       interp t_func alloc",
        "add: torch.add(x, y)",
        "  SubTensor            +2,100   +863   +37",
        "  WithTorchFunction    +1,100   +663   +37",
    ]


def test_where_there_is_little_room_small_stages_are_one_column_and_all_adds_up() -> None:
    head, _, first, *_ = tabulate_stages(make_override_rows(), 38)
    assert head.split() == ["interp", "rest"]
    assert first.split() == ["SubTensor", "+2,100", "+900"]


def test_where_there_is_little_room_columns_give_way_and_the_overhead_stays() -> None:
    heads = [tabulate_costs(make_override_rows(), width)[0].split() for width in (66, 62, 56, 48)]
    assert heads == [
        ["min", "std", "median", "±", "instr", "+ns", "+instr"],
        ["min", "std", "median", "instr", "+ns", "+instr"],
        ["min", "median", "instr", "+ns", "+instr"],
        ["min", "instr", "+ns", "+instr"],
    ]


@given(st.integers(60, 200), st.text(min_size=1, max_size=60))
def test_no_line_is_wider_than_it_may_be(width: int, name: str) -> None:
    rows = make_override_rows({**NUMBERS, make_override("add", name): (123.4, 10**6, 10**5, 10**4)})
    for lines in (tabulate_costs(rows, width), tabulate_stages(rows, width)):
        assert max(map(cell_len, lines)) <= width
        assert not any("\n" in line or "\x1b" in line for line in lines)


def test_a_statement_of_several_lines_stands_on_one() -> None:
    case = make_override("disabling add", "Tensor", stmt="with off():\n    torch.add(x, y)")
    assert "disabling add: with off(): torch.add(x, y)" in tabulate_costs(
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
    lines = tabulate_costs(find_overheads(summaries, {PLAIN: make_tally(1, 2, 3)}, standardise), 80)
    assert lines[2].endswith(" f")
    assert "failed" in lines[3]
    assert lines[4].split() == ["late", "-", "-"]
    # Nothing is known of it but that it failed, which is told elsewhere.
    assert len(lines) == 5


def test_nothing_gives_no_table() -> None:
    assert tabulate_costs((), 80) == []
    assert tabulate_stages((), 80) == []
    assert tabulate_stages(make_override_rows({PLAIN: NUMBERS[PLAIN]}), 80) == []


def test_headings_are_bold_where_there_are_colours() -> None:
    plain, coloured = tabulate_costs(make_override_rows(), 80), tabulate_costs(make_override_rows(), 80, colour=True)
    assert coloured[1] == f"\033[1m{plain[1]}\033[0m"
    assert coloured[2] == plain[2]
