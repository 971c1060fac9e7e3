"""Blocks of variants: one benchmark a line, under labels that are comments.

# @setup              runs before each of them; global_setup is for C++ alone
x = torch.ones(4)
# @add                what follows belongs to this label
x += 1
x += 1; x += 2        one benchmark that does both
torch.add(            one benchmark, too: it goes on while a bracket is open, or after a backslash
    x, 1)
"""

from __future__ import annotations

import itertools
import re
import textwrap
from typing import NamedTuple

from torchmark.errors import DefinitionError
from torchmark.model.task import Language

SETUP = "setup"
GLOBAL_SETUP = "global_setup"

_COMMENTS = {Language.PYTHON: "#", Language.CPP: "//"}
_CLOSING = {"(": ")", "[": "]", "{": "}"}
# What brackets may stand in without being any, what has no end yet, and brackets.
_TOKENS = {
    Language.PYTHON: re.compile(
        r"""
          (?P<comment>\#[^\n]*)
        | \"{3}(?:\\.|[^\\])*?\"{3} | '{3}(?:\\.|[^\\])*?'{3}
        | (?P<endless>\"{3}|'{3})
        | "(?:\\.|[^"\\\n])*"? | '(?:\\.|[^'\\\n])*'?
        | (?P<bracket>[()\[\]{}])
        """,
        re.VERBOSE | re.DOTALL,
    ),
    Language.CPP: re.compile(
        r"""
          //(?:\\.|[^\n\\])* | /\*.*?\*/
        | R"(?P<mark>[^()\\\s"]{0,16})\(.*?\)(?P=mark)"
        | (?P<endless>/\*|R"[^()\\\s"]{0,16}\()
        | "(?:\\.|[^"\\\n])*"? | '(?:\\.|[^'\\\n])*'?
        | (?<!\w)\d(?:'?\w)*
        | (?P<bracket>[()\[\]{}])
        """,
        re.VERBOSE | re.DOTALL,
    ),
}


class Block(NamedTuple):
    """A block taken apart: the setups, and for each label its statements by line; "" where none begins."""

    setup: str
    global_setup: str
    stmts: dict[str, list[str]]


class Pair(NamedTuple):
    """The same benchmark in both languages; None where one does not have it."""

    python: str | None
    cpp: str | None


def parse_block(text: str, language: Language) -> Block:
    """Take a block apart.

    >>> parse_block("x = 1  # @a\\n# @b\\ny = 2", Language.PYTHON).stmts
    {'': ['x = 1  # @a'], 'b': ['y = 2']}
    """
    if not isinstance(text, str):
        raise DefinitionError(f"A block of variants is a text, not {type(text)}.")
    sections = _split_by_label(textwrap.dedent(text).strip(), _COMMENTS[language])
    setup, global_setup = ("\n".join(sections.pop(name, [])).strip("\n") for name in (SETUP, GLOBAL_SETUP))
    if language == Language.PYTHON and not all(_is_idle(line, language) for line in global_setup.split("\n")):
        raise DefinitionError("Python has no `global_setup`: only C++ has a file scope. Move it to `# @setup`.")
    return Block(setup, global_setup, {label: _join_lines(lines, language) for label, lines in sections.items()})


def pair_up(python: Block, cpp: Block) -> dict[tuple[str, ...], Pair]:
    """Statements of the same label that stand on the same line, by label; numbered where a label has several."""
    paired: dict[tuple[str, ...], Pair] = {}
    for label in dict.fromkeys((*python.stmts, *cpp.stmts)):
        lines = itertools.zip_longest(python.stmts.get(label, []), cpp.stmts.get(label, []), fillvalue="")
        pairs = [Pair(one or None, two or None) for one, two in lines if one or two]
        for number, pair in enumerate(pairs):
            paired[(label,) if len(pairs) == 1 else (label, f"Case: {number:>2}")] = pair
    return paired


def _split_by_label(text: str, comment: str) -> dict[str, list[str]]:
    sections: dict[str, list[str]] = {"": []}
    pattern = re.compile(rf"{re.escape(comment)} @(.+)$")
    label = ""
    for line in text.split("\n"):
        match = pattern.match(line.strip())
        if match is not None:
            name = match[1].strip()
            reserved = name.lower().replace(" ", "_")
            label = reserved if reserved in (SETUP, GLOBAL_SETUP) else name
            sections.setdefault(label, [])
        else:
            sections[label].append(line.rstrip())
    return sections


def _join_lines(lines: list[str], language: Language) -> list[str]:
    """One entry a line: a statement that goes on has its first line's place, and leaves those of the others empty."""
    stmts: list[str] = []
    started: list[str] = []
    for line in lines:
        started.append("" if not started and _is_idle(line, language) else line)
        if _goes_on("\n".join(started), language):
            continue
        stmts.append(textwrap.dedent("\n".join(started)).strip())
        stmts += [""] * (len(started) - 1)
        started = []
    if started:
        text = "\n".join(started).strip("\n")
        raise DefinitionError("A statement goes on at the end of its label.", text=text, position=0)
    return stmts


def _is_idle(line: str, language: Language) -> bool:
    """Whether there is nothing but a comment in it, if anything."""
    return line.strip() == "" or line.lstrip().startswith(_COMMENTS[language])


def _goes_on(text: str, language: Language) -> bool:
    """Whether a statement needs more lines: a bracket, string or comment of several lines is open, or it says so."""
    brackets: list[str] = []
    end_of_comment = -1
    for match in _TOKENS[language].finditer(text):
        if match.lastgroup == "endless":
            return True
        if match.lastgroup == "comment":
            end_of_comment = match.end()
        elif match.lastgroup == "bracket" and match[0] in _CLOSING:
            brackets.append(_CLOSING[match[0]])
        elif brackets and match[0] == brackets[-1]:
            brackets.pop()
    # A comment of Python's ends with its line, whatever stands there.
    return bool(brackets) or (text.endswith("\\") and end_of_comment < len(text))
