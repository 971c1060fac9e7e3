"""The data of a report, from stored runs or from a comparison just made, with commands that repeat each case."""

from __future__ import annotations

import collections
import dataclasses
import os
import shlex
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

from torchmark import __version__
from torchmark.analysis.flames import (
    MOST_GRAPHS,
    abridge,
    break_down,
    draw_flame,
    find_only,
    picture,
    share_out_frames,
)
from torchmark.analysis.results import CONFIDENCE, list_kinds, list_nodes, narrow_run, summarise_counts, summarise_run
from torchmark.analysis.summarise import find_median_interval, summarise
from torchmark.analysis.verdict.comparable import RunTarget
from torchmark.analysis.verdict.stored import (
    CaseId,
    Contrast,
    compare_runs,
    identify,
    leave_out_incomparable,
)
from torchmark.api.stored_results import StoredSide, load_counts, name_sides, split
from torchmark.callgrind.profiles import standardise
from torchmark.compare.comparison import ComparedPair, Comparison
from torchmark.compare.session import ComparisonResult
from torchmark.define.discovery import DEFAULT_SUITES
from torchmark.define.selection import AUTOGRAD, LANGUAGES, RUNTIMES, And, Expression, Not, Word
from torchmark.model.caveats import Incomparable
from torchmark.model.costs import Flame, Stacks, Tally
from torchmark.model.judgement import CaseJudgement, Side, TimeEvidence
from torchmark.model.outcome import Failure
from torchmark.model.plan import Case, Metric, Order, Target
from torchmark.model.report_data import Command, Drawing, ReportData, ReportEntry, ReportSide
from torchmark.model.run import CaseSummary, Run, WallSummary
from torchmark.report.html.report_page import describe_method
from torchmark.report.html.report_rows import fill_status
from torchmark.report.plots.comparison import draw_differences
from torchmark.report.text.gate import list_obstacles
from torchmark.report.text.names import name_case
from torchmark.report.text.terminal import count
from torchmark.runner.machine import describe_host, describe_sources
from torchmark.store.runs import Store

# Labels that begin like that of a case are left out by name, if they are no more than these.
MOST_EXCLUDED = 3


@dataclasses.dataclass(frozen=True)
class Sides:
    """What the sides of a report are called in commands; of a single one, base's are None."""

    head: str
    head_python: str | None = None
    base: str | None = None
    base_python: str | None = None
    store: str = ""
    force: bool = False
    """Whether they are compared although they are not comparable."""

    @property
    def ending(self) -> str:
        return f" --store {shlex.quote(self.store)}" if self.store else ""


def format_again(sides: Sides, options: Sequence[str] = ()) -> tuple[Command, ...]:
    """How to get the whole page again, with these options, which are quoted for a shell already."""
    names = [sides.head, *([sides.base] if sides.base is not None else [])]
    text = " ".join(["torchmark", "report", *map(shlex.quote, names), *options])
    return (Command("This page again, from the results that are kept:", text + sides.ending),)


class Labels:
    """The labels of all cases, to name one of them so that no other case is meant."""

    def __init__(self, cases: Iterable[Case]) -> None:
        self._longer = _find_longer({join_path(case) for case in cases} - {""})

    def name_exactly(self, path: str) -> Expression:
        """An expression for this label that leaves out others of which it is a part, if these are few."""
        minimal: list[str] = []
        for other in sorted(self._longer.get(path, ()), key=lambda text: (len(text), text)):
            # What holds one that is left out already is left out with it.
            if not any(short in other for short in minimal):
                minimal.append(other)
            if len(minimal) > MOST_EXCLUDED:
                return Word(path)
        return And((Word(path), *(Not(Word(other)) for other in minimal))) if minimal else Word(path)


