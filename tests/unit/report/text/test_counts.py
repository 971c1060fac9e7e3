from __future__ import annotations

import io
import sys

import pytest

from torchmark.model.environment import Environment
from torchmark.report.text.counts import CountRow, describe_functions, render_counts, render_difference
from torchmark.report.text.terminal import show_waiting


def row(name: str, instructions: float, **changes: object) -> CountRow:
    defaults: dict[str, object] = {
        "name": name,
        "threads": 1,
        "number": 100,
        "instructions": instructions,
        "baseline": 95.5,
        "allocations": 3.0,
        "tensor_allocations": 1.0,
        "cycles": None,
        "layouts": 5,
        "spread": 0.0012,
        "environment": Environment(
            python="python",
            python_version="3.11.7",
            torch_version="2.13.0",
            cpu_capability="AVX2",
            native_capability="AVX2",
            valgrind="valgrind-3.19.0",
        ),
    }
    return CountRow(**{**defaults, **changes})  # type: ignore[arg-type]


def test_a_table_of_counts() -> None:
    text = render_counts([row("x * w", 9574.4), row("x.sum()", 1234567.0, allocations=2.97)])
    assert text == (
        "         instructions  spread  baseline  mallocs  tensors\n"
        "x * w           9,574    0.1%        96        3        1\n"
        "x.sum()     1,234,567    0.1%        96     2.97        1\n"
        "\n"
        "Per run, from 100 runs; the median of 5 memory layouts.\n"
        "The baseline is the empty loop.\n"
        "torch 2.13.0, Python 3.11.7, Valgrind 3.19.0, AVX2"
    )


def test_columns_that_say_nothing_are_left_out_and_others_come_in() -> None:
    bare = render_counts([row("x", 1.0, layouts=1, spread=None, environment=None)])
    assert "spread" not in bare
    assert "in one memory layout" in bare
    several = render_counts([row("x", 1.0, threads=n, cycles=12.0) for n in (1, 2)])
    assert "threads" in several
    assert "est. cycles" in several


def test_a_long_statement_does_not_break_the_lines() -> None:
    text = render_counts([row("x" * 200, 1.0), row("y", 1e12)])
    assert max(map(len, text.splitlines()[:3])) <= 80


def test_a_difference_shows_the_largest_changes_and_adds_up_the_rest() -> None:
    changes = [(100.0, "???:f()", False), (-50.5, "a.c:_int_free", True), *((1.0, f"g{i}", False) for i in range(30))]
    lines = render_difference(changes, from_name="a", to_name="b").splitlines()
    assert lines[:3] == ["Instructions per run from  a  to  b", "  +100.0  f()", "   -50.5  ~ a.c:_int_free"]
    assert lines[-3:] == ["   +12.0  in 12 other functions", "   +79.5  in all", "~ varies with the layout of memory"]


def test_no_difference_is_one_too() -> None:
    assert render_difference([], from_name="a", to_name="b").splitlines()[-1] == "  +0.0  in all"


def test_functions_without_rows() -> None:
    assert describe_functions([], inclusive=False) == "\nTotal: 0"
    assert describe_functions([], inclusive=True) == ""


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(("stream", "seen"), [(Terminal(), True), (io.StringIO(), False), (None, False)])
def test_a_sign_of_life_is_for_terminals(
    stream: io.StringIO | None, seen: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stderr", stream)
    with show_waiting("a while"):
        pass
    if stream is not None:
        assert ("a while" in stream.getvalue()) is seen
