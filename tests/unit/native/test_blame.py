from __future__ import annotations

import pytest

from torchmark.model.outcome import FailureKind
from torchmark.model.task import Snippet
from torchmark.native.blame import (
    LONGEST_MESSAGE_LINES,
    Attempt,
    Blame,
    SnippetPlace,
    Undefined,
    blame_compiling,
    blame_linking,
    find_problem,
    for_the_user,
    read_complaints,
    read_undefined,
)
from torchmark.native.render import LIGHT_HEADERS, CompileUnit, KeyedSnippet
from torchmark.native.toolchain import ProgramResult

KEYS = [f"{i:032x}" for i in range(4)]


def unit(*snippets: Snippet) -> CompileUnit:
    return CompileUnit(tuple(KeyedSnippet(one, key) for one, key in zip(snippets, KEYS, strict=False)), LIGHT_HEADERS)


FOUR = unit(*(Snippet(f"f({i});", "", "int g;" if i > 1 else "") for i in range(4)))


def compiled(output: str, which: CompileUnit = FOUR) -> Attempt:
    return blame_compiling(which, ProgramResult(1, output))


def test_everyone_with_an_error_of_their_own_is_guilty() -> None:
    attempt = compiled("torchmark-0.stmt:1:2: error: a\ntorchmark-3.setup:4:5: error: expected b\n")
    assert attempt.blame is Blame.SOME
    assert sorted(attempt.guilty) == [0, 3]
    assert attempt.guilty[0].failure.message == "The statement does not compile, line 1, column 2: a."
    assert attempt.guilty[3].failure.message == "The setup does not compile, line 4, column 5: expected b."
    assert [attempt.guilty[i].final for i in (0, 3)] == [False, True]
    assert attempt.guilty[0].failure.kind is FailureKind.NOT_COMPILED


def test_nothing_behind_an_error_in_our_own_lines_convicts_anyone() -> None:
    attempt = compiled(
        "torchmark-0.stmt:1:2: error: a\ntorchmark-2.glue:1:1: error: lost\ntorchmark-3.stmt:1:1: error: b\n"
    )
    assert sorted(attempt.guilty) == [0]
    assert compiled("torchmark-2.glue:1:1: error: lost\ntorchmark-3.stmt:1:1: error: b\n").blame is Blame.UNKNOWN
    assert compiled("unit.cpp:1:1: error: nobody's\n").blame is Blame.UNKNOWN


def test_one_that_is_alone_is_guilty_of_everything() -> None:
    alone = unit(Snippet("f();", "if (true)"))
    attempt = compiled("torchmark-0.glue:1:1: error: 'torchmark_elapsed' was not declared\n", alone)
    assert attempt.guilty[0].failure.message == (
        "It does not compile: the setup or the statement does not end where its text does."
    )


def test_a_fault_at_file_scope_is_everyones_who_shares_it() -> None:
    attempt = compiled("torchmark-2.global:1:1: error: a\n")
    assert sorted(attempt.guilty) == [2, 3]
    assert attempt.guilty[3].failure.message.startswith("The global setup does not compile, line 1")


@pytest.mark.parametrize(
    ("run", "word"),
    [
        (ProgramResult(-9, ""), "memory"),
        (ProgramResult(1, "g++: fatal error: Killed signal terminated program cc1plus"), "memory"),
        (ProgramResult(1, "virtual memory exhausted: Cannot allocate memory"), "memory"),
        (ProgramResult(1, "fatal error: error writing to unit.s: No space left on device"), "disk"),
        (ProgramResult(1, ""), "disk"),
    ],
)
def test_what_the_machine_lacks_is_nobodys_fault(run: ProgramResult, word: str) -> None:
    attempt = blame_compiling(FOUR, run)
    assert attempt.blame is Blame.OUR_MEANS
    assert word in attempt.problem


def test_a_compiler_that_took_too_long_is_tried_on_less() -> None:
    assert blame_compiling(FOUR, ProgramResult(-9, "", timed_out=True)).blame is Blame.UNKNOWN
    assert blame_compiling(unit(Snippet("f();")), ProgramResult(-9, "", timed_out=True)).blame is Blame.OUR_MEANS


def test_whoever_writes_a_name_that_nothing_defines_is_guilty() -> None:
    users = unit(Snippet("ns::f<int>(1);"), Snippet("g();"), Snippet("h();", "extern int f();"), Snippet("k();"))
    output = (
        f"ld: unit.o: in function `torchmark_loop_{KEYS[1]}':\nx: undefined reference to `hidden()'\n"
        "ld: unit.o: in function `helper()':\nx: undefined reference to `int ns::f<int>(int)'\n"
    )
    attempt = blame_linking(users, ProgramResult(1, output))
    assert sorted(attempt.guilty) == [0, 1, 2]
    assert attempt.guilty[1].failure.message == "It does not link: nothing defines hidden()."
    assert all(verdict.final for verdict in attempt.guilty.values())
    only_at_file_scope = output[output.index("ld: unit.o: in function `helper()'") :]
    assert (
        blame_linking(unit(Snippet("k();"), Snippet("l();")), ProgramResult(1, only_at_file_scope)).blame
        is Blame.UNKNOWN
    )