def _find_longer(paths: Collection[str]) -> dict[str, list[str]]:
    """For each text those others that it is a part of. Where these are parts of each other, the longer may be missing.

    This is the automaton of Aho and Corasick, whose work grows with the length of all texts together. Looking for each
    text in every other one would grow with the square of their number.
    """
    nodes: list[dict[str, int]] = [{}]
    ends = [""]
    for path in paths:
        node = 0
        for letter in path:
            if letter not in nodes[node]:
                nodes[node][letter] = len(nodes)
                nodes.append({})
                ends.append("")
            node = nodes[node][letter]
        ends[node] = path
    # Of each node, the node of its longest end that is also the beginning of a text, and the longest text that it ends
    # with besides itself.
    fallback, within = [0] * len(nodes), [""] * len(nodes)
    waiting = collections.deque(nodes[0].values())
    while waiting:
        node = waiting.popleft()
        within[node] = ends[fallback[node]] or within[fallback[node]]
        for letter, following in nodes[node].items():
            back = fallback[node]
            while back and letter not in nodes[back]:
                back = fallback[back]
            fallback[following] = nodes[back].get(letter, 0)
            waiting.append(following)
    longer: dict[str, list[str]] = {path: [] for path in paths}
    for path in paths:
        parts, node = set(), 0
        for letter in path:
            node = nodes[node][letter]
            parts.add(within[node] if ends[node] in ("", path) else ends[node])
        for part in parts - {""}:
            longer[part].append(path)
    return longer


def format_commands(case: Case, labels: Labels, sides: Sides) -> tuple[Command, ...]:
    """How to measure a case again, and where there are two sides, how to compare it. `labels` has all cases."""
    which, head = " ".join(_select(case, labels)), shlex.quote(sides.head)
    what = f"{shlex.quote(case.suite or DEFAULT_SUITES[0])} {which}"
    if sides.base is None:
        python = f" --python {shlex.quote(sides.head_python)}" if sides.head_python else ""
        again = Command("Measure it again:", f"torchmark run {what}{python}")
        return again, Command("Show what is kept of it:", f"torchmark show {head} {which}{sides.ending}")
    again = Command("Measure it again:", f"torchmark run {what}")
    if sides.base_python and sides.head_python and sides.base_python != sides.head_python:
        pythons = f"--base {shlex.quote(sides.base_python)} --head {shlex.quote(sides.head_python)}"
        again = Command("Compare it anew, in turns:", f"torchmark ab {what} {pythons}")
    kept = f"{shlex.quote(sides.base)} {head} {which}{' --force' if sides.force else ''}{sides.ending}"
    return again, Command("Compare what is kept of it:", f"torchmark compare {kept}")


def _select(case: Case, labels: Labels) -> Iterator[str]:
    """Options that mean this case, and others of its label only where nothing tells them apart."""
    path = join_path(case)
    if path:
        yield f"-k {shlex.quote(str(labels.name_exactly(path)))}"
    for field, names in (("language", LANGUAGES), ("runtime", RUNTIMES), ("autograd", AUTOGRAD)):
        value = getattr(case.autolabels, field)
        yield f"--{field} {next(name for name, one in names.items() if one is value)}"
    yield f"--threads {case.args.num_threads}"


def join_path(case: Case) -> str:
    """A label as expressions find it: as much of it as can be typed, and without blanks at its ends."""
    parts = "".join(c if c.isprintable() else "\n" for c in " / ".join(case.label)).split("\n")
    return max(parts, key=len).strip()


NOTHING_COMPARED = Contrast(())


def make_report_side(part: RunTarget, name: str, title: str = "") -> ReportSide:
    """What is known of one side besides its results."""
    environments = dict.fromkeys(one.environment for one in part.outcomes if one.environment is not None)
    info = part.run.info
    nodes = list_nodes(part.outcomes, info.host)
    kinds = list_kinds(part.outcomes, Metric.COUNT, info.host) if nodes else ()
    return ReportSide(
        name=name,
        title=title,
        environments=tuple(environments),
        host=info.host,
        sources=info.sources,
        nodes=nodes,
        count_kinds=kinds,
    )


