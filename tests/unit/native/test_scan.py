from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from torchmark.native.render import Problem, scan


@pytest.mark.parametrize(
    "text",
    [
        "f(a[1], {2});",
        'f(")"); // }',
        "f('(', '\\'', '\"');",
        "int n = 1'000'000; f(n);",
        'auto s = R"x(a)" ( { )x";',
        'auto s = u8R"(")";',
        "/* ( */ f();",
        "#define OPEN {\nf();",
        "#define BOTH ( \\\n  ) (\nf();",
        'auto r = fooR; f("R");',
        "f(); // \\\n }",
        "",
    ],
)
def test_brackets_count_only_where_they_are_code(text: str) -> None:
    assert scan(text).unbalanced is None
    assert scan(text).endless is None


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("f(;", Problem(1, 2, "'(' is not closed")),
        ("f();\n  g());", Problem(2, 6, "')' closes nothing")),
        ("if (x) { f(]; }", Problem(1, 12, "']' stands where ')' is expected")),
        ("{\n{}", Problem(1, 1, "'{' is not closed")),
    ],
)
def test_the_first_bracket_that_does_not_fit_is_told(text: str, problem: Problem) -> None:
    assert scan(text).unbalanced == problem


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("f(); /* and\n so on", Problem(1, 6, "this comment does not end")),
        ('auto s =\n R"(never ends', Problem(2, 2, "this raw string does not end")),
    ],
)
def test_what_does_not_end_is_told(text: str, problem: Problem) -> None:
    assert scan(text).endless == problem


def test_directives_are_read() -> None:
    one = scan(
        '#include <a.h>\n  # define N 4 // four\n#undef M\n#include "b c.h"\nint define = N;\nauto s = "#define X";'
    )
    assert one.includes == ("<a.h>", '"b c.h"')
    assert one.macros == ("N", "M")
    assert one.directives == 4
    assert one.words == {"int", "define", "N", "auto", "s"}
    assert one.has_code


@pytest.mark.parametrize("text", ["", "// only a comment", "/* one */\n#include <a>\n"])
def test_no_code_is_seen_as_such(text: str) -> None:
    assert not scan(text).has_code
    assert scan(text + "\n;").has_code


@given(st.text())
def test_any_text_can_be_looked_at(text: str) -> None:
    scan(text)


@given(st.recursive(st.just("x"), lambda inner: st.tuples(st.sampled_from(["()", "[]", "{}"]), inner).map(
    lambda pair: pair[0][0] + pair[1] + pair[0][1]), max_leaves=8), st.integers(0, 20))  # fmt: skip
def test_taking_away_one_bracket_is_noticed(text: str, index: int) -> None:
    assert scan(text).unbalanced is None
    brackets = [i for i, c in enumerate(text) if c != "x"]
    if brackets:
        i = brackets[index % len(brackets)]
        assert scan(text[:i] + text[i + 1 :]).unbalanced is not None


@pytest.mark.parametrize(
    ("text", "macros"),
    [
        ("/* size */ #define N 5", ("N",)),
        ("%:define KK 4", ("KK",)),
        ('#define S "/*"\n#define LEAK 3\n /* c */', ("S", "LEAK")),
        ("#define F(x) ((x) + \\\n  1)\n#  undef G", ("F", "G")),
    ],
)
def test_directives_are_found_wherever_they_may_stand(text: str, macros: tuple[str, ...]) -> None:
    assert scan(text).macros == macros
    assert not scan(text).has_code


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("f();\n#if 1", Problem(2, 1, "this condition does not end")),
        ("#ifdef A\n#if B\n#endif", Problem(1, 1, "this condition does not end")),
        ("#endif", Problem(1, 1, "this #endif belongs to no condition")),
        ("f();\n  #else", Problem(2, 1, "this #else belongs to no condition")),
    ],
)
def test_conditions_that_do_not_match_are_told(text: str, problem: Problem) -> None:
    assert scan(text).endless == problem
    assert scan("#if A\n#elif B\n#else\n#endif").endless is None


@pytest.mark.parametrize(
    ("text", "far"),
    [
        ("#pragma once", True),
        ('#include "x.inc"', True),
        ('_Pragma("pack(1)")', True),
        ("#define N 1\n#if N\n#endif\n#undef N\n#\n", False),
        ('auto s = "#pragma x";', False),
    ],
)
def test_what_holds_for_the_code_behind_is_known(text: str, far: bool) -> None:
    assert scan(text).far_reaching is far


def test_an_include_by_macro_is_one() -> None:
    assert scan("#define H <a.h>\n#include H").includes == ("H",)
