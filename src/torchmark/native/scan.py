"""Looks at the text of a snippet as far as is needed to put several of them into one file.

One whose brackets or comments do not end would take the others with it, and what it defines must not reach them.
"""

from __future__ import annotations

import re
from typing import NamedTuple

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
    """The identifiers it uses."""
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
        kind = "raw" if kind == "mark" else kind
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
    """Its name and what follows."""
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
    before = text[:position]
    return Problem(before.count("\n") + 1, position - (before.rfind("\n") + 1) + 1, what)
