"""From snippets to the text of one C++ file, after a look at what each snippet needs."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from torchmark.model.task import Snippet

_TOKEN = re.compile(
    r"""
      (?P<directive>^(?:[ \t\f\v]|/\*.*?\*/)*(?:\#|%:)(?:\\.|"(?:\\.|[^"\\\n])*"|/\*.*?\*/|[^\n\\])*)
    | (?P<comment>//(?:\\.|[^\n\\])*|/\*.*?\*/)
    | (?P<open_comment>/\*)
    | (?P<raw>(?:u8|u|U|L)?R"(?P<mark>[^()\\\s"]{0,16})\(.*?\)(?P=mark)")
    | (?P<open_raw>(?:u8|u|U|L)?R"[^()\\\s"]{0,16}\()
    | (?P<literal>"(?:\\.|[^"\\\n])*"?|'(?:\\.|[^'\\\n])*'?)
    | (?P<number>\.?\d(?:'?[A-Za-z0-9_.]|(?<=[eEpP])[+-])*)
    | (?P<word>[^\W\d]\w*)
    | (?P<bracket>[()\[\]{}])
    """,
    re.VERBOSE | re.DOTALL | re.MULTILINE,
)
_DIRECTIVE = re.compile(r"(?:\#|%:)\s*(\w*)\s*(.*)", re.DOTALL)
_NAME = re.compile(r"\w+")
_INCLUDED = re.compile(r'<[^>]*>|"[^"]*"')
_OPENING_CONDITIONS = ("if", "ifdef", "ifndef")
_CONDITIONS = (*_OPENING_CONDITIONS, "elif", "elifdef", "elifndef", "else", "endif")
# What ends with a snippet, or can be made to.
_LOCAL = (*_CONDITIONS, "define", "undef", "error", "warning", "line", "")
_CLOSING = {"(": ")", "[": "]", "{": "}"}


class Problem(NamedTuple):
    """What is wrong with a text, and where; lines and columns count from one."""

    line: int
    column: int
    text: str


class Scan(NamedTuple):
    """What is known of a text without compiling it."""

    endless: Problem | None
    """A comment, a raw string or a condition that does not end, or ends nothing: never right."""
    unbalanced: Problem | None
    """Brackets that do not match: not right unless macros or conditional lines make it so."""
    directives: int
    """How many lines are for the preprocessor."""
    macros: tuple[str, ...]
    """The names that it defines or undefines."""
    includes: tuple[str, ...]
    """The files it includes, with their brackets or quotes, or the macro that stands for one."""
    far_reaching: bool
    """Whether the preprocessor is told something that would hold for the code behind, too."""
    words: frozenset[str]
    has_code: bool
    """Whether there is more than comments and lines for the preprocessor."""


def scan(text: str) -> Scan:
    """Take the text apart.

    >>> scan("f(1); } // {").unbalanced
    Problem(line=1, column=7, text="'}' closes nothing")
    """
    endless = unbalanced = None
    open_brackets: list[tuple[str, int]] = []
    conditions: list[int] = []
    directives: list[tuple[str, str]] = []
    words: set[str] = set()
    has_code = False
    for match in _TOKEN.finditer(text):
        kind, token = match.lastgroup, match[0]
        if kind in ("open_comment", "open_raw"):
            what = "comment" if kind == "open_comment" else "raw string"
            endless = _locate(text, match.start(), f"this {what} does not end")
            break
        has_code = has_code or kind not in ("directive", "comment")
        if kind == "directive":
            directives.append(_read_directive(token))
            endless = endless or _match_condition(text, directives[-1][0], match.start(), conditions)
        elif kind == "word":
            words.add(token)
        elif kind == "bracket" and unbalanced is None:
            unbalanced = _match(text, token, match.start(), open_brackets)
    if endless is None and conditions:
        endless = _locate(text, conditions[-1], "this condition does not end")
    if unbalanced is None and open_brackets:
        bracket, start = open_brackets[-1]
        unbalanced = _locate(text, start, f"{bracket!r} is not closed")
    return Scan(
        endless=endless,
        unbalanced=unbalanced,
        directives=len(directives),
        macros=tuple(
            dict.fromkeys(
                found[0] for name, rest in directives if name in ("define", "undef") and (found := _NAME.match(rest))
            )
        ),
        includes=tuple(
            dict.fromkeys(
                found[0] if (found := _INCLUDED.match(rest)) else rest
                for name, rest in directives
                if name in ("include", "include_next", "import")
            )
        ),
        far_reaching="_Pragma" in words or any(name not in _LOCAL for name, _ in directives),
        words=frozenset(words),
        has_code=has_code or bool(re.search(r"\S", _TOKEN.sub("", text))),
    )


def _read_directive(token: str) -> tuple[str, str]:
    found = _DIRECTIVE.search(token)
    assert found is not None
    return found[1], found[2]


def _match_condition(text: str, name: str, start: int, conditions: list[int]) -> Problem | None:
    if name in _OPENING_CONDITIONS:
        conditions.append(start)
    elif name in _CONDITIONS and not conditions:
        return _locate(text, start, f"this #{name} belongs to no condition")
    elif name == "endif":
        conditions.pop()
    return None


def _match(text: str, bracket: str, start: int, open_brackets: list[tuple[str, int]]) -> Problem | None:
    if bracket in _CLOSING:
        open_brackets.append((bracket, start))
        return None
    if not open_brackets:
        return _locate(text, start, f"{bracket!r} closes nothing")
    opening, _ = open_brackets.pop()
    if _CLOSING[opening] != bracket:
        return _locate(text, start, f"{bracket!r} stands where {_CLOSING[opening]!r} is expected")
    return None


def _locate(text: str, position: int, what: str) -> Problem:
    return Problem(text.count("\n", 0, position) + 1, position - text.rfind("\n", 0, position), what)


GLUE = Path(__file__).with_name("glue.hpp")
# A statement that calls tensors' functions needs no more than these, which compile in half the time of the rest.
LIGHT_HEADERS = ("<torch/types.h>", "<torch/utils.h>")
FULL_HEADERS = ("<torch/torch.h>",)
SCRIPT_HEADERS = ("<torch/script.h>",)

# A file's name for one part of one snippet; "glue" is what we put around the user's own.
PART = re.compile(r"torchmark-(\d+)\.(stmt|setup|global|glue)")
SYMBOL = re.compile(r"torchmark_(?:loop_)?([0-9a-f]{32})")


class KeyedSnippet(NamedTuple):
    """A snippet with the key that its symbols are named by."""

    snippet: Snippet
    key: str


class CompileUnit(NamedTuple):
    """Snippets that are compiled together, and the headers of torch that they see."""

    entries: tuple[KeyedSnippet, ...]
    headers: tuple[str, ...]


class Rendered(NamedTuple):
    """The text of a unit: what all units with these headers begin with, and the rest.

    `parts` are the user's own texts in it, by the names that the compiler knows.
    """

    prelude: str
    source: str
    parts: dict[str, str]


def render(unit: CompileUnit) -> Rendered:
    lines: list[str] = []
    parts: dict[str, str] = {}
    seen: set[str] = set()
    for number, (snippet, _) in enumerate(unit.entries):
        if snippet.global_setup not in seen:
            seen.add(snippet.global_setup)
            lines += _verbatim(snippet.global_setup, f"torchmark-{number}.global", "namespace torchmark_glue {}", parts)
    for number, entry in enumerate(unit.entries):
        lines += _render_function(number, entry, parts)
    return Rendered(render_prelude(unit.headers), "\n".join(lines) + "\n", parts)


def render_prelude(headers: Sequence[str]) -> str:
    return "\n".join([*(f"#include {header}" for header in headers), '#line 1 "torchmark.glue"', GLUE.read_text()])


_PARAMETERS = "torchmark_glue::next_function torchmark_next, torchmark_glue::clock_function torchmark_clock"


def _render_function(number: int, entry: KeyedSnippet, parts: dict[str, str]) -> Iterator[str]:
    snippet, key = entry
    macros = dict.fromkeys((*scan(snippet.setup).macros, *scan(snippet.stmt).macros))
    glue = f'#line 1 "torchmark-{number}.glue"'
    yield glue
    yield from (f'#pragma push_macro("{name}")' for name in macros)
    # A C++ function with a plain name: what the user declares in a function with C linkage would have that, too. And
    # not the one that is called from outside: Callgrind takes that for a part of its caller, which moves the stack.
    yield f'void torchmark_function_{number}({_PARAMETERS}) __asm__("torchmark_loop_{key}");'
    yield f"__attribute__((noinline)) void torchmark_function_{number}({_PARAMETERS}) {{"
    yield from _verbatim(snippet.setup, f"torchmark-{number}.setup", "double torchmark_elapsed = 0;", parts)
    yield glue
    yield "for (;;) {"
    yield "long long torchmark_number = -1;"
    yield "torchmark_next(torchmark_elapsed, &torchmark_number);"
    yield "if (torchmark_number < 0) return;"
    yield "const double torchmark_start = torchmark_clock();"
    yield "long long torchmark_run = 0;"
    yield "for (; torchmark_run < torchmark_number; ++torchmark_run) {"
    yield _mark(number, is_end=False)
    yield "{"
    yield from _verbatim(snippet.stmt, f"torchmark-{number}.stmt", "}", parts)
    yield glue
    yield _mark(number, is_end=True)
    yield "}"
    yield "torchmark_elapsed = torchmark_clock() - torchmark_start;"
    # The statement has left the loop.
    yield "if (torchmark_run != torchmark_number) return;"
    yield "}"
    yield "}"
    yield f'extern "C" void torchmark_{key}({_PARAMETERS}, char *torchmark_problem, unsigned long torchmark_size) {{'
    yield f"try {{ torchmark_function_{number}(torchmark_next, torchmark_clock); }}"
    yield "catch (...) { torchmark_glue::describe(torchmark_problem, torchmark_size); }"
    yield "}"
    yield f'extern "C" int torchmark_empty_{key}() {{ return torchmark_glue::is_empty({number}); }}'
    yield from (f'#pragma pop_macro("{name}")' for name in reversed(macros))


def _verbatim(text: str, name: str, behind: str, parts: dict[str, str]) -> Iterator[str]:
    """The text, and then ours, which claims to stand at the end of the text's last line.

    That is where the compiler stumbles over something that is missing. The empty line is for a text that ends with a
    backslash.
    """
    if text:
        parts[name] = text
        yield f'#line 1 "{name}"'
        yield f"{text}\n"
        yield f'#line {text.count(chr(10)) + 1} "{name}"'
    yield re.sub(r"[^\t]", " ", text.rsplit("\n", 1)[-1]) + behind


def _mark(number: int, *, is_end: bool) -> str:
    """No instruction; an address in a table. It also keeps the compiler from moving work out of the loop."""
    text = (
        r"771:\n\t.pushsection torchmark_marks,\"aw\",@progbits\n\t.balign 8\n\t"
        rf".long {number}, {int(is_end)}\n\t.8byte 771b\n\t.popsection"
    )
    return f'__asm__ __volatile__("{text}" ::: "memory");'


def choose_headers(snippets: Sequence[Snippet]) -> tuple[str, ...]:
    """The headers that these seem to need, by the words they use."""
    texts = (text for snippet in snippets for text in (snippet.stmt, snippet.setup, snippet.global_setup))
    words = set().union(*(scan(text).words for text in texts))
    if words & _SCRIPT_WORDS:
        return FULL_HEADERS + SCRIPT_HEADERS
    return FULL_HEADERS if words & _FULL_WORDS else LIGHT_HEADERS


_SCRIPT_WORDS = {"jit", "script", "class_", "IValue"}
# What torch/torch.h adds to the light headers.
_FULL_WORDS = {
    "autograd", "cuda", "data", "enumtype", "fft", "linalg", "load", "mps", "nested", "nn", "optim", "pickle_load",
    "pickle_save", "save", "serialize", "sparse", "special", "xpu",
}  # fmt: skip