def make_report_entries(parts: Sequence[RunTarget], contrast: Contrast = NOTHING_COMPARED) -> tuple[ReportEntry, ...]:
    """One for each case that anybody has: those of the last part in their order, then what only the first has.

    There are one or two parts; of two, the first is base.
    """
    found = [
        {identify(summary.case): summary for summary in summarise_run(narrow_run(part.run, targets=[part.target]))}
        for part in parts
    ]
    judged = {identify(judgement.case): judgement for judgement in contrast.judgements}
    refused = {identify(case): obstacles for case, obstacles in contrast.case_obstacles}
    keys = dict.fromkeys(key for part in found[::-1] for key in part)
    return tuple(
        _make_stored_entry(
            [part.get(key) for part in found], judged.get(key), (*contrast.obstacles, *refused.get(key, ()))
        )
        for key in keys
    )


def _make_stored_entry(
    summaries: Sequence[CaseSummary | None], judgement: CaseJudgement | None, obstacles: tuple[Incomparable, ...]
) -> ReportEntry:
    """`obstacles` keep its sides from being compared, if it has both."""
    case = next(one.case for one in summaries[::-1] if one is not None)
    # What functions cost is in the breakdown, shortened; all of them, of all cases, would fill the memory.
    kept = None if judgement is None else dataclasses.replace(judgement, explanation=None)
    return ReportEntry(case, tuple(summaries), kept, obstacles=() if None in summaries else obstacles)


@dataclasses.dataclass(frozen=True)
class ReportOptions:
    """What is asked of a report."""

    title: str | None = None
    flames: bool = True
    force: bool = False
    """Judge also what is not comparable."""
    store: str = ""
    """What commands have to say of the store."""
    options: tuple[str, ...] = ()
    """The options that make the page what it is, as they are typed."""


def load_report_data(
    store: Store, sides: Sequence[StoredSide], wanted: ReportOptions, select: Callable[[Case], bool]
) -> ReportData:
    """The results of a side, or of base and head."""
    parts = [RunTarget(store.load(side.info.id, select=select), side.target) for side in sides]
    contrast = _compare(parts, force=wanted.force) if len(parts) == 2 else NOTHING_COMPARED
    names = list(name_sides(sides[0], sides[1])) if len(sides) == 2 else [sides[0].name]
    pythons = [_find_python(part.run, side) for part, side in zip(parts, sides, strict=True)]
    python = pythons[-1] if len(sides) == 2 or sides[0].target.python else None
    spelt = Sides(head=names[-1], head_python=python, store=wanted.store, force=wanted.force)
    if len(sides) == 2:
        spelt = dataclasses.replace(spelt, base=names[0], base_python=pythons[0])
    labels = Labels(case for part in parts for case in part.run.plan.cases)
    entries = [
        dataclasses.replace(entry, commands=format_commands(entry.case, labels, spelt))
        for entry in make_report_entries(parts, contrast)
    ]
    explained = choose_explained(entries)
    return ReportData(
        title=wanted.title if wanted.title is not None else " against ".join(reversed(names)),
        sides=tuple(
            make_report_side(part, name, side.title) for part, name, side in zip(parts, names, sides, strict=True)
        ),
        entries=tuple(_add_functions(store, sides, names, entries, explained, flames=wanted.flames)),
        created=time.time(),
        torchmark=__version__,
        method=(
            *describe_method([part.run.plan.sampling for part in parts], in_turns=len({s.info.id for s in sides}) == 1),
            *_describe_unexplained(explained, entries),
        ),
        remarks=_describe_refusal(contrast),
        commands=format_again(spelt, wanted.options),
    )


def _compare(parts: Sequence[RunTarget], *, force: bool) -> Contrast:
    """Judgements, and why there are none, or fewer than there could be; no obstacles where they are overridden."""
    base, head = parts
    contrast = compare_runs(base.run, base.target, head.run, head.target, standardise)
    if force:
        return dataclasses.replace(contrast, obstacles=(), case_obstacles=())
    return leave_out_incomparable(contrast)


