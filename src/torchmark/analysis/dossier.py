"""From runs, and what comparing them gave, to the entries of a report."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

from torchmark.analysis.comparable import Part
from torchmark.analysis.contrast import CaseId, Contrast, identify
from torchmark.analysis.narrow import narrow_run
from torchmark.analysis.places import list_kinds, list_nodes
from torchmark.analysis.results import summarise_run
from torchmark.model.comparison import Incomparable
from torchmark.model.dossier import Entry, Party
from torchmark.model.judgement import Judgement
from torchmark.model.plan import Metric
from torchmark.model.summary import CaseSummary

NOTHING_COMPARED = Contrast(())


def make_party(part: Part, name: str, title: str = "") -> Party:
    """What is known of one side besides its results."""
    environments = dict.fromkeys(one.environment for one in part.outcomes if one.environment is not None)
    info = part.run.info
    nodes = list_nodes(part.outcomes, info.host)
    kinds = list_kinds(part.outcomes, Metric.COUNT, info.host) if nodes else ()
    return Party(name, title, tuple(environments), info.host, info.sources, nodes, kinds)


def make_entries(parts: Sequence[Part], contrast: Contrast = NOTHING_COMPARED) -> tuple[Entry, ...]:
    """One for each case that anybody has: those of the last part in their order, then what only the first has.

    There are one or two parts; of two, the first is base.
    """
    found = [_summarise(part) for part in parts]
    judged = {identify(judgement.case): judgement for judgement in contrast.judgements}
    refused = {identify(case): obstacles for case, obstacles in contrast.case_obstacles}
    keys = dict.fromkeys(key for part in found[::-1] for key in part)
    entries = (_make_entry(key, found, judged) for key in keys)
    return tuple(_add_obstacles(one, (*contrast.obstacles, *refused.get(identify(one.case), ()))) for one in entries)


def _add_obstacles(entry: Entry, obstacles: tuple[Incomparable, ...]) -> Entry:
    """The same with what keeps its sides from being compared, if it has both."""
    return dataclasses.replace(entry, obstacles=obstacles) if None not in entry.exhibits else entry


def _summarise(part: Part) -> dict[CaseId, CaseSummary]:
    summaries = summarise_run(narrow_run(part.run, targets=[part.target]))
    return {identify(summary.case): summary for summary in summaries}


def _make_entry(
    key: CaseId, found: Sequence[Mapping[CaseId, CaseSummary]], judged: Mapping[CaseId, Judgement]
) -> Entry:
    exhibits = tuple(part.get(key) for part in found)
    case = next(one.case for one in exhibits[::-1] if one is not None)
    judgement = judged.get(key)
    # What functions cost is in the breakdown, shortened; all of them, of all cases, would fill the memory.
    kept = None if judgement is None else dataclasses.replace(judgement, explanation=None)
    return Entry(case, exhibits, kept)
