from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from torchmark.define.selection import (
    MOST_LEVELS,
    And,
    Expression,
    Not,
    Or,
    Selection,
    Word,
    keywords,
    missing_words,
    nearby,
    nearest,
    parse,
    select,
    words,
)
from torchmark.errors import UsageError
from torchmark.model.plan import AutogradMode, AutoLabels, Case, CompileMode, RuntimeMode, TimerArgs
from torchmark.model.task import Language

A, B, C = Word("a"), Word("b"), Word("c")


def several(operands: st.SearchStrategy[Expression]) -> st.SearchStrategy[tuple[Expression, ...]]:
    return st.lists(operands, min_size=2, max_size=3).map(tuple)


EXPRESSIONS: st.SearchStrategy[Expression] = st.recursive(
    (st.text(min_size=1) | st.sampled_from(["and", "OR", "not", "c++", "nn Modules", "'\"", '""'])).map(Word),
    lambda inner: inner.map(Not) | several(inner).map(And) | several(inner).map(Or),
    max_leaves=8,
)


@given(EXPRESSIONS)
def test_what_is_printed_is_parsed_as_the_same(expression: Expression) -> None:
    assert parse(str(expression)) == expression


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a", A),
        ("a or b and c", Or((A, And((B, C))))),
        ("(a or b) and c", And((Or((A, B)), C))),
        ("not a and b", And((Not(A), B))),
        ("not(a and b)or c", Or((Not(And((A, B))), C))),
        ("not not a", Not(Not(A))),
        ("a AND b", And((A, B))),
        ("\t a\nor b ", Or((A, B))),
        ("((a))", A),
        ("Tensor-Scalar or c++ or x/y", Or((Word("Tensor-Scalar"), Word("c++"), Word("x/y")))),
        ("notify or android", Or((Word("notify"), Word("android")))),
        ("'nn Modules' and \"not\"", And((Word("nn Modules"), Word("not")))),
        ("'it''s' or \"Case:  (0)\"", Or((Word("it's"), Word("Case:  (0)")))),
    ],
)
def test_a_text_is_this_tree(text: str, expected: Expression) -> None:
    assert parse(text) == expected


@pytest.mark.parametrize(
    ("text", "message", "position"),
    [
        ("a b", "goes in quotes", 2),
        ("a (b)", "goes in quotes", 2),
        ("a and", 'Expected a word, "not"', 5),
        ("and a", "part of a name goes in quotes", 0),
        ("a or or b", "part of a name goes in quotes", 5),
        ("not", "Expected a word", 3),
        ("()", "Expected a word", 1),
        ("a and (b or c", "parenthesis is not closed", 6),
        ("(a b)", "Expected .* quotes", 3),
        ("a)", "Nothing was opened", 1),
        ("a or 'b", "quote is not closed", 5),
        ("it's", "quote is not closed", 2),
        ('a or ""', "nothing between", 5),
    ],
)
def test_a_text_that_means_nothing_is_refused_with_a_caret_below_the_place(
    text: str, message: str, position: int
) -> None:
    with pytest.raises(UsageError, match=message) as caught:
        parse(text)
    assert str(caught.value).endswith(f"\n  {text}\n  {' ' * position}^")


@pytest.mark.parametrize("text", ["", "  \n"])
def test_an_empty_expression_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="empty"):
        parse(text)


