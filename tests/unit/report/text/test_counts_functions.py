from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from torchmark.report.text.counts import FunctionRow, render_functions
from torchmark.report.text.terminal import measure

ROWS = [
    FunctionRow("a.c:leaf", 60.0, 60.0),
    FunctionRow("???:main()", 10.0, 100.0),
    FunctionRow("a.c:malloc", 30.0, 30.0, noisy=True),
]


def test_the_costliest_come_first_and_all_add_up() -> None:
    assert render_functions("add, Python", ROWS, 60).splitlines() == [
        "Instructions per run of add, Python",
        " self  share  with callees  function",
        " 60.0    60%          60.0  a.c:leaf",
        " 30.0    30%          30.0  ~ a.c:malloc",
        " 10.0    10%         100.0  main()",
        "100.0   100%                in all",
        "~ varies with the layout of memory",
    ]


def test_what_is_called_may_decide_the_order() -> None:
    lines = render_functions("add", ROWS, 60, inclusive=True, most=1).splitlines()
    assert lines[2].endswith("main()")
    assert lines[3] == " 90.0    90%                in 2 other functions"


def test_nothing_counted_is_no_error() -> None:
    assert render_functions("add", [], 60).splitlines()[-1].endswith("in all")


@given(st.lists(st.text(), max_size=5), st.floats(0, 1e18), st.integers(40, 100))
def test_no_line_is_wider_than_the_terminal(names: list[str], cost: float, width: int) -> None:
    text = render_functions("x" * 50, [FunctionRow(name, cost, cost, noisy=True) for name in names], width)
    assert max(map(measure, text.split("\n"))) <= width
