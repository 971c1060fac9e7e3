"""The text of definitions: signatures `f(x, w) -> y`, columns of Python and C++, and blocks of labelled variants."""

from __future__ import annotations

import itertools
import keyword
import re
import textwrap
from typing import NamedTuple, NoReturn

from torchmark.define.options import BrokenText, break_off
from torchmark.errors import DefinitionError
from torchmark.model.task import Language

_TOKEN = re.compile(r"\s*(?:(?P<name>\w+)|(?P<sign>->|[(),])|(?P<other>\S))")


class Signature(NamedTuple):
    """Names of the arguments, and of the outputs: none, one, or several that are a tuple."""

    args: tuple[str, ...]
    outputs: tuple[str, ...]


def parse_signature(text: str) -> Signature:
    """Read a signature; whatever does not belong there is a DefinitionError that points at it.

    >>> parse_signature("f( x,w )->y")
    Signature(args=('x', 'w'), outputs=('y',))
    >>> parse_signature("f() -> None")
    Signature(args=(), outputs=())
    """
    if not isinstance(text, str):
        raise DefinitionError(f"A signature is a text such as `f(x, w) -> y`, not {type(text)}.")
    return _SignatureParser(text).parse()


class _SignatureToken(NamedTuple):
    text: str
    position: int


class _SignatureParser:
    def __init__(self, text: str) -> None:
        self._text = text
        matches = [match for match in _TOKEN.finditer(text) if match[0].strip()]
        self._tokens = [_SignatureToken(match[0].strip(), match.end() - len(match[0].strip())) for match in matches]
        self._next = 0

    def parse(self) -> Signature:
        self._take("f", "the name `f`")
        self._take("(", "`(`")
        args = self._names(")")
        self._take("->", "`->`")
        outputs = self._outputs()
        if self._token.text:
            self._refuse("nothing more")
        for names in (args, outputs):
            for number, (position, name) in enumerate(names):
                if name in [earlier for _, earlier in names[:number]]:
                    self._refuse_at(position, f"`{name}` is there twice")
        return Signature(tuple(name for _, name in args), tuple(name for _, name in outputs))

    def _outputs(self) -> list[tuple[int, str]]:
        if self._token.text == "None":
            self._next += 1
            return []
        if self._token.text == "(":
            self._next += 1
            if self._token.text == ")":
                self._refuse("an output")
            return self._names(")")
        outputs = [self._name("an output")]
        while self._token.text == ",":
            self._next += 1
            outputs.append(self._name("an output"))
        return outputs

    def _names(self, end: str) -> list[tuple[int, str]]:
        """Names separated by commas, up to and including the sign that ends them; a last comma does no harm."""
        names: list[tuple[int, str]] = []
        while self._token.text != end:
            names.append(self._name(f"a name or `{end}`" if not names else "a name"))
            if self._token.text != end:
                self._take(",", f"`,` or `{end}`")
        self._next += 1
        return names

    def _name(self, wanted: str) -> tuple[int, str]:
        token = self._token
        if not token.text.isidentifier() or keyword.iskeyword(token.text):
            self._refuse(wanted)
        self._next += 1
        return token.position, token.text

    @property
    def _token(self) -> _SignatureToken:
        """The next one; an empty one at the end."""
        if self._next < len(self._tokens):
            return self._tokens[self._next]
        return _SignatureToken("", len(self._text.rstrip()))

    def _take(self, text: str, wanted: str) -> None:
        if self._token.text != text:
            self._refuse(wanted)
        self._next += 1

    def _refuse(self, wanted: str) -> NoReturn:
        found = f"`{self._token.text}`" if self._token.text else "the end"
        self._refuse_at(self._token.position, f"expected {wanted}, found {found}")

    def _refuse_at(self, position: int, problem: str) -> NoReturn:
        raise DefinitionError(f"Invalid signature: `{self._text}`: {problem}.", text=self._text, position=position)


# How wide the Python column is unless there is a reason for more.
COLUMN_WIDTH = 40

_HEADER = re.compile(r"^(Python\s+)\| C\+\+\s*$")
_RULE = re.compile(r"^-+ \| -+\s*$")


