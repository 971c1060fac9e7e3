from __future__ import annotations

from torchmark.native.blame import (
    LONGEST_MESSAGE_LINES,
    SnippetPlace,
    Undefined,
    for_the_user,
    read_complaints,
    read_undefined,
)

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
