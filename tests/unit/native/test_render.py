from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from torchmark.model.task import Snippet
from torchmark.native.build import SNIPPETS_PER_UNIT, plan
from torchmark.native.render import (
    FULL_HEADERS,
    LIGHT_HEADERS,
    SCRIPT_HEADERS,
    CompileUnit,
    KeyedSnippet,
    Problem,
    choose_headers,
    render,
    scan,
)


def entry(stmt: str = "f();", setup: str = "", global_setup: str = "") -> KeyedSnippet:
    return KeyedSnippet(Snippet(stmt, setup, global_setup), f"{abs(hash((stmt, setup, global_setup))):032x}"[:32])


def test_the_users_text_is_there_to_the_letter_and_after_its_own_line_directive() -> None:
    stmt = 'auto s = "\\n\\d\\0 \\\\1"; // end \\'
    rendered = render(CompileUnit((entry(stmt, "int a;\nint b;", "#define N 4"),), LIGHT_HEADERS))
    assert f'#line 1 "torchmark-0.stmt"\n{stmt}\n\n#line 1 "torchmark-0.stmt"\n' in rendered.source
    assert '#line 1 "torchmark-0.setup"\nint a;\nint b;\n\n#line 2 "torchmark-0.setup"\n      double' in rendered.source
    assert rendered.parts["torchmark-0.global"] == "#define N 4"


def test_what_follows_a_text_stands_at_its_end_tabs_included() -> None:
    source = render(CompileUnit((entry("\tf(\t)"),), LIGHT_HEADERS)).source
    assert "\n\t  \t }\n" in source


def test_a_global_setup_that_is_shared_stands_there_once() -> None:
    unit = CompileUnit((entry("f();", "", "int g;"), entry("g();", "", "int g;"), entry("h();")), LIGHT_HEADERS)
    assert render(unit).source.count("int g;") == 1


def test_macros_of_a_snippet_end_with_it() -> None:
    source = render(CompileUnit((entry("#define N 3\nf(N);"),), LIGHT_HEADERS)).source
    before, _, after = source.partition("#define N 3")
    assert '#pragma push_macro("N")' in before
    assert '#pragma pop_macro("N")' in after


def test_headers_follow_the_words_that_are_used() -> None:
    assert choose_headers([Snippet("x.add(1);")]) == LIGHT_HEADERS
    assert choose_headers([Snippet("x.add(1); // nn"), Snippet('f("jit");')]) == LIGHT_HEADERS
    assert choose_headers([Snippet("f(x);", "torch::nn::Linear f(1, 1);")]) == FULL_HEADERS
    assert choose_headers([Snippet("torch::jit::load(p);")]) == FULL_HEADERS + SCRIPT_HEADERS


def test_snippets_share_a_file_if_their_global_setups_allow_it() -> None:
    plain, included, commented = entry(), entry("a();", "", "#include <vector>\n// a"), entry("b();", "", "// nothing")
    own, same, quoted = entry("c();", "", "int c;"), entry("d();", "", "int c;"), entry("e();", "", '#include "mine.h"')
    macro = entry("f();", "", "#define A 1")
    units = plan([plain, included, own, commented, same, quoted, macro])
    assert [unit.entries for unit in units] == [(plain, included, commented), (own, same), (quoted,), (macro,)]


def test_one_that_only_a_macro_can_balance_is_alone() -> None:
    odd, even = entry("BEGIN } ", "", "#define BEGIN {"), entry("f();", "", "#define BEGIN {")
    assert len(plan([odd, even])) == 2


def test_very_many_are_spread_over_files() -> None:
    units = plan([entry(f"f({i});") for i in range(SNIPPETS_PER_UNIT + 1)])
    assert [len(unit.entries) for unit in units] == [76, 75]


def test_every_snippet_has_a_mark_at_both_ends() -> None:
    source = render(CompileUnit((entry("a();"), entry("b();")), LIGHT_HEADERS)).source
    assert re.findall(r"\.long (\d), (\d)", source) == [("0", "0"), ("0", "1"), ("1", "0"), ("1", "1")]


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
