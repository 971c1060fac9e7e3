"""Which cases are selected: by an expression over their labels, by variant, by tag."""

from __future__ import annotations

import dataclasses
import difflib
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple, TypeAlias

from torchmark.errors import UsageError, point
from torchmark.model.plan import AutogradMode, Case, RuntimeMode
from torchmark.model.task import Language

# Deeper than anyone writes, and far from where Python gives up.
MOST_LEVELS = 50

_OPERATORS = ("and", "or", "not")
_PATTERN = re.compile(
    r"""\s*(?:(?P<bracket>[()])|(?P<string>"(?:[^"]|"")*"|'(?:[^']|'')*')|(?P<word>[^\s()"']+)|(?P<quote>["']))"""
)
_BARE = re.compile(r"""[^\s()"']+""")


@dataclasses.dataclass(frozen=True)
class Word:
    """Holds where the text is found.

    >>> str(Word("Conv2d")), str(Word("nn Modules"))
    ('Conv2d', '"nn Modules"')
    """

    text: str

    def evaluate(self, matches: Callable[[str], bool]) -> bool:
        return matches(self.text)

    def __str__(self) -> str:
        if _BARE.fullmatch(self.text) and self.text.lower() not in _OPERATORS:
            return self.text
        return '"{}"'.format(self.text.replace('"', '""'))


@dataclasses.dataclass(frozen=True)
class Not:
    """Holds where its operand does not."""

    operand: Expression

    def evaluate(self, matches: Callable[[str], bool]) -> bool:
        return not self.operand.evaluate(matches)

    def __str__(self) -> str:
        return f"not {_bracket(self.operand, And, Or)}"


@dataclasses.dataclass(frozen=True)
class And:
    """Holds where all of its operands do; there are two or more."""

    operands: tuple[Expression, ...]

    def evaluate(self, matches: Callable[[str], bool]) -> bool:
        return all(operand.evaluate(matches) for operand in self.operands)

    def __str__(self) -> str:
        return " and ".join(_bracket(operand, And, Or) for operand in self.operands)


@dataclasses.dataclass(frozen=True)
class Or:
    """Holds where any of its operands does; there are two or more."""

    operands: tuple[Expression, ...]

    def evaluate(self, matches: Callable[[str], bool]) -> bool:
        return any(operand.evaluate(matches) for operand in self.operands)

    def __str__(self) -> str:
        return " or ".join(_bracket(operand, Or) for operand in self.operands)


Expression: TypeAlias = Word | Not | And | Or


def _bracket(expression: Expression, *kinds: type[Expression]) -> str:
    return f"({expression})" if isinstance(expression, kinds) else str(expression)


def parse(text: str) -> Expression:
    """The expression a text stands for; UsageError, with a caret below the place, for one that stands for none.

    >>> parse("add and not (c++ or 'nn Modules')")
    And(operands=(Word(text='add'), Not(operand=Or(operands=(Word(text='c++'), Word(text='nn Modules'))))))
    >>> parse("add and not (c++ or 'nn Modules')").evaluate(lambda word: word == "add")
    True
    """
    return _Parser(text).parse()


def words(expression: Expression) -> Iterator[str]:
    """The words of an expression, from left to right.

    >>> list(words(parse("add and not (mul or add)")))
    ['add', 'mul', 'add']
    """
    if isinstance(expression, Word):
        yield expression.text
    else:
        for operand in (expression.operand,) if isinstance(expression, Not) else expression.operands:
            yield from words(operand)


class _Token(NamedTuple):
    text: str
    """A word without its quotes; an operator in lower case; nothing at the end."""
    position: int
    is_word: bool = False


def _error(message: str, text: str, position: int) -> UsageError:
    return UsageError(f"{message}\n{point(text, position)}")


