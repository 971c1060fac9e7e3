"""What is to be doubted of comparisons as marks in their table, and a legend of those that are there."""

from __future__ import annotations

from collections.abc import Collection, Sequence

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
from torchmark.model.judgement import Judgement, Verdict
from torchmark.report.comparison_wording import word_doubt
from torchmark.report.marks import SOMETIMES

# In the order in which they stand; none means something else in a table of results.
COMPARISON_MARKS: dict[type[ComparisonCaveat], str] = {
    Incomparable: "i",
    Unmatched: "n",
    FewLayouts: "k",
    LayoutSensitive: "l",
    NotInTurns: "a",
    NotTimed: "c",
    FewRounds: "r",
    LeftOut: "e",
    ManyThreads: "t",
    TooShort: "s",
    TooLong: "g",
    SlowSpells: "h",
    WildPairs: "w",
    PageFaults: "p",
    Interrupted: "b",
}


def find_shared(judgements: Sequence[Judgement]) -> tuple[ComparisonCaveat, ...]:
    """What holds for all that was measured, alike: a note, and no mark in every line."""
    measured = [judgement.caveats for judgement in judgements if judgement.verdict is not Verdict.FAILED]
    if len(measured) < 2:
        return ()
    return tuple(dict.fromkeys(one for one in measured[0] if all(one in caveats for caveats in measured)))


def find_marks(judgement: Judgement, shared: Collection[ComparisonCaveat]) -> str:
    """The marks of a row."""
    kinds = {type(caveat) for caveat in judgement.caveats if caveat not in shared}
    marks = "".join(mark for kind, mark in COMPARISON_MARKS.items() if kind in kinds)
    return marks + (SOMETIMES if judgement.failures and judgement.verdict is not Verdict.FAILED else "")


def explain_doubts(judgements: Sequence[Judgement]) -> list[tuple[str, str]]:
    """Each kind once, with its mark: of how many cases, at worst, and what to do. What holds for all has no mark."""
    shared = find_shared(judgements)
    found: dict[tuple[type[ComparisonCaveat], str], list[ComparisonCaveat]] = {}
    for judgement in judgements:
        for caveat in dict.fromkeys(judgement.caveats):
            if caveat not in shared:
                found.setdefault((type(caveat), _sort_of(caveat)), []).append(caveat)
    told = [("", word_doubt(caveat)) for caveat in shared]
    for kind, mark in COMPARISON_MARKS.items():
        told += [(mark, _sum_up(caveats)) for (other, _), caveats in found.items() if other is kind]
    if any(SOMETIMES in find_marks(judgement, shared) for judgement in judgements):
        told.append((SOMETIMES, "A part of it failed; the verdict is on the rest."))
    return told


def _sort_of(caveat: ComparisonCaveat) -> str:
    """What differs within a kind by more than a number."""
    return caveat.what if isinstance(caveat, Incomparable) else caveat.reason if isinstance(caveat, Unmatched) else ""


def _sum_up(caveats: Sequence[ComparisonCaveat]) -> str:
    """How many cases these are of, and the worst of them; where none is worse than others, the first."""
    worst = max(caveats, key=_severity)
    if len(caveats) == 1:
        return word_doubt(worst)
    which = "" if len(set(caveats)) == 1 else ", at worst" if _severity(worst) else ", for example"
    return f"{len(caveats)} cases{which}: {word_doubt(worst)}"


def _severity(caveat: ComparisonCaveat) -> float:
    if isinstance(caveat, LayoutSensitive):
        return caveat.layout_sd
    if isinstance(caveat, FewLayouts):
        return -caveat.layouts
    if isinstance(caveat, FewRounds):
        return -caveat.rounds
    if isinstance(caveat, LeftOut):
        return caveat.rounds / caveat.of
    if isinstance(caveat, TooShort):
        return -caveat.seconds
    if isinstance(caveat, TooLong):
        return caveat.seconds
    if isinstance(caveat, ManyThreads):
        return caveat.threads
    return caveat.share if isinstance(caveat, (SlowSpells, WildPairs, PageFaults, Interrupted)) else 0.0
