"""Which snippets do not compile, from the output of a compiler or linker.

Apart from `build.py`: rules about texts of compilers, which change with compilers.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from torchmark.model.outcome import Failure, FailureKind
from torchmark.model.task import Snippet
from torchmark.native import toolchain
from torchmark.native.render import PART, SYMBOL, CompileUnit, scan
from torchmark.native.toolchain import ProgramResult

# file:line:column: error: text. Columns are missing now and then.
_HEADER = re.compile(
    r"^(?P<file>[^\s:][^:\n]*):(?P<line>\d+):(?:(?P<column>\d+):)? "
    r"(?P<kind>fatal error|error|internal compiler error|sorry, unimplemented|warning|note): (?P<text>.*)$"
)
# What precedes an error and belongs to it: where the compiler was when it found it.
_CONTEXT = re.compile(
    r"^In file included from |^\s+from |: In [\w ]+|: In instantiation of |required (?:from|by)|: At global scope"
    r"|: in function |^In [\w ]+ inlined from"
)
_UNDEFINED = re.compile(r"undefined reference to [`'\"](?P<symbol>[^'\"]+)['\"]|undefined symbol: (?P<other>.+)$")
# Those of the interpreter, which are there when a library is loaded into it.
_OF_PYTHON = re.compile(r"_?Py[A-Z_]|_Py_")

_OWN_NAME = re.compile(r"(?:void )?torchmark_function_\d+(?:\([^()]*(?:\([^()]*\)[^()]*)*\))?")
_EMPTY_WORDS = re.compile(
    r"^\d+ (?:error|warning)s?(?: and \d+ (?:error|warning)s?)? generated\.$"
    r"|: In (?:lambda )?function .void torchmark_function_"
)

# A message about templates can be hundreds of lines; the first of them tell.
LONGEST_MESSAGE_LINES = 40
MOST_ERRORS = 3

NAMES = {"stmt": "<stmt>", "setup": "<setup>", "global": "<global_setup>", "glue": "<torchmark>"}


class SnippetPlace(NamedTuple):
    """A place in one part of a snippet."""

    part: str
    line: int
    column: int | None


class Complaint(NamedTuple):
    """One error: of which snippet it is, by number, if that can be told; where; and what the compiler says."""

    snippet: int | None
    place: SnippetPlace | None
    summary: str
    text: str


def read_complaints(output: str) -> list[Complaint]:
    return [complaint for group in _group(output) if (complaint := _read(group)) is not None]


def _match_error(line: str) -> re.Match[str] | None:
    header = _HEADER.match(line)
    return header if header and header["kind"] not in ("note", "warning") else None


def _group(output: str) -> Iterator[list[str]]:
    """One list of lines an error, with its context before it and its notes behind it."""
    group: list[str] = []
    has_error = False
    pending: list[str] = []
    for line in output.splitlines():
        if _match_error(line):
            if has_error:
                yield group
                group = []
            group += [*pending, line]
            pending, has_error = [], True
        elif not _HEADER.match(line) and _CONTEXT.search(line):
            pending.append(line)
        else:
            # A note, an excerpt, or something that stands alone.
            group += [*pending, line]
            pending = []
    if has_error:
        yield [*group, *pending]


def _read(group: list[str]) -> Complaint | None:
    index, header = next((found for found in enumerate(map(_match_error, group)) if found[1]), (0, None))
    if header is None:
        return None
    summary, text = header["text"], "\n".join(group)
    if own := PART.search(header["file"]):
        column = int(header["column"]) if header["column"] else None
        return Complaint(int(own[1]), SnippetPlace(own[2], int(header["line"]), column), summary, text)
    # In a header, or in what the library makes of a template: on whose behalf, the lines around tell; the last of those
    # before the error is where the user's own code is.
    for line in (*reversed(group[:index]), *group[index + 1 :]):
        if found := re.search(rf"(?:{PART.pattern}):(\d+)(?::(\d+))?", line):
            place = SnippetPlace(found[2], int(found[3]), int(found[4]) if found[4] else None)
            return Complaint(int(found[1]), place, summary, text)
        if found := PART.search(line):
            return Complaint(int(found[1]), None, summary, text)
    return Complaint(None, None, summary, text)


class Undefined(NamedTuple):
    """A name that a linker did not find, and the function that calls it, if that is a snippet's."""

    key: str | None
    symbol: str


