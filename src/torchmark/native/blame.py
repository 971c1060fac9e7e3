"""Whose fault it is: from the output of a compiler or linker to the snippets that do not compile.

Nobody is to fail for what another one wrote. So whatever the compiler says of the lines that we put around a snippet
convicts nobody, and neither does anything that it says behind such a place: it has lost its way there.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from torchmark.model.outcome import Failure, FailureKind
from torchmark.model.snippet import Snippet
from torchmark.native import compiler
from torchmark.native.compiler import Run
from torchmark.native.messages import (
    MOST_ERRORS,
    NAMES,
    Complaint,
    for_the_user,
    read_complaints,
    read_undefined,
)
from torchmark.native.render import Unit
from torchmark.native.scan import Problem, scan

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


class Verdict(NamedTuple):
    """What is wrong with a snippet; `final` if no header could make it right."""

    failure: Failure
    final: bool


class Attempt(NamedTuple):
    """What compiling a unit came to: who is to blame, by number, or else what the compiler said."""

    blame: Blame
    guilty: Mapping[int, Verdict] = MappingProxyType({})
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
        problem = one.endless or (one.unbalanced if certain else None)
        if problem:
            return _describe_problem(part, parts[part], problem)
        if "\0" in parts[part] or any("\ud800" <= character <= "\udfff" for character in parts[part]):
            return Failure(FailureKind.NOT_COMPILED, f"The {_WORDS[part]} contains what is no character.")
    return None


def _describe_problem(part: str, text: str, problem: Problem) -> Failure:
    line = text.split("\n")[problem.line - 1]
    excerpt = f"{problem.line:>5} | {line}\n      | {' ' * (problem.column - 1)}^"
    told = f"{NAMES[part]}:{problem.line}:{problem.column}: error: {problem.text}\n{excerpt}"
    return Failure(FailureKind.NOT_COMPILED, _sentence(part, problem.line, problem.column, problem.text), told)


def _sentence(part: str, line: int, column: int | None, text: str) -> str:
    place = f"line {line}" if column is None else f"line {line}, column {column}"
    return f"The {_WORDS[part]} does not compile, {place}: {text}."


def blame_compiling(unit: Unit, run: Run) -> Attempt:
    """Read what a compiler said."""
    if run.timed_out:
        told = f"The compiler did not end within {compiler.TIMEOUT_S:g} s."
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
    guilty: dict[int, Verdict] = {}
    for number, own in by_number.items():
        verdict = _describe(own)
        at_file_scope = own[0].place is not None and own[0].place.part == "global"
        for other, entry in enumerate(unit.entries):
            same = entry.snippet.global_setup == unit.entries[number].snippet.global_setup
            if other == number or (at_file_scope and same):
                guilty.setdefault(other, verdict)
    return Attempt(Blame.SOME if guilty else Blame.UNKNOWN, guilty, told)


def _find_want(run: Run) -> Attempt | None:
    """What the machine lacks, if that is why the compiler or the linker gave up."""
    output = run.output.lower()
    if run.code < 0 or any(words in output for words in _ENDED):
        told = "The compiler was ended, most likely for want of memory: a file takes about 2 GB."
        return Attempt(Blame.OUR_MEANS, {}, told, killed=True)
    if "no space left on device" in output or not output.strip():
        told = "The compiler gave up without saying why; is the disk of the cache full?"
        return Attempt(Blame.OUR_MEANS, {}, told)
    return None


def _describe(complaints: Sequence[Complaint]) -> Verdict:
    # What is wrong with our own lines is so because of the user's, where there is anything wrong with those.
    own = [one for one in complaints if one.place is None or one.place.part != "glue"]
    if not own:
        problem = "the setup or the statement does not end where its text does"
        failure = Failure(FailureKind.NOT_COMPILED, f"It does not compile: {problem}.", f"error: {problem}")
        return Verdict(failure, final=False)
    text = for_the_user("\n".join(one.text for one in own[:MOST_ERRORS]))
    first, summary = own[0], for_the_user(own[0].summary)
    if first.place is None:
        message = f"It does not compile: {summary}."
    else:
        message = _sentence(first.place.part, first.place.line, first.place.column, summary)
    final = any(_FINAL.search(line) for line in text.splitlines())
    return Verdict(Failure(FailureKind.NOT_COMPILED, message, text), final)


def blame_linking(unit: Unit, run: Run) -> Attempt:
    """Read what a linker said: names that nothing defines, and who uses them.

    It does not tell of every use, so whoever writes such a name is taken to use it.
    """
    if want := _find_want(run):
        return want
    missing = read_undefined(run.output)
    guilty: dict[int, Verdict] = {}
    for number, (snippet, key) in enumerate(unit.entries):
        words = scan(snippet.stmt).words | scan(snippet.setup).words
        names = dict.fromkeys(one.symbol for one in missing if one.key == key or _base_name(one.symbol) in words)
        if len(unit.entries) == 1:
            names = dict.fromkeys(one.symbol for one in missing)
        if names:
            text = f"It does not link: nothing defines {', '.join(names)}."
            guilty[number] = Verdict(Failure(FailureKind.NOT_COMPILED, text), final=True)
    return Attempt(Blame.SOME if guilty else Blame.UNKNOWN, guilty, run.output)


def _base_name(symbol: str) -> str:
    """The last word of a function's name.

    >>> _base_name("ns::f<int>(int)")
    'f'
    """
    return re.split(r"[(<]", symbol)[0].rpartition("::")[2]
