"""Which cases are meant: by an expression over their labels, by variant, by tag."""

from __future__ import annotations

import dataclasses
import difflib
from collections.abc import Iterable, Sequence

from torchmark.define.expression import Expression, words
from torchmark.model.case import AutogradMode, Case, RuntimeMode
from torchmark.model.task import Language

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

MOST_SUGGESTIONS = 3
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
        """Whether a case is meant."""
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
    """The cases that are meant, in their order."""
    return tuple(case for case in cases if selection.admits(case))


def keywords(case: Case) -> tuple[str, ...]:
    """The texts in which the words of an expression are looked for.

    >>> from torchmark.model.case import AutoLabels, TimerArgs
    >>> labels = AutoLabels(RuntimeMode.EAGER, AutogradMode.FORWARD, Language.CPP)
    >>> keywords(Case(("Pointwise", "add"), labels, TimerArgs("x + 1;"), tags=("quick",)))
    ('Pointwise', 'add', 'Pointwise / add', 'Eager', 'Forward', 'C++', 'cpp', '1 threads', 'quick')
    """
    labels = case.autolabels.as_dict
    texts = (
        *case.label,
        " / ".join(case.label),
        labels["runtime"],
        labels["autograd"],
        labels["language"],
        "cpp" if case.autolabels.language is Language.CPP else "",
        f"{case.args.num_threads} threads",
        *case.tags,
    )
    # A label of one part is its own joined form, and what is explicit has no name.
    return tuple(dict.fromkeys(filter(None, texts)))


def missing_words(expression: Expression, cases: Iterable[Case]) -> tuple[str, ...]:
    """The words of an expression that no case has."""
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
    alike = difflib.get_close_matches(word.casefold(), list(spellings), MOST_SUGGESTIONS, ALIKE)
    return tuple(spellings[name] for name in alike)


class _Finder:
    """Looks for words in the keywords of cases, without regard to upper and lower case."""

    def __init__(self, cases: Iterable[Case]) -> None:
        self._texts = {text.casefold() for case in cases for text in keywords(case)}

    def finds(self, word: str) -> bool:
        return any(word.casefold() in text for text in self._texts)
