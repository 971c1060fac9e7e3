from __future__ import annotations

from torchmark.analysis.stacks import INTERPRETER, STATEMENT, align
from torchmark.analysis.verdict.explain import NAMELESS
from torchmark.model.costs import FlameUnit, Frame, FrameKind, Method, Stack, Stacks

PYTHON = Frame("f", FrameKind.PYTHON, "torch/_tensor.py:12")


def make(*stacks: tuple[tuple[Frame, ...], int]) -> Stacks:
    return Stacks(tuple(Stack(*one) for one in stacks), FlameUnit.INSTRUCTIONS, Method.CALLERS)


def native(name: str, library: str = "l.so") -> Frame:
    return Frame(name, FrameKind.NATIVE, library)


def test_parameters_and_lines_do_not_tell_functions_apart() -> None:
    one = make(((STATEMENT, PYTHON, native("at::add(int)")), 1), ((STATEMENT, PYTHON, native("at::add(float)")), 2))
    other = make(((STATEMENT, PYTHON._replace(origin="torch/_tensor.py:99"), native("at::add(long)")), 4))
    aligned = align(one, other)
    frames = (STATEMENT, PYTHON._replace(origin="torch/_tensor.py"), native("at::add"))
    assert aligned[0].stacks == (Stack(frames, 3),)
    assert aligned[1].stacks == (Stack(frames, 4),)
    assert aligned[2] == ()


def test_a_new_function_stays_where_both_builds_have_names() -> None:
    aligned = align(make(((STATEMENT, native("f")), 5)), make(((STATEMENT, native("new"), native("f")), 5)))
    assert aligned[1].stacks == (Stack((STATEMENT, native("new"), native("f")), 5),)


def test_what_a_stripped_build_has_no_names_for_is_part_of_its_caller_on_both_sides() -> None:
    base = make(((STATEMENT, native(NAMELESS), native("g")), 5), ((STATEMENT, native(NAMELESS)), 5))
    head = make(((STATEMENT, native("f"), native("g")), 6), ((STATEMENT, native("f")), 7))
    aligned = align(base, head)
    assert aligned[2] == ("l.so",)
    assert aligned[0].stacks == (Stack((STATEMENT,), 5), Stack((STATEMENT, native("g")), 5))
    assert aligned[1].stacks == (Stack((STATEMENT,), 7), Stack((STATEMENT, native("g")), 6))


def test_a_few_stubs_without_names_are_no_stripped_library() -> None:
    base = make(((STATEMENT, native(NAMELESS)), 5), ((STATEMENT, native("f")), 95))
    assert align(base, base)[0] == base


def test_neither_is_one_that_hardly_does_anything() -> None:
    base = make(((STATEMENT, native(NAMELESS, "small.so")), 1), ((STATEMENT, native("f")), 999))
    assert align(base, base)[2] == ()


def test_an_interpreter_without_names_is_one_frame() -> None:
    some, none = native("PyObject_Call", "python"), native(NAMELESS, "python")
    base = make(((STATEMENT, some, none, PYTHON), 1), ((STATEMENT, none), 1))
    head = make(((STATEMENT, some, native("object_vacall", "python"), PYTHON), 1))
    aligned = align(base, head)
    assert aligned[1].stacks == (Stack((STATEMENT, INTERPRETER, PYTHON._replace(origin="torch/_tensor.py")), 1),)
    assert aligned[1].stacks[0] in aligned[0].stacks


def test_totals_stay() -> None:
    base = make(((STATEMENT, native(NAMELESS), native("g")), 5), ((STATEMENT, native(NAMELESS)), 5))
    head = make(((native("f"), native("g")), 6))
    aligned = align(base, head)
    assert (aligned[0].total, aligned[1].total) == (10, 6)
