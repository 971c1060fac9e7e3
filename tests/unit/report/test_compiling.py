from __future__ import annotations

import dataclasses

from torchmark.model.compiling import CompileCosts, FirstCall
from torchmark.model.times import Times
from torchmark.report.text.run_table import describe_compile_costs

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
