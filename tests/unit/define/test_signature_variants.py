from __future__ import annotations

import ast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from torchmark.define.groups import as_expressions, shared_names
from torchmark.define.signature import Block, LanguagePair, pair_up, parse_block
from torchmark.errors import DefinitionError
from torchmark.model.task import Language

PY, CPP = Language.PYTHON, Language.CPP


def stmts(text: str, language: Language = PY) -> list[str]:
    """The statements of a block without labels; those of other lines are left out."""
    block = parse_block(text, language)
    assert list(block.stmts) == [""]
    return [stmt for stmt in block.stmts[""] if stmt]


def test_labels_setups_and_statements_are_told_apart() -> None:
    text = """
        # @Setup
        x = torch.ones(4)
        # not a label: @setup
        # @add
        x += 1

            # indented comments are no statements
        x + 1  # @x is no label here
        #@neither
        #  @nor this
        # @ a label, with spaces
        x.zero_()
        # @add
        x -= 1
    """
    assert parse_block(text, PY) == Block(
        "x = torch.ones(4)\n# not a label: @setup",
        "",
        {
            "": [],
            "add": ["x += 1", "", "", "x + 1  # @x is no label here", "", "", "x -= 1"],
            "a label, with spaces": ["x.zero_()"],
        },
    )


def test_cpp_has_a_global_setup_and_python_has_none() -> None:
    text = "// @GLOBAL SETUP\n#include <array>\n// @setup\nauto x = 1;\n// @a\nx; // @b"
    assert parse_block(text, CPP) == Block("auto x = 1;", "#include <array>", {"": [], "a": ["x; // @b"]})
    assert parse_block("# @global_setup\n\n# nothing\n# @a\nx", PY).global_setup == "# nothing"
    with pytest.raises(DefinitionError, match="Python has no `global_setup`"):
        parse_block("# @global_setup\nimport os\n# @a\nx", PY)


@pytest.mark.parametrize(
    "stmt",
    [
        "x += 1; x += 2",
        "torch.add(\n    x,\n    1)",
        "f([{\n1: (2,\n)}])",
        "x = 1 + \\\n    2",
        'x = """\n# (\n"""',
        "x = '''(\n'''",
        'x = """a\\"""("""',
        "x = ')' + \"(\"",
        "x = 'it\\'s ('",
        "x = f(1,  # a bracket in a comment: (\n    2)",
        "x += 1  # )",
        "x += 1  # a comment that ends with \\",
        "x = 'a \\\n b'",
    ],
)
def test_a_python_statement_of_several_lines_is_one_benchmark(stmt: str) -> None:
    ast.parse(stmt)
    assert stmts(f"before\n{stmt}\nbehind") == ["before", stmt, "behind"]


@pytest.mark.parametrize(
    "stmt",
    [
        "x += 1; y += 2;",
        "for (int i = 0; i < 3; i++) {\n    x += i;\n}",
        "x.add_(1'000);",
        "x.add_(0xFF'FFul, 'a', u8'(');",
        "f(/* it's ( */ x);",
        "f(x); // (",
        "f(x,  // (\n  y);",
        'f("(\\"(", x);',
        'f(R"a(()")a");',
        "/* one (\n two */ f(x);",
        'f(R"(\n( )");',
        "x += \\\n  1;",
        "f(')');",
    ],
)
def test_a_cpp_statement_of_several_lines_is_one_benchmark(stmt: str) -> None:
    assert stmts(f"before;\n{stmt}\nbehind;", CPP) == ["before;", stmt, "behind;"]


@pytest.mark.parametrize("text", ["x = f(\n# @b\ny", "x = f(\ny", 'x = """a\ny', "x = 1 + \\"])
def test_a_statement_does_not_go_on_beyond_its_label(text: str) -> None:
    with pytest.raises(DefinitionError, match="goes on at the end of its label") as caught:
        parse_block(f"a = 1\n{text}", PY)
    assert str(caught.value).endswith(f"\n  {text.splitlines()[0]}\n  ^")


def test_statements_on_the_same_line_of_the_same_label_are_paired() -> None:
    python = parse_block("a\n# @one\nb(\n1)\n\nc\n# @python\nd", PY)
    cpp = parse_block("\n\n// @one\nb;\n\n// nothing\nc;\n// @cpp\ne;", CPP)
    assert pair_up(python, cpp) == {
        ("",): LanguagePair("a", None),
        ("one", "Case:  0"): LanguagePair("b(\n1)", "b;"),
        ("one", "Case:  1"): LanguagePair("c", "c;"),
        ("python",): LanguagePair("d", None),
        ("cpp",): LanguagePair(None, "e;"),
    }


def test_more_than_ten_cases_are_numbered_in_two_columns() -> None:
    labels = list(pair_up(parse_block("# @a\n" + "x\n" * 11, PY), parse_block("", CPP)))
    assert labels[0] == ("a", "Case:  0")
    assert labels[10] == ("a", "Case: 10")


LINES = st.sampled_from(
    ["x", "f(", ")", "# @a", "// @b", '"""', "'", "\\", "# @setup", "{", "# c", "/*", "*/", "", "1'0", 'R"(']
)


@given(st.one_of(st.text(), st.lists(LINES).map("\n".join)), st.sampled_from(Language))
def test_any_text_is_a_block_or_a_definition_error(text: str, language: Language) -> None:
    try:
        block = parse_block(text, language)
    except DefinitionError:
        return
    assert all(stmt == stmt.strip() for lines in block.stmts.values() for stmt in lines)


@given(st.lists(st.sampled_from(["x += 1", "x.add_(", "    1)", "y = 'a'", "# @b", "", "   # c"])))
def test_no_code_is_lost_or_invented(lines: list[str]) -> None:
    text = "\n".join(["# @b", *lines])
    try:
        block = parse_block(text, PY)
    except DefinitionError:
        return
    code = "".join(line for line in lines if not line.lstrip().startswith("#"))
    found = "".join(stmt for entries in block.stmts.values() for stmt in entries).replace("# c\n", "")
    assert "".join(found.split()) == "".join(code.split())


@pytest.mark.parametrize("text", [None, 3, b"x"])
def test_a_block_is_a_text(text: object) -> None:
    with pytest.raises(DefinitionError, match="A block of variants is a text"):
        parse_block(text, PY)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("python", "cpp", "names"),
    [
        ("x = 1\ny, z = 2, 3", "auto z = 3; const auto x = 1;\ntorch::Tensor w = f();", ("x", "z")),
        ("x = 1", "", ()),
        ("x += 1", "auto x = 1;", ()),
    ],
)
def test_variables_of_both_setups_are_found(python: str, cpp: str, names: tuple[str, ...]) -> None:
    assert shared_names(python, cpp) == names


@pytest.mark.parametrize(
    ("python", "cpp", "expected"),
    [
        ("x + y  # sum", "x + y;  // sum", LanguagePair("x + y", "x + y")),
        ("f(\n  x)", "f(\n  x);", LanguagePair("f(\n  x)", "f(\n  x)")),
        ("x += 1", "x += 1;", None),
        ("x; y", "x; y;", None),
        ("x", "auto y = x;", None),
        ("x", "for (;;) {}", None),
        ("x", None, None),
        (None, "x;", None),
    ],
)
def test_expressions_are_told_from_statements(
    python: str | None, cpp: str | None, expected: LanguagePair | None
) -> None:
    assert as_expressions(LanguagePair(python, cpp)) == expected