def read_undefined(output: str) -> list[Undefined]:
    """The names that a linker misses, Python's own left out: they are found when the library is loaded."""
    found: list[Undefined] = []
    key: str | None = None
    for line in output.splitlines():
        if "in function" in line or "referenced by" in line:
            symbol = SYMBOL.search(line)
            key = symbol[1] if symbol else None
        if match := _UNDEFINED.search(line):
            name = match["symbol"] or match["other"]
            if not _OF_PYTHON.match(name):
                found.append(Undefined(key, name))
    return list(dict.fromkeys(found))


def for_the_user(text: str) -> str:
    """A message with the names that the user knows, and of bearable length."""
    lines = PART.sub(lambda match: NAMES[match[2]], text).splitlines()
    # "In function 'void torchmark_function_0(...)':" says nothing to anyone, nor does clang's "1 error generated."
    lines = [_OWN_NAME.sub("the snippet", line) for line in lines if not _EMPTY_WORDS.search(line)]
    if len(lines) > LONGEST_MESSAGE_LINES:
        lines = [*lines[:LONGEST_MESSAGE_LINES], f"... ({len(lines) - LONGEST_MESSAGE_LINES} more lines)"]
    return "\n".join(lines)


# In the words of g++ and of clang++, for whom a namespace may have more members yet.
_FINAL = re.compile(r": error: (?:expected |.*has no member named|no member named '[^']*' in '[^']*'$)")
# Of a part of the compiler, or of the linker, that was killed.
_ENDED = ("killed signal", "terminated with signal 9", "terminated with signal 15", "cannot allocate memory")
_WORDS = {"stmt": "statement", "setup": "setup", "global": "global setup", "glue": "snippet"}


class Blame(enum.Enum):
    """Who is to blame for what an attempt came to."""

    NOBODY = "nobody"
    SOME = "some"
    UNKNOWN = "unknown"
    OUR_MEANS = "our_means"
    """The machine: another attempt would end the same way."""


class SnippetFault(NamedTuple):
    """What is wrong with a snippet; `final` if no header could make it right."""

    failure: Failure
    final: bool


class Attempt(NamedTuple):
    """What compiling a unit came to: who is to blame, by number, or else what the compiler said."""

    blame: Blame
    guilty: Mapping[int, SnippetFault] = MappingProxyType({})
    problem: str = ""
    killed: bool = False
    """Whether somebody ended the compiler, so that another attempt may go better."""


def find_problem(snippet: Snippet) -> Failure | None:
    """What is certainly wrong, and would keep the compiler from seeing where this snippet ends and the next begins."""
    parts = {"global": snippet.global_setup, "setup": snippet.setup, "stmt": snippet.stmt}
    scans = {part: scan(text) for part, text in parts.items()}
    # Macros and conditional lines may close what is open.
    certain = not any(one.directives for one in scans.values())
    for part, one in scans.items():
        if problem := one.endless or (one.unbalanced if certain else None):
            line, column, what = problem
            source = parts[part].split("\n")[line - 1]
            excerpt = f"{line:>5} | {source}\n      | {' ' * (column - 1)}^"
            told = f"{NAMES[part]}:{line}:{column}: error: {what}\n{excerpt}"
            return Failure(FailureKind.NOT_COMPILED, _sentence(part, line, column, what), told)
        if "\0" in parts[part] or any("\ud800" <= character <= "\udfff" for character in parts[part]):
            return Failure(FailureKind.NOT_COMPILED, f"The {_WORDS[part]} contains what is no character.")
    return None


def _sentence(part: str, line: int, column: int | None, text: str) -> str:
    place = f"line {line}" if column is None else f"line {line}, column {column}"
    return f"The {_WORDS[part]} does not compile, {place}: {text}."


