"""What is to be doubted of a comparison, in words, and what to do about it in a shell."""

from __future__ import annotations

import dataclasses

from torchmark.model.comparison import (
    ComparisonCaveat,
    FewLayouts,
    FewRounds,
    Incomparable,
    Interrupted,
    LayoutSensitive,
    LeftOut,
    ManyThreads,
    NotInTurns,
    NotTimed,
    PageFaults,
    SlowSpells,
    TooLong,
    TooShort,
    Unmatched,
    WildPairs,
)
from torchmark.report.cells import cut
from torchmark.report.changes import word_share
from torchmark.report.printable import count, printable
from torchmark.report.units import format_time
from torchmark.report.wording import METRIC_WORDS, Face

LAYOUTS_OPTION: dict[Face, str] = {"shell": "--layouts", "python": "layouts="}
# What was seen. In braces are the fields of the caveat, as `_word_field` puts them.
_DOUBTS: dict[type[ComparisonCaveat], str] = {
    FewLayouts: "It ran in {layouts} of memory; an interval that can be relied on takes {wanted}.",
    LayoutSensitive: "Its time moves by {layout_sd} with the layout of memory.",
    NotInTurns: "Both sides were timed one after the other, whatever the machine did meanwhile.",
    NotTimed: "It was only counted, and not timed: every process would have to compile it anew.",
    FewRounds: "One side was timed in {rounds}; to know how far processes are apart takes {wanted}.",
    LeftOut: "Another kind of machine measured {rounds} of {of} of the {metric} of {side}; that is left out.",
    ManyThreads: "It uses {threads}: neither times nor counts repeat as those of one do.",
    TooShort: "A run takes {seconds}: the loop around it is a large part of what was timed.",
    TooLong: "A run takes {seconds}, too long for taking turns to cancel what disturbs the machine.",
    SlowSpells: "The machine was {factor} times slower for {share} of the time; the ratio holds, times do not.",
    WildPairs: "{share} of the pairs of blocks differ by more than 10 %.",
    PageFaults: "{share} of the blocks used pages of memory for the first time.",
    Interrupted: "Other programs interrupted {share} of the blocks.",
}
_ADVICE: dict[type[ComparisonCaveat], str] = {
    FewLayouts: "Give it more layouts ({layouts_option}) or more time.",
    LayoutSensitive: "More layouts ({layouts_option}) make it firmer.",
    NotInTurns: "Let them take turns with `torchmark ab` to be sure of a small change.",
    NotTimed: "Time both with `torchmark run`, and hold the runs against each other with `torchmark compare`.",
    FewRounds: "Take more with `torchmark run --repeat {wanted}`.",
    LeftOut: "Measure on nodes of one kind; `torchmark show` tells in what they differ.",
    ManyThreads: "Compare with one thread to see small changes.",
    TooShort: "Let the statement do its work several times.",
    TooLong: "Smaller inputs show small changes better.",
    SlowSpells: "Do not hold these times against those of another day; `torchmark doctor` may tell what slows it.",
    WildPairs: "Is the machine busy, or does the statement depend on chance?",
    PageFaults: "Allocate what it needs in the setup, where that is not what is compared.",
    Interrupted: "Compare on a quieter machine; `torchmark doctor` may tell what else runs.",
}
_DIFFERENT = {
    "cpu": "The sides ran on different processors",
    "capability": "torch used different instruction sets",
    "hash_seed": "Python had different hash seeds, which move counts",
    "definition": "The sides do not measure the same",
    "layouts": "The sides were counted in different ways",
    "valgrind": "The sides were counted by different versions of Valgrind",
    "variables": "Environment variables differ",
}
_MEASURE_AGAIN = {
    "cpu": "Measure both on the same machine.",
    "capability": "Measure both on the same machine, with the same ATEN_CPU_CAPABILITY.",
    "hash_seed": "Measure both with the same PYTHONHASHSEED.",
    "definition": "Measure both with the same benchmarks.",
    "layouts": "Count both with the same --layouts.",
    "valgrind": "Count both with the same Valgrind.",
    "variables": "Measure both with the same variables.",
}
# Of two values that differ, so much is quoted: a line of most terminals has room for both.
LONGEST_QUOTE = 60
# Names of libraries that are told.
MOST_LIBRARIES = 3


def state_doubt(caveat: ComparisonCaveat) -> str:
    """What was seen.

    >>> state_doubt(LayoutSensitive(0.014))
    'Its time moves by 1.4 % with the layout of memory.'
    """
    if isinstance(caveat, Incomparable):
        base, head = (cut(printable(value), LONGEST_QUOTE) for value in (caveat.base, caveat.head))
        return f"{_DIFFERENT.get(caveat.what, 'The sides differ')}: base {base}, head {head}."
    if isinstance(caveat, Unmatched):
        return f"{_say_unmatched(caveat)}, so they cannot be laid out alike in memory: the interval is wider."
    return _DOUBTS[type(caveat)].format_map(_word_fields(caveat))


def _say_unmatched(caveat: Unmatched) -> str:
    if caveat.reason == "personality":
        return "The system does not let programs choose where they lie in memory"
    # Those of torch are what people look for.
    ordered = sorted(caveat.libraries, key=lambda name: "torch" not in name)
    names = ", ".join(map(printable, ordered[:MOST_LIBRARIES])) + (" …" if len(ordered) > MOST_LIBRARIES else "")
    return "Base and head load different native libraries" + (f" ({names})" if names else "")


def advise(caveat: ComparisonCaveat, face: Face = "shell") -> str:
    """What to do; the same for many caveats of a kind.

    >>> advise(FewRounds(1, 3))
    'Take more with `torchmark run --repeat 3`.'
    """
    if isinstance(caveat, Incomparable):
        return _MEASURE_AGAIN.get(caveat.what, "Measure both alike.")
    if isinstance(caveat, Unmatched):
        allow = " A container may allow it with another seccomp profile." if caveat.reason == "personality" else ""
        return f"More layouts ({LAYOUTS_OPTION[face]}) make it narrower.{allow}"
    return _ADVICE[type(caveat)].format_map({**_word_fields(caveat), "layouts_option": LAYOUTS_OPTION[face]})


def word_doubt(caveat: ComparisonCaveat, face: Face = "shell") -> str:
    """Both. `face` says how options are spelt.

    >>> word_doubt(TooShort(2e-8))
    'A run takes 20.0 ns: the loop around it is a large part of what was timed. Let the statement do its work several \
times.'
    """
    return f"{state_doubt(caveat)} {advise(caveat, face)}"


def _word_fields(caveat: ComparisonCaveat) -> dict[str, str]:
    return {field.name: _word_field(field.name, getattr(caveat, field.name)) for field in dataclasses.fields(caveat)}


def _word_field(name: str, value: float | str) -> str:
    if isinstance(value, str):
        return METRIC_WORDS.get(value, value) if name == "metric" else printable(value)
    if name in ("layout_sd", "share"):
        return word_share(value)
    if name in ("layouts", "rounds", "threads"):
        return count(int(value), name.removesuffix("s"))
    return format_time(value) if name == "seconds" else f"{value:.3g}"
