from __future__ import annotations

import ast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from torchmark.define.expand import compile_model
from torchmark.define.options import (
    check_flag,
    check_python,
    check_tags,
    check_threads,
    choose_modes,
    dedent,
    dedent_stmt,
)
from torchmark.errors import DefinitionError
from torchmark.model.plan import CompileMode

ANYTHING = st.one_of(
    st.none(), st.booleans(), st.integers(-2, 3), st.floats(), st.text(max_size=3), st.binary(max_size=2)
)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (False, ()),
        ((), ()),
        (True, (CompileMode(),)),
        ("aot_eager", (CompileMode("aot_eager"),)),
        ("inductor:", (CompileMode(),)),
        (" inductor : max-autotune ", (CompileMode("inductor", "max-autotune"),)),
        (CompileMode("eager"), (CompileMode("eager"),)),
        (
            ("inductor:max-autotune", CompileMode("aot_eager")),
            (CompileMode("inductor", "max-autotune"), CompileMode("aot_eager")),
        ),
    ],
)
def test_ways_of_compiling_are_chosen_by_name(given: bool, expected: tuple[CompileMode, ...]) -> None:
    assert choose_modes(given) == expected


@pytest.mark.parametrize(
    "given",
    [
        None,
        1,
        "",
        "  ",
        ("eager", 3),
        (True,),
        'a"b',
        "a\\",
        "a\rb",
        "a, b",
        CompileMode('a"b'),
        CompileMode("a", ""),
        CompileMode(""),
        CompileMode([]),  # type: ignore[arg-type]
        CompileMode("a", 3),  # type: ignore[arg-type]
    ],
)
def test_what_is_no_back_end_is_refused(given: object) -> None:
    with pytest.raises(DefinitionError, match="`compile` is True, or back ends such as"):
        choose_modes(given)  # type: ignore[arg-type]


def test_a_back_end_is_named_once() -> None:
    with pytest.raises(DefinitionError, match="names a back end twice"):
        choose_modes(("inductor", "eager", CompileMode()))


@given(st.one_of(ANYTHING, st.tuples(ANYTHING, ANYTHING), st.builds(CompileMode, ANYTHING, ANYTHING)))
def test_whatever_is_chosen_can_stand_in_code_and_has_a_title_of_its_own(given: bool) -> None:
    try:
        modes = choose_modes(given)
    except DefinitionError:
        return
    assert len({mode.title for mode in modes}) == len(modes)
    for mode in modes:
        ast.parse(compile_model("", mode))


@pytest.mark.parametrize(("given", "expected"), [(1, (1,)), ((2, 1), (2, 1)), ([4], (4,)), (range(1, 3), (1, 2))])
def test_numbers_of_threads_are_one_or_several(given: int, expected: tuple[int, ...]) -> None:
    assert check_threads(given) == expected


@pytest.mark.parametrize("given", [0, -1, True, 2.0, None, "2", (), (1, 0), (1, 2.0), (1, None), {}])
def test_a_number_of_threads_is_a_whole_number_from_one(given: object) -> None:
    with pytest.raises(DefinitionError, match="`num_threads` is a whole number from 1 on"):
        check_threads(given)  # type: ignore[arg-type]


def test_a_number_of_threads_is_given_once() -> None:
    with pytest.raises(DefinitionError, match="a number twice"):
        check_threads((1, 2, 1))


@pytest.mark.parametrize(("given", "expected"), [("slow", ("slow",)), ((), ()), (["a", "b"], ("a", "b"))])
def test_tags_are_one_or_several(given: object, expected: tuple[str, ...]) -> None:
    assert check_tags(given) == expected


@pytest.mark.parametrize("given", ["", " ", None, 3, ("a", None), ("a", ""), [("a",)]])
def test_tags_are_texts(given: object) -> None:
    with pytest.raises(DefinitionError, match="`tags` are texts, not"):
        check_tags(given)


def test_a_flag_is_true_or_false() -> None:
    check_flag("check", True)
    check_flag("check", None, None)
    for flag in ("no", 1, 0, None):
        with pytest.raises(DefinitionError, match="`check` is True or False, not"):
            check_flag("check", flag)


def test_texts_lose_what_indentation_they_share() -> None:
    assert dedent("\n    a\n      b\n  ", "x") == "\na\n  b\n"
    assert dedent_stmt(None, "x") is None
    for text in (3, b"a", None, ["a"]):
        with pytest.raises(DefinitionError, match="`x` is a text, not"):
            dedent(text, "x")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("code", "line", "caret"),
    [
        ("y = = x", "y = = x", 4),
        ("x = 1\ny = = x\nz = 1", "y = = x", 4),
        ("x = 1\n  y = 2", "  y = 2", None),
        ("f(x", "f(x", 1),
        ("x = 'a", "x = 'a", 4),
        ("é = = x", "é = = x", 4),
        ("a\0", "a\0", None),
    ],
)
def test_a_caret_stands_where_it_is_not_python(code: str, line: str, caret: int | None) -> None:
    with pytest.raises(DefinitionError, match="`py_stmt` is not Python: ") as caught:
        check_python("py_stmt", code)
    shown, below = str(caught.value).split("\n")[-2:]
    assert shown == f"  {line}"
    assert caret is None or below == f"  {' ' * caret}^"


@pytest.mark.parametrize("code", ["-" * 100_000 + "1", "a" + ".a" * 100_000])
def test_code_that_is_nested_too_deeply_is_refused(code: str) -> None:
    with pytest.raises(DefinitionError, match="`x` is nested too deeply"):
        check_python("x", code)


@given(st.one_of(st.text(), st.text(alphabet="x=()'\"\\\n\r\t #:\0\x0c")))
def test_any_text_is_python_or_has_a_place_where_it_is_not(code: str) -> None:
    position = 0
    try:
        check_python("x", code)
    except DefinitionError as error:
        position = -1 if error.position is None else error.position
    assert 0 <= position <= len(code)