def blame_compiling(unit: CompileUnit, run: ProgramResult) -> Attempt:
    if run.timed_out:
        told = f"The compiler did not end within {toolchain.TIMEOUT_S:g} s."
        return Attempt(Blame.OUR_MEANS if len(unit.entries) == 1 else Blame.UNKNOWN, {}, told)
    if want := _find_want(run):
        return want
    told = for_the_user(run.output)
    complaints = read_complaints(run.output)
    if len(unit.entries) == 1 and complaints:
        return Attempt(Blame.SOME, {0: _describe(complaints)}, told)
    by_number: dict[int, list[Complaint]] = {}
    for complaint in complaints:
        number = complaint.snippet
        if number is None or number >= len(unit.entries) or (complaint.place and complaint.place.part == "glue"):
            break
        by_number.setdefault(number, []).append(complaint)
    guilty: dict[int, SnippetFault] = {}
    for number, own in by_number.items():
        verdict = _describe(own)
        at_file_scope = own[0].place is not None and own[0].place.part == "global"
        for other, entry in enumerate(unit.entries):
            same = entry.snippet.global_setup == unit.entries[number].snippet.global_setup
            if other == number or (at_file_scope and same):
                guilty.setdefault(other, verdict)
    return Attempt(Blame.SOME if guilty else Blame.UNKNOWN, guilty, told)


def _find_want(run: ProgramResult) -> Attempt | None:
    """What the machine lacks, if that is why the compiler or the linker gave up."""
    output = run.output.lower()
    if run.code < 0 or any(words in output for words in _ENDED):
        told = "The compiler was ended, most likely for want of memory: a file takes about 2 GB."
        return Attempt(Blame.OUR_MEANS, {}, told, killed=True)
    if "no space left on device" in output or not output.strip():
        told = "The compiler gave up without saying why; is the disk of the cache full?"
        return Attempt(Blame.OUR_MEANS, {}, told)
    return None


def _describe(complaints: Sequence[Complaint]) -> SnippetFault:
    # What is wrong with our own lines is so because of the user's, where there is anything wrong with those.
    own = [one for one in complaints if one.place is None or one.place.part != "glue"]
    if not own:
        problem = "the setup or the statement does not end where its text does"
        failure = Failure(FailureKind.NOT_COMPILED, f"It does not compile: {problem}.", f"error: {problem}")
        return SnippetFault(failure, final=False)
    text = for_the_user("\n".join(one.text for one in own[:MOST_ERRORS]))
    place, summary = own[0].place, for_the_user(own[0].summary)
    message = f"It does not compile: {summary}." if place is None else _sentence(*place, summary)
    final = any(_FINAL.search(line) for line in text.splitlines())
    return SnippetFault(Failure(FailureKind.NOT_COMPILED, message, text), final)


def blame_linking(unit: CompileUnit, run: ProgramResult) -> Attempt:
    """Read what a linker said: names that nothing defines, and who uses them.

    It does not tell of every use, so whoever writes such a name is taken to use it.
    """
    if want := _find_want(run):
        return want
    missing = read_undefined(run.output)
    guilty: dict[int, SnippetFault] = {}
    for number, (snippet, key) in enumerate(unit.entries):
        words = scan(snippet.stmt).words | scan(snippet.setup).words
        is_alone = len(unit.entries) == 1
        users = (one for one in missing if is_alone or one.key == key or _base_name(one.symbol) in words)
        if names := dict.fromkeys(one.symbol for one in users):
            text = f"It does not link: nothing defines {', '.join(names)}."
            guilty[number] = SnippetFault(Failure(FailureKind.NOT_COMPILED, text), final=True)
    return Attempt(Blame.SOME if guilty else Blame.UNKNOWN, guilty, run.output)


def _base_name(symbol: str) -> str:
    """The last word of a function's name.

    >>> _base_name("ns::f<int>(int)")
    'f'
    """
    return re.split(r"[(<]", symbol)[0].rpartition("::")[2]