def _describe_refusal(contrast: Contrast) -> tuple[str, ...]:
    obstacles = list_obstacles(contrast)
    if not obstacles:
        return ()
    which = "These results are not comparable" if contrast.obstacles else "Some cases are not comparable"
    return ("\n".join([f"{which}; --force judges them all the same, and keeps the caveat.", *obstacles]),)


def _find_python(run: Run, side: StoredSide) -> str | None:
    """The interpreter, if all results are of one."""
    found = {one.environment.python for one in run.outcomes if one.environment and one.order.target == side.target}
    return side.target.python or (found.pop() if len(found) == 1 else None)


def choose_explained(entries: Sequence[ReportEntry]) -> list[CaseId]:
    """The counted cases whose functions are shown: of more than a page has room for, those that changed most, or of a
    single side those that take most instructions."""
    counted = [one for one in entries if _find_instructions(one)]
    if len(counted) > MOST_GRAPHS:
        is_single = len(counted[0].summaries) == 1
        counted.sort(key=lambda one: -_find_instructions(one) if is_single else fill_status(one).key or 0.0)
    return [identify(one.case) for one in counted[:MOST_GRAPHS]]


def _find_instructions(entry: ReportEntry) -> float:
    """Those of a run, on the side that has most; 0 where nothing was counted."""
    return max((one.count.instructions for one in entry.summaries if one is not None and one.count), default=0.0)


def _describe_unexplained(explained: Sequence[CaseId], entries: Sequence[ReportEntry]) -> Iterator[str]:
    if sum(_find_instructions(one) > 0 for one in entries) > len(explained):
        which = "take most instructions" if len(entries[0].summaries) == 1 else "changed most"
        yield (
            f"Functions and flame graphs are of the {len(explained)} cases that {which}. For others, choose fewer "
            "cases with -k, or use torchmark show --functions."
        )


def _add_functions(
    store: Store,
    sides: Sequence[StoredSide],
    names: Sequence[str],
    entries: Sequence[ReportEntry],
    explained: Sequence[CaseId],
    *,
    flames: bool,
) -> list[ReportEntry]:
    most = share_out_frames(len(explained)) if flames else 0
    found = {identify(entry.case): entry for entry in entries}
    for batch in split(explained):
        counts = [load_counts(store, side, batch) for side in sides]
        for key in batch:
            tallies = [side[key].tally if key in side else None for side in counts]
            found[key] = _add_flames(found[key], tallies, names, most)
    return list(found.values())


