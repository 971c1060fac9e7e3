"""What is to be doubted: of one case, and of all of them together."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from torchmark.model.comparison import ComparisonCaveat
from torchmark.model.dossier import Dossier, Entry, Party
from torchmark.model.judgement import Judgement
from torchmark.model.summary import CaseSummary
from torchmark.report.comparison_marks import explain_doubts, find_shared
from torchmark.report.comparison_wording import word_doubt
from torchmark.report.marks import MARKS, NOT_OFFERED, SOMETIMES, UNCHECKED, explain_environments, explain_marks
from torchmark.report.pages.status import list_own_caveats
from torchmark.report.printable import printable
from torchmark.report.wording import word_caveat

Doubt = tuple[str, str]
"""The kind of a caveat, and sentences on it."""

# Sentences are not broken into lines here: browsers do that.
ENDLESS = 1_000_000


def list_doubts(entry: Entry, parties: Sequence[Party], shared: Collection[ComparisonCaveat]) -> list[Doubt]:
    """All that is to be doubted of a case. What all cases share is told once, elsewhere."""
    found: list[Doubt] = []
    if entry.judgement is not None:
        found += [(one.kind, word_doubt(one)) for one in entry.judgement.caveats if one not in shared]
    own = [[] if summary is None else _list_own(summary) for summary in entry.exhibits]
    return list(dict.fromkeys([*found, *_name_owners(own, parties)]))


def _list_own(summary: CaseSummary) -> list[Doubt]:
    own = [(one.kind, word_caveat(one, "shell", NOT_OFFERED)) for one in list_own_caveats(summary)]
    if summary.unchecked:
        reason = printable(summary.unchecked)
        own.append(("unchecked", f"Its results were not compared with other variants': {reason}"))
    return own


def _name_owners(found: Sequence[Sequence[Doubt]], parties: Sequence[Party]) -> Iterator[Doubt]:
    """With the name of the party that it is told of, unless it is told of all."""
    for doubt in dict.fromkeys(doubt for own in found for doubt in own):
        owners = [printable(party.name) for party, own in zip(parties, found, strict=True) if doubt in own]
        yield doubt if len(owners) == len(parties) else (doubt[0], f"{', '.join(owners)}: {doubt[1]}")


def find_common(dossier: Dossier) -> tuple[ComparisonCaveat, ...]:
    """What is to be doubted of every comparison alike."""
    return find_shared(_list_judgements(dossier))


def sum_up_doubts(dossier: Dossier) -> list[str]:
    """Each kind once: of how many cases, at worst, and what to do about it."""
    texts = [text for _, text in explain_doubts(_list_judgements(dossier))]
    found: list[list[Doubt]] = []
    for i in range(len(dossier.parties)):
        there = [summary for entry in dossier.entries if (summary := entry.exhibits[i]) is not None]
        lines = [*explain_environments(there, ENDLESS), *explain_marks(there, ENDLESS)]
        found.append([("", text) for text in _strip(lines)])
    return list(dict.fromkeys([*texts, *(text for _, text in _name_owners(found, dossier.parties))]))


def _list_judgements(dossier: Dossier) -> list[Judgement]:
    return [entry.judgement for entry in dossier.entries if entry.judgement is not None]


def _strip(lines: Sequence[str]) -> Iterator[str]:
    """Without what stands before the sentences in a terminal: marks, and the word for what has none."""
    marks = {*MARKS.values(), UNCHECKED, SOMETIMES}
    for line in lines:
        mark, _, text = line.partition(" ")
        yield text.strip() if mark in {*marks, "Note:"} else line
