"""The catalogue of caveats, for single results and comparisons: fact, advice, mark and severity of each kind."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import Any, Literal, TypeAlias

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
AnyCaveat: TypeAlias = Caveat | ComparisonCaveat

# Of groups this close to half of the samples, another measurement may have its median in the other one.
NEARLY_HALF = 0.1
# Of two values that differ, so much is quoted: a line of most terminals has room for both.
LONGEST_QUOTE = 60
# Names of libraries that are told.
MOST_LIBRARIES = 3
METRIC_WORDS = {"wall": "times", "count": "counts"}
_LAYOUTS_OPTION = {"shell": "--layouts", "python": "layouts="}
_ADAPTIVE_OPTION = {"shell": "--adaptive", "python": "adaptive_autorange()"}
_OTHERS = {
    "cpu": "another processor",
    "torch": "another torch",
    "torch_commit": "another commit of torch",
    "torch_build": "another build of torch",
    "capability": "another instruction set",
    "valgrind": "another Valgrind",
    "hash_seed": "another hash seed",
}
# In what two sides differ: the fact, and what to do.
_DIFFERENT = {
    "cpu": ("The sides ran on different processors", "Measure both on the same machine."),
    "capability": (
        "torch used different instruction sets",
        "Measure both on the same machine, with the same ATEN_CPU_CAPABILITY.",
    ),
    "hash_seed": ("Python had different hash seeds, which move counts", "Measure both with the same PYTHONHASHSEED."),
    "definition": ("The sides do not measure the same", "Measure both with the same benchmarks."),
    "layouts": ("The sides were counted in different ways", "Count both with the same --layouts."),
    "valgrind": ("The sides were counted by different versions of Valgrind", "Count both with the same Valgrind."),
    "variables": ("Environment variables differ", "Measure both with the same variables."),
}


def _advise_on_modes(caveat: TwoModes) -> str:
    near = abs(caveat.slow_share - 0.5) <= NEARLY_HALF
    group = "may lie in either" if near else f"lies in the {'slow' if caveat.slow_share > 0.5 else 'fast'}"
    return f"The median {group} group: look at the quantiles, and at what else the machine does."


def _describe_places(caveat: OtherPlaces) -> str:
    which = f"{caveat.rounds} of {caveat.of} rounds of {METRIC_WORDS.get(caveat.metric, 'results')}"
    what = " and ".join(_OTHERS.get(one, f"another {one}") for one in caveat.what)
    where = f" ({list_names(caveat.nodes)})" if caveat.nodes else ""
    return f"{which} {'is' if caveat.rounds == 1 else 'are'} left out, taken with {what}{where}."


def _describe_difference(caveat: Incomparable) -> str:
    base, head = (cut(printable(value), LONGEST_QUOTE) for value in (caveat.base, caveat.head))
    fact, _ = _DIFFERENT.get(caveat.what, ("The sides differ", ""))
    return f"{fact}: base {base}, head {head}."


def _describe_unmatched(caveat: Unmatched) -> str:
    if caveat.reason == "personality":
        why = "The system does not let programs choose where they lie in memory"
    else:
        # Those of torch are what people look for.
        ordered = sorted(caveat.libraries, key=lambda name: "torch" not in name)
        names = ", ".join(map(printable, ordered[:MOST_LIBRARIES])) + (" …" if len(ordered) > MOST_LIBRARIES else "")
        why = "Base and head load different native libraries" + (f" ({names})" if names else "")
    return f"{why}, so they cannot be laid out alike in memory: the interval is wider."


@dataclasses.dataclass(frozen=True)
class CaveatEntry:
    """What is known of one kind of caveat."""

    rule: str
    """The module that decides whether it applies, where its threshold is derived."""
    fact: str | Callable[[Any], str]
    """What was seen."""
    advice: str | Callable[[Any, Face, Collection[str]], str]
    """What to try: how options are spelt depends on the face, and options already in use are not advised again."""
    mark: str = ""
    """A letter in tables, each family has its own; none for what is said of a whole environment."""
    severity: Callable[[Any], float] | None = None
    """The larger, the worse; None where none is worse than another."""


# In the order in which marks stand.
CATALOGUE: dict[type[AnyCaveat], CaveatEntry] = {
    OptimisedAway: CaveatEntry(
        rule="analysis/summarise.py",
        fact="The compiler removed the statement, which has no effect: the loop was empty.",
        advice="Use what it computes, or keep it with torchmark::keep(...).",
        mark="x",
    ),
    FewSamples: CaveatEntry(
        rule="analysis/summarise.py",
        fact=lambda c: f"{count(c.samples, 'sample')}; an interval of the median takes {c.wanted}.",
        advice=lambda _, face, used: (
            f"Take more with {'a larger --min-run-time' if face == 'shell' else 'repeat() or a larger min_run_time='}."
        ),
        mark="f",
        severity=lambda c: -c.samples,
    ),
    Variation: CaveatEntry(
        rule="analysis/summarise.py",
        fact=lambda c: (
            f"The result is {'unreliable' if c.iqr_share >= UNRELIABLE_IQR else 'unsteady'}: "
            f"the middle half of the samples spans {c.iqr_share:.0%} of the median."
        ),
        advice=lambda _, face, used: (
            "Something else is using the machine; `torchmark doctor` may tell what."
            if "adaptive" in used
            else f"Measure until it is steady with {_ADAPTIVE_OPTION[face]}, on a quieter machine."
        ),
        mark="v",
        severity=lambda c: c.iqr_share,
    ),
    Drift: CaveatEntry(
        rule="analysis/summarise.py",
        fact=lambda c: (
            f"The statement became {abs(c.change):.0%} {'slower' if c.change > 0 else 'faster'} while it was measured."
        ),
        advice="Does it depend on what earlier runs left behind, or does the machine heat up or slow down?",
        mark="d",
        severity=lambda c: abs(c.change),
    ),
    TwoModes: CaveatEntry(
        rule="analysis/summarise.py",
        fact=lambda c: (
            f"The samples fall into two groups, around {format_time(c.fast_s)} and {format_time(c.slow_s)} "
            f"({c.slow_share:.0%} in the slow one)."
        ),
        advice=lambda c, face, used: _advise_on_modes(c),
        mark="m",
        severity=lambda c: c.slow_s - c.fast_s,
    ),
    HighOverhead: CaveatEntry(
        rule="analysis/summarise.py",
        fact=lambda c: f"Starting the loop and reading the clock takes {c.share:.1%} of each block.",
        advice=lambda _, face, used: (
            "Give --number a larger value, or leave it out to let the block size be chosen."
            if "number" in used
            else "Run the statement more often in each block."
        ),
        mark="o",
        severity=lambda c: c.share,
    ),
    UnstableCount: CaveatEntry(
        rule="analysis/summarise.py",
        fact=lambda c: f"The count moves by {c.spread:.1%} with the layout of memory.",
        advice=lambda _, face, used: (
            "Does it depend on addresses or on what earlier runs left behind? "
            f"More layouts ({_LAYOUTS_OPTION[face]}) make it firmer."
        ),
        mark="u",
        severity=lambda c: c.spread,
    ),
    SeveralThreads: CaveatEntry(
        rule="analysis/summarise.py",
        fact=lambda c: f"The count is of {c.threads} threads together, and does not repeat exactly.",
        advice="Count with one thread to see small changes.",
        mark="t",
        severity=lambda c: c.threads,
    ),
    OtherPlaces: CaveatEntry(
        rule="analysis/results.py",
        fact=_describe_places,
        advice=lambda c, face, used: (
            f"Run it {'on nodes of one kind' if c.nodes else 'anew, without --resume,'} to have all rounds in one "
            "result."
        ),
        mark="e",
        severity=lambda c: c.rounds / c.of,
    ),
    OtherInstructionSet: CaveatEntry(
        rule="analysis/summarise.py",
        fact=lambda c: f"torch uses {c.native} on this machine, but {c.counted} under Valgrind.",
        advice="Counts describe other kernels than those that run outside; compare counts with counts only.",
    ),
    Incomparable: CaveatEntry(
        rule="analysis/verdict/comparable.py",
        fact=_describe_difference,
        advice=lambda c, face, used: _DIFFERENT.get(c.what, ("", "Measure both alike."))[1],
        mark="i",
    ),
    Unmatched: CaveatEntry(
        rule="compare/experiment.py",
        fact=_describe_unmatched,
        advice=lambda c, face, used: (
            f"More layouts ({_LAYOUTS_OPTION[face]}) make it narrower."
            + (" A container may allow it with another seccomp profile." if c.reason == "personality" else "")
        ),
        mark="n",
    ),
    FewLayouts: CaveatEntry(
        rule="compare/experiment.py",
        fact=lambda c: (
            f"It ran in {count(c.layouts, 'layout')} of memory; an interval that can be relied on takes {c.wanted}."
        ),
        advice=lambda _, face, used: f"Give it more layouts ({_LAYOUTS_OPTION[face]}) or more time.",
        mark="k",
        severity=lambda c: -c.layouts,
    ),
    LayoutSensitive: CaveatEntry(
        rule="compare/experiment.py",
        fact=lambda c: f"Its time moves by {format_share(c.layout_sd)} with the layout of memory.",
        advice=lambda _, face, used: f"More layouts ({_LAYOUTS_OPTION[face]}) make it firmer.",
        mark="l",
        severity=lambda c: c.layout_sd,
    ),
    NotInTurns: CaveatEntry(
        rule="analysis/verdict/stored.py",
        fact="Both sides were timed one after the other, whatever the machine did meanwhile.",
        advice="Let them take turns with `torchmark ab` to be sure of a small change.",
        mark="a",
    ),
    NotTimed: CaveatEntry(
        rule="compare/session.py",
        fact="It was only counted, and not timed: every process would have to compile it anew.",
        advice="Time both with `torchmark run`, and hold the runs against each other with `torchmark compare`.",
        mark="c",
    ),
    FewRounds: CaveatEntry(
        rule="analysis/verdict/stored.py",
        fact=lambda c: (
            f"One side was timed in {count(c.rounds, 'round')}; to know how far processes are apart takes {c.wanted}."
        ),
        advice=lambda c, face, used: f"Take more with `torchmark run --repeat {c.wanted}`.",
        mark="r",
        severity=lambda c: -c.rounds,
    ),
    LeftOut: CaveatEntry(
        rule="analysis/verdict/stored.py",
        fact=lambda c: (
            f"Another kind of machine measured {count(c.rounds, 'round')} of {c.of} of the "
            f"{METRIC_WORDS.get(c.metric, c.metric)} of {printable(c.side)}; that is left out."
        ),
        advice="Measure on nodes of one kind; `torchmark show` tells in what they differ.",
        mark="e",
        severity=lambda c: c.rounds / c.of,
    ),
    ManyThreads: CaveatEntry(
        rule="analysis/verdict/visits.py",
        fact=lambda c: f"It uses {count(c.threads, 'thread')}: neither times nor counts repeat as those of one do.",
        advice="Compare with one thread to see small changes.",
        mark="t",
        severity=lambda c: c.threads,
    ),
    TooShort: CaveatEntry(
        rule="analysis/verdict/visits.py",
        fact=lambda c: f"A run takes {format_time(c.seconds)}: the loop around it is a large part of what was timed.",
        advice="Let the statement do its work several times.",
        mark="s",
        severity=lambda c: -c.seconds,
    ),
    TooLong: CaveatEntry(
        rule="analysis/verdict/visits.py",
        fact=lambda c: (
            f"A run takes {format_time(c.seconds)}, too long for taking turns to cancel what disturbs the machine."
        ),
        advice="Smaller inputs show small changes better.",
        mark="g",
        severity=lambda c: c.seconds,
    ),
    SlowSpells: CaveatEntry(
        rule="analysis/verdict/visits.py",
        fact=lambda c: (
            f"The machine was {c.factor:.3g} times slower for {format_share(c.share)} of the time; the ratio holds, "
            "times do not."
        ),
        advice="Do not hold these times against those of another day; `torchmark doctor` may tell what slows it.",
        mark="h",
        severity=lambda c: c.share,
    ),
    WildPairs: CaveatEntry(
        rule="analysis/verdict/visits.py",
        fact=lambda c: f"{format_share(c.share)} of the pairs of blocks differ by more than 10 %.",
        advice="Is the machine busy, or does the statement depend on chance?",
        mark="w",
        severity=lambda c: c.share,
    ),
    PageFaults: CaveatEntry(
        rule="analysis/verdict/visits.py",
        fact=lambda c: f"{format_share(c.share)} of the blocks used pages of memory for the first time.",
        advice="Allocate what it needs in the setup, where that is not what is compared.",
        mark="p",
        severity=lambda c: c.share,
    ),
    Interrupted: CaveatEntry(
        rule="analysis/verdict/visits.py",
        fact=lambda c: f"Other programs interrupted {format_share(c.share)} of the blocks.",
        advice="Compare on a quieter machine; `torchmark doctor` may tell what else runs.",
        mark="b",
        severity=lambda c: c.share,
    ),
}
# Its results were not compared with those of other variants.
UNCHECKED = "?"
# Something failed in some rounds and not in others.
SOMETIMES = "!"
MARKS = {*(entry.mark for entry in CATALOGUE.values() if entry.mark), UNCHECKED, SOMETIMES}
# Options of `torchmark time` that other advice would name, and that suites are not measured with.
NOT_OFFERED = ("adaptive",)
# Reasons for the same thing that a person reads; there is hardly ever more than one.
MOST_REASONS = 3


def describe_fact(caveat: AnyCaveat) -> str:
    """What was seen.

    >>> describe_fact(LayoutSensitive(0.014))
    'Its time moves by 1.4 % with the layout of memory.'
    """
    fact = CATALOGUE[type(caveat)].fact
    return fact if isinstance(fact, str) else fact(caveat)


def describe_advice(caveat: AnyCaveat, face: Face = "shell", used: Collection[str] = ()) -> str:
    """What to try; the same for many caveats of a kind."""
    advice = CATALOGUE[type(caveat)].advice
    return advice if isinstance(advice, str) else advice(caveat, face, used)


def describe_caveat(caveat: AnyCaveat, face: Face = "shell", used: Collection[str] = ()) -> str:
    """One sentence that says what was seen and one that says what to try.

    `face` says how options are spelt; `used` names those already in use, which are not advised again.

    >>> describe_caveat(FewSamples(1, 6))
    '1 sample; an interval of the median takes 6. Take more with a larger --min-run-time.'
    """
    return f"{describe_fact(caveat)} {describe_advice(caveat, face, used)}"


def _join_marks(caveats: Iterable[AnyCaveat]) -> str:
    kinds = {type(caveat) for caveat in caveats}
    return "".join(entry.mark for kind, entry in CATALOGUE.items() if kind in kinds)


def find_marks(summary: CaseSummary) -> str:
    measured = {Metric.WALL: summary.wall, Metric.COUNT: summary.count}
    sometimes = any(measured[metric] is not None for metric, _ in summary.failures)
    return _join_marks(summary.caveats) + (UNCHECKED if summary.unchecked else "") + (SOMETIMES if sometimes else "")


def find_comparison_marks(judgement: CaseJudgement, shared: Collection[ComparisonCaveat]) -> str:
    marks = _join_marks(caveat for caveat in judgement.caveats if caveat not in shared)
    return marks + (SOMETIMES if judgement.failures and judgement.verdict is not Verdict.FAILED else "")


def _gather(by_case: Sequence[Collection[AnyCaveat]]) -> Iterator[tuple[str, str]]:
    """Each kind once, in the order of marks, with its mark: of how many cases, at worst, and what to do."""
    found: dict[tuple[type[AnyCaveat], str], list[tuple[int, AnyCaveat]]] = {}
    for case, caveats in enumerate(by_case):
        for caveat in dict.fromkeys(caveats):
            found.setdefault((type(caveat), _sort_of(caveat)), []).append((case, caveat))
    for kind, entry in CATALOGUE.items():
        if entry.mark:
            yield from ((entry.mark, _describe_worst(entry, same)) for (one, _), same in found.items() if one is kind)


def _sort_of(caveat: AnyCaveat) -> str:
    """What differs within a kind by more than a number."""
    return caveat.what if isinstance(caveat, Incomparable) else caveat.reason if isinstance(caveat, Unmatched) else ""


def _describe_worst(entry: CaveatEntry, found: Sequence[tuple[int, AnyCaveat]]) -> str:
    """How many cases these are of, and the worst of them; where none is worse than others, the first."""
    cases, caveats = len({case for case, _ in found}), [caveat for _, caveat in found]
    worst = max(caveats, key=entry.severity) if entry.severity else caveats[0]
    text = describe_caveat(worst, "shell", NOT_OFFERED)
    if cases == 1:
        return text
    which = "" if len(set(caveats)) == 1 else ", at worst" if entry.severity else ", for example"
    return f"{cases} cases{which}: {text}"


def explain_marks(summaries: Sequence[CaseSummary], width: int) -> list[str]:
    """What the marks mean that were used: how often, at worst, and what to do about it."""
    lines = [f"{mark}  {text}" for mark, text in _gather([summary.caveats for summary in summaries])]
    reasons = list(dict.fromkeys(summary.unchecked for summary in summaries if summary.unchecked))
    lines += [
        f"{UNCHECKED}  Its results were not compared with other variants': {printable(reason)}"
        for reason in reasons[:MOST_REASONS]
    ]
    if any(SOMETIMES in find_marks(summary) for summary in summaries):
        lines.append(f"{SOMETIMES}  It failed in some rounds; the numbers are of the others.")
    return [line for text in lines for line in wrap(text, width, 3)]


def explain_environments(summaries: Sequence[CaseSummary], width: int) -> list[str]:
    """What holds for all counts of an environment, told once."""
    found: dict[Caveat, dict[Target, None]] = {}
    for summary in summaries:
        for caveat in summary.caveats:
            if isinstance(caveat, OtherInstructionSet):
                found.setdefault(caveat, {})[summary.target] = None
    everywhere = {summary.target for summary in summaries if summary.count}
    lines = []
    for caveat, targets in found.items():
        where = f"({', '.join(map(name_target, targets))}) " if set(targets) != everywhere else ""
        lines += wrap(f"Note: {where}{describe_caveat(caveat)}", width, 2)
    return lines


def find_shared(judgements: Sequence[CaseJudgement]) -> tuple[ComparisonCaveat, ...]:
    """What holds for all that was measured, alike: a note, and no mark in every line."""
    measured = [judgement.caveats for judgement in judgements if judgement.verdict is not Verdict.FAILED]
    if len(measured) < 2:
        return ()
    return tuple(dict.fromkeys(one for one in measured[0] if all(one in caveats for caveats in measured)))


def explain_doubts(judgements: Sequence[CaseJudgement]) -> list[tuple[str, str]]:
    """Each kind once, with its mark: of how many cases, at worst, and what to do. What holds for all has no mark."""
    shared = find_shared(judgements)
    told = [("", describe_caveat(caveat)) for caveat in shared]
    told += _gather([[one for one in judgement.caveats if one not in shared] for judgement in judgements])
    if any(SOMETIMES in find_comparison_marks(judgement, shared) for judgement in judgements):
        told.append((SOMETIMES, "A part of it failed; the verdict is on the rest."))
    return told
