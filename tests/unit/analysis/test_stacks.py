from __future__ import annotations

import pytest

from torchmark.analysis.stacks import AROUND, DEEPER, FURTHER, STATEMENT, leave_out_native, read_stacks
from torchmark.model.costs import (
    Costs,
    FlameUnit,
    Frame,
    FrameKind,
    Function,
    Method,
    Profile,
    PythonFunction,
    Stack,
    Stacks,
    Trace,
)

LOOP = PythonFunction("_torchmark_loop", "<stmt>", 1)
HOOK = PythonFunction("Tensor.__torch_function__", "/some/lib/python3.11/site-packages/torch/_tensor.py", 1508)
LOCAL = PythonFunction("_torchmark_loop.<locals>.Sub.__torch_function__", "<setup>", 3)
# The loop is number 0, and numbers have base four.
ENTRY = "_PyEval_EvalFrameDefault'torchmark_python_0000'torchmark_eval'gen_send_ex'main"


def make_trace(costs: dict[str, int], *further: PythonFunction) -> Trace:
    exclusive: dict[Function, Costs] = {
        Function("???", name, "/lib/libx.so.1.13"): (cost,) for name, cost in costs.items()
    }
    return Trace(Profile(("Ir",), exclusive, exclusive, {}), (LOOP, *further), 100)


def read(costs: dict[str, int], *further: PythonFunction) -> dict[tuple[str, ...], int]:
    trace = make_trace(costs, *further)
    stacks, instrument = read_stacks(trace)
    assert stacks.total + instrument == trace.profile.total()
    return {tuple(frame.name for frame in frames): value for frames, value in stacks.stacks}


def test_what_is_outside_the_loop_is_left_out_of_chains() -> None:
    assert read({ENTRY: 7, f"f'{ENTRY}": 5}) == {("statement",): 7, ("statement", "f"): 5}


def test_a_python_function_is_one_frame_and_its_evaluation_is_its_own_cost() -> None:
    inner = f"_PyEval_EvalFrameDefault'torchmark_python_0001'torchmark_eval'_PyEval_Vector'{ENTRY}"
    found = read({inner: 11, f"add'{inner}": 3}, HOOK)
    path = ("statement", "_PyEval_Vector", "Tensor.__torch_function__")
    assert found == {path: 11, (*path, "add"): 3}


def test_frames_of_python_tell_their_file_without_its_folders() -> None:
    inner = f"_PyEval_EvalFrameDefault'torchmark_python_0001'torchmark_eval'{ENTRY}"
    ((frames, _),) = read_stacks(make_trace({inner: 1}, HOOK))[0].stacks
    assert frames[-1] == Frame("Tensor.__torch_function__", FrameKind.PYTHON, "torch/_tensor.py:1508")


@pytest.mark.parametrize(
    ("file", "short"),
    [
        ("/usr/lib/python3.11/functools.py", "functools.py"),
        ("/usr/lib/python3/dist-packages/torch/x.py", "torch/x.py"),
        ("/a/site-packages/b/lib/python3.11/c.py", "c.py"),
        ("/home/me/x.py", "/home/me/x.py"),
        # Takes quadratic time if it is searched from every position.
        ("/" * 500_000, "/" * 500_000),
    ],
)
def test_folders_that_are_left_out(file: str, short: str) -> None:
    inner = f"_PyEval_EvalFrameDefault'torchmark_python_0001'torchmark_eval'{ENTRY}"
    ((frames, _),) = read_stacks(make_trace({inner: 1}, PythonFunction("f", file, 1)))[0].stacks
    assert frames[-1].origin == f"{short}:1"


def test_what_a_setup_defines_is_named_as_its_author_named_it() -> None:
    inner = f"_PyEval_EvalFrameDefault'torchmark_python_0001'torchmark_eval'{ENTRY}"
    assert list(read({inner: 1}, LOCAL)) == [("statement", "Sub.__torch_function__")]


@pytest.mark.parametrize(
    "chain",
    [
        "torchmark_eval'_PyEval_Vector",
        "torchmark_python_0001'torchmark_eval'_PyEval_Vector",
        "Py_IncRef'torchmark_eval'_PyEval_Vector",
        "torchmark_eval'_PyEval_Vector'_PyEval_EvalFrameDefault'torchmark_python_0001'torchmark_eval",
    ],
)
def test_the_cost_of_the_instrument_is_not_the_statements(chain: str) -> None:
    trace = make_trace({f"{chain}'{ENTRY}": 9, ENTRY: 1}, HOOK)
    stacks, instrument = read_stacks(trace)
    assert (stacks.total, instrument) == (1, 9)


@pytest.mark.parametrize("chain", ["torchmark_eval'gen_send_ex'main", "torchmark_python_0000'torchmark_eval'main"])
def test_neither_is_what_the_instrument_does_for_the_loop_itself(chain: str) -> None:
    stacks, instrument = read_stacks(make_trace({chain: 9, ENTRY: 1}))
    assert (stacks.total, instrument) == (1, 9)
    assert stacks.stacks == (Stack((STATEMENT,), 1),)


def test_a_recursion_mark_is_no_frame_and_a_function_that_calls_itself_is_one() -> None:
    assert read({f"f'2'f'g'{ENTRY}": 4, f"f'g'{ENTRY}": 1}) == {("statement", "g", "f"): 5}


def test_recursion_through_others_is_there_once_with_these() -> None:
    assert read({f"b'a'b'a'b'a'g'{ENTRY}": 4, f"a'b'a'g'{ENTRY}": 2}) == {
        ("statement", "g", "a", "b"): 4,
        ("statement", "g", "a", "b", "a"): 2,
    }


def test_what_is_around_the_loop_is_kept_apart() -> None:
    assert read({"torchmark_clock'ffi_call'main": 3, ENTRY: 1}) == {
        ("around the loop", "main", "ffi_call", "torchmark_clock"): 3,
        ("statement",): 1,
    }
    assert AROUND.kind is FrameKind.OTHER


def test_a_chain_that_is_cut_off_is_kept_apart() -> None:
    deep = "'".join(f"f{i}" for i in range(1001))
    (path,) = read({deep: 3})
    assert path[0] == DEEPER.name


def test_functions_beyond_those_told_apart_share_a_frame() -> None:
    inner = f"_PyEval_EvalFrameDefault'torchmark_python_33333'torchmark_eval'{ENTRY}"
    assert list(read({inner: 1})) == [("statement", FURTHER.name)]


def test_the_loop_of_a_compiled_snippet_is_its_statement() -> None:
    chain = f"at::add'torchmark_loop_{'0' * 32}'torchmark_abc'ffi_call"
    assert read({chain: 4}) == {("statement", "at::add"): 4}


def test_a_function_without_a_symbol_is_told_by_its_library() -> None:
    ((frames, _),) = read_stacks(make_trace({f"0x00000000049'{ENTRY}": 4}))[0].stacks
    assert frames[-1] == Frame("(no name)", FrameKind.NATIVE, "libx.so")


def make(*stacks: tuple[tuple[Frame, ...], int]) -> Stacks:
    return Stacks(tuple(Stack(*one) for one in stacks), FlameUnit.INSTRUCTIONS, Method.CALLERS)


def test_without_compiled_frames_their_cost_is_that_of_the_caller() -> None:
    python, native = Frame("f", FrameKind.PYTHON), Frame("at::add")
    left = leave_out_native(make(((STATEMENT, native, python, native), 5), ((STATEMENT, native), 2)))
    assert left.stacks == (Stack((STATEMENT,), 2), Stack((STATEMENT, python), 5))