@pytest.mark.parametrize(
    ("snippet", "told"),
    [
        (Snippet("f(;"), "The statement does not compile, line 1, column 2: '(' is not closed."),
        (Snippet("f();", "", "{"), "The global setup does not compile, line 1, column 1: '{' is not closed."),
        (Snippet("f();\0"), "The statement contains what is no character."),
        (Snippet("f();", '"\ud800"'), "The setup contains what is no character."),
        (Snippet("#if A"), "The statement does not compile, line 1, column 1: this condition does not end."),
    ],
)
def test_what_is_certainly_wrong_is_told_without_a_compiler(snippet: Snippet, told: str) -> None:
    failure = find_problem(snippet)
    assert failure is not None
    assert failure.message == told


@pytest.mark.parametrize("snippet", [Snippet("f();"), Snippet("OPEN }", "", "#define OPEN {")])
def test_what_may_be_right_is_left_to_the_compiler(snippet: Snippet) -> None:
    assert find_problem(snippet) is None


KEY = "0123456789abcdef0123456789abcdef"

# As g++ 12 wrote them, with paths shortened.
GCC = """\
torchmark-1.stmt: In function 'void torchmark_function_1(torchmark_glue::next_function, char*, long unsigned int)':
torchmark-1.stmt:2:5: error: 'foo' was not declared in this scope
    2 |     foo(x);
      |     ^~~
In file included from unit.cpp:1:
/torch/types.h: In instantiation of 'T torch::twice(T) [with T = char]':
torchmark-3.setup:1:20:   required from here
/torch/types.h:5:55: error: static assertion failed: too small to be doubled
    5 | static_assert(sizeof(T) > 1)
/torch/types.h:5:55: note: the comparison reduces to '(1 > 1)'
torchmark-4.stmt:1:10: error: expected ',' or ';' before '}' token
    1 | int a = 1
      |          ^
"""

CLANG = """\
torchmark-0.stmt:1:1: error: use of undeclared identifier 'foo'
foo(x);
^
In file included from unit.cpp:1:
/torch/types.h:5:36: error: static_assert failed due to requirement 'sizeof(char) > 1' "too small"
template <class T> T twice(T x) { static_assert(sizeof(T) > 1, "too small"); }
torchmark-2.stmt:1:8: note: in instantiation of function template specialization 'torch::twice<char>' requested here
torch::twice('a');
       ^
2 errors generated.
"""


def test_errors_of_gcc_are_given_to_their_snippets() -> None:
    first, second, third = read_complaints(GCC)
    assert (first.snippet, first.place) == (1, SnippetPlace("stmt", 2, 5))
    assert first.summary == "'foo' was not declared in this scope"
    assert first.text.endswith("     ^~~")
    assert (second.snippet, second.place) == (3, SnippetPlace("setup", 1, 20))
    assert "too small" in second.summary
    assert "reduces to" in second.text
    assert "foo" not in second.text
    assert (third.snippet, third.place) == (4, SnippetPlace("stmt", 1, 10))


def test_errors_of_clang_are_given_to_their_snippets() -> None:
    first, second = read_complaints(CLANG)
    assert (first.snippet, first.place) == (0, SnippetPlace("stmt", 1, 1))
    assert (second.snippet, second.place) == (2, SnippetPlace("stmt", 1, 8))
    assert "In file included" not in first.text


def test_an_error_of_nobody_is_nobodys() -> None:
    (one,) = read_complaints("unit.cpp:3:10: fatal error: torch/torch.h: No such file or directory\n")
    assert one.snippet is None


def test_what_is_no_error_is_none() -> None:
    assert read_complaints("unit.cpp:1:1: note: nothing\nunit.cpp:1:1: warning: careful\nKilled\n") == []


def test_the_user_reads_known_names_and_nothing_about_us() -> None:
    assert for_the_user(GCC).splitlines()[0] == "<stmt>:2:5: error: 'foo' was not declared in this scope"
    assert for_the_user(CLANG).splitlines()[-1] == "       ^"
    assert "torchmark" not in for_the_user(GCC + CLANG)


def test_endless_messages_are_cut() -> None:
    lines = for_the_user("\n".join(f"line {i}" for i in range(500))).splitlines()
    assert lines[-1] == "... (460 more lines)"
    assert len(lines) == LONGEST_MESSAGE_LINES + 1


def test_names_that_a_linker_misses_are_given_to_their_snippets() -> None:
    output = f"""\
/usr/bin/ld: unit.o: in function `torchmark_{KEY}':
unit.cpp:(.text+0x1b): undefined reference to `mine(int)'
/usr/bin/ld: unit.cpp:(.text+0x2b): undefined reference to `PyList_New'
/usr/bin/ld: unit.o: in function `helper()':
unit.cpp:(.text+0x3b): undefined reference to `yours()'
collect2: error: ld returned 1 exit status
"""
    assert read_undefined(output) == [Undefined(KEY, "mine(int)"), Undefined(None, "yours()")]
    assert read_undefined("undefined reference to `_Py_NoneStruct'") == []