@pytest.mark.parametrize(
    ("before", "after", "levels"),
    [("(", ")", MOST_LEVELS), ("not ", "", MOST_LEVELS), ("not (", ")", MOST_LEVELS // 2)],
)
def test_nesting_ends_where_it_is_said_to_and_not_in_a_crash(before: str, after: str, levels: int) -> None:
    assert list(words(parse(before * levels + "a" + after * levels))) == ["a"]
    for n in (levels + 1, 20_000):
        with pytest.raises(UsageError, match=f"More than {MOST_LEVELS} levels"):
            parse(before * n + "a" + after * n)


def test_long_chains_are_no_nesting() -> None:
    assert parse(" or ".join(["a"] * 10_000)).evaluate(lambda word: word == "a")


@given(EXPRESSIONS, st.booleans())
def test_the_opposite_of_an_expression_is_the_opposite(expression: Expression, found: bool) -> None:
    assert Not(expression).evaluate(lambda _: found) is not expression.evaluate(lambda _: found)


@pytest.mark.parametrize(
    ("text", "found", "expected"),
    [("a and not b", "a", True), ("a and not b", "ab", False), ("a and (b or c)", "ac", True), ("a or b", "c", False)],
)
def test_words_are_asked_for_and_joined(text: str, found: str, expected: bool) -> None:
    assert parse(text).evaluate(lambda word: word in found) is expected


def case(
    *label: str,
    runtime: RuntimeMode = RuntimeMode.EAGER,
    autograd: AutogradMode = AutogradMode.FORWARD,
    language: Language = Language.PYTHON,
    threads: int = 1,
    tags: tuple[str, ...] = (),
    compiling: CompileMode | None = None,
) -> Case:
    labels = AutoLabels(runtime, autograd, language, compiling)
    return Case(label, labels, TimerArgs("f(x)", num_threads=threads, language=language), tags=tags)


ADD = case("Pointwise", "Math", "add", tags=("quick",))
ADD_CPP = case("Pointwise", "Math", "add", language=Language.CPP)
LINEAR = case("nn Modules", "Linear", runtime=RuntimeMode.JIT, autograd=AutogradMode.FORWARD_BACKWARD, threads=2)
COMPILED = case("Linear", runtime=RuntimeMode.COMPILE, compiling=CompileMode("inductor", "max-autotune"))
BARE = case("x", runtime=RuntimeMode.EXPLICIT, autograd=AutogradMode.EXPLICIT)
ALL = (ADD, ADD_CPP, LINEAR, COMPILED, BARE)


@pytest.mark.parametrize(
    ("selection", "expected"),
    [
        (Selection(), ALL),
        (Selection(languages=(Language.CPP,)), (ADD_CPP,)),
        (Selection(languages=(Language.CPP, Language.PYTHON)), ALL),
        (Selection(runtimes=(RuntimeMode.JIT, RuntimeMode.COMPILE)), (LINEAR, COMPILED)),
        (Selection(autograd=(AutogradMode.EXPLICIT,)), (BARE,)),
        (Selection(autograd=(AutogradMode.FORWARD,)), (ADD, ADD_CPP, COMPILED)),
        (Selection(threads=(2, 4)), (LINEAR,)),
        (Selection(tags=("slow", "quick")), (ADD,)),
        (Selection(tags=("qui",)), ()),
        (Selection(parse("linear"), threads=(1,)), (COMPILED,)),
    ],
)
def test_one_of_each_that_is_given_has_to_fit(selection: Selection, expected: tuple[Case, ...]) -> None:
    assert select(ALL, selection) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("ADD", (ADD, ADD_CPP)),
        ("'math / add'", (ADD, ADD_CPP)),
        ("c++", (ADD_CPP,)),
        ("cpp", (ADD_CPP,)),
        ("add and python", (ADD,)),
        ("max-autotune", (COMPILED,)),
        ("backward", (LINEAR,)),
        ("'2 threads'", (LINEAR,)),
        ("quick or torchscript", (ADD, LINEAR)),
        ("not (eager or linear)", (BARE,)),
        ("addEager", ()),
    ],
)
def test_words_are_found_in_any_keyword(text: str, expected: tuple[Case, ...]) -> None:
    assert select(ALL, Selection(parse(text))) == expected


def test_what_has_no_name_is_no_keyword() -> None:
    assert keywords(BARE) == ("x", "Python", "1 threads")


def test_words_that_no_case_has_are_told_once_and_those_nearby_are_found() -> None:
    assert missing_words(parse("add and (liner or not liner or nope)"), ALL) == ("liner", "nope")
    assert nearby("liner", ALL) == ("Linear",)
    assert nearby("moduls", ALL) == ("Modules", "nn Modules")
    assert nearby("zzzz", ALL) == ()


@pytest.mark.parametrize(("word", "expected"), [("STANDART", ("standard",)), ("qqq", ())])
def test_a_slip_is_recognised(word: str, expected: tuple[str, ...]) -> None:
    assert nearest(word, ["standard", "modern"]) == expected
