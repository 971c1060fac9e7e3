"""The sentences of the report page: status, doubts, surroundings, and what was found."""

from __future__ import annotations

import enum
import math
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

from torchmark.analysis.flames import MOST_GRAPHS
from torchmark.analysis.gate import hold_gate
from torchmark.model.caveats import Caveat, ComparisonCaveat, OtherInstructionSet
from torchmark.model.environment import Environment
from torchmark.model.gate import FailOn, GateResult, Policy
from torchmark.model.judgement import CaseJudgement, Verdict
from torchmark.model.report_data import ReportData, ReportEntry, ReportSide
from torchmark.model.run import CaseSummary
from torchmark.report.caveats import (
    MARKS,
    NOT_OFFERED,
    describe_caveat,
    explain_doubts,
    explain_environments,
    explain_marks,
    find_shared,
)
from torchmark.report.text.names import Variants
from torchmark.report.text.run_summary import SHORT_COMMIT, describe_kinds, describe_nodes, format_sources
from torchmark.report.text.terminal import count, format_lines, printable
from torchmark.report.text.units import format_delta, format_share, to_share
from torchmark.report.text.verdict_reasons import format_verdict_change


class EntryStatus(enum.Enum):
    """What rows are told apart by, in the order in which they are listed. The value is the word that is shown."""

    SLOWER = "slower"
    FAILED = "failed"
    FASTER = "faster"
    UNDECIDED = "undecided"
    SAME = "same"
    NOT_COMPARED = "not compared"
    """Something differs that changes numbers by itself."""
    ONLY_BASE = "only in base"
    ONLY_HEAD = "only in head"
    MISSING = "not measured"
    DOUBTFUL = "with caveats"
    MEASURED = "measured"


# What colour vision does not tell, these do.
SIGNS = {
    EntryStatus.SLOWER: "▲",
    EntryStatus.FASTER: "▼",
    EntryStatus.FAILED: "✕",
    EntryStatus.UNDECIDED: "?",
    EntryStatus.SAME: "=",
    EntryStatus.NOT_COMPARED: "≠",
    EntryStatus.ONLY_BASE: "−",
    EntryStatus.ONLY_HEAD: "+",
    EntryStatus.MISSING: "…",
    EntryStatus.DOUBTFUL: "!",
    EntryStatus.MEASURED: "✓",
}


def find_status(entry: ReportEntry) -> EntryStatus:
    if entry.judgement is not None:
        return {verdict: EntryStatus(verdict.value) for verdict in Verdict}[entry.judgement.verdict]
    there = [one for one in entry.summaries if one is not None]
    if len(there) < len(entry.summaries):
        return EntryStatus.ONLY_BASE if entry.summaries[0] is not None else EntryStatus.ONLY_HEAD
    if any(one.failures for one in there):
        return EntryStatus.FAILED
    if any(one.wall is None and one.count is None for one in there):
        return EntryStatus.MISSING
    if len(there) > 1:
        return EntryStatus.NOT_COMPARED
    return EntryStatus.DOUBTFUL if any(list_own_caveats(one) for one in there) else EntryStatus.MEASURED


def list_own_caveats(summary: CaseSummary) -> list[Caveat]:
    """What is to be doubted of this case; what holds for all counts of an environment is told once, and elsewhere."""
    return [caveat for caveat in summary.caveats if not isinstance(caveat, OtherInstructionSet)]


Doubt = tuple[str, str]
"""The kind of a caveat, and sentences on it."""

# Sentences are not broken into lines here: browsers do that.
ENDLESS = 1_000_000


def list_doubts(entry: ReportEntry, sides: Sequence[ReportSide], shared: Collection[ComparisonCaveat]) -> list[Doubt]:
    """All that is to be doubted of a case. What all cases share is told once, elsewhere."""
    caveats = () if entry.judgement is None else entry.judgement.caveats
    found = [(one.kind, describe_caveat(one)) for one in caveats if one not in shared]
    own = [[] if summary is None else _list_own(summary) for summary in entry.summaries]
    return list(dict.fromkeys([*found, *_name_owners(own, sides)]))


def _list_own(summary: CaseSummary) -> list[Doubt]:
    own = [(one.kind, describe_caveat(one, "shell", NOT_OFFERED)) for one in list_own_caveats(summary)]
    if summary.unchecked:
        reason = printable(summary.unchecked)
        own.append(("unchecked", f"Its results were not compared with other variants': {reason}"))
    return own


def _name_owners(found: Sequence[Sequence[Doubt]], sides: Sequence[ReportSide]) -> Iterator[Doubt]:
    """With the name of the side that it is told of, unless it is told of all."""
    for doubt in dict.fromkeys(doubt for own in found for doubt in own):
        owners = [printable(side.name) for side, own in zip(sides, found, strict=True) if doubt in own]
        yield doubt if len(owners) == len(sides) else (doubt[0], f"{', '.join(owners)}: {doubt[1]}")


