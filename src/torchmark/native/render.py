"""From snippets to the text of one C++ file.

The user's text goes in verbatim. `#line` directives tell the compiler to speak of it under names of its own, by which
its messages are taken apart again: `torchmark-<n>.<part>`, with n the position of the snippet in the file.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from torchmark.model.snippet import Snippet
from torchmark.native.scan import scan

GLUE = Path(__file__).with_name("glue.hpp")
# A statement that calls tensors' functions needs no more than these, which compile in half the time of the rest.
LIGHT_HEADERS = ("<torch/types.h>", "<torch/utils.h>")
FULL_HEADERS = ("<torch/torch.h>",)
SCRIPT_HEADERS = ("<torch/script.h>",)

# A file's name for one part of one snippet; "glue" is what we put around the user's own.
PART = re.compile(r"torchmark-(\d+)\.(stmt|setup|global|glue)")
SYMBOL = re.compile(r"torchmark_(?:loop_)?([0-9a-f]{32})")


class Entry(NamedTuple):
    """A snippet with the key that its symbols are named by."""

    snippet: Snippet
    key: str


class Unit(NamedTuple):
    """Snippets that are compiled together, and the headers of torch that they see."""

    entries: tuple[Entry, ...]
    headers: tuple[str, ...]


class Rendered(NamedTuple):
    """The text of a unit: what all units with these headers begin with, and the rest.

    `parts` are the user's own texts in it, by the names that the compiler knows.
    """

    prelude: str
    source: str
    parts: dict[str, str]


def render(unit: Unit) -> Rendered:
    """The file to compile."""
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
    """What stands before all snippets."""
    return "\n".join([*(f"#include {header}" for header in headers), '#line 1 "torchmark.glue"', GLUE.read_text()])


_PARAMETERS = "torchmark_glue::next_function torchmark_next, torchmark_glue::clock_function torchmark_clock"


def _render_function(number: int, entry: Entry, parts: dict[str, str]) -> Iterator[str]:
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
        last = text.rsplit("\n", 1)[-1]
        yield f'#line 1 "{name}"'
        yield f"{text}\n"
        yield f'#line {text.count(chr(10)) + 1} "{name}"'
        yield re.sub(r"[^\t]", " ", last) + behind
    else:
        yield behind


def _mark(number: int, *, is_end: bool) -> str:
    """No instruction; an address in a table. It also keeps the compiler from moving work out of the loop."""
    text = (
        r"771:\n\t.pushsection torchmark_marks,\"aw\",@progbits\n\t.balign 8\n\t"
        rf".long {number}, {int(is_end)}\n\t.8byte 771b\n\t.popsection"
    )
    return f'__asm__ __volatile__("{text}" ::: "memory");'


def choose_headers(snippets: Sequence[Snippet]) -> tuple[str, ...]:
    """The headers that these seem to need, by the words they use."""
    words: set[str] = set()
    for snippet in snippets:
        for text in (snippet.stmt, snippet.setup, snippet.global_setup):
            words |= scan(text).words
    if words & _SCRIPT_WORDS:
        return FULL_HEADERS + SCRIPT_HEADERS
    return FULL_HEADERS if words & _FULL_WORDS else LIGHT_HEADERS


_SCRIPT_WORDS = {"jit", "script", "class_", "IValue"}
# What torch/torch.h adds to the light headers.
_FULL_WORDS = {
    "autograd", "cuda", "data", "enumtype", "fft", "linalg", "load", "mps", "nested", "nn", "optim", "pickle_load",
    "pickle_save", "save", "serialize", "sparse", "special", "xpu",
}  # fmt: skip
