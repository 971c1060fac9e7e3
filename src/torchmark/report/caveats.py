"""Caveats as marks in a table with their legend, and as sentences with advice, for single results and comparisons."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Sequence
from typing import Literal

from torchmark.analysis.summarise import UNRELIABLE_IQR
from torchmark.model.caveats import (
    Caveat,
    ComparisonCaveat,
    Drift,
    FewLayouts,
    FewRounds,
    FewSamples,
    HighOverhead,
    Incomparable,
    Interrupted,
    LayoutSensitive,
    LeftOut,
    ManyThreads,
    NotInTurns,
    NotTimed,
    OptimisedAway,
    OtherInstructionSet,
    OtherPlaces,
    PageFaults,
    SeveralThreads,
    SlowSpells,
    TooLong,
    TooShort,
    TwoModes,
    Unmatched,
    UnstableCount,
    Variation,
    WildPairs,
)
from torchmark.model.judgement import CaseJudgement, Verdict
from torchmark.model.plan import Metric, Target
from torchmark.model.run import CaseSummary
from torchmark.report.text.names import name_target
from torchmark.report.text.run_summary import list_names
from torchmark.report.text.terminal import count, cut, printable, wrap
from torchmark.report.text.units import format_share, format_time

Face = Literal["python", "shell"]

# Of groups this close to half of the samples, another measurement may have its median in the other one.
NEARLY_HALF = 0.1
METRIC_WORDS = {"wall": "times", "count": "counts"}
_OTHERS = {
    "cpu": "another processor",
    "torch": "another torch",
    "torch_commit": "another commit of torch",
    "torch_build": "another build of torch",
    "capability": "another instruction set",
    "valgrind": "another Valgrind",
    "hash_seed": "another hash seed",
}


def describe_caveat(caveat: Caveat, face: Face = "python", used: Collection[str] = ()) -> str:
    """One sentence that says what was seen and one that says what to try.

    `face` says how options are spelt; `used` names those already in use, which are not advised again.

    >>> describe_caveat(FewSamples(1, 6), "shell")
    '1 sample; an interval of the median takes 6. Take more with a larger --min-run-time.'
    """
    return f"{describe_fact(caveat)} {describe_advice(caveat, face, used)}"


def describe_fact(caveat: Caveat) -> str:
    """What was seen."""
    if isinstance(caveat, FewSamples):
        s = "" if caveat.samples == 1 else "s"
        return f"{caveat.samples} sample{s}; an interval of the median takes {caveat.wanted}."
    if isinstance(caveat, Variation):
        degree = "unreliable" if caveat.iqr_share >= UNRELIABLE_IQR else "unsteady"
        return f"The result is {degree}: the middle half of the samples spans {caveat.iqr_share:.0%} of the median."
    if isinstance(caveat, Drift):
        direction = "slower" if caveat.change > 0 else "faster"
        return f"The statement became {abs(caveat.change):.0%} {direction} while it was measured."
    if isinstance(caveat, TwoModes):
        fast, slow = format_time(caveat.fast_s), format_time(caveat.slow_s)
        return f"The samples fall into two groups, around {fast} and {slow} ({caveat.slow_share:.0%} in the slow one)."
    if isinstance(caveat, OptimisedAway):
        return "The compiler removed the statement, which has no effect: the loop was empty."
    if isinstance(caveat, UnstableCount):
        return f"The count moves by {caveat.spread:.1%} with the layout of memory."
    if isinstance(caveat, SeveralThreads):
        return f"The count is of {caveat.threads} threads together, and does not repeat exactly."
    if isinstance(caveat, OtherInstructionSet):
        return f"torch uses {caveat.native} on this machine, but {caveat.counted} under Valgrind."
    if isinstance(caveat, OtherPlaces):
        return _describe_others(caveat)
    return f"Starting the loop and reading the clock takes {caveat.share:.1%} of each block."


def _describe_others(caveat: OtherPlaces) -> str:
    which = f"{caveat.rounds} of {caveat.of} rounds of {METRIC_WORDS.get(caveat.metric, 'results')}"
    what = " and ".join(_OTHERS.get(one, f"another {one}") for one in caveat.what)
    where = f" ({list_names(caveat.nodes)})" if caveat.nodes else ""
    return f"{which} {'is' if caveat.rounds == 1 else 'are'} left out, taken with {what}{where}."


def describe_advice(caveat: Caveat, face: Face, used: Collection[str]) -> str:
    """What to try; the same for many caveats of a kind."""
    if isinstance(caveat, FewSamples):
        more = "repeat() or a larger min_run_time=" if face == "python" else "a larger --min-run-time"
        return f"Take more with {more}."
    if isinstance(caveat, HighOverhead):
        if "number" in used:
            return "Give --number a larger value, or leave it out to let the block size be chosen."
        return "Run the statement more often in each block."
    if isinstance(caveat, Drift):
        return "Does it depend on what earlier runs left behind, or does the machine heat up or slow down?"
    if isinstance(caveat, TwoModes):
        near = abs(caveat.slow_share - 0.5) <= NEARLY_HALF
        group = "may lie in either" if near else f"lies in the {'slow' if caveat.slow_share > 0.5 else 'fast'}"
        return f"The median {group} group: look at the quantiles, and at what else the machine does."
    if isinstance(caveat, OptimisedAway):
        return "Use what it computes, or keep it with torchmark::keep(...)."
    if isinstance(caveat, UnstableCount):
        more = "layouts=" if face == "python" else "--layouts"
        return f"Does it depend on addresses or on what earlier runs left behind? More layouts ({more}) make it firmer."
    if isinstance(caveat, SeveralThreads):
        return "Count with one thread to see small changes."
    if isinstance(caveat, OtherInstructionSet):
        return "Counts describe other kernels than those that run outside; compare counts with counts only."
    if isinstance(caveat, OtherPlaces):
        alike = "on nodes of one kind" if caveat.nodes else "anew, without --resume,"
        return f"Run it {alike} to have all rounds in one result."
    if "adaptive" in used:
        return "Something else is using the machine; `torchmark doctor` may tell what."
    how = "--adaptive" if face == "shell" else "adaptive_autorange()"
    return f"Measure until it is steady with {how}, on a quieter machine."


# In the order in which they stand. What holds for whole environments is no mark but a note.
MARKS: dict[type[Caveat], str] = {
    OptimisedAway: "x",
    FewSamples: "f",
    Variation: "v",
    Drift: "d",
    TwoModes: "m",
    HighOverhead: "o",
    UnstableCount: "u",
    SeveralThreads: "t",
    OtherPlaces: "e",
}
UNCHECKED = "?"
# Something failed in some rounds and not in others.
SOMETIMES = "!"
# Options of `torchmark time` that other advice would name, and that suites are not measured with.
NOT_OFFERED = ("adaptive",)
# Reasons for the same thing that a person reads; there is hardly ever more than one.
MOST_REASONS = 3


def find_marks(summary: CaseSummary) -> str:
    """The marks of a row."""
    kinds = {type(caveat) for caveat in summary.caveats}
    marks = "".join(mark for kind, mark in MARKS.items() if kind in kinds)
    failed = {metric for metric, _ in summary.failures}
    values = ((Metric.WALL, summary.wall), (Metric.COUNT, summary.count))
    measured = {metric for metric, value in values if value is not None}
    return marks + (UNCHECKED if summary.unchecked else "") + (SOMETIMES if failed & measured else "")


def explain_marks(summaries: Sequence[CaseSummary], width: int) -> list[str]:
    """What the marks mean that were used: how often, at worst, and what to do about it."""
    lines: list[str] = []
    for kind, mark in MARKS.items():
        by_case = [[caveat for caveat in summary.caveats if isinstance(caveat, kind)] for summary in summaries]
        found = [caveat for caveats in by_case for caveat in caveats]
        if found:
            worst, cases = max(found, key=_severity), sum(map(bool, by_case))
            of_how_many = "" if cases == 1 else f"{cases} cases" + (", at worst: " if set(found) - {worst} else ": ")
            text = f"{mark}  {of_how_many}{describe_fact(worst)} {describe_advice(worst, 'shell', NOT_OFFERED)}"
            lines += wrap(text, width, 3)
    reasons = list(dict.fromkeys(summary.unchecked for summary in summaries if summary.unchecked))
    for reason in reasons[:MOST_REASONS]:
        lines += wrap(f"{UNCHECKED}  Its results were not compared with other variants': {printable(reason)}", width, 3)
    if any(SOMETIMES in find_marks(summary) for summary in summaries):
        lines += wrap(f"{SOMETIMES}  It failed in some rounds; the numbers are of the others.", width, 3)
    return lines


def _severity(caveat: Caveat) -> float:
    if isinstance(caveat, FewSamples):
        return -caveat.samples
    if isinstance(caveat, Variation):
        return caveat.iqr_share
    if isinstance(caveat, Drift):
        return abs(caveat.change)
    if isinstance(caveat, TwoModes):
        return caveat.slow_s - caveat.fast_s
    if isinstance(caveat, HighOverhead):
        return caveat.share
    if isinstance(caveat, UnstableCount):
        return caveat.spread
    if isinstance(caveat, OtherPlaces):
        return caveat.rounds / caveat.of
    return caveat.threads if isinstance(caveat, SeveralThreads) else 0.0


def explain_environments(summaries: Sequence[CaseSummary], width: int) -> list[str]:
    """What holds for all counts of an environment, told once."""
    found: dict[Caveat, dict[Target, None]] = {}
    for summary in summaries:
        for caveat in summary.caveats:
            if isinstance(caveat, OtherInstructionSet):
                found.setdefault(caveat, {})[summary.target] = None
    everywhere = {summary.target for summary in summaries if summary.count}
    lines: list[str] = []
    for caveat, targets in found.items():
        where = f"({', '.join(map(name_target, targets))}) " if set(targets) != everywhere else ""
        lines += wrap(f"Note: {where}{describe_fact(caveat)} {describe_advice(caveat, 'shell', NOT_OFFERED)}", width, 2)
    return lines


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


def describe_doubt_fact(caveat: ComparisonCaveat) -> str:
    """What was seen.

    >>> describe_doubt_fact(LayoutSensitive(0.014))
    'Its time moves by 1.4 % with the layout of memory.'
    """
    if isinstance(caveat, Incomparable):
        base, head = (cut(printable(value), LONGEST_QUOTE) for value in (caveat.base, caveat.head))
        return f"{_DIFFERENT.get(caveat.what, 'The sides differ')}: base {base}, head {head}."
    if isinstance(caveat, Unmatched):
        return f"{_describe_unmatched(caveat)}, so they cannot be laid out alike in memory: the interval is wider."
    return _DOUBTS[type(caveat)].format_map(_describe_fields(caveat))


def _describe_unmatched(caveat: Unmatched) -> str:
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
    return _ADVICE[type(caveat)].format_map({**_describe_fields(caveat), "layouts_option": LAYOUTS_OPTION[face]})


def describe_doubt(caveat: ComparisonCaveat, face: Face = "shell") -> str:
    """Both. `face` says how options are spelt.

    >>> describe_doubt(TooShort(2e-8))
    'A run takes 20.0 ns: the loop around it is a large part of what was timed. Let the statement do its work several \
times.'
    """
    return f"{describe_doubt_fact(caveat)} {advise(caveat, face)}"


def _describe_fields(caveat: ComparisonCaveat) -> dict[str, str]:
    return {
        field.name: _describe_field(field.name, getattr(caveat, field.name)) for field in dataclasses.fields(caveat)
    }


def _describe_field(name: str, value: float | str) -> str:
    if isinstance(value, str):
        return METRIC_WORDS.get(value, value) if name == "metric" else printable(value)
    if name in ("layout_sd", "share"):
        return format_share(value)
    if name in ("layouts", "rounds", "threads"):
        return count(int(value), name.removesuffix("s"))
    return format_time(value) if name == "seconds" else f"{value:.3g}"


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


def find_shared(judgements: Sequence[CaseJudgement]) -> tuple[ComparisonCaveat, ...]:
    """What holds for all that was measured, alike: a note, and no mark in every line."""
    measured = [judgement.caveats for judgement in judgements if judgement.verdict is not Verdict.FAILED]
    if len(measured) < 2:
        return ()
    return tuple(dict.fromkeys(one for one in measured[0] if all(one in caveats for caveats in measured)))


def find_comparison_marks(judgement: CaseJudgement, shared: Collection[ComparisonCaveat]) -> str:
    """The marks of a row."""
    kinds = {type(caveat) for caveat in judgement.caveats if caveat not in shared}
    marks = "".join(mark for kind, mark in COMPARISON_MARKS.items() if kind in kinds)
    return marks + (SOMETIMES if judgement.failures and judgement.verdict is not Verdict.FAILED else "")


def explain_doubts(judgements: Sequence[CaseJudgement]) -> list[tuple[str, str]]:
    """Each kind once, with its mark: of how many cases, at worst, and what to do. What holds for all has no mark."""
    shared = find_shared(judgements)
    found: dict[tuple[type[ComparisonCaveat], str], list[ComparisonCaveat]] = {}
    for judgement in judgements:
        for caveat in dict.fromkeys(judgement.caveats):
            if caveat not in shared:
                found.setdefault((type(caveat), _sort_of(caveat)), []).append(caveat)
    told = [("", describe_doubt(caveat)) for caveat in shared]
    for kind, mark in COMPARISON_MARKS.items():
        told += [(mark, _describe_worst(caveats)) for (other, _), caveats in found.items() if other is kind]
    if any(SOMETIMES in find_comparison_marks(judgement, shared) for judgement in judgements):
        told.append((SOMETIMES, "A part of it failed; the verdict is on the rest."))
    return told


def _sort_of(caveat: ComparisonCaveat) -> str:
    """What differs within a kind by more than a number."""
    return caveat.what if isinstance(caveat, Incomparable) else caveat.reason if isinstance(caveat, Unmatched) else ""


def _describe_worst(caveats: Sequence[ComparisonCaveat]) -> str:
    """How many cases these are of, and the worst of them; where none is worse than others, the first."""
    worst = max(caveats, key=_comparison_severity)
    if len(caveats) == 1:
        return describe_doubt(worst)
    which = "" if len(set(caveats)) == 1 else ", at worst" if _comparison_severity(worst) else ", for example"
    return f"{len(caveats)} cases{which}: {describe_doubt(worst)}"


def _comparison_severity(caveat: ComparisonCaveat) -> float:
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