def find_common(report: ReportData) -> tuple[ComparisonCaveat, ...]:
    return find_shared(_list_judgements(report))


def describe_doubts(report: ReportData) -> list[str]:
    """Each kind once: of how many cases, at worst, and what to do about it."""
    texts = [text for _, text in explain_doubts(_list_judgements(report))]
    found: list[list[Doubt]] = []
    for i in range(len(report.sides)):
        there = [summary for entry in report.entries if (summary := entry.summaries[i]) is not None]
        lines = [*explain_environments(there, ENDLESS), *explain_marks(there, ENDLESS)]
        found.append([("", text) for text in _strip(lines)])
    return list(dict.fromkeys([*texts, *(text for _, text in _name_owners(found, report.sides))]))


def _list_judgements(report: ReportData) -> list[CaseJudgement]:
    return [entry.judgement for entry in report.entries if entry.judgement is not None]


def _strip(lines: Sequence[str]) -> Iterator[str]:
    """Without what stands before the sentences in a terminal: marks, and the word for what has none."""
    for line in lines:
        mark, _, text = line.partition(" ")
        yield text.strip() if mark in {*MARKS, "Note:"} else line


UNKNOWN = "–"


Fact = tuple[str, tuple[str, ...], bool]
"""What something is called, what is known of it of each side, and whether that differs."""

# What a worker tells of itself, by what people call it.
_FIELDS: dict[str, Callable[[Environment], str | None]] = {
    "torch": lambda one: one.torch_version,
    "torch commit": lambda one: one.torch_commit and one.torch_commit[:SHORT_COMMIT],
    "Python": lambda one: one.python_version,
    "Interpreter": lambda one: one.python,
    "Debug symbols": lambda one: "yes" if one.debug_symbols else "no",
    "Instruction set": lambda one: one.native_capability if one.valgrind is None else None,
    "Instruction set, counted": lambda one: None if one.valgrind is None else one.cpu_capability,
    "Valgrind": lambda one: one.valgrind and one.valgrind.removeprefix("valgrind-"),
    "Hash seed": lambda one: one.hash_seed,
}


def list_facts(sides: Sequence[ReportSide]) -> list[Fact]:
    """All that is known of anybody, with the most telling first."""
    facts = [_make_fact("Results", [side.title for side in sides], telling=False)]
    facts += [_make_fact(name, [_ask(side, field) for side in sides]) for name, field in _FIELDS.items()]
    hosts = [_describe_host(side) for side in sides]
    facts += [_make_fact(name, [host[name] for host in hosts]) for name in hosts[0]]
    # Other nodes of the same kind change nothing.
    nodes = [describe_nodes(one.nodes, timed=any(e.valgrind is None for e in one.environments)) for one in sides]
    facts.append(_make_fact("Nodes", nodes, telling=False))
    facts.append(_make_fact("Kinds of nodes", [describe_kinds(side.count_kinds) for side in sides], telling=False))
    names = sorted({name for side in sides for one in side.environments for name, _ in one.variables})
    facts += [_make_fact(f"${name}", [_ask(side, _read_variable(name)) for side in sides]) for name in names]
    facts.append(_make_fact("Benchmarks", [format_sources(side.sources) for side in sides]))
    return [fact for fact in facts if any(value != UNKNOWN for value in fact[1])]


def list_builds(sides: Sequence[ReportSide]) -> list[tuple[str, str]]:
    """How each torch was built, in its own words; once for those that are alike."""
    texts: dict[str, list[str]] = {}
    for side in sides:
        if text := "\n".join(_collect(one.torch_build for one in side.environments)):
            texts.setdefault(format_lines(text), []).append(printable(side.name))
    return [(" and ".join(names), text) for text, names in texts.items()]


def describe_versions(side: ReportSide) -> str:
    texts = [f"{name} {value}" for name in ("torch", "Python") if (value := _ask(side, _FIELDS[name])) != UNKNOWN]
    return printable(", ".join(texts))


def _make_fact(name: str, values: Sequence[str], *, telling: bool = True) -> Fact:
    shown = tuple(printable(value) or UNKNOWN for value in values)
    return printable(name), shown, telling and len(set(shown)) > 1


def _collect(values: Iterable[str | None]) -> list[str]:
    return list(dict.fromkeys(value for value in values if value))


def _ask(side: ReportSide, field: Callable[[Environment], str | None]) -> str:
    # A run that was gone on with elsewhere, or after an upgrade, has several.
    return " and ".join(_collect(map(field, side.environments))) or UNKNOWN


def _read_variable(name: str) -> Callable[[Environment], str | None]:
    return lambda one: dict(one.variables).get(name)


