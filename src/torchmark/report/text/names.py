"""Names of cases in tables, where several variants stand side by side, and in the names of files."""

from __future__ import annotations

import itertools
import re
import unicodedata
from collections.abc import Iterable, Sequence

from torchmark.model.plan import AutogradMode, Case, Label, RuntimeMode, Target
from torchmark.report.text.terminal import group, printable

# What a program's own interpreter is called beside others that have names.
NAMELESS = "this one"
# What people call them in a sentence, and where there is little room.
BACKWARD = "backward"
SHORT_WORDS = {
    RuntimeMode.JIT.value: "TS",
    RuntimeMode.COMPILE.value: "compiled",
    BACKWARD: "bwd",
    "Python": "Py",
}


def name_target(target: Target) -> str:
    return printable(target.name) or NAMELESS


def join_label(label: Label) -> str:
    return printable(" / ".join(label))


class Variants:
    """Finds words for the variants among these cases: what they all have in common has none.

    Eager, forward and one thread are what one expects, and are not told.
    """

    def __init__(self, cases: Iterable[Case]) -> None:
        cases = list(cases)
        self._languages = {case.autolabels.language for case in cases}
        self._suites = {case.suite for case in cases}
        self._runtimes = group((case.label, case.autolabels.runtime) for case in cases)
        self._autograd = group((case.label, case.autolabels.autograd) for case in cases)

    def words(self, case: Case, *, short: bool = False) -> tuple[str, ...]:
        """Runtime, autograd, threads and language, as far as they have to be told."""
        return self.kind(case, short=short) + self.language(case, short=short)

    def language(self, case: Case, *, short: bool = False) -> tuple[str, ...]:
        name = case.autolabels.as_dict["language"]
        return (_shorten(name) if short else name,) if len(self._languages) > 1 else ()

    def kind(self, case: Case, *, short: bool = False) -> tuple[str, ...]:
        labels, names = case.autolabels, case.autolabels.as_dict
        runtime, autograd = "", ""
        if labels.runtime not in (RuntimeMode.EAGER, RuntimeMode.EXPLICIT):
            runtime = names["runtime"]
        elif RuntimeMode.EXPLICIT in self._runtimes.get(case.label, ()) and len(self._runtimes[case.label]) > 1:
            runtime = names["runtime"] or AS_WRITTEN
        if labels.autograd is AutogradMode.FORWARD_BACKWARD:
            autograd = BACKWARD
        elif AutogradMode.EXPLICIT in self._autograd.get(case.label, ()) and len(self._autograd[case.label]) > 1:
            autograd = names["autograd"] or AS_WRITTEN
        number = case.args.num_threads
        threads = "" if number == 1 else f"{number}t" if short else f"{number} threads"
        return tuple(printable(_shorten(text) if short else text) for text in (runtime, autograd, threads) if text)

    def heading(self, case: Case) -> str:
        """What the case's label begins with, which others may share; with the suite where there are several."""
        path = join_label(case.label[:-1])
        if len(self._suites) < 2:
            return path
        return f"{printable(case.suite)}: {path}" if path else f"{printable(case.suite)}:"

    def leaf(self, case: Case) -> str:
        return join_label(case.label[-1:])

    def name(self, case: Case) -> str:
        suite = f"{printable(case.suite)}: " if len(self._suites) > 1 else ""
        return suite + ", ".join((join_label(case.label), *self.words(case)))


def _shorten(text: str) -> str:
    first, *rest = text.split(" (", 1)
    return " (".join([SHORT_WORDS.get(first, first), *rest])


def explain_short_words(shown: Iterable[str]) -> str:
    """What the short words among these mean, or nothing.

    >>> explain_short_words(["TS", "2t", "C++"])
    'TS: TorchScript; 2t: 2 threads.'
    """
    known = {short: long for long, short in SHORT_WORDS.items() if long != "Python"}
    known["bwd"] = AutogradMode.FORWARD_BACKWARD.value
    seen = dict.fromkeys(word.split(" (")[0] for word in shown)
    texts = [f"{word}: {known[word]}" for word in seen if word in known]
    texts += [f"{word}: {word[:-1]} threads" for word in seen if word[:-1].isdigit() and word.endswith("t")]
    return "; ".join(texts) + "." if texts else ""


def name_case(case: Case) -> str:
    """The case on a line, wherever it stands.

    >>> from torchmark.model.plan import AutoLabels, TimerArgs
    >>> from torchmark.model.task import Language
    >>> labels = AutoLabels(RuntimeMode.JIT, AutogradMode.FORWARD, Language.CPP)
    >>> name_case(Case(("nn", "Linear"), labels, TimerArgs("f(x);", num_threads=2)))
    'nn / Linear, TorchScript, 2 threads, C++'
    """
    return ", ".join((join_label(case.label), *Variants([case]).words(case), case.autolabels.as_dict["language"]))


# What has no name of its own because its author decides it, where it has to be told from others.
AS_WRITTEN = "as written"

# Most file systems take 255 bytes; what is put before and behind has to fit as well.
LONGEST = 120


def make_slug(text: str) -> str:
    """A text as the name of a file.

    >>> make_slug("torch.add(x, y) / SubTensor, C++")
    'torch-add-x-y-subtensor-cpp'
    """
    plain = unicodedata.normalize("NFKD", text.replace("C++", "cpp")).encode("ascii", "ignore").decode().lower()
    return re.sub(r"[^a-z0-9_]+", "-", plain).strip("-")[:LONGEST].rstrip("-") or "case"


def name_files(cases: Sequence[Case]) -> dict[Case, str]:
    """What the file of each case is called, without what it ends with. Those that would be alike are numbered."""
    variants = Variants(cases)
    names: dict[str, Case] = {}
    for case in dict.fromkeys(cases):
        slug = make_slug(variants.name(case))
        numbered = itertools.chain([slug], (f"{slug}-{number}" for number in itertools.count(2)))
        names[next(name for name in numbered if name not in names)] = case
    return {case: name for name, case in names.items()}
