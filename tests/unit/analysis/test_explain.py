from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from torchmark.analysis.verdict.explain import STAGES, explain
from torchmark.callgrind.profiles import standardise
from torchmark.model.costs import Costs, Function, Profile, Tally
from torchmark.model.judgement import Explanation, FunctionChange, StageChange


def make_tally(costs: dict[Function, Costs], number: int = 1, events: tuple[str, ...] = ("Ir",)) -> Tally:
    profile = Profile(events, costs, costs, {})
    return Tally(
        number=number,
        seeds=(0,),
        totals=(profile.total(),),
        events=tuple(zip(events, profile.totals(), strict=True)),
        allocations=0,
        tensor_allocations=0,
        baseline=None,
        profile=profile,
    )


def compare(base: Tally, head: Tally) -> Explanation:
    explanation = explain(base, head, standardise)
    assert explanation is not None
    return explanation


OLD = make_tally(
    {
        Function("???", "malloc", "/lib/libc.so.6"): (100,),
        Function("???", "_PyEval_EvalFrameDefault", "/usr/bin/python3.11"): (40,),
        Function("???", "_PyEval_EvalFrameDefault'2", "/usr/bin/python3.11"): (60,),
        Function("???", "0x0000000000f288a0", "/lib/libtorch_cpu.so.1.13.0"): (7,),
        Function("???", "0x0000000000f288a0'2", "/lib/libtorch_cpu.so.1.13.0"): (2,),
        Function("???", "0x00000000018505a0", "/lib/libtorch_cpu.so.1.13.0"): (1,),
    },
    number=10,
)
NEW = make_tally(
    {
        Function("./malloc/malloc.c", "malloc", "/lib/libc.so.6"): (60,),
        Function("./malloc/arena.c", "malloc", "/lib/libc.so.6"): (20,),
        Function("/tmp/Python-3.11.7/Python/ceval.c", "_PyEval_EvalFrameDefault", "/lib/libpython3.11.so.1.0"): (90,),
        Function("???", "at::native::add(at::Tensor const&)", "/lib/libtorch_cpu.so"): (30,),
        Function("???", "never_called", "/lib/libtorch_cpu.so"): (0,),
    },
    number=5,
)


def test_a_function_of_two_builds_is_one_and_all_is_of_one_run() -> None:
    assert compare(OLD, NEW).functions == (
        FunctionChange("_PyEval_EvalFrameDefault", "interpreter", 10.0, 18.0),
        FunctionChange("malloc", "allocation", 10.0, 16.0),
        FunctionChange("at::native::add", "kernel", 0.0, 6.0),
        FunctionChange("(no name) in libtorch_cpu.so", "other", 1.0, 0.0),
    )


def test_stages_come_in_the_order_of_a_call_and_have_all_instructions() -> None:
    stages = compare(OLD, NEW).stages
    assert tuple(change.stage for change in stages) == STAGES
    assert [change for change in stages if change.base or change.head] == [
        StageChange("interpreter", 10.0, 18.0),
        StageChange("allocation", 10.0, 16.0),
        StageChange("kernel", 0.0, 6.0),
        StageChange("other", 1.0, 0.0),
    ]


def test_what_is_alike_comes_last_with_the_costliest_first() -> None:
    costs: dict[Function, Costs] = {Function("a.c", "f"): (5,), Function("a.c", "g"): (7,)}
    functions = compare(make_tally(costs), make_tally(costs | {Function("a.c", "h"): (1,)})).functions
    assert [change.function for change in functions] == ["h", "g", "f"]


def test_the_loop_of_a_snippet_is_one_function_whatever_the_snippet() -> None:
    base, head = (
        make_tally({Function("/tmp/a.cpp", f"torchmark_loop_{digit * 32}", "/tmp/a.so"): (3,)}) for digit in "ab"
    )
    assert [change.function for change in compare(base, head).functions] == ["torchmark_loop"]


def test_a_name_with_two_stages_stays_apart() -> None:
    tally = make_tally(
        {Function("", "memo", "/bin/python3"): (1,), Function("", "memo", "/lib/libtorch_python.so"): (2,)}
    )
    assert [(change.stage, change.head) for change in compare(tally, tally).functions] == [
        ("argument parsing", 2.0),
        ("interpreter", 1.0),
    ]


def test_instructions_are_told_from_other_events() -> None:
    tally = make_tally({Function("a.c", "f"): (9, 4)}, events=("Dr", "Ir"))
    assert compare(tally, tally).functions == (FunctionChange("f", "other", 4.0, 4.0),)


def test_without_costs_by_function_there_is_nothing_to_explain() -> None:
    bare = Tally(
        number=1, seeds=(0,), totals=(10,), events=(("Ir", 10),), allocations=0, tensor_allocations=0, baseline=None
    )
    assert explain(bare, OLD, standardise) is None
    assert explain(OLD, bare, standardise) is None


NAMES = ("malloc", "malloc'2", "f(int)", "f(long)", "0x12", "0x34", "???", "free", "(below main)", "at::native::f()")
FUNCTIONS = st.builds(
    Function, st.sampled_from(("???", "a.c", "b.c")), st.sampled_from(NAMES), st.sampled_from(("", "/a.so", "/python3"))
)
TALLIES = st.builds(
    make_tally,
    st.dictionaries(FUNCTIONS, st.tuples(st.integers(0, 10**9)), min_size=1),
    st.integers(1, 100),
)


@given(TALLIES, TALLIES)
def test_functions_and_stages_add_up_to_the_totals(base: Tally, head: Tally) -> None:
    explanation = compare(base, head)
    for changes in (explanation.functions, explanation.stages):
        assert sum(round(change.base * base.number) for change in changes) == base.total
        assert sum(round(change.head * head.number) for change in changes) == head.total
        total = head.total / head.number - base.total / base.number
        assert sum(change.delta for change in changes) == pytest.approx(total, abs=1e-3)


@given(TALLIES, TALLIES)
def test_the_other_way_round_all_differences_change_sign(base: Tally, head: Tally) -> None:
    there, back = compare(base, head), compare(head, base)
    assert [(c.function, c.stage, c.delta) for c in there.functions] == [
        (c.function, c.stage, -c.delta) for c in back.functions
    ]
    assert [(c.stage, c.delta) for c in there.stages] == [(c.stage, -c.delta) for c in back.stages]