def _describe_host(side: ReportSide) -> dict[str, str]:
    # Of nodes, cores and quotas are not known.
    host, own = side.host, None if side.nodes else side.host
    cores = "" if own is None or own.cores_online is None else str(own.cores_online)
    if own is not None and own.cores_allowed not in (None, own.cores_online):
        cores = f"{own.cores_allowed} of {own.cores_online or '?'}"
    return {
        "Processor": " and ".join(_collect(one.cpu_model for one in side.nodes or filter(None, [host]))),
        "Cores": cores,
        "Quota": "" if own is None or own.cpu_quota is None else f"{own.cpu_quota:g}",
        "System": "" if host is None else host.system,
        "Compiler": (host and host.compiler) or "",
    }


# What a gate stops unless somebody says otherwise.
STOPS = frozenset({FailOn.SLOWER, FailOn.FAILED, FailOn.MISSING})
# Below this, no stage is told to be the one that a change is in.
MAIN_SHARE = 0.4
# From here on, what other stages gain and lose is hardly more than noise.
ALL = 0.995
# As a share: what is more than elevenfold is drawn as such, else all other bars would vanish beside it.
MOST_CHANGE = 10.0


def is_compared(report: ReportData) -> bool:
    return len(report.sides) == 2


def make_headline(report: ReportData) -> str:
    found = Counter(find_status(entry) for entry in report.entries)
    total = sum(found.values())
    if not total:
        return "There are no cases"
    if not is_compared(report):
        return _head_results(found, total)
    judged = Counter(find_status(entry) for entry in report.entries if entry.judgement is not None)
    return _head_comparison(judged) if judged else "Nothing was compared"


def _head_comparison(found: Counter[EntryStatus]) -> str:
    judged = sum(found.values())
    slower, faster = found[EntryStatus.SLOWER], found[EntryStatus.FASTER]
    failed, undecided = found[EntryStatus.FAILED], found[EntryStatus.UNDECIDED]
    if slower:
        also = f", {faster} {_are(faster)} faster" if faster else ""
        return f"{slower} of {count(judged, 'case')} {_are(slower)} slower{also}"
    if faster:
        return f"No case is slower, {faster} of {judged} {_are(faster)} faster"
    if failed == judged:
        return "Every case failed" if judged > 1 else "The case failed"
    if undecided:
        return f"No change was found; {undecided} of {count(judged, 'case')} {_are(undecided)} undecided"
    return f"Nothing changed in {count(judged - failed, 'case')}" + (f", {failed} failed" if failed else "")


def _head_results(found: Counter[EntryStatus], total: int) -> str:
    failed, missing = found[EntryStatus.FAILED], found[EntryStatus.MISSING]
    if failed == total:
        return "Every case failed" if total > 1 else "The case failed"
    if failed or missing:
        parts = [f"{failed} failed"] * bool(failed) + [f"{missing} {_are(missing)} not measured yet"] * bool(missing)
        return f"{total - failed - missing} of {count(total, 'case')} measured, {', '.join(parts)}"
    doubtful = f", {found[EntryStatus.DOUBTFUL]} with caveats" if found[EntryStatus.DOUBTFUL] else ""
    return f"{count(total, 'case')} measured{doubtful}"


def _are(number: int) -> str:
    return "is" if number == 1 else "are"


def name_sides(report: ReportData) -> str:
    """What is reported on, with what it was measured in."""
    sides = ((printable(one.name), describe_versions(one)) for one in reversed(report.sides))
    return " against ".join(f"{name} ({about})" if about else name for name, about in sides)


def describe_story(report: ReportData) -> list[str]:
    """How many cases of each kind there are, the worst of them, and where that comes from."""
    if not is_compared(report):
        return [text for text in (_describe_measured(report), _describe_stages(report.entries)) if text]
    slower, faster = (
        [entry for entry in report.entries if find_status(entry) is status]
        for status in (EntryStatus.SLOWER, EntryStatus.FASTER)
    )
    extremes = [_name_extreme(slower, "the worst", report), _name_extreme(faster, "the best", report)]
    found = Counter(find_status(entry) for entry in report.entries)
    numbers = ", ".join(f"{found[one]} {one.value}" for one in EntryStatus if found[one])
    counted = f"Of {count(len(report.entries), 'case')}, {numbers}" if found else "There are no cases"
    texts = ["; ".join(filter(None, [counted, *extremes])) + "."]
    # Who has something to worry about does not want to hear of gains first.
    texts.append(_describe_cause(slower, "slower") if slower else _describe_cause(faster, "faster"))
    return [text for text in texts if text]