def _tokenize(text: str) -> Iterator[_Token]:
    position, end = 0, len(text.rstrip())
    while position < end:
        match = _PATTERN.match(text, position)
        assert match is not None  # any character starts one of the alternatives
        assert match.lastgroup is not None
        kind, found, start = match.lastgroup, match[match.lastgroup], match.start(match.lastgroup)
        position = match.end()
        if kind == "quote":
            raise _error("This quote is not closed.", text, start)
        if kind == "string":
            quote, content = found[0], found[1:-1]
            if not content:
                raise _error("There is nothing between these quotes.", text, start)
            yield _Token(content.replace(quote * 2, quote), start, is_word=True)
        elif kind == "bracket" or found.lower() in _OPERATORS:
            yield _Token(found.lower(), start)
        else:
            yield _Token(found, start, is_word=True)
    yield _Token("", end)


class _Parser:
    """Recursive descent; the levels it goes down are counted."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = tuple(_tokenize(text))
        self._next = 0

    def parse(self) -> Expression:
        if len(self._tokens) == 1:
            raise UsageError("The expression is empty: give a word, such as add.")
        expression = self._parse_or(0)
        if self._take(")"):
            raise self._fail("Nothing was opened that this could close.", self._tokens[self._next - 1].position)
        if not self._is_at_end:
            raise self._fail('Expected "and" or "or" before this; a name with spaces goes in quotes.')
        return expression

    @property
    def _token(self) -> _Token:
        return self._tokens[self._next]

    @property
    def _is_at_end(self) -> bool:
        return self._next == len(self._tokens) - 1

    def _take(self, text: str) -> bool:
        """Step over an operator or a bracket, if that is what comes."""
        is_there = not self._token.is_word and self._token.text == text
        self._next += is_there
        return is_there

    def _fail(self, message: str, position: int | None = None) -> UsageError:
        return _error(message, self._text, self._token.position if position is None else position)

    def _parse_or(self, level: int) -> Expression:
        operands = [self._parse_and(level)]
        while self._take("or"):
            operands.append(self._parse_and(level))
        return Or(tuple(operands)) if len(operands) > 1 else operands[0]

    def _parse_and(self, level: int) -> Expression:
        operands = [self._parse_one(level)]
        while self._take("and"):
            operands.append(self._parse_one(level))
        return And(tuple(operands)) if len(operands) > 1 else operands[0]

    def _parse_one(self, level: int) -> Expression:
        if level > MOST_LEVELS:
            raise self._fail(f"More than {MOST_LEVELS} levels of parentheses and not.")
        token = self._token
        if self._take("not"):
            return Not(self._parse_one(level + 1))
        if self._take("("):
            inner = self._parse_or(level + 1)
            if not self._take(")"):
                if self._is_at_end:
                    raise self._fail("This parenthesis is not closed.", token.position)
                raise self._fail('Expected "and", "or" or ")" before this; a name with spaces goes in quotes.')
            return inner
        if not token.is_word:
            quoting = " One that is part of a name goes in quotes." if token.text in _OPERATORS else ""
            raise self._fail(f'Expected a word, "not" or "(" here.{quoting}')
        self._next += 1
        return Word(token.text)


# What people call the variants.
LANGUAGES = {"python": Language.PYTHON, "cpp": Language.CPP}
RUNTIMES = {
    "eager": RuntimeMode.EAGER,
    "torchscript": RuntimeMode.JIT,
    "compile": RuntimeMode.COMPILE,
    "explicit": RuntimeMode.EXPLICIT,
}
AUTOGRAD = {
    "forward": AutogradMode.FORWARD,
    "backward": AutogradMode.FORWARD_BACKWARD,
    "explicit": AutogradMode.EXPLICIT,
}

# How alike two words have to be for one to be a slip of the other, from 0 to 1: "lienar" and "linear" are 0.83 alike,
# "liner" and "inner" 0.6. It is what difflib suggests too.
ALIKE = 0.6


@dataclasses.dataclass(frozen=True)
class Selection:
    """What is asked of a case: one of each that is given. What is empty asks nothing.

    >>> Selection(languages=(Language.CPP,), threads=(1, 2)).threads
    (1, 2)
    """

    expression: Expression | None = None
    languages: tuple[Language, ...] = ()
    runtimes: tuple[RuntimeMode, ...] = ()
    autograd: tuple[AutogradMode, ...] = ()
    threads: tuple[int, ...] = ()
    tags: tuple[str, ...] = ()

    def admits(self, case: Case) -> bool:
        labels = case.autolabels
        return (
            (not self.languages or labels.language in self.languages)
            and (not self.runtimes or labels.runtime in self.runtimes)
            and (not self.autograd or labels.autograd in self.autograd)
            and (not self.threads or case.args.num_threads in self.threads)
            and (not self.tags or not set(self.tags).isdisjoint(case.tags))
            and (self.expression is None or self.expression.evaluate(_Finder([case]).finds))
        )


def select(cases: Iterable[Case], selection: Selection) -> tuple[Case, ...]:
    return tuple(case for case in cases if selection.admits(case))


def keywords(case: Case) -> tuple[str, ...]:
    """The texts in which the words of an expression are looked for.

    >>> from torchmark.model.plan import AutoLabels, TimerArgs
    >>> labels = AutoLabels(RuntimeMode.EAGER, AutogradMode.FORWARD, Language.CPP)
    >>> keywords(Case(("Pointwise", "add"), labels, TimerArgs("x + 1;"), tags=("quick",)))
    ('Pointwise', 'add', 'Pointwise / add', 'Eager', 'Forward', 'C++', 'cpp', '1 threads', 'quick')
    """
    texts = (
        *case.label,
        " / ".join(case.label),
        *case.autolabels.as_dict.values(),
        "cpp" if case.autolabels.language is Language.CPP else "",
        f"{case.args.num_threads} threads",
        *case.tags,
    )
    # A label of one part is its own joined form, and what is explicit has no name.
    return tuple(dict.fromkeys(filter(None, texts)))


def missing_words(expression: Expression, cases: Iterable[Case]) -> tuple[str, ...]:
    finder = _Finder(cases)
    return tuple(word for word in dict.fromkeys(words(expression)) if not finder.finds(word))


def nearby(word: str, cases: Iterable[Case]) -> tuple[str, ...]:
    """Words of the cases that a word may be a slip of, the most alike first."""
    # A whole path is like no slip; its parts are.
    texts = dict.fromkeys(text for case in cases for text in keywords(case) if text in case.label or " / " not in text)
    parts = dict.fromkeys(part for text in texts for part in text.split() if not part.isdigit())
    return nearest(word, [*texts, *parts])


def nearest(word: str, known: Sequence[str]) -> tuple[str, ...]:
    """The names among those known that a word may be a slip of, the most alike first.

    >>> nearest("standart", ["standard", "modern"])
    ('standard',)
    """
    spellings = {name.casefold(): name for name in reversed(known)}
    alike = difflib.get_close_matches(word.casefold(), list(spellings), n=3, cutoff=ALIKE)
    return tuple(spellings[name] for name in alike)


def list_known(word: str, known: Sequence[str]) -> str:
    """What there is in the place of a word: names that it may be a slip of, or else all."""
    return f"There is {', '.join(map(repr, nearest(word, known) or known))}."


class _Finder:
    """Looks for words in the keywords of cases, without regard to upper and lower case."""

    def __init__(self, cases: Iterable[Case]) -> None:
        self._texts = {text.casefold() for case in cases for text in keywords(case)}

    def finds(self, word: str) -> bool:
        return any(word.casefold() in text for text in self._texts)


@dataclasses.dataclass(frozen=True)
class CaseOptions:
    """The options that select, as they were given."""

    k: tuple[str, ...] = ()
    language: tuple[str, ...] = ()
    runtime: tuple[str, ...] = ()
    autograd: tuple[str, ...] = ()
    threads: tuple[str, ...] = ()
    tag: tuple[str, ...] = ()

    def select(self) -> Selection:
        if len(self.k) > 1:
            raise UsageError("-k is given more than once: join the expressions with and, or.")
        return Selection(
            expression=parse(self.k[0]) if self.k else None,
            languages=tuple(LANGUAGES[name] for name in self.language),
            runtimes=tuple(RUNTIMES[name] for name in self.runtime),
            autograd=tuple(AUTOGRAD[name] for name in self.autograd),
            threads=tuple(int(n) for n in self.threads),
            tags=self.tag,
        )