def _add_flames(entry: ReportEntry, tallies: Sequence[Tally | None], names: Sequence[str], most: int) -> ReportEntry:
    flames: list[Flame | None] = []
    if most and entry.obstacles and find_only(tallies) is None:
        # What is not compared has no difference: a graph for each side.
        flames = [picture([tally], name, most // 2) for tally, name in zip(tallies, names, strict=True)]
    elif most:
        flames = [picture(tallies, name_case(entry.case), most)]
    drawn = tuple(filter(None, flames))
    return dataclasses.replace(entry, breakdown=break_down(tallies, standardise), flames=drawn)


Traced = Mapping[Case, tuple[Stacks, Stacks]]
DIFFERENCES = "How much longer head takes than base, visit by visit, in each layout of memory."


def make_live_report_data(
    comparison: Comparison,
    found: ComparisonResult,
    traced: Traced,
    *,
    title: str,
    commands: Sequence[Command] = (),
) -> ReportData:
    """The page of a comparison. `traced` has the exact stacks of both sides of some cases."""
    most = share_out_frames(len(comparison.entries))
    labels = Labels(entry.head for entry in comparison.entries)
    return ReportData(
        title=title,
        sides=tuple(
            ReportSide(
                name=side.value,
                title="",
                environments=found.evidence.list_environments(_target(comparison, side)),
                host=describe_host(os.environ),
                sources=describe_sources(entry.head.suite for entry in comparison.entries if entry.head.suite),
            )
            for side in Side
        ),
        entries=tuple(
            _make_live_entry(comparison, found, entry, judgement, traced, most, labels)
            for entry, judgement in zip(comparison.entries, found.judgements, strict=True)
        ),
        created=time.time(),
        torchmark=__version__,
        method=tuple(_describe_method(comparison, len(traced))),
        commands=tuple(commands),
    )


def _target(comparison: Comparison, side: Side) -> Target:
    return comparison.base if side is Side.BASE else comparison.head


def _make_live_entry(
    comparison: Comparison,
    found: ComparisonResult,
    entry: ComparedPair,
    judgement: CaseJudgement,
    traced: Traced,
    most: int,
    labels: Labels,
) -> ReportEntry:
    counted = [
        found.evidence.counted.get(Order(case, _target(comparison, side), Metric.COUNT))
        for side, case in zip(Side, (entry.base, entry.head), strict=True)
    ]
    tallies = [one if isinstance(one, Tally) else None for one in counted]
    sides = Sides("head", comparison.head.python, "base", comparison.base.python)
    return ReportEntry(
        case=entry.head,
        summaries=tuple(
            _summarise_counts(comparison, entry, judgement, side, one) for side, one in zip(Side, counted, strict=True)
        ),
        judgement=judgement,
        breakdown=break_down(tallies, standardise),
        flames=tuple(_choose_flames(entry.head, tallies, traced, most)),
        drawings=tuple(_draw(judgement)),
        commands=format_commands(entry.head, labels, sides)[:1],
    )


def _draw(judgement: CaseJudgement) -> Iterator[Drawing]:
    if judgement.time is not None:
        name = f"{name_case(judgement.case)}: difference in time by layout of memory"
        yield Drawing(DIFFERENCES, draw_differences(judgement.time, name=name))


def _choose_flames(case: Case, tallies: Sequence[Tally | None], traced: Traced, most: int) -> Sequence[Flame]:
    """The exact difference where there is one; what a call graph tells otherwise."""
    if case in traced:
        base, head = traced[case]
        return [abridge(draw_flame(head, name_case(case), base=base), most)]
    return [*filter(None, [picture(tallies, name_case(case), most)])]


def _summarise_counts(
    comparison: Comparison,
    entry: ComparedPair,
    judgement: CaseJudgement,
    side: Side,
    counted: Tally | Failure | None,
) -> CaseSummary:
    failures = [(Metric.COUNT, counted)] if isinstance(counted, Failure) else []
    failures += [(Metric.WALL, one.failure) for one in judgement.failures if one.side is side]
    return CaseSummary(
        case=entry.base if side is Side.BASE else entry.head,
        target=_target(comparison, side),
        wall=None if judgement.time is None else _summarise_times(judgement.time, side),
        count=summarise_counts([counted]) if isinstance(counted, Tally) else None,
        failures=tuple(dict.fromkeys(failures)),
    )


def _summarise_times(evidence: TimeEvidence, side: Side) -> WallSummary | None:
    """Of the visits, each of which gives one time."""
    times = evidence.list_times(side)
    return WallSummary(summarise(times), find_median_interval(times, CONFIDENCE), tuple(times)) if times else None


def _describe_method(comparison: Comparison, traced: int) -> Iterator[str]:
    if Metric.WALL in comparison.metrics:
        yield (
            "Both sides were timed in turns, block by block on one core, in several layouts of memory; a change in "
            "time was seen again on fresh layouts before it was called one."
        )
    if Metric.COUNT in comparison.metrics:
        yield (
            "Instructions are counted by Valgrind's Callgrind, as the median of "
            f"{count(len(comparison.count_layouts), 'layout')} of memory."
        )
    if traced:
        yield (
            f"The flame graphs of {count(traced, 'case')} that became slower are exact, with all callers; the others "
            "are of the counts, shared out among callers."
        )