def _name_extreme(entries: Sequence[ReportEntry], extreme: str, report: ReportData) -> str:
    judged = [entry.judgement for entry in entries if entry.judgement is not None]
    if not judged:
        return ""
    largest = max(judged, key=lambda one: abs(find_change(one)[0]))
    name = Variants(entry.case for entry in report.entries).name(largest.case)
    return f"{extreme} is {name} ({format_verdict_change(largest)})"


def find_change(judgement: CaseJudgement) -> tuple[float, float, float]:
    """The change that is told, as a share, and its interval; instructions have none. Nothing is more than tenfold."""
    time, counted = judgement.time, judgement.count
    if time is not None and (time.verdict is judgement.verdict or counted is None):
        values = to_share(time.log_ratio), to_share(time.low), to_share(time.high)
    else:
        values = (0.0 if counted is None else counted.ratio,) * 3
    share, low, high = (0.0 if math.isnan(value) else max(min(value, MOST_CHANGE), -1.0) for value in values)
    return share, low, high


def _describe_measured(report: ReportData) -> str:
    timed, counted = (
        sum(any(one is not None and getattr(one, what) for one in entry.summaries) for entry in report.entries)
        for what in ("wall", "count")
    )
    parts = [f"{timed} timed"] * bool(timed) + [f"{counted} counted"] * bool(counted)
    return f"Of {count(len(report.entries), 'case')}, {' and '.join(parts) or 'nothing was measured'}."


def _describe_stages(entries: Sequence[ReportEntry]) -> str:
    """The stage that most of a case's instructions are in, over all cases."""
    shares = add_up_shares(entries)
    if not shares:
        return ""
    stage, share = max(shares.items(), key=lambda one: one[1])
    which = "" if (found := describe_explained(entries)) == "all cases" else f" over {found}"
    return f"On average{which}, {format_share(share)} of the instructions of a case are in the stage “{stage}”."


def describe_explained(entries: Sequence[ReportEntry]) -> str:
    """How many of the cases that were counted have functions and stages: a page has no room for those of many."""
    counted = [entry for entry in entries if any(one is not None and one.count for one in entry.summaries)]
    told = sum(entry.breakdown is not None for entry in counted)
    return "all cases" if len(counted) <= MOST_GRAPHS else f"{told} of {count(len(counted), 'case')}"


def add_up_shares(entries: Sequence[ReportEntry]) -> dict[str, float]:
    """What part of its instructions a case has in each stage, in the mean of all cases."""
    shares: dict[str, float] = defaultdict(float)
    told = [entry.breakdown for entry in entries if entry.breakdown is not None]
    for breakdown in told:
        total = sum(stage.head for stage in breakdown.stages)
        for stage in breakdown.stages:
            shares[stage.stage] += stage.head / total / len(told) if total else 0.0
    return {stage: share for stage, share in shares.items() if share > 0}


def add_up_changes(entries: Sequence[ReportEntry]) -> dict[str, float]:
    """How many instructions more each stage takes, in all of these cases together."""
    deltas: dict[str, float] = defaultdict(float)
    for entry in entries:
        # A side that was not counted gives no difference.
        for stage in entry.breakdown.stages if entry.breakdown is not None and entry.breakdown.only is None else ():
            deltas[stage.stage] += stage.delta
    return {stage: delta for stage, delta in deltas.items() if round(delta)}


def _describe_cause(entries: Sequence[ReportEntry], word: str) -> str:
    """Where the instructions went that changed with the time; empty where they are not known, or did not change."""
    deltas = add_up_changes(entries)
    total = sum(deltas.values())
    sign = 1 if word == EntryStatus.SLOWER.value else -1
    if total * sign <= 0:
        return ""
    stage, most = max(deltas.items(), key=lambda one: one[1] * sign)
    which = f"The {word} case takes" if len(entries) == 1 else f"All {word} ones together take"
    if (found := describe_explained(entries)) != "all cases":
        which = f"Together, {found} that are {word} take"
    text = f"{which} {format_delta(abs(total)).lstrip('+')} {'more' if sign > 0 else 'fewer'} instructions a run"
    # Of all that stages gained, whatever others lost.
    share = most / sum(delta for delta in deltas.values() if delta * sign > 0)
    if share < MAIN_SHARE:
        return f"{text}."
    if any(delta * sign < 0 for delta in deltas.values()):
        return f"{text}. The stage that {'gained' if sign > 0 else 'lost'} most is {stage} ({format_delta(most)})."
    how_much = "all" if share >= ALL else format_share(share)
    return f"{text}, {how_much} of them in the stage “{stage}”."


def hold_default_gate(report: ReportData) -> GateResult | None:
    """What a gate would say that lets nothing through; None where there is nothing to hold against anything."""
    judgements = _list_judgements(report)
    if not judgements:
        return None
    missing = [entry.case for entry in report.entries if find_status(entry) is EntryStatus.ONLY_BASE]
    return hold_gate(judgements, missing, {}, Policy(STOPS))