def parse_stmts(stmts: str) -> tuple[str, str]:
    """The Python and the C++ of a block that has them side by side.

    The first line is the heading, and tells how wide the Python column is. Lines of Python keep their padding.

    >>> python, cpp = parse_stmts('''
    ...     Python                                   | C++
    ...     ---------------------------------------- | ----------------------------------------
    ...     x += 1                                   | x += 1;
    ... ''')
    >>> python.rstrip(), cpp
    ('x += 1', 'x += 1;')
    """
    try:
        return _parse(stmts)
    except DefinitionError as error:
        # Whoever uses it is broken, too, and knows under which label.
        broken = BrokenText(break_off(error).error)
        return broken, broken


def join_stmts(python: str, cpp: str) -> str:
    """The block that `parse_stmts` takes apart; as wide as the Python needs.

    >>> print(join_stmts("x = 1", "auto x = 1;").splitlines()[2])
    x = 1                                    | auto x = 1;
    """
    left, right = python.split("\n"), cpp.split("\n")
    # With the padding that `parse_stmts` leaves: a block keeps its width.
    width = max(COLUMN_WIDTH, *(len(line) for line in left))
    heading = [("Python", "C++"), ("-" * width, "-" * COLUMN_WIDTH)]
    lines = [*heading, *itertools.zip_longest(left, right, fillvalue="")]
    return "\n".join(f"{one.rstrip():<{width}} | {two}".rstrip() for one, two in lines)


def _parse(stmts: str) -> tuple[str, str]:
    if not isinstance(stmts, str):
        raise DefinitionError(f"Side-by-side statements are a text, not {type(stmts)}.")
    lines = textwrap.dedent(stmts).strip().split("\n")
    if len(lines) < 3:
        raise DefinitionError(f"Invalid string: at least a heading, a rule and one line are needed.\n{stmts}")
    header = _HEADER.match(lines[0])
    if header is None:
        raise DefinitionError(
            "Invalid column names: the first line is `Python`, spaces up to the end of its column, and `| C++`, as in "
            f"the pattern {_HEADER.pattern}",
            text=lines[0],
            position=0,
        )
    width = len(header[1]) - 1
    if not _RULE.match(lines[1]) or lines[1][:width] != "-" * width or lines[1][width : width + 3] != " | ":
        expected = f"{'-' * width} | {'-' * COLUMN_WIDTH}"
        raise DefinitionError(f"Invalid separator: below the heading stands\n  {expected}", text=lines[1], position=0)
    pairs = [_split(line, width) for line in lines[2:]]
    return "\n".join(left for left, _ in pairs), "\n".join(right for _, right in pairs)


def _split(line: str, width: int) -> tuple[str, str]:
    if not line.strip():
        return " " * width, ""
    left, bar, right = line[:width], line[width : width + 2], line[width + 2 :]
    if bar != " |" or right[:1] not in ("", " "):
        found = line.find(" |")
        position = min(width + 1, len(line))
        if len(line) <= width or found < 0:
            problem = f"there is no `|` below that of the heading, {width + 1} characters from the left"
        elif found > width:
            problem = f"the Python is longer than its column of {width}: widen the column in all lines"
        elif bar != " |":
            problem = f"the `|` does not stand below that of the heading, {width + 1} characters from the left"
        else:
            problem, position = "a space has to follow the `|`", width + 2
        raise DefinitionError(f"Invalid line `{line}`: {problem}.", text=line, position=position)
    return left, right[1:]


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


class LanguagePair(NamedTuple):
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


def pair_up(python: Block, cpp: Block) -> dict[tuple[str, ...], LanguagePair]:
    """Statements of the same label that stand on the same line, by label; numbered where a label has several."""
    paired: dict[tuple[str, ...], LanguagePair] = {}
    for label in dict.fromkeys((*python.stmts, *cpp.stmts)):
        lines = itertools.zip_longest(python.stmts.get(label, []), cpp.stmts.get(label, []), fillvalue="")
        pairs = [LanguagePair(one or None, two or None) for one, two in lines if one or two]
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
