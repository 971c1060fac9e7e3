"""From a comparison that was just made to the dossier of a report, with exact flame graphs of what was traced."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence

from torchmark import __version__
from torchmark.analysis.breakdown import break_down
from torchmark.analysis.picturing import abridge, draw_difference, picture, share_out_frames
from torchmark.analysis.results import CONFIDENCE, summarise_counts
from torchmark.analysis.summarise import find_median_interval, summarise
from torchmark.api.comparison import Comparison, Entry, Evidence
from torchmark.callgrind.symbols import standardise
from torchmark.cli.comparing import Found
from torchmark.cli.reproducing import Labels, Sides, spell_commands
from torchmark.model import dossier as pages
from torchmark.model.case import Case
from torchmark.model.costs import Tally
from torchmark.model.flame import Flame, Stacks
from torchmark.model.judgement import Judgement, Side, TimeEvidence
from torchmark.model.outcome import Failure
from torchmark.model.plan import Metric, Order, Target
from torchmark.model.summary import CaseSummary, WallSummary
from torchmark.report.plots.differences import draw_differences
from torchmark.report.printable import count
from torchmark.report.variants import name_case
from torchmark.runner.host import describe_host, describe_sources

Traced = Mapping[Case, tuple[Stacks, Stacks]]
DIFFERENCES = "How much longer head takes than base, visit by visit, in each layout of memory."


def make_live_dossier(
    comparison: Comparison, found: Found, traced: Traced, *, title: str, commands: Sequence[pages.Command] = ()
) -> pages.Dossier:
    """The page of a comparison. `traced` has the exact stacks of both sides of some cases."""
    most = share_out_frames(len(comparison.entries))
    labels = Labels(entry.head for entry in comparison.entries)
    return pages.Dossier(
        title=title,
        parties=tuple(_make_party(comparison, found.evidence, side) for side in Side),
        entries=tuple(
            _make_entry(comparison, found, entry, judgement, traced, most, labels)
            for entry, judgement in zip(comparison.entries, found.judgements, strict=True)
        ),
        created=time.time(),
        torchmark=__version__,
        method=_word_method(comparison, found, len(traced)),
        commands=tuple(commands),
    )


def _target(comparison: Comparison, side: Side) -> Target:
    return comparison.base if side is Side.BASE else comparison.head


def _make_party(comparison: Comparison, evidence: Evidence, side: Side) -> pages.Party:
    found = evidence.list_environments(_target(comparison, side))
    suites = (entry.head.suite for entry in comparison.entries if entry.head.suite)
    return pages.Party(side.value, "", found, describe_host(os.environ), describe_sources(suites))


def _make_entry(
    comparison: Comparison,
    found: Found,
    entry: Entry,
    judgement: Judgement,
    traced: Traced,
    most: int,
    labels: Labels,
) -> pages.Entry:
    counted = [
        found.evidence.counted.get(Order(case, _target(comparison, side), Metric.COUNT))
        for side, case in zip(Side, (entry.base, entry.head), strict=True)
    ]
    tallies = [one if isinstance(one, Tally) else None for one in counted]
    sides = Sides("head", comparison.head.python, "base", comparison.base.python)
    drawn = () if judgement.time is None else (_draw(judgement),)
    return pages.Entry(
        entry.head,
        tuple(
            _summarise(comparison, entry, judgement, side, tally, failure)
            for side, tally, failure in zip(Side, tallies, counted, strict=True)
        ),
        judgement,
        break_down(tallies, standardise),
        tuple(_choose_flames(entry.head, tallies, traced, most)),
        drawn,
        spell_commands(entry.head, labels, sides)[:1],
    )


def _draw(judgement: Judgement) -> pages.Drawing:
    assert judgement.time is not None
    name = f"{name_case(judgement.case)}: difference in time by layout of memory"
    return pages.Drawing(DIFFERENCES, draw_differences(judgement.time, name=name))


def _choose_flames(case: Case, tallies: Sequence[Tally | None], traced: Traced, most: int) -> Sequence[Flame]:
    """The exact difference where there is one; what a call graph tells otherwise."""
    if case in traced:
        return [abridge(draw_difference(*traced[case], name_case(case)), most)]
    flame = picture(tallies, name_case(case), most)
    return [] if flame is None else [flame]


def _summarise(
    comparison: Comparison,
    entry: Entry,
    judgement: Judgement,
    side: Side,
    tally: Tally | None,
    counted: Tally | Failure | None,
) -> CaseSummary:
    failures = [(Metric.COUNT, counted)] if isinstance(counted, Failure) else []
    failures += [(Metric.WALL, one.failure) for one in judgement.failures if one.side is side]
    return CaseSummary(
        entry.base if side is Side.BASE else entry.head,
        _target(comparison, side),
        None if judgement.time is None else _summarise_times(judgement.time, side),
        None if tally is None else summarise_counts([tally]),
        tuple(dict.fromkeys(failures)),
    )


def _summarise_times(evidence: TimeEvidence, side: Side) -> WallSummary | None:
    """Of the visits, each of which gives one time."""
    times = evidence.list_times(side)
    return WallSummary(summarise(times), find_median_interval(times, CONFIDENCE), tuple(times)) if times else None


def _word_method(comparison: Comparison, found: Found, traced: int) -> tuple[str, ...]:
    sentences = []
    if Metric.WALL in comparison.metrics:
        sentences.append(
            "Both sides were timed in turns, block by block on one core, in several layouts of memory; a change in "
            "time was seen again on fresh layouts before it was called one."
        )
    if Metric.COUNT in comparison.metrics:
        sentences.append(
            "Instructions are counted by Valgrind's Callgrind, as the median of "
            f"{count(len(comparison.count_layouts), 'layout')} of memory."
        )
    if traced:
        sentences.append(
            f"The flame graphs of {count(traced, 'case')} that became slower are exact, with all callers; the others "
            "are of the counts, shared out among callers."
        )
    return tuple(sentences)
