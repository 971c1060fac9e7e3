from __future__ import annotations

import re

from torchmark.model.snippet import Snippet
from torchmark.native.build import SNIPPETS_PER_UNIT, plan
from torchmark.native.render import (
    FULL_HEADERS,
    LIGHT_HEADERS,
    SCRIPT_HEADERS,
    CompileUnit,
    KeyedSnippet,
    choose_headers,
    render,
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
